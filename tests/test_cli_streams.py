"""stdout and stderr that take nothing: a full disk, a pipe without a reader, a stream that was closed."""

from __future__ import annotations

import ast
import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from datamask import cli
from datamask.cli import output as cli_output
from datamask.cli import stored
from datamask.errors import StoreError
from tests.commands import FAST, ROOT, run, table

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")


@pytest.fixture
def selected(tmp_path, monkeypatch, capsys) -> str:
    """The id of a run in the current folder."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(), "shard.parquet")
    assert run("select", "shard.parquet", "--output", "out.parquet", "--json", "--notes", "\x1b]0;x\x07 n", *FAST) == 0
    return json.loads(capsys.readouterr().out)["run_id"]


def command(words: str, redirect: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        f"{sys.executable} -m datamask {words} {redirect}",
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
    )


@needs_full
@pytest.mark.parametrize(
    "words",
    [
        "runs list",
        "runs list --json",
        "runs show {run}",
        "runs show {run} --json",
        "runs export {run} --ids ids.csv",
        "explain {run} 3",
        "--help",
        "--version",
        "select --help",
        "resume {run}",
    ],
)
def test_an_answer_that_is_lost_is_one_sentence(selected, monkeypatch, capsys, words):
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run(*words.format(run=selected).split()) == 2
        monkeypatch.undo()
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("datamask: stdout cannot be written (No space left on device); make room there")


@needs_full
def test_a_full_disk_is_told_by_the_exit_code_too():
    done = command("--help", "> /dev/full")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "stdout cannot be written" in done.stderr


class Gone(io.StringIO):
    """A terminal that was closed."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_no_work_ends_because_its_progress_is_lost(selected, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Gone())
    assert run("select", "shard.parquet", "--output", "again.parquet", *FAST) == 0
    assert run("runs", "show", "no-such-run") == 2
    assert pq.read_table("again.parquet").num_rows


def test_a_reader_that_left_is_no_error_and_a_pipe_that_broke_elsewhere_is_one(selected, monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert run("runs", "list") == 0
        monkeypatch.undo()

    def breaking(options):
        raise BrokenPipeError(errno.EPIPE, "a worker has ended")

    monkeypatch.setattr(stored, "runs_list", breaking)
    with pytest.raises(BrokenPipeError, match="a worker has ended"):
        run("runs", "list")


def test_streams_that_were_closed_before_the_start_are_no_error():
    for redirect in (">&-", "2>&-", ">&- 2>&-"):
        done = command("--version", redirect)
        assert done.returncode == 0 and not done.stderr and ("datamask" in done.stdout) == (">&-" not in redirect[:3])


def test_what_would_steer_a_terminal_is_escaped(selected, capsys):
    assert run("runs", "show", selected) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\\x1b]0;x\\x07 n" in shown
    cli_output.say("did \x1b[2Ja call")
    with cli_output.Progress() as progress:
        progress(0.5, "reading \x1b[2Jx.parquet")
        progress.note("\x1b[2J")
    assert "\x1b" not in capsys.readouterr().err


def test_a_letter_that_the_encoding_lacks_is_escaped(tmp_path, selected):
    done = command("runs show " + selected, "", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "Traceback" not in done.stderr


def test_a_bar_on_a_terminal_that_is_gone_is_nothing():
    with cli_output.Progress(Gone()) as progress:
        progress(0.5, "reading")
        progress.note("slow")


def test_commands_print_by_what_looks_after_both_streams():
    for path in (ROOT / "datamask/cli").glob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        printing = [name for name in calls if isinstance(name, ast.Name) and name.id == "print"]
        assert not printing or path.name == "streams.py", path


def test_the_sentence_is_that_of_a_disk():
    with pytest.raises(StoreError, match=r"stdout cannot be written \(Input/output error\)"), cli.streams._checked():
        raise OSError(errno.EIO, "Input/output error")
