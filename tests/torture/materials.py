"""What cases start from, made once per worker and never changed: tables, shards, finished and half-done runs."""

from __future__ import annotations

import atexit
import functools
import io
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.work.context import Work

ROOT = Path(__file__).parents[2]
ROWS, DIM = 60, 5
COMMAND = ("--device", "cpu")


def vectors(values: np.ndarray, kind: pa.DataType | None = None) -> pa.Array:
    """A matrix as fixed_size_list<float32>, or as `kind`."""
    array = pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(values, np.float32).ravel()), values.shape[1]
    )
    return array if kind is None else array.cast(kind)


def table(rows: int = ROWS, first: int = 0, seed: int = 0, dim: int = DIM, **columns: pa.Array | None) -> pa.Table:
    """A plain corpus; named columns take the place of its own, None takes one out."""
    rng = np.random.default_rng([seed, first])
    plain = {
        "chunk_id": pa.array([f"id{number}" for number in range(first, first + rows)], pa.string()),
        "quality_score": pa.array(rng.normal(size=rows)),
        "feature_arr": vectors(rng.normal(size=(rows, dim)) + 0.5),
        "text": pa.array([f"text {number} of {seed}" for number in range(first, first + rows)], pa.string()),
        "domain": pa.array([("web", "code", "books")[number % 3] for number in range(rows)], pa.string()),
    }
    return pa.table({name: column for name, column in (plain | columns).items() if column is not None})


def shard_bytes(content: pa.Table, **options: object) -> bytes:
    """A table as a parquet file."""
    sink = io.BytesIO()
    pq.write_table(content, sink, **options)
    return sink.getvalue()


@functools.cache
def bases() -> tuple[bytes, ...]:
    """Real shards to damage: the sample's own, and one table under many encodings."""
    real = [(ROOT / "sample_data" / "tiny" / f"sample-{number}-of-2.parquet").read_bytes() for number in (1, 2)]
    plain = table(200)
    spare = plain.append_column("n_tokens", pa.array(np.arange(200, dtype=np.int32)))
    ragged = table(200, feature_arr=vectors(np.random.default_rng(1).normal(size=(200, DIM)), pa.list_(pa.float32())))
    doubles = table(
        200, feature_arr=vectors(np.random.default_rng(1).normal(size=(200, DIM)), pa.large_list(pa.float64()))
    )
    delta = {"chunk_id": "DELTA_BYTE_ARRAY", "text": "DELTA_LENGTH_BYTE_ARRAY", "n_tokens": "DELTA_BINARY_PACKED"}
    return (
        *real,
        shard_bytes(plain, compression="none", use_dictionary=False),
        shard_bytes(plain, compression="snappy", row_group_size=40),
        shard_bytes(plain, compression="none", row_group_size=50, data_page_version="2.0"),
        shard_bytes(ragged, compression="none", use_dictionary=True, write_page_index=True, row_group_size=120),
        shard_bytes(doubles, compression="zstd", write_page_checksum=True),
        shard_bytes(spare, compression="gzip", use_dictionary=False, column_encoding=delta),
        shard_bytes(plain, compression="none", write_page_checksum=True),
        shard_bytes(ragged, compression="lz4", data_page_version="2.0", use_dictionary=["domain"]),
        shard_bytes(spare, compression="brotli", data_page_size=200, write_statistics=False),
        shard_bytes(
            spare,
            compression="none",
            use_dictionary=False,
            column_encoding={"quality_score": "BYTE_STREAM_SPLIT", "n_tokens": "DELTA_BINARY_PACKED"},
        ),
    )


@functools.cache
def place() -> Path:
    """A folder of this worker, gone when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="datamask-torture-materials-"))
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder


@functools.cache
def corpus_file() -> Path:
    """The shard that runs are made of, in a folder of its own."""
    path = place() / "corpus" / "part-0.parquet"
    path.parent.mkdir()
    pq.write_table(table(), path)
    return path


SETTINGS: Mapping[str, tuple[str, ...]] = {
    "counterfactual": ("--objective", "pairwise", "--estimator", "counterfactual", "--n_epochs", "8"),
    "reinforce": ("--objective", "facility", "--estimator", "reinforce", "--n_epochs", "8", "--n_rollout", "8"),
    "relaxed": ("--objective", "facility", "--estimator", "relaxed", "--n_epochs", "8"),
    "greedy": ("--objective", "disf", "--estimator", "greedy"),
    "whole": ("--objective", "pairwise", "--scratch_dir", "{folder}/scratch"),
}
"""Name -> options of a small run of it. {folder}: where its output goes."""


def select_words(setting: str, output: Path, runs_dir: Path, corpus: Path | None = None) -> list[str]:
    """The words of a `select`."""
    return [
        "select",
        str(corpus or corpus_file().parent),
        "--output",
        str(output),
        "--runs_dir",
        str(runs_dir),
        "--select_ratio",
        "0.2",
        *(word.format(folder=output.parent) for word in SETTINGS[setting]),
        *COMMAND,
    ]


@functools.cache
def finished(setting: str) -> Path:
    """A runs folder with one finished run of that setting and its caches."""
    from tests.torture.judging import command

    root = place() / f"finished-{setting}"
    command(*select_words(setting, place() / f"{setting}.parquet", root), codes=(0,))
    return root


@functools.cache
def half_done(setting: str) -> Path:
    """A runs folder with one run of that setting, stopped in the middle of learning."""
    from datamask.runs.attempt import attempt
    from datamask.runs.store import RunStore

    root = place() / f"half-{setting}"
    source = next(iter(RunStore(finished(setting)).list()))
    run = RunStore(root).create(source.config, run_id="half-done")
    shutil.copytree(finished(setting) / ".kept", root / ".kept")
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        metrics = run.path / "metrics.jsonl"
        return metrics.is_file() and len(metrics.read_bytes().splitlines()) >= 2

    attempt(run, Work.of(stop, threads=1))
    return root


def only_run(root: Path) -> str:
    """The id of the one run in a runs folder, asked of the disk."""
    return next(folder.name for folder in sorted(root.iterdir()) if (folder / "status.json").is_file())


@functools.cache
def selected_ids(setting: str) -> tuple[str, ...]:
    """What the finished run of that setting selected, sorted."""
    root = finished(setting)
    return ids_of(root / only_run(root) / "selection.parquet")


def ids_of(path: Path) -> tuple[str, ...]:
    """The ids in a selection's file, sorted."""
    return tuple(sorted(str(value) for value in pq.read_table(path)["chunk_id"].to_pylist()))
