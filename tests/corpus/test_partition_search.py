"""The approximate graph against all pairs: its lists, its promised and its measured recall, and who is served which."""

import functools
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.corpus import (
    centres,
    graph_checkpoint,
    neighbor_descent,
    neighbors,
    pair_search,
    partition_search,
)
from datamask.corpus.centres import Centres, cell_count
from datamask.corpus.exact_search import falling
from datamask.corpus.graph_checkpoint import NeighborLists
from datamask.corpus.neighbor_descent import descend
from datamask.corpus.neighbors import (
    NeighborGraph,
    build_neighbors,
    measured_recall,
    neighbors_for,
    search_for,
    stored_graph,
)
from datamask.corpus.partition_search import Cells, cells_of, nearby_pairs
from datamask.corpus.rounded_rows import rounded
from datamask.errors import OptionError, Stopped
from datamask.work.context import Work
from datamask.work.kept import Progress
from tests.making.raw_cache import RawCache
from tests.reference.lists import true_lists


def unit(rows):
    rows = np.asarray(rows, np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def clustered(n, dim=16, families=30, seed=0):
    rng = np.random.default_rng(seed)
    return unit(rng.normal(size=(families, dim))[rng.integers(0, families, n)] + 0.35 * rng.normal(size=(n, dim)))


@pytest.fixture
def small(monkeypatch):
    """Small corpora are searched approximately too, in several groups and pieces."""
    monkeypatch.setattr(neighbors, "LEAST_APPROXIMATE", 100)
    monkeypatch.setattr(partition_search, "GROUP", 400)
    monkeypatch.setattr(pair_search, "PIECE", 64)


def overlap(graph, exact):
    """The share of the exact lists' other rows that the graph lists."""
    both = [len(np.intersect1d(a[1:], b[1:])) for a, b in zip(graph.indices, exact.indices)]
    return sum(both) / (len(both) * (exact.k - 1))


def test_progress_goes_by_the_pairs_and_not_by_the_parts(small, monkeypatch):
    """The parts that come first have most pairs: by their number, a graph would be done all of a sudden."""
    given = {}

    def kept(lists, task, *others, costs, **named):
        given["costs"] = costs
        return graph_checkpoint.work_through(lists, task, *others, costs=costs, **named)

    monkeypatch.setattr(partition_search, "work_through", kept)
    features = clustered(2000)
    rows, ties = rounded(features), np.arange(2000, dtype=np.uint64)
    cells = cells_of(rows, 8, ties)
    nearby_pairs(rows[cells.order], 8, cells, ties[cells.order], work=Work(threads=1))
    assert given["costs"].sum() == np.diff(cells.starts)[cells.probed].sum() and given["costs"].min() > 0
    # of three parts the costly one is done
    shares, told = [], threading.Event()
    lists = NeighborLists(np.zeros((0, 1)), np.zeros((0, 1), int), np.array([True, False, False]), "")
    graph_checkpoint.work_through(
        lists,
        lambda part: told.wait(120),
        Progress(),
        costs=np.array([8.0, 1.0, 1.0]),
        work=Work(report=lambda share, what: (shares.append(share), told.set()), threads=1),
    )
    assert shares[0] == pytest.approx(0.8) and shares[-1] == 1.0


def test_recall_is_as_wanted_and_as_measured(small):
    features = clustered(4000)
    graph = build_neighbors(features, 16, search="approximate", work=Work(threads=2))
    exact = build_neighbors(features, 16)
    assert not graph.exact and graph.facts().approximate
    true = overlap(graph, exact)
    assert true > 0.98, "wanted 0.97 on a sample of the rows, and a pass of NN-descent after that"
    # 400 of 4 000 rows: three standard errors of a share are below 0.01
    assert abs(graph.recall - true) < 0.01
    # what is listed is correct: own row first, falling, no row twice, cosines those of the pairs
    np.testing.assert_array_equal(graph.indices[:, 0], np.arange(4000))
    assert (np.diff(graph.listed, axis=1) <= 0).all()
    assert all(len(set(row)) == 16 for row in graph.indices.tolist())
    pairs = np.einsum("nd,nkd->nk", features.astype(float), features.astype(float)[graph.indices])
    np.testing.assert_allclose(graph.similarities, pairs, atol=2e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(20, 300), st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.integers(0, 10**6))
def test_exactly_the_probed_pairs_are_compared(n, count, probes, threads, seed):
    """Against the rule itself: i and j are compared if either looks into the other's cell."""
    rng = np.random.default_rng(seed)
    features, k, m = unit(rng.normal(size=(n, 5))), 4, min(probes, count)
    features[rng.integers(0, n, n // 4)] = features[0]
    rows, ties = rounded(features), rng.permutation(n).astype(np.uint64)
    cell = np.sort(rng.integers(0, count, n))
    starts = np.searchsorted(cell, np.arange(count + 1))
    # where a row belongs is its nearest centre, into which it looks
    probed = np.array(
        [rng.permutation(np.r_[own, rng.permutation(np.delete(np.arange(count), own))[: m - 1]]) for own in cell]
    )
    probed = np.sort(probed, axis=1).astype(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_search, "GROUP", 40)
        patch.setattr(pair_search, "PIECE", 16)
        lists = nearby_pairs(rows, k, Cells(np.arange(n), starts, probed), ties, work=Work(threads=threads))
    one_way = (probed[:, :, None] == cell[None, None, :]).any(axis=1)
    compared = one_way | one_way.T
    compared[compared.sum(axis=1) <= k] = True  # with too few, a row is compared with all
    indices, similarities = true_lists(features, k + 1, ties, compared)
    for mine, true in zip(falling(lists.indices, lists.similarities, ties), (indices, similarities)):
        np.testing.assert_array_equal(mine, true[:, 1:])


def test_lists_do_not_depend_on_the_order_of_the_rows(small, monkeypatch):
    """Cells are in many groups, and so few are looked into that three passes of NN-descent follow."""
    for module, name, value in (
        (centres, "NEAR", 12),
        (centres, "MOST_NEAREST", 10),
        (centres, "CELL_ROWS", 30),
        (partition_search, "LARGE", 1000),
        (partition_search, "LOOKED_AT", (100, 100)),
    ):
        monkeypatch.setattr(module, name, value)
    features, ties = clustered(1500, 24), np.random.default_rng(5).permutation(1500).astype(np.uint64)
    features[40:90] = features[0]
    order = np.random.default_rng(3).permutation(1500)
    here = build_neighbors(features, 25, ties=ties, search="approximate")
    there = build_neighbors(features[order], 25, ties=ties[order], search="approximate", work=Work(threads=2))
    place = np.argsort(order)
    np.testing.assert_array_equal(order[there.indices[place]], here.indices)
    np.testing.assert_array_equal(there.similarities[place], here.similarities)
    assert there.recall == here.recall and not here.exact


def test_the_number_of_probes_is_the_least_that_finds_the_wanted_share(monkeypatch):
    monkeypatch.setattr(partition_search, "JUDGES", 1500)  # every row, so that the promise is exact
    monkeypatch.setattr(partition_search, "LEAST_LOOKED_INTO", 1)
    features = clustered(1500)
    rows, ties = rounded(features), np.random.default_rng(1).permutation(1500).astype(np.uint64)
    true = true_lists(features, 11, ties)[0][:, 1:]
    points = Centres.learn(rows.__getitem__, ties, cell_count(1500)).points.astype(np.int64)
    near = np.argsort(-(rows.astype(np.int64) @ points.T), axis=1, kind="stable")

    def found(m):
        hit = (near[:, None, :m] == near[true, 0][:, :, None]).any(axis=2)
        back = (near[true, :m] == near[:, None, :1]).any(axis=2)
        return (hit | back).mean()

    for wanted in (0.8, 0.95, 0.99):
        cells = cells_of(rows, 10, ties, recall=wanted)
        m = cells.probed.shape[1]
        np.testing.assert_array_equal(cells.probed, np.sort(near[cells.order, :m], axis=1))
        assert found(m) >= wanted and (m == 1 or found(m - 1) < wanted)


def test_a_row_at_the_edge_of_its_cluster_finds_its_neighbors_too(small, monkeypatch):
    monkeypatch.setattr(centres, "CELL_ROWS", 32)
    rng = np.random.default_rng(2)
    middles = rng.normal(size=(100, 64)) + 0.3
    features = unit(middles[rng.integers(0, 100, 4000)] + 0.9 * rng.normal(size=(4000, 64)))
    ties = rng.permutation(4000).astype(np.uint64)
    true = true_lists(features, 12, ties)[0][:, 1:]

    def fewest() -> int:
        lists = build_neighbors(features, 12, ties=ties, search="approximate").indices
        return min(len(set(some) & set(near)) for some, near in zip(lists.tolist(), true.tolist()))

    assert fewest() >= 8
    monkeypatch.setattr(partition_search, "LEAST_LOOKED_INTO", 1)
    assert fewest() <= 2, "one cell is enough for the share that is aimed at"


def test_lists_of_a_large_corpus_without_structure_are_looked_for_in_so_many_rows(monkeypatch):
    rows, ties = rounded(unit(np.random.default_rng(0).normal(size=(1500, 64)))), np.arange(1500, dtype=np.uint64)
    assert cells_of(rows, 10, ties) is None
    monkeypatch.setattr(partition_search, "LARGE", 1000)
    monkeypatch.setattr(partition_search, "LOOKED_AT", (300, 300))
    assert cells_of(rows, 10, ties).probed.shape == (1500, 8)  # of 39 cells


def test_all_rows_together_look_at_so_many_rows_at_most():
    """65,536 each up to half a million rows, 4,096 from eight million on; more passes where that is not enough."""
    for rows, most in ((400_000, 65_536), (10**6, 34_359), (10**7, 4096), (5 * 10**7, 4096)):
        cells = cell_count(rows)
        m = partition_search.most_cells(rows, cells)
        assert most <= m * rows / cells < most + rows / cells + 1
        assert [partition_search.passes_of(some, rows, cells) for some in (m - 1, m)] == [1, 3]
    assert partition_search.passes_of(10**6, 200_000, 447) == 1


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_lists_do_not_depend_on_where_a_row_stands(small, search):
    features, ties = clustered(1500), np.random.default_rng(1).permutation(1500).astype(np.uint64)
    features[700:800] = features[0]
    first = build_neighbors(features, 12, ties=ties, search=search)
    order = np.random.default_rng(2).permutation(1500)
    again = build_neighbors(features[order], 12, ties=ties[order], search=search)
    assert first.exact is (search == "exact")
    np.testing.assert_array_equal(order[again.indices], first.indices[order])
    np.testing.assert_array_equal(again.similarities, first.similarities[order])
    assert again.recall == first.recall


def test_without_structure_all_pairs_are_compared(small):
    features = unit(np.random.default_rng(0).normal(size=(1500, 64)))
    graph = build_neighbors(features, 8, search="approximate")
    assert graph.exact and graph.recall == 1.0 and graph.facts().recall_rows == 0
    np.testing.assert_array_equal(graph.indices, build_neighbors(features, 8).indices)


def test_neighbors_of_neighbors_are_found_that_no_cell_holds(small, monkeypatch):
    features = clustered(4000)
    exact, recall = build_neighbors(features, 16), {}
    for nearest in (0, 8):
        monkeypatch.setattr(neighbor_descent, "descend", functools.partial(descend, nearest=nearest))
        monkeypatch.setattr(neighbors, "cells_of", functools.partial(cells_of, recall=0.8))
        graph = build_neighbors(features, 16, search="approximate")
        recall[nearest] = overlap(graph, exact)
        assert abs(graph.recall - recall[nearest]) < 0.02, "what is kept is measured after the pass"
    assert recall[8] > (1 + recall[0]) / 2, "more than half of what was missing"


def test_few_rows_are_compared_exactly():
    assert build_neighbors(clustered(500), 8, search="approximate").exact


def test_rows_with_many_copies_and_rows_alone_in_their_cell_get_whole_lists(small):
    features = clustered(1200)
    features[:300] = features[0]
    features[1199] = -features[0]
    graph = build_neighbors(features, 20, search="approximate")
    assert graph.indices.max() < 1200 and np.isfinite(graph.similarities).all()
    assert all(len(set(row)) == 20 for row in graph.indices.tolist())
    # which of 300 equal rows are listed is no error
    assert graph.recall > 0.97


def test_measured_recall_counts_what_is_missing():
    features = clustered(600)
    exact = build_neighbors(features, 11)
    assert measured_recall(features, exact) == measured_recall(rounded(features), exact) == 1.0
    indices = exact.indices.copy()
    indices[:, 10] = np.argmin(features @ features.T, axis=1)  # the last of ten is a stranger
    assert measured_recall(features, NeighborGraph(indices, exact.similarities, False)) == pytest.approx(0.9)
    assert measured_recall(features, exact.first(1)) == 1.0


def test_auto_is_exact_up_to_a_size_and_on_a_gpu():
    assert search_for(neighbors.EXACT_UP_TO) == "exact"
    assert search_for(neighbors.EXACT_UP_TO + 1) == "approximate"
    assert search_for(neighbors.EXACT_UP_TO + 1, "auto", "cuda:0") == "exact"
    assert search_for(10, "approximate") == "approximate" and search_for(10**9, "exact") == "exact"
    with pytest.raises(OptionError, match="--neighbors must be auto, exact or approximate, got 'quick'"):
        search_for(10, "quick")
    with pytest.raises(OptionError, match="'exact' or 'approximate', got 'auto'"):
        build_neighbors(clustered(10), 3, search="auto")


def test_the_cache_keeps_recall_and_an_exact_graph_takes_the_place_of_an_approximate_one(small, tmp_path, make_corpus):
    corpus = make_corpus(clustered(1200))
    rough = neighbors_for(corpus, 8, tmp_path, search="approximate")
    assert not rough.exact and stored_graph(corpus, tmp_path).find().recall == rough.recall
    RawCache(tmp_path).keep(
        stored_graph(corpus, None).entry,
        arrays={
            "indices": rough.indices,
            "similarities": rough.similarities,
            "listed": rough.listed,
            "exact": np.array(False),
            "recall": np.array(0.93),
            "move": np.array(rough.move),
            "slack": np.array(0.0),
        },
    )
    assert neighbors_for(corpus, 8, tmp_path, search="approximate").recall == 0.93
    fine = neighbors_for(corpus, 8, tmp_path)  # auto means exact at this size
    assert fine.exact and stored_graph(corpus, tmp_path).find().exact
    again = neighbors_for(corpus, 8, tmp_path, search="approximate")
    assert again.exact, "nothing is gained by a worse graph than the one that is there"


def test_stop_is_answered_at_any_time(small):
    """Whatever number of polls it is that says stop, the answer is `Stopped`, and soon."""
    features = clustered(3000)
    for patience in (0, 3, 10, 20):
        polls = iter(range(10**9))
        with pytest.raises(Stopped):
            build_neighbors(
                features,
                16,
                search="approximate",
                work=Work.of(lambda polls=polls, patience=patience: next(polls) >= patience),
            )
    stop, asked = threading.Event(), []
    threading.Timer(0.2, stop.set).start()

    def should_stop():
        if stop.is_set():
            asked.append(time.monotonic())
        return stop.is_set()

    with pytest.raises(Stopped):
        build_neighbors(
            np.tile(clustered(20_000, dim=128), (2, 1)), 64, search="approximate", work=Work.of(should_stop)
        )
    assert time.monotonic() - asked[0] < 30
