"""Report how long the sentences of the documents and of the help are.

    python -m benchmarks.sentences [--longest N]

Reads README.md, CONTRIBUTING.md, SKILL.md and docs/**/*.md, and the ``--help-all`` of every command. A word holds a
letter or a digit; inline code is one word. Not read: code blocks, tables, headings, pictures and the changelog. The aim
is a median of at most 18 words; nothing enforces it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from datamask.cli.commands import COMMANDS
from datamask.cli.parser import Parser

ROOT = Path(__file__).parents[1]

_END = re.compile(r"(?<=[.!?])[\"*)]*\s+(?=[\"*(\[]*[A-ZΛλ0-9`])")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_SKIPPED = re.compile(r"^(?:#|\||!\[|    |---|@|:)")


def documents() -> list[Path]:
    """Return the documents that people read, the changelog left out."""
    return [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SKILL.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def sentences(markdown: str) -> list[str]:
    """Return the sentences of a document.

    >>> sentences("# Title\\n\\nOne row. Two `rows: here`\\nand more.\\n\\n- An item")
    ['One row.', 'Two `code` and more.', 'An item']
    """
    return [sentence for paragraph in _paragraphs(markdown) for sentence in _split(paragraph)]


def _paragraphs(markdown: str) -> Iterator[str]:
    """Paragraphs and items of lists, each as one line without marks."""
    text = re.sub(r"^---\n.*?\n---\n", "", markdown, flags=re.DOTALL)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines: list[str] = []
    inside_list = False
    for line in [*text.splitlines(), ""]:
        item = bool(_ITEM.match(line))
        ends = not line.strip() or item or (_SKIPPED.match(line) and not (inside_list and line.startswith("  ")))
        if ends and lines:
            yield _plain(" ".join(lines))
            lines = []
        if item:
            inside_list = True
        elif not line.startswith(" ") and line.strip():
            inside_list = False
        if line.strip() and (item or not ends):
            lines.append(_ITEM.sub("", line).strip())


def _plain(text: str) -> str:
    """Text without the marks of inline code, links and emphasis."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"``.+?``|`[^`]+`", "`code`", text)
    return re.sub(r"\*+|(?<!\w)_|_(?!\w)", "", text).strip()


def _split(paragraph: str) -> list[str]:
    return [part for part in _END.split(paragraph) if words(part) > 1]


def words(sentence: str) -> int:
    """Count the words of a sentence.

    >>> words("Keeps 5,400 of 18,000 rows (30 %).")
    6
    """
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def help_sentences() -> list[str]:
    """Return what the help of all commands says, each sentence once."""
    found: dict[str, None] = {}
    for build, about in COMMANDS.values():
        parser = Parser(add_help=False)
        build(parser)
        texts = [about, *(action.help or "" for action in parser._actions)]
        found |= dict.fromkeys(sentence for text in texts for sentence in _split(_plain(text)))
    return list(found)


def main() -> None:
    """Print the number of sentences, their median and their 90th percentile for each document and for the help."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=int, default=0, metavar="N", help="also print the N longest sentences")
    wanted = parser.parse_args()
    found = {str(path.relative_to(ROOT)): sentences(path.read_text(encoding="utf-8")) for path in documents()}
    together = [sentence for each in found.values() for sentence in each]
    for name, each in [*found.items(), ("all documents", together), ("help of the commands", help_sentences())]:
        lengths = sorted(map(words, each))
        if len(lengths) > 1:
            tenth = quantiles(lengths, n=10)[-1]
            print(f"{name:36} {len(lengths):5} sentences, median {median(lengths):4g}, 90th percentile {tenth:4.0f}")
    for count, name, sentence in sorted(((words(s), n, s) for n, each in found.items() for s in each), reverse=True)[
        : wanted.longest
    ]:
        print(f"{count:4} {name}: {sentence}")


if __name__ == "__main__":
    main()
