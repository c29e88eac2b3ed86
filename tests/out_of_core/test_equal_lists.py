"""Neighbor lists in memory and out of core are the same, however the work is cut up.

In memory they have the cosines of the rows, out of core those of the rounded rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus import centres, neighbors, open_corpus, pair_search, partition_search
from datamask.corpus.neighbors import neighbors_for
from datamask.corpus.rounded_rows import cosine_error
from datamask.corpus.sampling import row_hash
from datamask.out_of_core import partition
from datamask.out_of_core.cells import CellBlocks
from datamask.out_of_core.engines.local import LocalEngine
from datamask.out_of_core.facility import solve_facility
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.scratch_writing import write_scratch
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.work.context import UNWATCHED, Work
from tests.making.shards import SerialEngine, with_stops
from tests.reference.lists import true_lists


def shards(folder, rows, dim, dtype=np.float32, seed=0, order=None):
    """A corpus in shards of rows of any length: clusters, copies, one row opposite to all."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(30, dim))[rng.integers(0, 30, rows)] + 0.4 * rng.normal(size=(rows, dim))
    features *= rng.uniform(0.1, 50, (rows, 1))
    features[rows // 2 : rows // 2 + rows // 20] = features[0]
    features[-1] = -features[0]
    order = np.arange(rows) if order is None else order
    folder.mkdir(parents=True)
    for number, some in enumerate(np.array_split(order, 3)):
        table = pa.table(
            {
                "id": pa.array([f"row-{row:07d}" for row in some]),
                "quality": rng.normal(size=len(some)),
                "features": pa.FixedSizeListArray.from_arrays(pa.array(features[some].astype(dtype).ravel()), dim),
            }
        )
        pq.write_table(table, folder / f"{number:03d}.parquet", row_group_size=157)
    return CorpusConfig((str(folder),))


def lists_of(cells: CellBlocks) -> tuple[np.ndarray, np.ndarray]:
    """The lists out of core, by row of the scratch."""
    rows, positions, near = (
        np.concatenate([phase[number][name] for number in range(cells.blocks)])
        for phase, name in ((cells.block, "rows"), (cells.lists, "positions"), (cells.lists, "similarities"))
    )
    place = np.argsort(rows)
    return rows[positions[place]], near[place]


def assert_equal(scratch: Scratch, graph, block_rows: int, exact: bool, engine=None) -> CellBlocks:
    cells = CellBlocks(scratch, block_rows, graph.k, exact=exact)
    with engine or SerialEngine() as used:
        cells.prepare(used)
    indices, similarities = lists_of(cells)
    np.testing.assert_array_equal(indices, graph.indices)
    np.testing.assert_allclose(similarities, graph.similarities, atol=2 * cosine_error(scratch.dim))
    return cells


@pytest.fixture
def small(monkeypatch):
    """Small corpora are searched approximately too, in several groups, pieces and parts."""
    monkeypatch.setattr(neighbors, "LEAST_APPROXIMATE", 100)
    monkeypatch.setattr(partition_search, "GROUP", 400)
    monkeypatch.setattr(pair_search, "PIECE", 64)
    monkeypatch.setattr(partition, "PART_ROWS", 150)


@pytest.mark.parametrize(
    ("search", "dtype", "sizes"),
    [
        ("exact", np.float16, {400: 4}),
        ("exact", np.float32, {1500: 1, 90: 17}),
        ("approximate", np.float32, {90: 17}),
        ("approximate", np.float64, {1500: 1, 400: 4}),
    ],
)
def test_lists_in_memory_and_out_of_core_are_equal(small, tmp_path, search, dtype, sizes):
    config = shards(tmp_path / "shards", 1500, 13, dtype)
    corpus, scratch = open_corpus(config), write_scratch(WholeCorpus.open(config), tmp_path / "scratch")
    graph = neighbors_for(corpus, 25, None, search=search, work=Work(threads=2))
    assert graph.exact is (search == "exact")
    ties = row_hash(corpus.ids, 0)
    if graph.exact:
        true = true_lists(corpus.features, 25, ties)
        np.testing.assert_array_equal(graph.indices, true[0])
        np.testing.assert_allclose(graph.similarities, true[1], atol=2 * cosine_error(corpus.dim))
    for block_rows, blocks in sizes.items():
        assert assert_equal(scratch, graph, block_rows, graph.exact).blocks == blocks


@pytest.mark.parametrize("k", [2, 199, 200])
def test_lists_as_long_as_the_corpus_are_equal(small, tmp_path, k):
    config = shards(tmp_path / "shards", 200, 5)
    corpus, scratch = open_corpus(config), write_scratch(WholeCorpus.open(config), tmp_path / "scratch")
    for search in ("exact", "approximate"):
        graph = neighbors_for(corpus, k, None, search=search)
        assert_equal(scratch, graph, 60, graph.exact)


def test_features_without_structure_are_compared_with_all_out_of_core_too(small, tmp_path):
    config = shards(tmp_path / "shards", 700, 3)
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "id": pa.array(range(600)),
            "quality": rng.normal(size=600),
            "features": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=600 * 64)), 64),
        }
    )
    (tmp_path / "even").mkdir()
    pq.write_table(table, tmp_path / "even" / "0.parquet")
    config = CorpusConfig((str(tmp_path / "even"),))
    graph = neighbors_for(open_corpus(config), 12, None, search="approximate")
    assert graph.exact
    scratch = write_scratch(WholeCorpus.open(config), tmp_path / "scratch")
    cells = assert_equal(scratch, graph, 200, exact=False)
    assert cells.needed[0].value == {"cells": None}


def test_lists_do_not_depend_on_the_order_of_the_rows(small, tmp_path):
    graphs = []
    for order in (np.arange(1200), np.random.default_rng(3).permutation(1200)):
        folder = tmp_path / str(order[0])
        config = shards(folder / "shards", 1200, 9, order=order)
        corpus = open_corpus(config)
        graph = neighbors_for(corpus, 20, None, search="approximate")
        assert_equal(write_scratch(WholeCorpus.open(config), folder / "scratch"), graph, 500, exact=False)
        names = np.array([int(name[4:]) for name in corpus.ids.to_pylist()])
        place = np.argsort(names)
        graphs.append((names[graph.indices[place]], graph.similarities[place], graph.recall))
    for one, other in zip(*graphs):
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def large(small, monkeypatch):
    """Cells in many groups, and so few that a row looks into that three passes of NN-descent follow."""
    monkeypatch.setattr(centres, "NEAR", 12)
    monkeypatch.setattr(centres, "MOST_NEAREST", 10)
    monkeypatch.setattr(centres, "CELL_ROWS", 30)
    monkeypatch.setattr(partition_search, "LARGE", 1000)
    monkeypatch.setattr(partition_search, "LOOKED_AT", (100, 100))


def test_lists_of_many_groups_of_cells_and_several_passes_are_equal(large, tmp_path):
    config = shards(tmp_path / "shards", 1500, 24)
    scratch = write_scratch(WholeCorpus.open(config), tmp_path / "scratch")
    graph = neighbors_for(open_corpus(config), 25, None, search="approximate", work=Work(threads=2))
    assert not graph.exact and 0.9 < graph.recall < 1
    for block_rows in (1500, 400):
        cells = assert_equal(scratch, graph, block_rows, exact=False)
        assert len(cells.passes) == 4 and not any(any(cells.folder.glob(f"{each.word}*")) for each in cells.passes)
    groups = cells.centres[0]["middles"]
    assert 5 <= len(groups) <= 7


def test_what_was_stopped_between_passes_goes_on_from_the_last_whole_one(large, tmp_path):
    config = shards(tmp_path / "shards", 1500, 24)
    scratch = write_scratch(WholeCorpus.open(config), tmp_path / "scratch")
    graph = neighbors_for(open_corpus(config), 25, None, search="approximate")
    unbroken = SerialEngine()
    CellBlocks(write_scratch(WholeCorpus.open(config), tmp_path / "other"), 400, 25).prepare(unbroken)
    _, calls = with_stops(CellBlocks(scratch, 400, 25).prepare, 5)
    assert sorted(calls) == sorted(unbroken.calls), "no call is done twice"
    assert_equal(scratch, graph, 400, exact=False)


def test_a_run_that_is_stopped_after_every_second_task_ends_like_one_that_is_not(large, tmp_path):
    """Names of later phases follow from what earlier ones found, and are asked for before these are done again."""
    shards_of_run = shards(tmp_path / "shards", 1500, 24)
    config = SelectionConfig.from_options(
        objective="facility", lamb=0.5, select_ratio=0.1, neighbors="approximate", device="cpu"
    )

    def solved(scratch, engine, work=UNWATCHED):
        return solve_facility(scratch, config, 150, engine, work, listed_rows=400)

    unbroken = SerialEngine()
    expected = solved(write_scratch(WholeCorpus.open(shards_of_run), tmp_path / "one"), unbroken)
    scratch = write_scratch(WholeCorpus.open(shards_of_run), tmp_path / "other")
    solution, calls = with_stops(lambda engine, work: solved(scratch, engine, work), 2)
    assert sorted(calls) == sorted(unbroken.calls), "no call is done twice"
    np.testing.assert_array_equal(solution.selected, expected.selected)
    assert solution.joint == expected.joint


def test_workers_make_the_lists_of_memory_at_a_size_that_is_searched_approximately(tmp_path):
    config = shards(tmp_path / "shards", neighbors.LEAST_APPROXIMATE, 24, np.float16)
    corpus, scratch = open_corpus(config), write_scratch(WholeCorpus.open(config), tmp_path / "scratch")
    graph = neighbors_for(corpus, 64, None, search="approximate", work=Work(threads=2))
    assert not graph.exact and graph.recall > 0.95
    cells = assert_equal(scratch, graph, 7000, exact=False, engine=LocalEngine(2))
    assert cells.blocks == 3
