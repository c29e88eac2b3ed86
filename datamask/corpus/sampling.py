"""Uniform samples by hash: which rows, whatever the order of files, row groups and batches.

`row_hash` maps (id, seed) to 64 bits; the rows with the k smallest hashes are a uniform sample, the same one on every
machine and for every way of cutting the corpus into shards. The same hash breaks ties and assigns hold-outs.
"""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from datamask.corpus.readers.ids import plain
from datamask.memory import memory_bytes

BASE = np.uint64(0x9E3779B97F4A7C15)
BASE_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))
CHUNK = 1 << 16
CHUNK_BYTES = 1 << 20
"""Bytes of strings hashed at a time: each takes some 40 bytes meanwhile."""

NEIGHBORS_BYTES = 1024
"""Per row beside features and metadata: a 64-neighbour graph while it is built and its lists are sorted."""


def _mix(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64 bits in which every bit moves all."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = x ^ (x >> np.uint64(31))
    return mixed


DRAWS = 1 << 62
"""Seeds of uniform samples begin here, out of the way of those that people give, by whose hashes ties are decided."""


def row_hash(ids: pa.Array | pa.ChunkedArray, seed: int) -> np.ndarray:
    """Hash ids of any integer or string type together with a seed.

    Equal values hash alike in whatever width or encoding they come (int8 or int64, string or dictionary). Strings are
    a polynomial in their UTF-8 bytes modulo 2^64, by prefix sums over the whole buffer at once, then mixed.

    Args:
        ids: N ids; nulls hash like 0 or the empty string.
        seed: any integer from 0 to 2^63 - 1.

    Returns:
        uint64 ``(N,)``.
    """
    if isinstance(ids, pa.ChunkedArray):
        parts = [row_hash(chunk, seed) for chunk in ids.chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)
    ids = plain(ids)
    with np.errstate(over="ignore"):
        salt = _mix(np.array([seed], np.uint64) * BASE + BASE)
        if pt.is_integer(ids.type):
            values = ids.fill_null(0).to_numpy(zero_copy_only=False)
            # through int64 first, so that -1 is the same bits from every signed width
            raw = values.astype(np.int64).view(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)
        else:
            raw = np.concatenate(
                [_string_hash(ids.slice(at, CHUNK)) for at in range(0, len(ids), CHUNK)] or [np.empty(0, np.uint64)]
            )
        return _mix(_mix(raw + BASE) ^ salt)


def hash_under(hashes: np.ndarray, seed: int) -> np.ndarray:
    """`row_hash` of ids under another seed, from their hashes under seed 0; uint64 ``(N,)``."""
    with np.errstate(over="ignore"):
        plain_salt, salt = (_mix(np.array([each], np.uint64) * BASE + BASE) for each in (0, seed))
        return _mix(_unmix(hashes) ^ plain_salt ^ salt)


def uniform_rows(hashes: np.ndarray, count: int, seed: int) -> np.ndarray:
    """A uniform sample of rows, int64, rising: those with the smallest hashes of id and seed.

    Args:
        hashes: uint64 ``(N,)``, `row_hash` of all rows' ids under seed 0.
    """
    if count >= len(hashes):
        return np.arange(len(hashes))
    return np.sort(np.argpartition(hash_under(hashes, seed), count)[:count])


def _unmix(x: np.ndarray) -> np.ndarray:
    """The inverse of `_mix`."""
    for shift, factor in ((31, 0x319642B2D24D8EC3), (27, 0x96DE1B173F119089), (30, 1)):
        x = x ^ (x >> np.uint64(shift)) ^ (x >> np.uint64(2 * shift))
        x = x * np.uint64(factor)
    return x


def _string_hash(ids: pa.Array) -> np.ndarray:
    """``sum_j (byte_j + 1) BASE^j + length`` of each string, modulo 2^64."""
    ids = ids.cast(pa.large_string()).fill_null("")
    offsets = np.frombuffer(ids.buffers()[1], np.int64)[ids.offset : ids.offset + len(ids) + 1]
    low, high = int(offsets[0]), int(offsets[-1])
    if high - low > CHUNK_BYTES and len(ids) > 1:
        middle = len(ids) // 2
        return np.concatenate([_string_hash(ids.slice(0, middle)), _string_hash(ids.slice(middle))])
    content = ids.buffers()[2]
    text = np.frombuffer(content, np.uint8)[low:high] if content is not None and high > low else np.empty(0, np.uint8)
    if len(text) > CHUNK_BYTES:
        return _long_string_hash(text)
    powers = _powers(BASE, len(text) + 1)
    sums = np.concatenate([[np.uint64(0)], np.cumsum((text.astype(np.uint64) + np.uint64(1)) * powers[:-1])])
    starts, ends = offsets[:-1] - low, offsets[1:] - low
    # dividing by BASE^start makes the hash of a string independent of where in the buffer it lies
    inverse = _powers(BASE_INVERSE, len(text) + 1)
    hashes: np.ndarray = (sums[ends] - sums[starts]) * inverse[starts] + (ends - starts).astype(np.uint64)
    return hashes


def _long_string_hash(text: np.ndarray) -> np.ndarray:
    """The same of a single string, piece by piece; text: its bytes."""
    powers, total, factor = _powers(BASE, CHUNK_BYTES + 1), np.uint64(len(text)), np.uint64(1)
    for at in range(0, len(text), CHUNK_BYTES):
        piece = text[at : at + CHUNK_BYTES].astype(np.uint64) + np.uint64(1)
        total += factor * (piece * powers[: len(piece)]).sum(dtype=np.uint64)
        factor *= powers[-1]
    return np.array([total], np.uint64)


def _powers(base: np.uint64, count: int) -> np.ndarray:
    """``base^0, base^1, ...`` modulo 2^64, uint64 ``(count,)``."""
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    accumulated: np.ndarray = np.multiply.accumulate(powers)
    return accumulated


class Chosen:
    """Rows offered in any order by several threads; at the end those with the k smallest hashes, in row order.

    Holds at most about twice k rows at any time, however many are offered.
    """

    def __init__(self, k: int | None) -> None:
        self.k = k
        self.offered = 0
        self.lock = threading.Lock()
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []
        self._count = 0
        self._limit = None

    def offer(self, hashes: np.ndarray, *columns: np.ndarray) -> None:
        """Offer rows: their hashes and int64 columns, the first of which is the row in the long table."""
        with self.lock:
            self.offered += len(hashes)
            if self._limit is not None:
                keep = hashes <= self._limit
                hashes, columns = hashes[keep], tuple(column[keep] for column in columns)
            self._parts.append((hashes, np.stack(columns)))
            self._count += len(hashes)
            if self.k is not None and self._count > 2 * self.k + CHUNK:
                self._shrink()

    def _shrink(self) -> None:
        hashes = np.concatenate([part[0] for part in self._parts])
        columns = np.concatenate([part[1] for part in self._parts], axis=1)
        if self.k is not None and len(hashes) > self.k:
            # by hash, then by row, so that even equal hashes (equal ids) end the same way every time
            keep = np.lexsort((columns[0], hashes))[: self.k]
            hashes, columns = hashes[keep], columns[:, keep]
            self._limit = hashes[-1]
        self._parts, self._count = [(hashes, columns)], len(hashes)

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Hashes ``(k,)`` and columns ``(c, k)`` of the chosen rows, by rising row."""
        if not self._parts:
            return np.empty(0, np.uint64), np.empty((1, 0), np.int64)
        self._shrink()
        hashes, columns = self._parts[0]
        order = np.argsort(columns[0], kind="stable")
        return hashes[order], columns[:, order]


def default_row_limit(dim: int, cap: int | None = 200_000, *, metadata_bytes: int = 0) -> int:
    """How many rows fit in a quarter of the memory, at most `cap`.

    Args:
        dim: feature dimensions, held as float32.
        cap: None for none.
        metadata_bytes: what text and other columns take per row.
    """
    rows = max(2, memory_bytes() // 4 // (4 * max(dim, 1) + NEIGHBORS_BYTES + metadata_bytes))
    return rows if cap is None else min(rows, cap)
