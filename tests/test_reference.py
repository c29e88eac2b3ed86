"""The pages of the reference name everything that the code has, and nothing else."""

from __future__ import annotations

import re

import pytest

import datamask
from datamask import catalogue
from datamask.cli import HANDLERS
from datamask.cli.parser import COMMANDS
from datamask.evaluation.measures import PANEL
from datamask.options import CORPUS_OPTIONS, OPTIONS
from docs.reference import pages

PAGES = pages()


def named(page: str) -> list[str]:
    """What stands in the first column of a page's tables."""
    return re.findall(r"^\| `(.+?)` \|", PAGES[page], re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("options.md", [*OPTIONS, *CORPUS_OPTIONS]),
        ("objectives.md", [entry.name for entry in catalogue.OBJECTIVES]),
        ("methods.md", [entry.name for entry in catalogue.ESTIMATORS]),
        ("measures.md", [entry.name for entry in PANEL]),
    ],
)
def test_a_page_has_the_lines_of_its_table(page, table):
    assert named(page) == table


def test_the_defaults_are_those_of_the_code():
    shown_defaults = re.findall(r"^\| `.+?` \| (.*?) ?\|", PAGES["options.md"], re.MULTILINE)
    for option, shown in zip((*OPTIONS.values(), *CORPUS_OPTIONS.values()), shown_defaults, strict=True):
        if option.owners and not option.unset:
            assert shown == ", ".join(f"{name} {value}" for name, value in option.owners.items())
        elif isinstance(option.default, bool):
            assert shown == ("on" if option.default else "off")
        elif option.default not in (None, ()) and not option.unset:
            assert option.kind.text(option.default) == shown


def test_every_command_stands_there_with_every_option():
    commands = dict(
        re.findall(r"^## datamask ([a-z -]+)\n(.*?)(?=^## |\Z)", PAGES["commands.md"], re.MULTILINE | re.DOTALL)
    )
    assert set(commands) == set(HANDLERS) == set(COMMANDS)
    for option in (*OPTIONS.values(), *CORPUS_OPTIONS.values()):
        assert option.name == "inputs" or f"--{option.word}" in commands["select"]
    assert (
        "--card" in commands["runs export"] and "`--output` `FOLDER|OUT.parquet|.csv|.jsonl|.txt`" in commands["apply"]
    )
    assert "`NAME[:WEIGHT[:raw|z|rank]]`" in commands["select"]


def test_the_python_page_has_every_public_name():
    assert re.findall(r"heading: (\w+)", PAGES["api.md"]) == datamask.__all__
    for home in re.findall(r"^::: (\S+)", PAGES["api.md"], re.MULTILINE):
        assert home.startswith("datamask.")
