"""Norms, unit length in place, unique ids and the fingerprint of rows that are in memory.

All passes go over blocks of `BLOCK` rows in parallel threads, in place: the feature array is the only large array.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from datamask.corpus import decode
from datamask.corpus.refused_rows import Place, first_ids
from datamask.corpus.sampling import row_hash
from datamask.corpus.threads import in_threads
from datamask.errors import InputError
from datamask.polling import Poll, no_poll

BLOCK = 2048
"""Rows per block: fixed, because the fingerprint hashes block by block."""

ODD_VALUES = 1 << 20
"""Features measured in float64 at a time, about."""


def _blocks(n: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def _parts(rows: np.ndarray, dim: int) -> list[np.ndarray]:
    """Rows in parts of about `ODD_VALUES` features each, for work that widens them to float64; none of no rows."""
    return np.array_split(rows, -(-len(rows) * dim // ODD_VALUES)) if len(rows) else []


def norms(features: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """The L2 norm of each row: float64 ``(N,)``, NaN where a value is NaN or infinite, 0 where all are zero."""
    lengths = np.empty(len(features))
    blocks = _blocks(len(features))

    def measure(index: int) -> None:
        lengths[blocks[index]] = _lengths(features[blocks[index]])

    in_threads(measure, len(blocks), poll=poll)
    return lengths


def _lengths(rows: np.ndarray) -> np.ndarray:
    """Norms of float32 rows, added up in one order wherever a row stands: it is to be the same row in every reader."""
    lengths = np.empty(len(rows))
    step = max(1, ODD_VALUES // max(rows.shape[1], 1))
    with np.errstate(invalid="ignore"):
        for low in range(0, len(rows), step):
            part = slice(low, low + step)
            lengths[part] = np.sqrt(np.add.reduce(np.square(rows[part], dtype=np.float64), axis=1))
    lengths[~np.isfinite(lengths)] = np.nan
    return lengths


def normalise(features: np.ndarray, lengths: np.ndarray, poll: Poll = no_poll) -> list[bytes]:
    """Divide each row by its norm, in place, and return the digest of every block as it was before.

    The values as stored are hashed, not the normalised ones: those may differ in the last bit between machines.
    """
    blocks = _blocks(len(features))

    def work(index: int) -> bytes:
        rows = features[blocks[index]]
        digest = hashlib.blake2b(rows.data, digest_size=32).digest()
        _scale(rows, lengths[blocks[index]])
        return digest

    return in_threads(work, len(blocks), poll=poll)


def _scale(rows: np.ndarray, lengths: np.ndarray) -> None:
    tiny = np.flatnonzero((lengths < 1e-15) | (lengths > 1e15))
    for part in _parts(tiny, rows.shape[1]):
        rows[part] = rows[part] / lengths[part, None]
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        factors = (1.0 / lengths).astype(np.float32)
        factors[tiny] = 1
        rows *= factors[:, None]


def unit_rows(features: np.ndarray) -> np.ndarray:
    """Rows of a shard as opening a corpus makes them, float32 ``(n, d)``: of unit length, to the last bit."""
    wide = features.dtype == np.float64
    rows = np.array(decode.within_float32(features)[0] if wide else features, np.float32, order="C")
    _scale(rows, _lengths(rows))
    return rows


def fingerprint(
    ids: pa.Array,
    quality: np.ndarray,
    blocks: list[bytes],
    dim: int,
    lengths: np.ndarray | None,
    exponents: np.ndarray | None = None,
) -> str:
    """Hex digest of these rows in this order: ids, quality, feature blocks (see `normalise`) and lengths.

    exponents: int16 ``(N,)``, of features that float32 could not hold (`Rows.exponents`); None where it could.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"datamask corpus 1: {len(ids)} x {dim}, {'no' if lengths is None else 'with'} lengths\n".encode())
    digest.update(b"integers\n" if pt.is_integer(ids.type) else b"strings\n")
    text = ids.cast(pa.string() if pt.is_integer(ids.type) else pa.large_string())
    digest.update(np.asarray(pc.binary_length(text), dtype=np.int64).data)
    offsets = np.frombuffer(text.buffers()[1], np.int32 if pt.is_string(text.type) else np.int64)
    low, high = int(offsets[text.offset]), int(offsets[text.offset + len(text)])
    if high > low:
        digest.update(memoryview(text.buffers()[2])[low:high])
    digest.update(np.ascontiguousarray(quality, np.float64).data)
    for block in blocks:
        digest.update(block)
    if lengths is not None:
        digest.update(np.ascontiguousarray(lengths, np.float64).data)
    if exponents is not None:
        digest.update(np.ascontiguousarray(exponents, np.int16).data)
    return digest.hexdigest()


def check_unique(ids: pa.Array, place: Place, column: str) -> None:
    """Raise on repeated ids. They are hashed first, and only rows with equal hashes are compared.

    Args:
        ids: without nulls.
        place: row -> ``FILE row K``.
        column: the id column's name.

    Raises:
        InputError: an id occurs twice; names how many, the first ones and where two of them are.
    """
    hashes = row_hash(ids, 0)
    order = np.argsort(hashes, kind="stable")
    same = hashes[order][1:] == hashes[order][:-1]
    if not same.any():
        return
    suspects = np.sort(order[np.flatnonzero(np.r_[same, False] | np.r_[False, same])])
    counts = pc.value_counts(ids.take(pa.array(suspects)))
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if not len(repeated):
        return
    rows = suspects[np.asarray(pc.is_in(ids.take(pa.array(suspects)), value_set=repeated))]
    first = rows[np.asarray(pc.equal(ids.take(pa.array(rows)), repeated[0]))][:2]
    raise InputError(
        f"column {column!r} holds {len(repeated):,} id{'s' if len(repeated) > 1 else ''} more than once "
        f"({first_ids(repeated, np.arange(len(repeated)))}; {repeated[0].as_py()!r} is in {place(int(first[0]))} and "
        f"{place(int(first[1]))}); ids must be unique over all shards, so drop the repeats, choose another column with "
        "--id_column, or have ids made with --make_ids"
    )


def compact(features: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """The kept rows moved to the front of the same memory, and the rest of it given back; of a map, kept with it."""
    done = 0
    for block in _blocks(len(features)):
        rows = features[block][keep[block]]
        features[done : done + len(rows)] = rows
        done += len(rows)
    if not features.flags.owndata:
        return features[:done]
    features.resize((done, features.shape[1]), refcheck=False)
    return features
