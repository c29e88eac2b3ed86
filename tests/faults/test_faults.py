"""Faults of state that the dashboard once had: with any of them back, the oracle of the visitor sees it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.prepared import ROOT, Prepared

FOLDER = Path(__file__).parent
STEPS = "300"
"""At most; it ends at the first that the oracle refuses."""

RENEW = """{0} does not apply to today's code, so nobody knows whether the fault would be seen:
{1}
Renew it, with nothing else changed: bring the fault back in datamask/ by hand, then
`git diff datamask > tests/faults/{0}` and `git checkout datamask`."""


@pytest.fixture(scope="module")
def processes() -> Iterator[Prepared]:
    """Processes that have imported others' libraries."""
    prepared = Prepared()
    yield prepared
    prepared.end()


@pytest.mark.parametrize("fault", sorted(path.stem for path in FOLDER.glob("*.patch")))
def test_the_oracle_sees(fault, processes: Prepared, tmp_path):
    patch, tree, log = FOLDER / f"{fault}.patch", tmp_path / "tree", tmp_path / "log"
    for name in re.findall(r"^--- a/(.+)$", patch.read_text(encoding="utf-8"), re.MULTILINE):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    # no repository around it: else git would look for the files there
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    applied = subprocess.run(["git", "apply", patch], cwd=tree, env=environment, capture_output=True, text=True)
    assert applied.returncode == 0, RENEW.format(patch.name, applied.stderr)
    arguments = [str(tree), str(tmp_path), STEPS]
    program = "import sys\nfrom tests.faults.playing import play\nplay(*sys.argv[1:])"
    processes.start(program, arguments, {**os.environ, "OMP_NUM_THREADS": "1"}, log).wait(240)
    said = log.read_text(encoding="utf-8")
    assert said.endswith("true\n"), said
