"""Files to take home: checked against the shards they came from, by plain Python."""

from __future__ import annotations

import csv
import io
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import parquet
from datamask.errors import InputError, RunStateError, Stopped, StoreError
from datamask.runs import exports
from datamask.runs.contents import selected_rows, shards_of
from datamask.work.context import Work
from tests.making.run_folders import config, finished


def shard(first: int, rows: int, **columns) -> pa.Table:
    """Ids from `first`, vectors of three numbers, and a text."""
    return pa.table(
        {
            "id": pa.array(range(first, first + rows), pa.uint32()),
            "feature": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(3.0 * rows), pa.float16()), 3),
            "text": pa.array([f"text {k}" for k in range(first, first + rows)], pa.large_string()),
            **columns,
        }
    )


@pytest.fixture
def run(tmp_path):
    """Two shards of 10 and 20,000 rows; every third row considered, every fifth of these selected."""
    shards = {"a.parquet": shard(0, 10), "b.parquet": shard(100, 20_000), "unused.parquet": shard(50_000, 4)}
    considered = {"a.parquet": list(range(0, 10, 3)), "b.parquet": list(range(0, 20_000, 3)), "unused.parquet": []}
    selected = {name: rows[::5] for name, rows in considered.items()}
    run = finished(tmp_path, shards, considered, selected)
    run.shards, run.considered, run.selected_rows = shards, considered, selected
    return run


# -- ids --------------------------------------------------------------------------------------------------------------


def test_selected_ids_as_csv_and_parquet(run, tmp_path):
    exports.write_selection(run, tmp_path / "ids.csv")
    exports.write_selection(run, tmp_path / "ids.parquet")
    expected = [run.shards[name]["id"][row].as_py() for name, rows in run.selected_rows.items() for row in rows]
    read = list(csv.DictReader(io.StringIO((tmp_path / "ids.csv").read_text())))
    assert [int(row["id"]) for row in read] == expected
    assert [int(row["rank"]) for row in read] == list(range(1, len(expected) + 1))
    assert pq.read_table(tmp_path / "ids.parquet").equals(run.selection())
    assert b"datamask" in pq.read_schema(tmp_path / "ids.parquet").metadata


# -- rows -------------------------------------------------------------------------------------------------------------


def test_filtered_rows_are_the_shards_own(run, tmp_path):
    heard = []
    count = exports.filtered_rows(run, tmp_path / "out.parquet", Work(report=lambda share, what: heard.append(share)))
    expected = pa.concat_tables(
        [run.shards[name].take(pa.array(rows, pa.int64())) for name, rows in run.selected_rows.items()]
    )
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.schema.equals(run.shards["a.parquet"].schema)
    assert out.equals(expected) and count == len(expected)
    assert heard == sorted(heard) and heard[-1] == 1.0


def test_row_groups_are_of_a_sensible_size(tmp_path, monkeypatch):
    rows = 20_000
    first = {"a.parquet": shard(0, rows)}
    run = finished(tmp_path, first, {"a.parquet": list(range(rows))}, {"a.parquet": list(range(rows))})
    exports.filtered_rows(run, tmp_path / "rows.parquet")
    with pq.ParquetFile(tmp_path / "rows.parquet") as file:
        assert file.metadata.num_rows == rows and file.num_row_groups in (2, 3)
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1)
    exports.filtered_rows(run, tmp_path / "rows.parquet")
    assert pq.read_metadata(tmp_path / "rows.parquet").num_row_groups > 3


def test_shards_with_different_columns_meet_in_one_table(tmp_path):
    shards = {"a.parquet": shard(0, 4), "b.parquet": shard(4, 4, url=pa.array(["u"] * 4))}
    run = finished(tmp_path, shards, {n: [0, 1, 2] for n in shards}, {n: [1] for n in shards})
    exports.filtered_rows(run, tmp_path / "out.parquet")
    out = pq.read_table(tmp_path / "out.parquet")
    assert out["id"].to_pylist() == [1, 5] and out["url"].to_pylist() == [None, "u"]


def test_a_shard_that_changed_is_refused_and_nothing_is_left(run, tmp_path):
    out = tmp_path / "out.parquet"
    changed = run.shards["b.parquet"].slice(1)
    pq.write_table(changed, tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet has changed since the run: its 'id' column"):
        exports.filtered_rows(run, out)
    pq.write_table(run.shards["b.parquet"].slice(0, 9000), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet has changed since the run: it has no row"):
        exports.filtered_rows(run, out)
    with pytest.raises(InputError, match=r"b\.parquet has changed since the run: it has 9,000 rows"):
        exports.write_masks(run, tmp_path / "masks")
    (tmp_path / "b.parquet").unlink()
    for action in (lambda: exports.filtered_rows(run, out), lambda: exports.write_masks(run, tmp_path / "masks")):
        with pytest.raises(InputError, match=r"b\.parquet is gone"):
            action()
    (tmp_path / "b.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(InputError, match=r"b\.parquet is not a parquet file"):
        exports.filtered_rows(run, out)
    assert not out.exists() and not (tmp_path / "masks").exists()
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]  # noqa: PTH208


def test_an_export_can_be_stopped_and_a_bad_place_is_named(run, tmp_path):
    with pytest.raises(Stopped):
        exports.filtered_rows(run, tmp_path / "out.parquet", Work.of(lambda: True))
    (tmp_path / "file").write_text("")
    for action in (exports.filtered_rows, exports.write_selection):
        with pytest.raises(StoreError, match="file/out"):
            action(run, tmp_path / "file" / "out.parquet")
    with pytest.raises(StoreError, match="file"):
        exports.write_masks(run, tmp_path / "file")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("rewrite", ["texts", "twice"])
def test_an_id_column_that_became_something_else_is_a_changed_shard(run, tmp_path, rewrite):
    shard = run.shards["b.parquet"]
    if rewrite == "texts":
        shard = shard.set_column(0, "id", pa.array([f"t{k}" for k in range(shard.num_rows)]))
    else:
        shard = shard.append_column("id", shard["id"])
    pq.write_table(shard, tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b.parquet has changed since the run: its 'id' column holds other ids"):
        list(selected_rows(shards_of(run)[1], lambda: None))


def test_rows_with_a_column_whose_name_occurs_twice_are_refused_with_the_way_out(tmp_path):
    """Most programs, pyarrow's read_table among them, could not read a file of such rows."""
    twice = shard(0, 10).append_column("text", pa.array([f"other {k}" for k in range(10)], pa.large_string()))
    run = finished(tmp_path, {"a.parquet": twice}, {"a.parquet": list(range(10))}, {"a.parquet": [2, 7]})
    with pytest.raises(InputError, match="use a mask per shard instead"):
        exports.filtered_rows(run, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    (mask,) = exports.write_masks(run, tmp_path / "masks")
    assert np.flatnonzero(pq.read_table(mask)["selected"].to_numpy()).tolist() == [2, 7]


def test_an_unfinished_run_has_nothing_to_export(store):
    run = store.create(config())
    with run.writer() as writer:
        writer.write_rows(pa.table({"id": [1], "source_file": ["a"], "source_row": [0], "selected": [True]}))
    for action in (
        lambda: exports.write_selection(run, "ids.csv"),
        lambda: exports.filtered_rows(run, "out.parquet"),
        lambda: exports.write_masks(run, "masks"),
    ):
        with pytest.raises(RunStateError, match="wait for it to finish"):
            action()


# -- masks ------------------------------------------------------------------------------------------------------------


def test_masks_say_for_every_row_of_every_shard(run, tmp_path):
    paths = exports.write_masks(run, tmp_path / "masks")
    assert [path.name for path in paths] == ["a.mask.parquet", "b.mask.parquet", "unused.mask.parquet"]
    for path, (name, table) in zip(paths, run.shards.items(), strict=True):
        mask = pq.read_table(path)
        selected, considered = set(run.selected_rows[name]), set(run.considered[name])
        assert mask.schema == pa.schema({"selected": pa.uint8(), "considered": pa.bool_()})
        assert mask["selected"].to_pylist() == [int(row in selected) for row in range(len(table))]
        assert mask["considered"].to_pylist() == [row in considered for row in range(len(table))]


def test_shards_of_one_name_keep_their_folders(tmp_path):
    for folder in ("2023", "2024"):
        (tmp_path / folder).mkdir()
    shards = {"2023/part-0.parquet": shard(0, 3), "2024/part-0.parquet": shard(3, 3)}
    run = finished(tmp_path, shards, {n: [0, 1] for n in shards}, {n: [1] for n in shards})
    paths = exports.write_masks(run, tmp_path / "masks")
    assert [str(path.relative_to(tmp_path)) for path in paths] == [
        "masks/2023/part-0.mask.parquet",
        "masks/2024/part-0.mask.parquet",
    ]
