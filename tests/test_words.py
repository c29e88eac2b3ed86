"""Texts that people read use the project's terms: pages, documents, help and errors hold no retired or odd words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from datamask.cli.commands import COMMANDS
from datamask.cli.help_text import help_text
from datamask.cli.parser import Parser

ROOT = Path(__file__).resolve().parents[1]

FORBIDDEN = (
    # for words that name the thing
    *("whoever", "whatever", "nobody", "somebody", "anybody", "such a", "such an", "those that", "that which"),
    *("to be had", "wants", "goes on with", "gone on with", "hence", "thereby", "beside", "puts away", "put away"),
    # retired terms
    *("near-copy", "near-copies", "trial", "verdict", "judge", "judged", "judges", "starved", "over-fed", "foretold"),
    *("foretells", "keep share", "settled", "a matter of taste", "coin-flip", "coin-flips", "consensus core", "polish"),
    *("polished", "attainable", "take home", "a fault of the program", "inclusion weights"),
)

BRITISH = (
    *("behaviour", "cancelled", "centre", "colour", "favour", "grey", "judgement", "labell", "learnt", "licence"),
    *("modell", "neighbour", "towards"),
    r"(?:categor|factor|general|initial|maxim|minim|normal|optim|organ|penal|quant|random|recogn|regular|serial|"
    r"standard|summar|util|visual)is(?:e|ing|ation)",
)
"""Beginnings of words that Americans write in another way."""

ALLOWED = {
    "optimised names the selection": "the name of an argument",
}
"""Texts that stay, and why; at most ten."""

NOWHERE = (
    *("whoever", "nobody", "somebody", "such a", "such an", "that which", "to be had", "hence", "thereby"),
    *("near-copy", "near-copies", "trial", "trials", "verdict", "verdicts", "judge", "judged", "judges", "judging"),
)
"""Words of no document, help or error. Names in code are no words: option --judge, module `trial`."""

READ = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SKILL.md")), *sorted(ROOT.glob("docs/**/*.md"))]
"""The documents; the changelog too, apart from code."""

_NOWHERE = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, NOWHERE)) + r")(?![\w-])", re.IGNORECASE)
_CODE = re.compile(r"```.*?```|^ {4}.*$|``.+?``|`[^`]+`|(?<=\])\([^)]*\)", re.DOTALL | re.MULTILINE)
_BRITISH = re.compile(r"\b(?:" + "|".join(BRITISH) + r")\w*", re.IGNORECASE)
_WORD = re.compile(r"(?<!--)\b(?:" + "|".join(map(re.escape, FORBIDDEN)) + rf")\b|{_BRITISH.pattern}", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_JAVASCRIPT = re.compile(r"\"([^\"\n]*)\"|`([^`]*)`")


def texts(source: str) -> Iterator[str]:
    """The texts of a module that people may read: its string literals of two words or more, without docstrings."""
    tree = ast.parse(source)
    skipped = {
        id(statement.value)
        for node in ast.walk(tree)
        for statement in (getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else [])
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            text = _TAG.sub(" ", node.value).strip()
            if " " in text and "{" not in text:
                yield text


def texts_of_browser(source: str) -> Iterator[str]:
    """The same of a script of the browser."""
    for line in source.splitlines():
        if not line.lstrip().startswith(("//", "import")):
            for match in _JAVASCRIPT.finditer(line):
                text = re.sub(r"\$\{[^}]*\}", "", match[1] or match[2] or "").strip()
                if " " in text and "<" not in text:
                    yield text


def forbidden(text: str) -> list[str]:
    """The words of a text that are not to be used."""
    return [] if text in ALLOWED else sorted({match.lower() for match in _WORD.findall(text)})


def test_no_text_on_screen_holds_a_retired_term():
    found = []
    folders = ("datamask/dashboard", "datamask/analyses", "datamask/pages", "pages")
    for path in (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))):
        found += [(path.name, words, text) for text in texts(path.read_text()) if (words := forbidden(text))]
    for path in sorted((ROOT / "datamask/dashboard").rglob("*.js")):
        found += [(path.name, words, text) for text in texts_of_browser(path.read_text()) if (words := forbidden(text))]
    assert not found, "\n".join(f"{name}: {', '.join(words)}: {text}" for name, words, text in found)
    assert len(ALLOWED) <= 10


@pytest.mark.parametrize(
    "source, words",
    [
        ("st.caption('What nobody wants is starved.')", ["nobody", "starved", "wants"]),
        ("st.caption(f'{count} near-copies of a colour')", ["colour", "near-copies"]),
        ('def f():\n    """Whoever judges."""\n    return "verdict"', []),
        ("st.html('<b class=\"a verdict\">Rows</b> shown')", []),
    ],
)
def test_the_list_finds_what_it_should(source, words):
    assert sorted(word for text in texts(source) for word in forbidden(text)) == words


def test_options_are_spelled_with_underscores_as_the_help_prints_them():
    hyphened = re.compile(r"--(?!help-all|st-|index-url)[a-z]+-[a-z]")
    found = [
        f"{path.name}: {node.value}"
        for path in sorted((ROOT / "datamask").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and hyphened.search(node.value)
    ]
    documents = [path for path in READ if path.name not in ("text-to-ids.md",)]  # which says that hyphens work too
    found += [f"{path.name}: {word[0]}" for path in documents for word in hyphened.finditer(path.read_text())]
    assert not found, "\n".join(found)


def prose(markdown: str) -> str:
    """A document without code and addresses of links, each line of it in its place."""
    return _CODE.sub(lambda code: "\n" * code[0].count("\n"), markdown)


def raised(source: str) -> Iterator[str]:
    """The texts in the ``raise`` statements of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


@pytest.mark.parametrize("path", [*READ, ROOT / "CHANGELOG.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_document_holds_an_odd_word(path):
    lines = prose(path.read_text(encoding="utf-8")).splitlines()
    found = [(number, _NOWHERE.findall(line)) for number, line in enumerate(lines, 1) if _NOWHERE.search(line)]
    assert not found


def test_texts_of_the_code_are_american():
    found = []
    for path in sorted((ROOT / "datamask").rglob("*.py")):
        for text in texts(path.read_text(encoding="utf-8")):
            if text not in ALLOWED and (words := _BRITISH.findall(text)):
                found.append(f"{path.name}: {', '.join(words)}: {text}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "path", [*READ, ROOT / "CHANGELOG.md", *ROOT.glob("*/README.md")], ids=lambda path: str(path.relative_to(ROOT))
)
def test_documents_are_american(path):
    assert not _BRITISH.findall(prose(path.read_text(encoding="utf-8")))


def test_no_help_holds_an_odd_word():
    for name, (build, about) in COMMANDS.items():
        parser = Parser(prog=f"datamask {name}", description=about, add_help=False)
        build(parser)
        assert not _NOWHERE.findall(help_text(parser, whole=True)), name


def test_no_error_holds_an_odd_word():
    found = []
    for path in sorted((ROOT / "datamask").rglob("*.py")):
        found += [(path.name, text) for text in raised(path.read_text(encoding="utf-8")) if _NOWHERE.search(text)]
    assert not found


@pytest.mark.parametrize(
    "text, words",
    [
        ("Nobody reads such a line.", ["Nobody", "such a"]),
        ("Use `--judge` and `trial.py`, such as this.\n\n    python judge.py\n", []),
        ("See [a page](judge.md).\n\n```\nverdict\n```\nA verdict.", ["verdict"]),
        ("--judge learns from texts", []),
    ],
)
def test_odd_words_are_found_outside_of_code(text, words):
    assert _NOWHERE.findall(prose(text)) == words


def test_words_of_errors_are_found():
    source = 'def f(name):\n    """Whoever calls."""\n    raise ValueError(f"{name} is somebody\'s own")'
    assert [_NOWHERE.findall(text) for text in raised(source) if _NOWHERE.search(text)] == [["somebody"]]
