"""A run that is killed, wherever that is, goes on and ends in the selection of an unbroken one."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs.execute import execute
from datamask.runs.phases import Phase
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.making.derivable_runs import shard
from tests.making.run_folders import ROOT

N, SAMPLE = 3000, 600
POINTS = [*Phase, "picks", "swaps", "dual_steps"]
"""Where it is killed: as a phase begins, or when the solver tells of its first picks, swaps or steps of the bound."""

SCRIPT = """
    import os, signal, sys
    from datamask.corpus import neighbors, partition_search
    from datamask.runs.execute import execute
    from datamask.runs.recording import Recorder
    from datamask.runs.store import RunStore
    from datamask.work.context import Work
    from datamask.work.pace import PhasePace

    point, begin, traced = sys.argv[3], PhasePace.begin, Recorder.traced

    def killed(name):
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    PhasePace.begin = lambda pace, phase, done=None: (killed(phase), begin(pace, phase, done))
    Recorder.traced = lambda looking, told: (traced(looking, told), [killed(name) for name in told.metrics])
    neighbors.LEAST_APPROXIMATE = 100
    execute(RunStore(sys.argv[1]).get(sys.argv[2]), Work(threads=1))
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(3):
        pq.write_table(shard(N // 3, seed=number, d=8), folder / f"{number}.parquet")
    return CorpusConfig((str(folder),), rows=SAMPLE)


def settings(corpus: CorpusConfig, root, **options) -> RunConfig:
    asked = {"objective": "facility", "select_ratio": 0.1, "lamb": 0.3, "device": "cpu", "neighbors": "approximate"}
    return RunConfig(corpus, SelectionConfig.from_options(**asked | options, scratch_dir=str(root / "scratch")))


@pytest.fixture(scope="module")
def unbroken(corpus, tmp_path_factory):
    root = tmp_path_factory.mktemp("unbroken")
    run = RunStore(root / "runs").create(settings(corpus, root))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("datamask.corpus.neighbors.LEAST_APPROXIMATE", 100)
        execute(run, Work(threads=1))
    return run


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_it_ends_in_the_same_selection(corpus, unbroken, tmp_path, monkeypatch, point):
    run = RunStore(tmp_path / "runs").create(settings(corpus, tmp_path))
    words = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path / "runs"), run.id, point]
    assert subprocess.run(words, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert run.status().state == "interrupted" and not list((tmp_path / "scratch").glob("*"))
    monkeypatch.setattr("datamask.corpus.neighbors.LEAST_APPROXIMATE", 100)
    execute(run, Work(threads=1))
    assert run.selection().equals(unbroken.selection()) and run.rows().equals(unbroken.rows())
