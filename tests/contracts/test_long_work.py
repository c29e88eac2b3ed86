"""The contract of all long work: joined, heard, stopped, out of the way of live answers, and never left in the lane."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import Corpus, open_corpus
from datamask.dashboard.tradeoff import live
from datamask.errors import InputError
from datamask.runs import stored_measures
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.work.context import Work
from datamask.work.job import ENDED, Job
from datamask.work.kept import Kept
from datamask.work.lanes import Priority, lane
from datamask.work.worker import worker
from tests.contracts.long_work import KEPT, WORK, World
from tests.making.runs import write_shard
from tests.work.kinds import KINDS

ROOT = Path(__file__).parents[2]
LONG = 240.0
ROWS, SELECTED = 1200, 360


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> CorpusConfig:
    """A corpus with texts, of words enough for a model to learn from."""
    tail = ", which goes on for as many words as a proxy model needs to learn from a few selected samples"
    return write_shard(tmp_path_factory.mktemp("corpus") / "shard.parquet", ROWS, tail=tail)


@pytest.fixture(scope="module")
def corpus(config) -> Corpus:
    return open_corpus(config)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, config):
    """A finished run, to be copied with its folder of runs and not written to."""
    settings = SelectionConfig.from_options(objective="pairwise", estimator="relaxed", device="cpu")
    run = RunStore(tmp_path_factory.mktemp("finished") / "runs").create(RunConfig(config, settings))
    execute(run, Work(threads=1))
    return run


@pytest.fixture
def world(tmp_path, config, corpus, finished, monkeypatch) -> World:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    shutil.copytree(finished.path.parent, tmp_path / "runs")
    store = RunStore(tmp_path / "runs")
    yield World(config, corpus, store, store.get(finished.id))
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
    job = WORK[name].start(world)
    if WORK[name].joined:
        assert WORK[name].start(world) is job or job.ended
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
    worker().start(f"after {name} {id(world)}", lambda _: entered.set(), device="cpu", priority=Priority.SWEEP)
    assert entered.wait(LONG) and lane("cpu").most_urgent > Priority.SWEEP


@pytest.mark.parametrize("name", WORK)
def test_it_waits_for_its_turn_and_is_stopped_before_it_began(name, world):
    """The lane is taken by something more urgent that does not poll: nothing computes beside it, and Stop is heard."""
    begun, may_end = threading.Event(), threading.Event()
    urgent = worker().start(
        f"urgent {name} {id(world)}", lambda _: (begun.set(), may_end.wait(LONG)), device="cpu", priority=Priority.LIVE
    )
    assert begun.wait(LONG)
    try:
        job = WORK[name].start(world)
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
from datamask.analyses.scoreboard.compute import agreement
from datamask.errors import InputError
from datamask.runs.store import RunStore
from tests.contracts.long_work import WORK, World

def never_done(*_, **__):
    print("computing", flush=True)
    time.sleep(600)

agreement.agreement = never_done
config, store = CorpusConfig((sys.argv[1],)), RunStore(sys.argv[2])
WORK["agreement"].start(World(config, open_corpus(config), store, store.get(sys.argv[3]))).wait()
"""
"""Another server on the same runs folder, which computes an agreement for ten minutes."""


def test_what_another_process_computes_is_waited_for_and_done_once_that_was_killed(world, slider):
    about = (world.config.inputs[0], str(world.store.root), world.run.id)
    other = subprocess.Popen([sys.executable, "-c", SERVER, *about], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert other.stdout.readline() == "computing\n"
        stopped = WORK["agreement"].start(world)
        assert not stopped.wait(0.5)
        # it waits outside the lane, and hears a stop
        assert slider.answer(0.77, LONG) is not None
        stopped.stop()
        assert stopped.wait(LONG) and stopped.state == "stopped"
        again = WORK["agreement"].start(world)
        assert again is not stopped and not again.wait(0.5)
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert again.wait(LONG) and again.state == "done", again.error
    appeared, _ = stored_measures.stored_agreement(world.run, world.corpus.fingerprint, world.cache_dir).find()
    assert int(appeared.sum()) == 20 * ROWS * 4 // 5
    # what is kept is found, and not computed once more
    path = stored_measures.stored_agreement(world.run, world.corpus.fingerprint, world.cache_dir).path
    before = path.stat().st_mtime_ns
    assert WORK["agreement"].start(world).wait(LONG)
    assert path.stat().st_mtime_ns == before


# -- progress, and work that fails -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORK)
def test_its_share_never_falls_and_it_says_what_it_does(name, world, monkeypatch):
    reports: dict[Job, list[tuple[float, str]]] = {}
    enough, report = threading.Event(), Job.report

    def recording(job: Job, share: float, what: str) -> None:
        report(job, share, what)
        reports.setdefault(job, []).append((job.share, job.message))
        if len(reports[job]) >= 30:
            enough.set()

    monkeypatch.setattr(Job, "report", recording)
    work = WORK[name]
    job = work.start(dataclasses.replace(world, brief=True))
    if not work.ends:
        assert enough.wait(LONG)
        job.stop()
    assert job.wait(LONG) and work.outcome(world, job) == ("done" if work.ends else "stopped", "")
    shares, words = zip(*reports[job])
    assert list(shares) == sorted(shares) and 0.0 <= shares[0] <= shares[-1] <= 1.0, reports[job]
    assert all(words), words
    assert not work.ends or job.share == 1.0


@pytest.mark.parametrize("name", WORK)
def test_what_fails_says_its_sentence_leaves_the_lane_and_can_be_started_again(name, world, monkeypatch):
    def failing(job: Job, share: float, what: str) -> None:
        raise InputError("a.parquet was taken away")

    work = WORK[name]
    with monkeypatch.context() as broken:
        broken.setattr(Job, "report", failing)
        failed = work.start(dataclasses.replace(world, brief=True))
        assert failed.wait(LONG) and work.outcome(world, failed) == ("failed", "a.parquet was taken away")
    entered = threading.Event()
    worker().start(f"after {name} {id(world)}", lambda _: entered.set(), device="cpu", priority=Priority.SWEEP)
    assert entered.wait(LONG)
    worker().forget(failed.key)  # as the button does that asks again
    again = work.start(dataclasses.replace(world, brief=True))
    assert again is not failed
    if not work.ends:
        again.stop()
    assert again.wait(LONG) and work.outcome(world, again) == ("done" if work.ends else "stopped", "")


# -- another process on the same folder -------------------------------------------------------------------------------

COMPUTING = """
import os, sys
from pathlib import Path
import torch
from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
import datamask.analyses.scoreboard.compute.boards  # before the fork, which copies what is loaded
from datamask.runs.store import RunStore
from datamask.work.kept import Kept
from tests.contracts.long_work import WORK, World

torch.set_num_threads(1)
config = CorpusConfig((sys.argv[1],))
corpus = open_corpus(config)
rename, keep, names, waited = Path.replace, Kept.keep, [], []

def half(path, target):
    if str(target).endswith(".cache") and not waited:
        waited.append(True)
        print("half", flush=True)
        assert os.read(0, 100) == b"go on\\n"
    return rename(path, target)

def keeping(stored, result):
    names.append(str(stored.path))
    return keep(stored, result)

while words := os.read(0, 1000).decode().strip():
    name, root, run_id = words.split("|")
    child = os.fork()
    if child == 0:
        Path.replace, Kept.keep = half, keeping
        store = RunStore(root)
        job = WORK[name].start(World(config, corpus, store, store.get(run_id), brief=True))
        job.wait()
        print(job.state, *names, sep="|", flush=True)
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""
"""Another server. For each line it forks a child that begins the work and stops in the middle of its first file: all is
written, and its name not yet given. Then it goes on, or is killed."""


class Other:
    """The other server."""

    def __init__(self, shard: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", COMPUTING, shard],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    def tell(self, line: str) -> None:
        self._process.stdin.write(line + "\n")

    def hear(self) -> str:
        return self._process.stdout.readline().strip()

    def begin(self, name: str, world: World) -> int:
        """Begin, up to half a file; the number of the process that computes."""
        self.tell(f"{name}|{world.store.root}|{world.run.id}")
        child = int(self.hear())
        assert self.hear() == "half"
        return child

    def end(self) -> None:
        self._process.stdin.close()
        assert self._process.wait(LONG) == 0
        self._process.stdout.close()


@pytest.fixture(scope="module")
def other(config) -> Other:
    other = Other(config.inputs[0])
    yield other
    other.end()


def test_all_that_is_kept_is_damaged_somewhere():
    assert {kind for work in WORK.values() for kind in work.kinds} <= set(KINDS)
    assert all(bool(work.kinds) == (work.kept is not None) == (not work.instead) for work in WORK.values())


@pytest.mark.parametrize("name", KEPT)
def test_two_processes_compute_it_once(name, world, other, monkeypatch):
    world = dataclasses.replace(world, brief=True)
    computed, keep = [], Kept.keep

    def keeping(stored, result):
        computed.append(str(stored.path))
        return keep(stored, result)

    other.begin(name, world)
    monkeypatch.setattr(Kept, "keep", keeping)
    assert WORK[name].kept(world) is None
    job = WORK[name].start(world)
    assert not job.wait(0.5)
    other.tell("go on")
    state, *names = other.hear().split("|")
    assert state == "done" and other.hear() == "ended"
    assert job.wait(LONG) and job.state == "done", job.error
    assert WORK[name].kept(world) is not None and not set(computed) & set(names)


@pytest.mark.parametrize("name", KEPT)
def test_what_a_killed_process_left_is_not_believed_and_it_completes(name, world, other):
    world = dataclasses.replace(world, brief=True)
    child = other.begin(name, world)
    assert WORK[name].kept(world) is None
    job = WORK[name].start(world)
    assert not job.wait(0.5)
    os.kill(child, signal.SIGKILL)
    assert other.hear() == "ended"
    assert job.wait(LONG) and job.state == "done", job.error
    assert WORK[name].kept(world) is not None
