"""The contract of all long work: joined, heard, stopped, out of the way of live answers, and never left in the lane."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import Corpus, open_corpus
from datamask.dashboard import live
from datamask.runs import stored_measures
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.work.cache import Cache
from datamask.work.job import ENDED
from datamask.work.lanes import Priority, lane
from datamask.work.worker import worker
from tests.contracts.long_work import NOT_JOINED, WORK, World
from tests.dashboard.made_runs import write_shard

ROOT = Path(__file__).parents[2]
LONG = 240.0
ROWS, SELECTED = 1200, 360


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> CorpusConfig:
    """A corpus with texts."""
    return write_shard(tmp_path_factory.mktemp("corpus") / "shard.parquet", ROWS)


@pytest.fixture(scope="module")
def corpus(config) -> Corpus:
    return open_corpus(config)


@pytest.fixture
def world(tmp_path, config, corpus, monkeypatch) -> World:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    store = RunStore(tmp_path / "runs")
    run = store.create(
        RunConfig(config, SelectionConfig.from_options(objective="pairwise", estimator="relaxed", device="cpu"))
    )
    execute(run, threads=1)
    yield World(config, corpus, store, store.get(run.id))
    for job in worker().active():
        job.stop()
        assert job.wait(LONG)


@pytest.fixture
def slider(world, monkeypatch):
    """A live session that is ready."""
    monkeypatch.setattr(live, "_NAME", "live lambda of a contract")
    session = live.session(world.corpus, world.run.config.selection, world.cache_dir)
    session.wait(LONG)
    assert session.ready
    yield session
    session.stop()


@pytest.mark.parametrize("name", WORK)
def test_live_answers_come_while_it_computes_and_it_can_be_stopped(name, world, slider):
    job = WORK[name](world)
    if name not in NOT_JOINED:
        assert WORK[name](world) is job or job.ended
    answers = 0
    while not job.ended and answers < 5:
        answer = slider.answer(0.31 + 0.01 * answers, LONG)
        assert int(answer.mask.sum()) == SELECTED
        answers += 1
    assert answers or job.state == "done"
    job.stop()
    assert job.wait(LONG) and job.state in ENDED and job.state != "failed", job.error
    # whatever its end, the lane is free for the least urgent
    entered = threading.Event()
    worker().start(f"after {name} {id(world)}", lambda _: entered.set(), device="cpu", priority=Priority.STUDY)
    assert entered.wait(LONG) and lane("cpu").most_urgent > Priority.STUDY


@pytest.mark.parametrize("name", WORK)
def test_it_waits_for_its_turn_and_is_stopped_before_it_began(name, world):
    """The lane is taken by something more urgent that does not poll: nothing computes beside it, and Stop is heard."""
    begun, may_end = threading.Event(), threading.Event()
    urgent = worker().start(
        f"urgent {name} {id(world)}", lambda _: (begun.set(), may_end.wait(LONG)), device="cpu", priority=Priority.LIVE
    )
    assert begun.wait(LONG)
    try:
        job = WORK[name](world)
        assert not job.wait(0.3) or job.state != "done"
        job.stop()
        assert job.wait(LONG) and job.state == "stopped", job.error
        assert not urgent.ended
    finally:
        may_end.set()
        assert urgent.wait(LONG)


SERVER = """
import sys, time
from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.runs import measuring
from datamask.runs.store import RunStore
from tests.contracts.long_work import WORK, World

def never_done(*_, **__):
    print("computing", flush=True)
    time.sleep(600)

measuring.write_agreement = never_done
config, store = CorpusConfig((sys.argv[1],)), RunStore(sys.argv[2])
WORK["agreement"](World(config, open_corpus(config), store, store.get(sys.argv[3]))).wait()
"""
"""Another server on the same runs folder, which computes an agreement for ten minutes."""


def test_what_another_process_computes_is_waited_for_and_done_once_that_was_killed(world, slider):
    about = (world.config.inputs[0], str(world.store.root), world.run.id)
    other = subprocess.Popen([sys.executable, "-c", SERVER, *about], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert other.stdout.readline() == "computing\n"
        stopped = WORK["agreement"](world)
        assert not stopped.wait(0.5)
        # it waits outside the lane, and hears a stop
        assert slider.answer(0.77, LONG) is not None
        stopped.stop()
        assert stopped.wait(LONG) and stopped.state == "stopped"
        again = WORK["agreement"](world)
        assert again is not stopped and not again.wait(0.5)
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert again.wait(LONG) and again.state == "done", again.error
    appeared, _ = stored_measures.read_agreement(world.run, world.corpus.fingerprint, world.cache_dir)
    assert int(appeared.sum()) == 20 * ROWS * 4 // 5
    # what is kept is found, and not computed once more
    path = Cache(world.cache_dir).path(stored_measures.agreement_entry(world.run, world.corpus.fingerprint))
    before = path.stat().st_mtime_ns
    assert WORK["agreement"](world).wait(LONG)
    assert path.stat().st_mtime_ns == before
