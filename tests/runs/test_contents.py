"""An export writes the rows that were selected, or none: digests of what the selected rows hold."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.errors import InputError, Stopped
from datamask.evaluation.selection import Selection
from datamask.polling import poll_of
from datamask.runs import exports
from datamask.runs.contents import Digest, ShardRows
from datamask.runs.digests import digests
from datamask.runs.execute import execute
from datamask.runs.imports import import_ids
from datamask.runs.store import Run, RunStore
from datamask.work.context import Work

ROWS, DIM = 60, 4


def table(seed: int = 0) -> pa.Table:
    """Rows whose ids are the same for every seed, and nothing else is."""
    rng = np.random.default_rng(seed)
    features = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=ROWS * DIM).astype(np.float32)), DIM)
    return pa.table(
        {
            "chunk_id": [f"id-{k}" for k in range(ROWS)],
            "quality_score": rng.normal(size=ROWS),
            "feature_arr": features,
            "text": [f"seed {seed}, text {k}" for k in range(ROWS)],
        }
    )


@pytest.fixture
def shard(tmp_path) -> Path:
    path = tmp_path / "shard.parquet"
    pq.write_table(table(), path)
    return path


def executed(store: RunStore, shard: Path) -> Run:
    options = {"objective": "pairwise", "estimator": "relaxed", "select_ratio": 0.2, "device": "cpu"}
    run = store.create(RunConfig(CorpusConfig((str(shard),)), SelectionConfig.from_options(**options)))
    assert execute(run, Work(threads=1)).status == "done"
    return run


def exported(run: Run, folder: Path) -> pa.Table:
    exports.filtered_rows(run, folder / "out.parquet")
    exports.write_masks(run, folder / "masks")
    return pq.read_table(folder / "out.parquet")


def refused(run: Run, folder: Path, how: str) -> None:
    for action in (
        lambda: exports.filtered_rows(run, folder / "no.parquet"),
        lambda: exports.write_masks(run, folder / "no"),
    ):
        with pytest.raises(InputError, match=rf"shard\.parquet has changed since the run: {how}"):
            action()
    assert not (folder / "no.parquet").exists() and not (folder / "no").exists()


def rewritten(path: Path, seed: int = 0, **options) -> None:
    """The shard anew, of the same size as far as that can be, and with the times it had."""
    before = path.stat()
    pq.write_table(table(seed), path, **options)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_shard_rewritten_with_the_same_ids_is_refused(store, shard, tmp_path):
    run = executed(store, shard)
    expected = table().filter(pc.is_in(table()["chunk_id"], run.selection()["chunk_id"].combine_chunks()))
    assert exported(run, tmp_path).equals(expected)
    rewritten(shard, seed=1)
    refused(run, tmp_path, "its selected rows hold something else")
    exports.write_selection(run, tmp_path / "ids.parquet")
    assert pq.read_table(tmp_path / "ids.parquet")["chunk_id"].equals(run.selection()["chunk_id"])


@pytest.mark.parametrize("options", [{"compression": "none"}, {"row_group_size": 7}, {"use_dictionary": False}])
def test_the_same_rows_written_otherwise_are_still_the_same(store, shard, tmp_path, options):
    run = executed(store, shard)
    before = exported(run, tmp_path)
    rewritten(shard, **options)
    assert exported(run, tmp_path).equals(before)


def test_one_letter_of_one_selected_text_is_enough_and_others_do_not_matter(store, shard, tmp_path):
    run = executed(store, shard)
    chosen = set(run.selection()["source_row"].to_pylist())
    other = next(row for row in range(ROWS) if row not in chosen)
    for row, counts in ((other, False), (min(chosen), True)):
        texts = table()["text"].to_pylist()
        texts[row] = texts[row].upper()
        pq.write_table(table().set_column(3, "text", pa.array(texts)), shard)
        if counts:
            refused(run, tmp_path, "its selected rows hold something else")
        else:
            exported(run, tmp_path)


def test_a_shard_rewritten_while_the_run_went_on_is_refused(store, shard, tmp_path, monkeypatch):
    measured = Selection.measured.__func__

    def late(cls, *args, **options):
        rewritten(shard, seed=1)
        return measured(cls, *args, **options)

    monkeypatch.setattr(Selection, "measured", classmethod(late))
    run = executed(store, shard)
    refused(run, tmp_path, "it was written anew while the run was going on")


@pytest.fixture
def during(monkeypatch):
    """``during(act)``: from now on `act` is called in the middle of a run."""
    measured = Selection.measured.__func__

    def during(act) -> None:
        def late(cls, *args, **options):
            act()
            return measured(cls, *args, **options)

        monkeypatch.setattr(Selection, "measured", classmethod(late))

    return during


@pytest.mark.parametrize(
    "touch", [lambda path: path.chmod(0o600), lambda path: path.with_suffix(".link").hardlink_to(path)]
)
def test_a_shard_that_was_only_touched_while_the_run_went_on_is_exported(store, shard, tmp_path, during, touch):
    during(lambda: touch(shard))
    run = executed(store, shard)
    assert exports.unchecked(run) is None and exported(run, tmp_path).num_rows == 12
    rewritten(shard, seed=1)
    refused(run, tmp_path, "its selected rows hold something else")


@pytest.mark.parametrize("column", ["quality_score", "text"])
def test_times_put_back_hide_no_other_contents(store, shard, tmp_path, during, column):
    """Of the same size, in the same file, with the old time: only the time of the file's record tells."""

    def overwrite() -> None:
        before, rows = shard.stat(), table()
        rows = rows.set_column(rows.column_names.index(column), column, table(seed=1)[column])
        pq.write_table(rows, shard, **plain)
        os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert shard.stat().st_size == before.st_size

    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table(), shard, **plain)
    during(overwrite)
    run = executed(store, shard)
    if column == "quality_score":
        refused(run, tmp_path, "it was written anew while the run was going on")
    else:  # a run reads no texts: those of its end are its own
        rewritten(shard, seed=2)
        refused(run, tmp_path, "its selected rows hold something else")


def test_an_imported_selection_is_checked_too(store, shard, tmp_path):
    (tmp_path / "ids.txt").write_text("id-3\nid-5\n")
    config = RunConfig(
        CorpusConfig((str(shard),)),
        SelectionConfig(objective="pairwise", estimator="imported", device="cpu"),
        ids=str(tmp_path / "ids.txt"),
    )
    run = import_ids(store, config)
    assert exported(run, tmp_path)["chunk_id"].to_pylist() == ["id-3", "id-5"]
    rewritten(shard, seed=1)
    refused(run, tmp_path, "its selected rows hold something else")


def test_rows_without_a_digest_are_exported_and_it_is_said_that_they_cannot_be_checked(store, shard, tmp_path):
    run = executed(store, shard)
    assert exports.unchecked(run) is None
    with run.writer() as writer:
        writer.update_facts(contents={str(shard): None})
    rewritten(shard, seed=1)
    assert exported(run, tmp_path).num_rows == 12
    assert "cannot be checked" in exports.unchecked(run)


def test_views_are_exported_and_checked(store, shard, tmp_path):
    rows = table()
    for name, kind in (("text", pa.string_view()), ("feature_arr", rows["feature_arr"].type)):
        rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(kind))
    pq.write_table(rows, shard)
    run = executed(store, shard)
    assert exports.unchecked(run) is None
    assert set(exported(run, tmp_path)["text"].to_pylist()) <= set(table()["text"].to_pylist())


def test_shards_are_digested_each_for_itself_and_a_stop_is_heard(tmp_path):
    selected = np.arange(ROWS) % 3 == 0
    shards = []
    for seed in range(5):
        pq.write_table(table(seed), tmp_path / f"{seed}.parquet", row_group_size=7)
        shards.append(
            ShardRows(tmp_path / f"{seed}.parquet", np.arange(ROWS), table(seed)["chunk_id"], selected, "chunk_id")
        )
    alone = {}
    for seed, part in enumerate(shards):
        digest = Digest()
        digest.add(table(seed).filter(pa.array(selected)))
        alone[str(part.path)] = digest.text()
    shares = []
    assert digests(shards, {}, lambda: None, shares.append) == alone and shares[-1] == 1.0
    with pytest.raises(Stopped):
        digests(shards, {}, poll_of(lambda: True))


def test_every_kind_of_column_counts_and_batches_do_not():
    columns = {
        "number": pa.array([1, None, 3, 4]),
        "flag": pa.array([True, None, False, False]),
        "text": pa.array(["a", None, "", "b"]),
        "large": pa.array(["a", None, "", "b"], pa.large_string()),
        "bytes": pa.array([b"a", None, b"", b"b"]),
        "named": pa.array(["x", None, "y", "z"]).dictionary_encode(),
        "nothing": pa.nulls(4),
        "list": pa.array([[1, 2], None, [], [3]]),
        "fixed": pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int8(), 2)),
        "texts": pa.array([["a", "b"], [], None, ["c", None]]),
        "time": pa.array([1, None, 3, 4], pa.timestamp("ns")),
        "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 2, "b": ""}]),
        "map": pa.array([[("k", 1)], None, [], [("k", 2)]], pa.map_(pa.string(), pa.int64())),
        "half": pa.array(np.arange(4, dtype=np.float16)),
        "decimal": pa.array([1, None, 3, 4], pa.decimal128(19, 2)),
        "fixed bytes": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
    }
    rows = pa.table(columns)

    def digest(*parts: pa.Table) -> str:
        whole = Digest()
        for part in parts:
            whole.add(part)
        return whole.text()

    whole = digest(rows)
    assert whole == digest(rows.slice(0, 1), rows.slice(1, 2), rows.slice(3)) == digest(rows.take([0, 1, 2, 3]))
    seen = {whole}
    for name in columns:
        for order in ([0, 2, 1, 3], [3, 1, 2, 0]):
            column = rows[name].take(pa.array(order))
            if name != "nothing":
                seen.add(digest(rows.set_column(rows.column_names.index(name), name, column)))
        seen.add(digest(rows.drop_columns([name])))
    assert len(seen) == 1 + 3 * len(columns) - 2
