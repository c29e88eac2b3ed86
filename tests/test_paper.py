"""docs/paper.md: no empty cell, a command for each row that is reproduced, and every command runs at small size."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from benchmarks import paper
from datamask import cli

ROOT = Path(__file__).parents[1]
HEAD = "| kind | item | the paper | here | our number, or why | command |"
HERE = ("reproduced", "differs", "cannot be tested here")
COMMAND = re.compile(r"`(python -m [^`]+)`")
SMALL = {"--n_epochs": "4", "--n_rollout": "4"}
VARIED = {"n_rollout": "n_rollout=2,4", "n_epochs": "n_epochs=2,4"}
"""Values of options, and of what a sweep varies, in the place of those of the document."""


def rows() -> list[list[str]]:
    """The cells of the table."""
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8").partition(HEAD)[2]
    return [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in text.splitlines()[2:] if line]


def commands() -> list[str]:
    """Every command of the table, once."""
    return list(dict.fromkeys(command for row in rows() for command in COMMAND.findall(row[-1])))


def small(words: list[str], folder: Path) -> list[str]:
    """The words of a command at small size: 60 rows of the committed sample, few steps, everything in a folder."""
    words = [{"CORPUS": str(ROOT / "sample_data" / "tiny")}.get(word, word) for word in words]
    for option, value in SMALL.items():
        words = [value if before == option else word for before, word in zip(["", *words], words)]
    words = [VARIED.get(word.partition("=")[0], word) for word in words]
    if words[0] == "sweep":
        words += ["--n_rollout", "4"] if "reinforce" in words else ["--n_epochs", "4"]
    if words[0] == "select":
        words[words.index("--output") + 1] = str(folder / "out.parquet")
    return [*words, "--rows", "60", "--runs_dir", str(folder / "runs"), "--device", "cpu"]


def test_no_cell_is_empty_and_every_row_says_what_became_of_it():
    assert len(rows()) > 40
    for row in rows():
        assert len(row) == 6 and all(row), row
        assert row[3] in HERE, row
        assert COMMAND.search(row[5]) or row[5] == "none", row
        assert row[3] != "reproduced" or row[5] != "none", row


@pytest.mark.parametrize("number", range(len(commands())))
def test_every_command_runs_at_small_size(number, tmp_path, capsys):
    _, _, module, *words = shlex.split(commands()[number])
    if module == "benchmarks.paper":
        part, corpus = words
        assert corpus == "CORPUS"
        paper.main([part, str(ROOT / "sample_data" / "tiny"), "--rows", "60", "--steps", "4"])
        assert '"part"' in capsys.readouterr().out
    else:
        assert module == "datamask"
        assert cli.main(small(words, tmp_path)) == 0, capsys.readouterr().err
