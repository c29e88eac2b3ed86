"""What the documents say is so: commands parse, every objective and option is named, every linked file exists."""

from __future__ import annotations

import csv
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import datamask
from benchmarks.readme import table
from datamask import catalogue, cli
from datamask.cli import HANDLERS
from datamask.cli.help_text import add_help
from datamask.cli.parser import COMMANDS, Parser
from datamask.config import RunConfig
from datamask.runs.store import RunStore

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
COMMAND_LINE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
SHORT = 100
"""Lines of the README, at most: what it is, how it starts, what goes in and comes out. The rest is in docs/."""

WORDS = ("bridges", "trees", "rivers", "stars", "letters", "numbers", "songs")

DOCUMENTS = [
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md"))
    if not path.parent.name.startswith(".")
]


def test_the_readme_is_short_and_its_moving_picture_light():
    assert len(README.splitlines()) < SHORT
    (picture,) = re.findall(r"\]\((docs/screens/\S+\.gif)\)", README)
    assert (ROOT / picture).stat().st_size < 3_000_000


def test_contributing_is_short():
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) < 150


@pytest.mark.parametrize("document", [README, COMMAND_LINE], ids=["README", "command-line"])
def test_the_selections_of_the_command_line_are_understood(document):
    from datamask.cli.parser import parse, run_config

    lines = re.sub(r" \\\n +", " ", document)
    found = re.findall(r"^ {4}python -m datamask (select .*?)(?: +#.*)?$", lines, re.MULTILINE)
    assert len(found) >= 2
    for line in found:
        config = run_config(parse(line.split()))
        assert isinstance(config, RunConfig)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_command_lines_are_understood(document):
    from datamask.cli.parser import parse

    text = re.sub(r" \\\n +", " ", document.read_text(encoding="utf-8"))
    for line in re.findall(r"^ {4}(?:python -m )?datamask (.*?)(?: +#.*)?$", text, re.MULTILINE):
        parse(line.split())


def test_the_tutorial_leads_from_texts_to_ids(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "text-to-ids.md").read_text(encoding="utf-8")
    texts = [f"Text {n} tells of {WORDS[n % 7]} and {WORDS[n % 5]} in {n * n} words." for n in range(100)]
    rows = [{"id": f"a{n}", "text": text, "score": n % 11 / 2} for n, text in enumerate(texts)]
    Path("texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = ""
    for line in re.findall(r"^ {4}datamask (.*?)$", page, re.MULTILINE):
        if line.startswith("open"):
            continue
        assert cli.main(line.replace("RUN", run).split()) == 0, capsys.readouterr().err
        if line.startswith("select"):
            run = RunStore("runs").list()[0].id
    with Path("ids.csv").open(encoding="utf-8") as file:
        kept = list(csv.DictReader(file))
    assert len(kept) == 30 and {row["id"] for row in kept} <= {row["id"] for row in rows}
    by_id = {row["id"]: row["score"] for row in rows}
    assert all(float(row["quality"]) == by_id[row["id"]] for row in kept)
    assert "Features by TF-IDF (fitted on 100 texts)." in Path("card/README.md").read_text(encoding="utf-8")


# the changelog names what has gone
PRESENT = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]


@pytest.mark.parametrize("document", PRESENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_options_in_sentences_exist(document):
    known = {name: options_of(name) for name in sorted(COMMANDS, key=len, reverse=True)}
    text = " ".join(document.read_text(encoding="utf-8").split())
    for command in re.findall(r"[`\"](?:python -m )?datamask ([a-z][^`\"]*)[`\"]", text):
        name = next((name for name in known if f"{command} ".startswith(f"{name} ")), None)
        assert name or command.split()[0] == "runs", f"`datamask {command}`"
        if name is None:
            continue
        assert named_options(command) <= known[name], f"`datamask {command}`"
    if document.parent.name != "benchmarks":
        for span in re.findall(r"`(--[^`]*)`", text):
            assert named_options(span) <= set().union(*known.values()), span


def options_of(name: str) -> set[str]:
    """The options of a command."""
    parser = Parser(prog=name, add_help=False)
    add_help(parser)
    COMMANDS[name][0](parser)
    return {option for word in parser._option_string_actions for option in named_options(word)}


def named_options(words: str) -> set[str]:
    """The options among some words, as the command line spells them inside."""
    return {f"--{name.replace('-', '_')}" for name in re.findall(r"(?<![\w-])--([a-z][\w-]*)", words)}


def test_every_command_is_on_the_page_of_commands():
    listed = set(re.findall(r"^ {4}python -m datamask ([a-z-]+)", COMMAND_LINE, re.MULTILINE))
    assert {name.partition(" ")[0] for name in HANDLERS} <= listed


@pytest.fixture(scope="module")
def help_text():
    """What `select --help` prints, asked for once."""
    return subprocess.run(
        [sys.executable, "-m", "datamask", "select", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=240
    ).stdout


@pytest.mark.parametrize("name", [entry.name for entry in (*catalogue.OBJECTIVES, *catalogue.ESTIMATORS)])
def test_every_objective_and_estimator_is_in_help_and_readme(name, help_text):
    assert name in help_text
    assert f"`{name}`" in README and f"`{name}`" in (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)\)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_table_of_the_readme_is_what_was_measured():
    result = json.loads((ROOT / "benchmarks/results/readme.json").read_text(encoding="utf-8"))
    assert table(result) in README and table(result) == (ROOT / "benchmarks/results/readme.md").read_text(
        encoding="utf-8"
    )


def test_the_site_has_every_page_of_the_documentation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = re.findall(r"(\S+\.md)$", navigation, re.MULTILINE)
    assert sorted(set(pages)) == sorted(pages)
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert not written - set(pages), "pages that the nav of mkdocs.yml leaves out"


def test_the_output_columns_are_documented(tmp_path):
    from datamask.config import CorpusConfig, SelectionConfig
    from datamask.runs.execute import execute

    run = RunStore(tmp_path).create(
        RunConfig(
            CorpusConfig((str(ROOT / "sample_data" / "tiny"),)),
            SelectionConfig.from_options(estimator="random", objective="pairwise"),
        )
    )
    execute(run)
    for column in run.selection().schema.names[1:]:
        assert f"`{column}`" in COMMAND_LINE


def glossary() -> list[tuple[str, str]]:
    """Of every entry of the glossary its words, and the cell that says where they are defined."""
    text = (ROOT / "docs/contributing/glossary.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(words, home) for words, _, home in rows[1:]]


def test_the_glossary_gives_each_word_one_meaning():
    words = [word for entry, _ in glossary() for word in entry.split(", ")]
    assert len(words) > 50
    assert sorted(set(words)) == sorted(words)


@pytest.mark.parametrize(("words", "home"), glossary(), ids=[words.replace(" ", "-") for words, _ in glossary()])
def test_what_defines_a_word_of_the_glossary_is_there(words, home):
    names = re.findall(r"`([\w.]+)`", home)
    assert names, f"{words} has no home"
    for name in names:
        assert pkgutil.resolve_name(f"datamask.{name}") is not None


PAPER = "Joint Selection for Large-Scale Pre-Training Data via Policy Gradient-based Mask Learning"


def test_the_paper_is_cited_under_its_own_title():
    cited = re.findall(r"title\s*=\s*\{(.*?)\}", README)
    authors = re.findall(r"author\s*=\s*\{(.*?)\}", README)[0].split(" and ")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    preferred = citation[citation.index("preferred-citation:") :]
    assert cited == [PAPER] and f"title: {PAPER}\n" in preferred
    assert [
        f"{family}, {given}" for family, given in re.findall(r"family-names: (.*)\n +given-names: (.*)\n", preferred)
    ] == authors
    assert "arXiv:2512.24265" in README and "https://arxiv.org/abs/2512.24265" in preferred
    assert re.findall(r"year\s*=\s*\{(.*?)\}", README) == re.findall(r"year: (.*)\n", preferred) == ["2025"]
    assert "ByteDance-Seed/DATAMASK" in README and "FineWeb-Mask" in README


def test_one_version_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\d\S+)", CHANGELOG, re.MULTILINE)
    assert datamask.__version__ == project["version"]
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == releases[:1], "what is cited is released"
    assert project["version"] == releases[0] or project["version"].endswith(".dev0")


def test_the_changelog_is_short_and_dated():
    sections = re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]
    assert sections[0].startswith("Unreleased: 1.0\n")
    dates = []
    for section in sections[1:]:
        heading = section.splitlines()[0]
        (date,) = re.findall(r"^\d+\.\d+\.\d+ - (\d{4}-\d{2}-\d{2})$", heading)
        dates.append(date)
    assert len(dates) > 2 and dates == sorted(dates, reverse=True)
    assert set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE)) == {"Removed", "Added", "Changed", "Fixed"}
    entries = re.findall(r"^- (.*(?:\n  .*)*)", CHANGELOG, re.MULTILINE)
    long = [entry for entry in entries if sum(bool(re.search(r"\w", word)) for word in entry.split()) > 20]
    assert len(entries) > 100 and not long


def test_negative_results_are_dated_newest_first():
    text = (ROOT / "docs/negative-results.md").read_text(encoding="utf-8")
    dates = [heading[:10] for heading in re.findall(r"^## (.+)$", text, re.MULTILINE)]
    assert len(dates) > 15 and all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", date) for date in dates)
    assert dates == sorted(dates, reverse=True)


def test_the_workflow_tests_every_python_from_the_oldest_that_installs():
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    tested = re.findall(r'"(3\.\d+)"', re.findall(r"python: \[(.*)\]", workflow)[0])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tested == ["3.11", "3.12", "3.13"] and project["requires-python"] == f">={tested[0]}"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"run: make (\w+)", workflow):
        assert f"\n{target}:" in makefile


def test_every_guarantee_names_a_test_that_there_is():
    lines = [
        line
        for line in (ROOT / "docs/guarantees.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and not re.match(r"\|[- |]+\|$", line) and "held by" not in line
    ]
    assert len(lines) > 20
    for line in lines:
        references = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", line)
        assert references, f"no test holds: {line}"
        for path, name in references:
            text = (ROOT / path).read_text(encoding="utf-8")
            assert f"\ndef {name}(" in text if name else "\ndef test_" in text, f"{path} has no {name}"
