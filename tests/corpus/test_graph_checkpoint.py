"""A graph that is stopped or whose process is killed is gone on with, and ends as an unbroken one."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datamask.corpus import exact_search, graph_checkpoint, kernels, neighbor_descent, neighbors, partition_search
from datamask.corpus.graph_checkpoint import NeighborLists, graph_progress, stored_lists
from datamask.corpus.neighbors import build_neighbors, neighbors_for
from datamask.corpus.pair_search import PairSearch
from datamask.errors import Stopped
from datamask.places import MEMORY, Place
from datamask.work.context import Work
from datamask.work.kept import Progress
from tests.making.raw_cache import RawCache
from tests.reference.lists import cosines

BUILDER = """
import sys, time
import numpy as np, pyarrow as pa
from datamask.corpus import Corpus, Provenance, exact_search, kernels, graph_checkpoint
from datamask.corpus.neighbors import neighbors_for
from datamask.work.context import Work

features, cache = np.load(sys.argv[1]), sys.argv[2]
graph_checkpoint.KEEP_SECONDS = 0.0
exact_search.FLOPS_PER_BLOCK = 1
n = len(features)
corpus = Corpus(pa.array(range(n)), np.zeros(n), features, None, pa.table({"none": pa.nulls(n)}).select([]),
                np.zeros(n, np.int32), np.arange(n), "f" * 32,
                Provenance(("memory.parquet",), n, n, {"id": "id", "feature": "f", "quality": ["q"]}))
real = kernels.offer_rows

def slow(*args):  # for ever half-way, so that the test decides when it dies
    sys.stdout.write("at work\\n")  # in one piece: print writes the end of a line by itself, and threads take turns
    sys.stdout.flush()
    time.sleep(float(sys.argv[3]))
    real(*args)

kernels.offer_rows = slow
neighbors_for(corpus, 12, cache, work=Work(threads=2))
"""


def unit(rows):
    rows = np.asarray(rows, np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    return unit(rng.normal(size=(20, 12))[rng.integers(0, 20, 1500)] + 0.4 * rng.normal(size=(1500, 12)))


@pytest.fixture
def tasks_done(monkeypatch):
    """Small blocks, and a count of the blocks that are offered to their columns."""
    monkeypatch.setattr(exact_search, "FLOPS_PER_BLOCK", 1)
    monkeypatch.setattr(exact_search, "DEVICE_BLOCK", (200, 300))
    monkeypatch.setattr(partition_search, "GROUP", 300)
    monkeypatch.setattr(neighbors, "LEAST_APPROXIMATE", 100)
    count = [0]

    def counted(real):
        def count_and_call(*args):
            count[0] += 1
            return real(*args)

        return count_and_call

    # cells are learned by offers to rows alone
    monkeypatch.setattr(kernels, "offer_columns", counted(kernels.offer_columns))
    return count


ENTRY = graph_checkpoint.stored_lists("f" * 32, None).entry


def kept(folder):
    return RawCache(folder).path(ENTRY)


def stopped_half_way(corpus, folder, total, count, asked, **options):
    """Build until half of the blocks are done, then stop; `asked` is set when that was said."""
    count[0] = 0

    def should_stop():
        if count[0] >= total // 2:
            asked.set()
        return asked.is_set()

    with pytest.raises(Stopped):
        neighbors_for(corpus, 12, folder, work=Work.of(should_stop, threads=2), **options)
    assert kept(folder).is_file()
    return RawCache(folder).find(ENTRY, lambda content: content.arrays["done"])


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_a_stopped_build_goes_on_where_it_was(features, make_corpus, tasks_done, tmp_path, monkeypatch, search, mapped):
    corpus = replace(make_corpus(features), place=Place(tmp_path / "maps") if mapped else MEMORY)
    # threads polled every 0.1 s would be done before the first poll
    whole = neighbors_for(corpus, 12, None, search=search)
    total, real, asked = tasks_done[0], exact_search.np.dot, threading.Event()

    def slow(*args, **kwargs):
        time.sleep(0.005)
        if tasks_done[0] >= total // 2 and not asked.wait(120):
            pytest.fail("nobody asked whether to stop")
        return real(*args, **kwargs)

    monkeypatch.setattr(np, "dot", slow)
    done = stopped_half_way(corpus, tmp_path, total, tasks_done, asked, search=search)
    assert 0 < done.sum() < len(done)
    tasks_done[0] = 0
    shares = []
    graph = neighbors_for(
        corpus, 12, tmp_path, search=search, work=Work(report=lambda share, what: shares.append((share, what)))
    )
    assert tasks_done[0] < total * 0.8, "what was done is not done again"
    np.testing.assert_array_equal(graph.indices, whole.indices)
    np.testing.assert_array_equal(graph.similarities, whole.similarities)
    assert graph.exact is (search == "exact") and graph.recall == whole.recall
    assert not kept(tmp_path).exists(), "nothing is left over"
    assert min(share for share, what in shares if what == "Neighbor graph") >= done.mean()


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_a_stop_during_nn_descent_keeps_the_search(features, make_corpus, tasks_done, tmp_path, monkeypatch, passes):
    """The stop comes during the last pass."""
    monkeypatch.setattr(partition_search, "passes_of", lambda *_: passes)
    corpus = make_corpus(features)
    whole = neighbors_for(corpus, 12, None, search="approximate")
    assert not whole.exact
    real, stopping, begun = neighbor_descent.in_threads, [True], []

    def stopped(task, count, **options):
        begun.append(count)
        if stopping[0] and len(begun) == passes:
            task(0)  # a part of the pass is done, which must not show in what is kept
            raise Stopped("stopped")
        return real(task, count, **options)

    monkeypatch.setattr(neighbor_descent, "in_threads", stopped)
    with pytest.raises(Stopped):
        neighbors_for(corpus, 12, tmp_path, search="approximate")
    assert RawCache(tmp_path).find(ENTRY, lambda content: content.arrays["done"]).all()
    stopping[0] = False
    monkeypatch.setattr(PairSearch, "compare", lambda *_, **__: pytest.fail("a cell is searched again"))
    graph = neighbors_for(corpus, 12, tmp_path, search="approximate")
    np.testing.assert_array_equal(graph.indices, whole.indices)
    np.testing.assert_array_equal(graph.similarities, whole.similarities)
    assert graph.recall == whole.recall and not kept(tmp_path).exists()


def test_the_device_path_goes_on_too(features, make_corpus, tasks_done, tmp_path):
    corpus = make_corpus(features)
    polls = iter(range(10**6))
    with pytest.raises(Stopped):
        neighbors_for(corpus, 12, tmp_path, device="cpu:0", work=Work.of(lambda: next(polls) >= 24))
    done = RawCache(tmp_path).find(ENTRY, lambda content: content.arrays["done"])
    assert done.sum() == 4, "five column blocks to a block of rows; one poll while waiting for the lock"
    polls = iter(range(10**6))
    graph = neighbors_for(corpus, 12, tmp_path, device="cpu:0", work=Work.of(lambda: next(polls) < 0))
    assert 20 <= next(polls) < 25, "four blocks of rows were left, and the cosines"
    np.testing.assert_allclose(graph.similarities, build_neighbors(features, 12).similarities, atol=1e-3)


def test_what_was_kept_for_another_plan_or_is_damaged_is_not_used(
    features, make_corpus, tasks_done, tmp_path, monkeypatch
):
    corpus = make_corpus(features)
    whole = build_neighbors(features, 9)
    lists = NeighborLists.begun(1500, 11, 300, "", Progress())
    lists.done[:] = True  # a lie, to be seen if it is believed
    for spoil in ("k", "plan", "damage"):
        lists.plan = f"all pairs of rounded rows in blocks of {32 if spoil == 'plan' else 64}"
        lists.save(graph_progress("f" * 32, tmp_path))
        if spoil == "damage":
            kept(tmp_path).write_bytes(kept(tmp_path).read_bytes()[:-200])
        graph = neighbors_for(corpus, 9 if spoil == "k" else 12, tmp_path)
        np.testing.assert_array_equal(graph.indices[:, :9], whole.indices)
        neighbors.stored_graph(corpus, tmp_path).drop()


def test_a_killed_process_is_gone_on_with_and_two_never_build_at_once(features, make_corpus, tmp_path, monkeypatch):
    """Two processes want the same graph; the one that builds is killed; the other one goes on and ends as it should."""
    np.save(tmp_path / "features.npy", features)
    (tmp_path / "builder.py").write_text(BUILDER)
    cache = tmp_path / "cache"
    root = str(Path(neighbors.__file__).parents[2])

    def start(pause):
        return subprocess.Popen(
            [sys.executable, str(tmp_path / "builder.py"), str(tmp_path / "features.npy"), str(cache), str(pause)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
        )

    def wait_for(condition):
        end = time.monotonic() + 240
        while not condition():
            assert time.monotonic() < end, "waited too long"
            time.sleep(0.02)

    first = start(0.02)
    try:
        assert first.stdout.readline() == "at work\n"
        second = start(0.0)
        try:
            wait_for(kept(cache).is_file)
            assert second.poll() is None
            first.send_signal(signal.SIGKILL)
            first.wait(120)
            said = second.communicate(timeout=240)[0]
        finally:
            second.kill()
            second.wait(120)
    finally:
        first.kill()
        first.wait(120)
        first.stdout.close()
    assert second.returncode == 0
    blocks = -(-len(features) // 64)
    assert 0 < said.count("at work") < blocks * (blocks + 1) // 2, "it went on from what the first one had kept"
    folder = cache / ("f" * 32)
    assert {path.name for path in folder.iterdir()} == {f"neighbors-v{neighbors.GRAPH_VERSION}.cache", "neighbors.lock"}
    graph = neighbors_for(make_corpus(features), 12, cache, work=Work(lambda: pytest.fail("built again")))
    np.testing.assert_array_equal(graph.indices, build_neighbors(features, 12).indices)


@pytest.mark.timeout(60)
def test_a_stop_that_the_caller_did_not_ask_for_ends_the_build_too(features, make_corpus, tmp_path, monkeypatch):
    def ending(*_, **__):
        raise Stopped("stopped: the program is ending")

    monkeypatch.setattr(graph_checkpoint, "in_threads", ending)
    with pytest.raises(Stopped, match="the program is ending"):
        neighbors_for(make_corpus(features), 12, tmp_path)


def test_saving_happens_between_tasks_and_seldom(features, tmp_path, monkeypatch):
    """At every saving the lists hold all of the tasks that count as done and nothing of the others."""
    monkeypatch.setattr(exact_search, "FLOPS_PER_BLOCK", 1)
    saved = []

    class Watched(Progress):
        def write(self, lists):
            saved.append((lists.similarities.copy(), lists.done.copy()))

    part = features[:700]
    real = np.dot
    monkeypatch.setattr(np, "dot", lambda *args, **kwargs: (time.sleep(0.01), real(*args, **kwargs))[1])
    build_neighbors(part, 12, progress=Watched(stored_lists("f" * 32, tmp_path), 0.0), work=Work(threads=2))
    assert saved
    block, count = 64, -(-700 // 64)
    places = [(first, first + offset) for offset in range(count) for first in range(count - offset)]
    for similarities, done in saved:
        allowed = np.zeros((count, count), bool)
        for (left, right), finished in zip(places, done):
            allowed[left, right] = allowed[right, left] = finished
        whole = np.kron(allowed, np.ones((block, block), bool))[:700, :700]
        np.fill_diagonal(whole, False)
        expected = -np.sort(-np.where(whole, cosines(part), -np.inf), axis=1)[:, :11]
        np.testing.assert_allclose(-np.sort(-similarities, axis=1), expected, atol=2e-6)
