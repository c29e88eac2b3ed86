"""An export writes the rows that were selected, or none: files that were written anew are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.errors import InputError
from datamask.evaluation.selection import Selection
from datamask.runs import exports
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


def refused(run: Run, folder: Path) -> None:
    for action in (
        lambda: exports.filtered_rows(run, folder / "no.parquet"),
        lambda: exports.write_masks(run, folder / "no"),
    ):
        with pytest.raises(InputError, match=r"shard\.\w+ has changed since the run: it was written anew"):
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
    refused(run, tmp_path)
    exports.write_selection(run, tmp_path / "ids.parquet")
    assert pq.read_table(tmp_path / "ids.parquet")["chunk_id"].equals(run.selection()["chunk_id"])


def test_lines_are_known_by_their_size_and_their_end(store, tmp_path):
    shard = tmp_path / "shard.jsonl"
    shard.write_text("".join(f"{json.dumps(row)}\n" for row in table().to_pylist()))
    run, content = executed(store, shard), shard.read_bytes()
    shard.unlink()
    shard.write_bytes(content)  # put back from elsewhere
    assert exported(run, tmp_path).num_rows == 12
    for other in (content + content.splitlines(keepends=True)[0], content[:-3] + b'!"}'):
        shard.write_bytes(other)
        refused(run, tmp_path)


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
    assert exported(run, tmp_path).num_rows == 12
    rewritten(shard, seed=1)
    refused(run, tmp_path)


def test_a_shard_rewritten_while_the_run_went_on_is_refused(store, shard, tmp_path, during):
    during(lambda: rewritten(shard, seed=1))
    refused(executed(store, shard), tmp_path)


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
    refused(run, tmp_path)


def test_views_are_exported(store, shard, tmp_path):
    rows = table()
    for name, kind in (("text", pa.string_view()), ("feature_arr", rows["feature_arr"].type)):
        rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(kind))
    pq.write_table(rows, shard)
    run = executed(store, shard)
    assert set(exported(run, tmp_path)["text"].to_pylist()) <= set(table()["text"].to_pylist())
