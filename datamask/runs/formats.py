"""How values go to disk and come back: strict JSON, npz without pickle, parquet; replaced whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.errors import StoreError
from datamask.files import open_regular, read_bounded, replacing

META = "__meta__"
"""The name under which an npz keeps its JSON."""

SEAL = "__digest__"
"""The name, in that JSON, of the digest of everything else."""


def to_plain(value: Any) -> Any:
    """`value` as strict JSON can hold it: numpy scalars and arrays as Python's, NaN and infinity as None."""
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_json(path: Path, record: Mapping[str, Any], *, sync: bool = True) -> None:
    """Replace `path` by `record` as strict JSON, whole or not at all."""
    # as ASCII: a file name that is no UTF-8 reaches us with lone surrogates, which only escapes can carry
    text = json.dumps(to_plain(record), indent=1, allow_nan=False)
    with replacing(path, sync=sync) as part:
        part.write_text(text + "\n", encoding="ascii")


MOST_BYTES = 64 << 20
"""Of a JSON file: the record of a run of a hundred thousand shards has some 10 MB."""

MOST_METRICS_BYTES = 512 << 20
"""Of metrics.jsonl: a million steps."""

LARGEST_INTEGER = 2**63


def parse_json(text: str | bytes) -> Any:
    """What `text` says, with nothing in it that breaks a reader: NaN, infinities and integers past 2^63 are None.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=lambda name: None, parse_float=_finite, parse_int=_integer)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _integer(text: str) -> int | None:
    number = int(text) if len(text) <= 20 else LARGEST_INTEGER
    return number if abs(number) < LARGEST_INTEGER else None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`, see `parse_json`.

    Raises:
        OSError: it cannot be read, is no ordinary file, or has more than `MOST_BYTES`.
        ValueError: it is no JSON object.
    """
    record = parse_json(read_bounded(path, MOST_BYTES).decode())
    if not isinstance(record, dict):
        raise ValueError(f"{path.name} must hold a JSON object, got {type(record).__name__}")
    return record


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Where the block cannot read, or cannot make sense of, this file of a run: a StoreError that names both."""
    try:
        yield
    except (OSError, ValueError) as error:
        cause = (error.strerror if isinstance(error, OSError) else None) or error
        raise StoreError(f"{path.name} of run {path.parent.name} cannot be read: {cause}") from error


def read_metrics(folder: Path) -> bytes:
    """What metrics.jsonl of a run folder holds; nothing where there is none.

    Raises:
        StoreError: it cannot be read, is no ordinary file, or has more than `MOST_METRICS_BYTES`.
    """
    path = folder / "metrics.jsonl"
    with reading(path):
        try:
            return read_bounded(path, MOST_METRICS_BYTES)
        except FileNotFoundError:
            return b""


def write_table(path: Path, table: pa.Table) -> None:
    """Replace `path` by `table` as parquet, whole or not at all."""
    with replacing(path) as part:
        pq.write_table(table, part, compression="zstd")


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any] | None = None) -> None:
    """Replace `path` by an uncompressed npz of `arrays`, with `meta` as JSON inside.

    Raises:
        ValueError: an array would need pickle, which could execute code when it is read.
    """
    stored = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in stored.items():
        if array.dtype.hasobject or name == META:
            raise ValueError(f"array {name!r} must hold plain numbers or text, got dtype {array.dtype}")
    if meta is not None:
        stored[META] = np.frombuffer(json.dumps(to_plain(meta)).encode(), dtype=np.uint8)
    with replacing(path) as part, part.open("wb") as sink:
        np.savez(sink, **stored)  # type: ignore[arg-type]  # the stub takes an array's name for the flag allow_pickle


def save_sealed(path: Path, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
    """As `save_arrays`, with a digest of all of it, by which `load_sealed` knows that nobody altered it."""
    plain = to_plain(meta)
    save_arrays(path, arrays, {**plain, SEAL: _seal(arrays, plain)})


def load_sealed(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `save_sealed` wrote.

    Raises:
        StoreError: the file is damaged, or was altered.
    """
    arrays, meta = load_arrays(path)
    if not isinstance(meta, (dict, type(None))):
        raise StoreError(f"{path} is damaged: its description is no object")
    meta = dict(meta or {})
    if meta.pop(SEAL, None) != _seal(arrays, meta):
        raise StoreError(f"{path} is damaged: it was altered after it was written")
    return arrays, meta


def _seal(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(json.dumps(meta, sort_keys=True).encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def load_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    """Read what `save_arrays` wrote; executes no code from the file.

    Raises:
        StoreError: the file is damaged.
    """
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
            meta = arrays.pop(META, None)
            return arrays, None if meta is None else parse_json(meta.tobytes().decode())
    except Exception as error:  # numpy raises what zipfile, zlib and its own parser raise
        raise StoreError(f"{path} is damaged: {error}") from error
