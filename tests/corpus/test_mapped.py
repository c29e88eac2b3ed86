"""A corpus whose arrays lie in files is the one in memory, bit for bit; and so is its neighbor graph."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.corpus import neighbors, open_corpus
from datamask.corpus.centered import centered
from datamask.corpus.components import Components
from datamask.corpus.neighbors import neighbors_for
from tests.making.shards import clustered

ROWS = 3000
ARRAYS = ("features", "quality", "lengths", "norms", "source_file", "source_row")


@pytest.fixture
def shards(tmp_path):
    """Two shards, some rows of which are invalid, with a text and features that are not of unit length."""
    features, quality = clustered(ROWS, seed=4)
    features *= np.random.default_rng(1).uniform(0.1, 9.0, (ROWS, 1)).astype(np.float32)
    quality[[5, 1700]], features[[40, 2222]] = np.nan, 0.0
    for number, rows in enumerate(np.array_split(np.arange(ROWS), 2)):
        columns = {
            "id": [f"row-{row}" for row in rows],
            "quality": quality[rows],
            "features": pa.FixedSizeListArray.from_arrays(pa.array(features[rows].ravel()), features.shape[1]),
            "n_tokens": rows + 1,
            "text": [f"text {row}" for row in rows],
        }
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet", row_group_size=400)
    return [str(tmp_path / f"{number}.parquet") for number in range(2)]


def both(shards, tmp_path, **options):
    """The corpus in memory, and in files."""
    return tuple(open_corpus(shards, drop_invalid=True, into=into, **options) for into in (None, tmp_path / "maps"))


@pytest.mark.parametrize("options", [{}, {"rows": 700}, "joined"])
def test_it_holds_what_memory_holds(shards, tmp_path, options):
    if options == "joined":  # features joined from other shards, in another order
        table = pq.read_table(shards[0]).select(["id", "features"])
        order = np.random.default_rng(2).permutation(len(table))
        pq.write_table(table.take(order), tmp_path / "side.parquet")
        shards, options = shards[:1], {"features": str(tmp_path / "side.parquet")}
    memory, files = both(shards, tmp_path, **options)
    assert files.fingerprint == memory.fingerprint and files.provenance == memory.provenance
    assert files.ids.equals(memory.ids) and files.metadata.equals(memory.metadata)
    for name in ARRAYS:
        one, other = getattr(memory, name), getattr(files, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    assert not files.features.flags.writeable and files.features.flags.c_contiguous
    assert memory.nbytes - files.nbytes == memory.features.nbytes
    np.testing.assert_array_equal(centered(files).features, centered(memory).features)
    axes = Components.of(memory, 5)
    np.testing.assert_array_equal(axes.rows(files.features, place=files.place), axes.rows(memory.features))
    assert centered(files).place == files.place


def test_all_rows_are_opened_that_memory_would_not_hold(shards, tmp_path, monkeypatch):
    monkeypatch.setattr("datamask.corpus.opening.default_row_limit", lambda *_, **__: 900)
    memory, files = both(shards, tmp_path)
    assert memory.provenance.rows_read == 900 and files.provenance.rows_read == ROWS


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_the_graph_is_the_same_entry_for_entry(shards, tmp_path, monkeypatch, search):
    monkeypatch.setattr(neighbors, "LEAST_APPROXIMATE", 100)
    memory, files = both(shards, tmp_path)
    expected = neighbors_for(memory, 12, None, search=search)
    assert expected.exact == (search == "exact")
    for _ in range(2):  # built, then found
        graph = neighbors_for(files, 12, tmp_path / "cache", search=search)
        for name in ("indices", "similarities", "listed"):
            np.testing.assert_array_equal(getattr(graph, name), getattr(expected, name))
            assert not getattr(graph, name).flags.writeable
        assert (graph.recall, graph.move, graph.exact) == (expected.recall, expected.move, expected.exact)
