"""Every Python block of the documents runs, section by section; on some pages the commands between them too."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import pytest

from datamask.runs.store import RunStore
from datamask.work.locks import is_held
from tests.commands import ROOT, run
from tests.making.run_folders import wait_for
from tests.test_docs import DOCUMENTS

OWN_TEST = {"docs/own-objective.md": "tests/test_own_objective.py"}
"""Pages whose blocks another file runs: there they are files and parts of one program."""

WITH_COMMANDS = ("docs/other-tools.md", "docs/stages.md")
"""Pages whose sections are run from top to bottom, commands too. What stands before the first section comes first."""

NOTEBOOKS = ("docs/notebook.md",)
"""Pages whose blocks are cells: a name of one is known in those below."""

LIBRARIES = ("datasets", "datatrove", "lance", "nemo_curator", "pyiceberg", "pyspark", "ray")
"""Tools that datamask works with and does not need: a section that imports one is run where it is installed."""

STEP = re.compile(r"```python\n(?P<code>(?s:.*?))```|^ {4}python -m datamask (?P<command>.*?)(?: +#.*)?$", re.MULTILINE)


def sections(document: Path) -> dict[str, list[tuple[str, str]]]:
    """Of every section of a document with Python blocks, its heading and its steps: ``code`` or ``command``."""
    name = document.relative_to(ROOT).as_posix()
    first, *others = re.split(r"^## ", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    start = steps(first, name in WITH_COMMANDS)
    if name in NOTEBOOKS:
        return {"": [("code", "\n".join(code for _, code in start))]}
    found = {"": start} if start else {}
    for section in others:
        own = steps(section, name in WITH_COMMANDS)
        if any(kind == "code" for kind, _ in own):
            found[section.partition("\n")[0]] = [*start, *own] if name in WITH_COMMANDS else own
    return found


def steps(text: str, commands: bool) -> list[tuple[str, str]]:
    """Return the Python blocks of a text, and its commands if they are wanted."""
    joined = re.sub(r" \\\n +", " ", text)
    found = [(match.lastgroup or "", match[match.lastgroup or 0]) for match in STEP.finditer(joined)]
    return [(kind, step) for kind, step in found if kind == "code" or commands]


BLOCKS = """
import json, sys
for block in json.load(sys.stdin):
    exec(compile(block, "a block of a document", "exec"), {"__name__": "__main__"})
"""
"""Blocks that follow each other, each with names of its own: libraries are loaded once for all."""

EXAMPLES = [
    pytest.param(each, id=f"{document.relative_to(ROOT).as_posix()}: {heading}")
    for document in DOCUMENTS
    if document.relative_to(ROOT).as_posix() not in OWN_TEST
    for heading, each in sections(document).items()
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_section_runs_from_top_to_bottom(example, tmp_path, monkeypatch):
    code = "".join(step for kind, step in example if kind == "code")
    for library in LIBRARIES:
        if re.search(rf"^(?:import|from) {library}\b", code, re.MULTILINE):
            pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    said = ""
    for kind, together in itertools.groupby(example, key=itemgetter(0)):
        blocks = [step for _, step in together]
        if kind == "command":
            assert [run(*step.split()) for step in blocks] == [0] * len(blocks)
            continue
        words, given = [sys.executable, "-c", BLOCKS], json.dumps(blocks)
        done = subprocess.run(words, input=given, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        said += done.stdout
    for started in RunStore(tmp_path / "runs").list():  # in a process of its own, which a test must not leave behind
        wait_for(lambda started=started: not is_held(started.path / "queue"))
        assert started.status().state == "done"
    assert said.strip() or "print(" not in code


def test_pages_with_a_test_of_their_own_are_run_there():
    for page, test in OWN_TEST.items():
        assert page.removeprefix("docs/") in (ROOT / test).read_text(encoding="utf-8")
