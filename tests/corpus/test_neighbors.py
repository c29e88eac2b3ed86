"""The neighbour graph against all pairs in float64, and its cache."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.corpus import exact_search, graph_checkpoint, neighbors
from datamask.corpus.exact_search import nearest
from datamask.corpus.neighbors import (
    NeighborGraph,
    build_neighbors,
    neighbors_for,
    stored_graph,
)
from datamask.corpus.rounded_rows import rounded, slack, widened
from datamask.corpus.sampling import row_hash
from datamask.errors import OptionError, Stopped
from datamask.files import replacing
from datamask.polling import poll_of
from datamask.work.context import Work
from datamask.work.kept import Progress
from tests.making.raw_cache import RawCache
from tests.reference import lists
from tests.reference.lists import cosines, true_lists


def unit(rows):
    rows = np.asarray(rows, np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def check(graph, features, k, ties=None):
    indices, _ = true_lists(features, k, ties)
    assert graph.indices.dtype == np.int32 and graph.similarities.dtype == np.float32 and graph.exact
    np.testing.assert_array_equal(graph.indices, indices)
    # which rows are listed follows from rounded ones; the cosines are those of the rows
    pairs = np.einsum("nd,nkd->nk", features.astype(float), features.astype(float)[graph.indices])
    np.testing.assert_allclose(graph.similarities, pairs, atol=2e-6)
    by_cosine, falling = graph.by_cosine()
    np.testing.assert_allclose(falling, np.maximum(np.sort(pairs)[:, ::-1], 0.0), atol=2e-6)
    np.testing.assert_array_equal(np.sort(by_cosine), np.sort(graph.indices))
    whole = rounded(features).astype(float)
    moved = whole / np.linalg.norm(whole, axis=1, keepdims=True) - features
    assert graph.move == pytest.approx(np.linalg.norm(moved, axis=1).max())


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 90), st.integers(1, 12), st.integers(1, 100), st.integers(0, 10**6), st.sampled_from([1, 2, 5]))
def test_lists_equal_brute_force_in_any_cut_into_blocks(n, dim, k, seed, threads):
    rng = np.random.default_rng(seed)
    features, ties = unit(rng.normal(size=(n, dim))), rng.permutation(n).astype(np.uint64)
    features[rng.integers(0, n, n // 3)] = features[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_search, "FLOPS_PER_BLOCK", 1)  # the smallest blocks: 64 rows, so that there are several
        graph = build_neighbors(features, k, ties=ties, work=Work(threads=threads))
    check(graph, features, min(k, n), ties)


def test_exact_ties_are_listed_by_index_and_copies_do_not_push_out_the_row_itself():
    # one-hot rows: all products are exactly 0 or 1, so that the order of ties is visible
    which = np.random.default_rng(3).integers(0, 4, 300)
    features = np.eye(4, dtype=np.float32)[which]
    check(build_neighbors(features, 120), features, 120)


def test_torch_path_gives_the_same_similarities(monkeypatch):
    features = unit(np.random.default_rng(1).normal(size=(500, 16)))
    monkeypatch.setattr(exact_search, "DEVICE_BLOCK", (128, 200))
    graph = build_neighbors(features, 40, device="cpu:0")
    check(graph, features, 40)
    assert graph.slack == slack(16) and build_neighbors(features, 40).slack == 0.0


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(3, 90), st.integers(1, 5), st.integers(1, 3), st.integers(0, 10**6))
def test_nearest_rows_of_another_set_equal_brute_force(queries, n, dim, k, seed):
    rng = np.random.default_rng(seed)
    rows = unit(rng.normal(size=(queries + n, dim)))
    asked, base = rounded(rows[:queries]), rounded(rows[queries:])
    near = cosines(rows)[:queries, queries:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_search, "BLOCK", 16)
        indices, similarities = nearest(asked, base, k)
        order = np.argsort(-near, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(similarities, np.take_along_axis(near, order, 1))
        # rows of the base leave themselves out, whatever their numbers begin with, and a short base leaves places
        own, _ = nearest(base, base, n, np.arange(n + 7, dtype=np.uint64), names=np.arange(7, n + 7), first=7)
        assert (np.sort(own, axis=1)[:, -1] == n + 7).all()
        assert all(set(row) == set(range(7, n + 7)) - {at + 7} for at, row in enumerate(own[:, :-1].tolist()))
    with pytest.raises(Stopped):
        nearest(asked, base, k, poll=poll_of(lambda: True))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(0, 10**6))
def test_rounded_rows_are_those_of_the_definition_and_products_miss_by_less_than_is_allowed(dim, seed):
    rng = np.random.default_rng(seed)
    features = unit(rng.normal(size=(40, dim)) * rng.choice([1e-3, 1.0], dim))
    rows = rounded(features)
    np.testing.assert_array_equal(rows, lists.rounded(features))
    np.testing.assert_array_equal(rows, rounded(features.astype(np.float16)))
    np.testing.assert_array_equal(rows[[3, 1]], rounded(features, np.array([3, 1])))
    assert np.abs(rows.astype(np.int64) @ rows.astype(np.int64).T).max() < 2**31
    wide, inverses = widened(rows)
    exact = rows.astype(np.float64) @ rows.astype(np.float64).T * (inverses[:, None] * inverses)
    # any order of the sum: as it comes, and backwards
    for order in (slice(None), slice(None, None, -1)):
        products = np.add.accumulate(wide[:, None, order] * wide[None, :, order], axis=2)[:, :, -1]
        assert np.abs(products.astype(np.float64) - exact).max() <= slack(dim)
    assert np.abs((wide @ wide.T).astype(np.float64) - exact).max() <= slack(dim)


def test_a_list_length_below_one_is_refused():
    with pytest.raises(OptionError, match="at least 1, got 0"):
        build_neighbors(np.eye(3, dtype=np.float32), 0)


def test_read_only_features_are_accepted(make_corpus):
    features = unit(np.random.default_rng(1).normal(size=(50, 4)))
    features.flags.writeable = False
    check(build_neighbors(features, 5), features, 5)


def test_stop_is_answered_within_a_chunk():
    features = unit(np.random.default_rng(0).normal(size=(12_000, 64)))
    build_neighbors(features[:100], 4)  # compilation is no part of a chunk
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    stopped_at = []

    def should_stop():
        if stop.is_set():
            stopped_at.append(time.monotonic())
        return stop.is_set()

    with pytest.raises(Stopped):
        build_neighbors(np.tile(features, (4, 1)), 64, work=Work.of(should_stop))
    assert time.monotonic() - stopped_at[0] < 10


def test_progress_rises_to_one():
    shares = []
    features = unit(np.random.default_rng(0).normal(size=(3000, 8)))
    build_neighbors(features, 8, work=Work(report=lambda share, _: shares.append(share)))
    assert shares == sorted(shares) and shares[-1] == 1.0


class Counted:
    """Counts how often the graph is built."""

    def __init__(self, monkeypatch):
        self.times = 0
        real = neighbors.build_neighbors

        def build(*args, **kwargs):
            self.times += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(neighbors, "build_neighbors", build)


def test_the_cache_serves_smaller_k_and_grows_for_larger(tmp_path, make_corpus, monkeypatch):
    corpus = make_corpus(np.random.default_rng(0).normal(size=(60, 5)))
    counted = Counted(monkeypatch)
    first = neighbors_for(corpus, 10, tmp_path)
    smaller = neighbors_for(corpus, 4, tmp_path)
    assert counted.times == 1
    np.testing.assert_array_equal(smaller.indices, first.indices[:, :4])
    assert neighbors_for(corpus, 20, tmp_path).k == 20 and counted.times == 2
    assert neighbors_for(corpus, 10, tmp_path).k == 10 and counted.times == 2
    assert neighbors_for(corpus, 500, tmp_path).k == 60, "no more neighbours than rows"
    other = make_corpus(np.random.default_rng(1).normal(size=(60, 5)), fingerprint="e" * 32)
    neighbors_for(other, 10, tmp_path)
    assert counted.times == 4


@pytest.mark.parametrize("damage", [b"", b"not a zip", None])
def test_a_damaged_cache_is_built_anew(tmp_path, make_corpus, monkeypatch, damage):
    corpus = make_corpus(np.random.default_rng(0).normal(size=(60, 5)))
    good = neighbors_for(corpus, 10, tmp_path)
    path = stored_graph(corpus, tmp_path).path
    path.write_bytes(path.read_bytes()[:-300] if damage is None else damage)
    counted = Counted(monkeypatch)
    again = neighbors_for(corpus, 10, tmp_path)
    assert counted.times == 1
    np.testing.assert_array_equal(again.indices, good.indices)
    assert stored_graph(corpus, tmp_path).find().k == 10


def change(name, place, value):
    """A change of one array of a graph."""

    def changed(arrays):
        arrays[name][place] = value

    return changed


UNFIT = {
    "rows that are not there": change("indices", (3, 2), 60),
    "negative rows": change("indices", (3, 2), -1),
    "another type": lambda arrays: arrays.update(indices=arrays["indices"].astype(np.int64)),
    "another size": lambda arrays: arrays.update(
        {name: arrays[name][:59] for name in ("indices", "similarities", "listed")}
    ),
    "not a number": change("similarities", (5, 3), np.nan),
    "no cosine": change("similarities", (5, 1), 10.0),
    "not falling": change("listed", (5, 3), 1.0),
    "not itself first": change("indices", (5, 0), 6),
    "twice": lambda arrays: change("indices", (5, 2), arrays["indices"][5, 1])(arrays),
    "other similarities": lambda arrays: arrays["similarities"].__isub__(
        np.float32(0.003) * (np.arange(10) > 0).astype(np.float32)
    ),
    "nearer ones left out": lambda arrays: arrays.update(
        {name: np.delete(arrays[name], 1, axis=1) for name in ("indices", "similarities", "listed")}
    ),
    "exact without full recall": lambda arrays: arrays.update(recall=np.array(0.5)),
    "rounded too far": lambda arrays: arrays.update(move=np.array(0.1)),
    "products too far off": lambda arrays: arrays.update(slack=np.array(0.1)),
    "recall above 1": lambda arrays: arrays.update(recall=np.array(1.5), exact=np.array(False)),
}


@pytest.mark.parametrize("spoil", UNFIT)
def test_a_graph_that_cannot_be_that_of_the_corpus_is_not_served(tmp_path, make_corpus, spoil):
    corpus = make_corpus(np.random.default_rng(0).normal(size=(60, 5)))
    graph = build_neighbors(corpus.features, 10, ties=row_hash(corpus.ids, 0))
    arrays = {
        "indices": graph.indices,
        "similarities": graph.similarities,
        "listed": graph.listed,
        "exact": np.array(True),
        "recall": np.array(1.0),
        "move": np.array(graph.move),
        "slack": np.array(0.0),
    }

    def put(arrays):
        RawCache(tmp_path).keep(stored.entry, arrays=arrays)

    stored = stored_graph(corpus, tmp_path)
    put(arrays)
    assert stored.find() is not None
    stored.drop()
    arrays = {name: array.copy() for name, array in arrays.items()}
    UNFIT[spoil](arrays)
    put(arrays)
    assert stored.find() is None


def test_a_half_built_graph_that_is_wrong_without_looking_so_is_built_again(tmp_path, make_corpus, monkeypatch):
    corpus = make_corpus(np.random.default_rng(0).normal(size=(60, 5)))
    good, real = neighbors_for(corpus, 10, None), Progress.found

    def kept_elsewhere(self, serves):
        lists = real(self, serves)
        if lists is None:
            return None
        indices = ((np.arange(60)[:, None] + 1 + np.arange(9)) % 60).astype(np.int32)
        return replace(lists, indices=indices, similarities=np.full((60, 9), 0.5, np.float32), done=np.array([True]))

    RawCache(tmp_path).keep(
        graph_checkpoint.stored_lists(corpus.fingerprint, None).entry,
        {"plan": "all pairs of rounded rows in blocks of 1024"},
        {
            "similarities": np.full((60, 9), -np.inf, np.float32),
            "indices": np.full((60, 9), 60, "i4"),
            "done": np.array([False]),
        },
    )
    monkeypatch.setattr(Progress, "found", kept_elsewhere)
    monkeypatch.setattr(exact_search, "BLOCK", 1024)
    monkeypatch.setattr(exact_search, "FLOPS_PER_BLOCK", 2 * 5 * 1024**2)
    counted = Counted(monkeypatch)
    np.testing.assert_array_equal(neighbors_for(corpus, 10, tmp_path).indices, good.indices)
    assert counted.times == 2


def test_building_removes_what_killed_builders_left_and_nothing_that_is_being_written(tmp_path, make_corpus):
    corpus = make_corpus(np.random.default_rng(0).normal(size=(20, 5)))
    folder = tmp_path / corpus.fingerprint
    folder.mkdir()
    for name in (".neighbors-v1.cache.abcd1234.part", ".neighbors-unfinished-v1.cache.abcd1234.part"):
        (folder / name).write_bytes(b"half")
    with replacing(folder / "umap-v1.cache") as being_written:
        neighbors_for(corpus, 5, tmp_path)
        assert [path.name for path in folder.glob(".*")] == [being_written.name]
        being_written.write_bytes(b"whole")


def test_without_a_writable_cache_the_graph_is_still_built(tmp_path, make_corpus):
    (tmp_path / "file").write_text("in the way")
    corpus = make_corpus(np.random.default_rng(0).normal(size=(20, 5)))
    assert neighbors_for(corpus, 5, tmp_path / "file").k == 5
    assert neighbors_for(corpus, 5, None).k == 5


def test_of_two_callers_one_builds_and_the_other_waits_or_stops(tmp_path, make_corpus, monkeypatch):
    corpus = make_corpus(np.random.default_rng(0).normal(size=(60, 5)))
    inside, go = threading.Event(), threading.Event()
    built = []

    def build(features, k, **_):
        inside.set()
        assert go.wait(120)
        built.append(k)
        return build_neighbors(features, k)

    monkeypatch.setattr(neighbors, "build_neighbors", build)
    results = []
    first = threading.Thread(target=lambda: results.append(neighbors_for(corpus, 6, tmp_path)))
    first.start()
    assert inside.wait(120)
    with pytest.raises(Stopped):
        neighbors_for(corpus, 6, tmp_path, work=Work.of(lambda: True))
    second = threading.Thread(target=lambda: results.append(neighbors_for(corpus, 6, tmp_path)))
    second.start()
    go.set()
    first.join(120), second.join(120)
    assert built == [6] and len(results) == 2
    np.testing.assert_array_equal(results[0].indices, results[1].indices)


def test_first_cuts_lists():
    graph = NeighborGraph(np.arange(6, dtype=np.int32).reshape(2, 3), np.ones((2, 3), np.float32), False, 0.9)
    assert graph.first(2).k == 2 and graph.first(2).exact is False and graph.first(2).recall == 0.9
