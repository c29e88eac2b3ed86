"""Rows that are exact duplicates: of the same text, or in a corpus without a text column of the same features.

Two texts are the same when they are equal after Unicode's NFC and without white space around them. A null text equals
nothing. Texts are compared by digests of 128 bits, read in batches where the corpus does not hold them.
"""

from __future__ import annotations

import unicodedata
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from datamask.errors import InputError
from datamask.options.duplicates import compared_by
from datamask.polling import Poll, no_poll
from datamask.work.context import UNWATCHED, Work

if TYPE_CHECKING:
    from datamask.corpus.corpus import Corpus

BLOCK = 4096
DIGEST_BYTES = 16

LEAST_TEXT_BYTES = 1 << 10
"""Expected bytes of a text, at least: it bounds the rows of a batch."""


def exact_families(corpus: Corpus, work: Work = UNWATCHED) -> np.ndarray:
    """A family number for each row, equal for exact duplicates: int64 ``(N,)``, the family's first row.

    Raises:
        InputError: the shards with the texts have changed since. Stopped: from `work`.
    """
    if compared_by(corpus.provenance.columns) == "features":
        return equal_features(corpus.features, work.poll)
    digests, missing = _text_digests(corpus, work)
    _, first, place = np.unique(digests, return_index=True, return_inverse=True)
    family: np.ndarray = first[place.reshape(-1)]
    family[missing] = np.flatnonzero(missing)
    return family


def equal_features(features: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """A family number for each row, equal where all d values are equal: int64 ``(N,)``, the family's first row.

    Rows are hashed to 64 bits, and rows with equal hashes are then compared value by value.
    """
    n, dim = features.shape
    rng = np.random.default_rng(0x5EED)
    # odd multipliers: any single differing value changes the sum
    weights = rng.integers(0, 2**63, dim, np.uint64) * np.uint64(2) + np.uint64(1)
    hashes = np.empty(n, np.uint64)
    for low in range(0, n, BLOCK):
        poll()
        rows = features[low : low + BLOCK] + np.float32(0)  # -0.0 becomes 0.0, its equal
        hashes[low : low + BLOCK] = (rows.view(np.uint32).astype(np.uint64) * weights).sum(axis=1)
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    family: np.ndarray = first[place]
    members = np.flatnonzero(family != np.arange(n))
    for low in range(0, len(members), BLOCK):
        part = members[low : low + BLOCK]
        differ = (features[part] != features[family[part]]).any(axis=1)
        family[part[differ]] = part[differ]  # equal hashes by chance: each stays alone
    return family


def _text_digests(corpus: Corpus, work: Work) -> tuple[np.ndarray, np.ndarray]:
    """Digests ``(N,)`` of 16 bytes each, and bool ``(N,)``, where the text is null."""
    from datamask.corpus.opening import open_sources
    from datamask.corpus.shards import scan

    name, n = str(corpus.provenance.columns["text"]), len(corpus)
    digests, missing = np.zeros(n, f"V{DIGEST_BYTES}"), np.ones(n, bool)

    def take(slots: np.ndarray, texts: pa.Array) -> None:
        values = texts.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
        digests[slots] = np.array([_digest(value) for value in values], digests.dtype)
        missing[slots] = [value is None for value in values]

    if name in corpus.metadata.column_names:
        texts = corpus.metadata[name]
        for low in range(0, n, BLOCK):
            work.poll()
            part = texts.slice(low, BLOCK).combine_chunks()
            take(np.arange(low, low + len(part)), part)
        return digests, missing
    config = corpus.provenance.config
    source = None if config is None else open_sources(config, Work(work.poll))["input"]
    if source is None or tuple(shard.path for shard in source.shards) != corpus.provenance.files:
        raise InputError(f"the texts in column {name!r} cannot be read again: the files have changed since")
    numbers = source.starts[corpus.source_file] + corpus.source_row

    def look(rows: np.ndarray, batch: pa.RecordBatch) -> None:
        low, high = np.searchsorted(numbers, [rows[0], rows[-1] + 1]) if len(rows) else (0, 0)
        if low < high and name in batch.schema.names:  # a shard may lack the column
            take(np.arange(low, high), batch[name].take(pa.array(np.searchsorted(rows, numbers[low:high]))))

    row_bytes = max(LEAST_TEXT_BYTES, *(int(shard.facts.row_bytes) for shard in source.shards))
    scan(source, [name], look, row_bytes=row_bytes, only_rows=numbers, work=work, what="Comparing the texts of")
    return digests, missing


def _digest(value: bytes | None) -> bytes:
    if value is None:
        return bytes(DIGEST_BYTES)
    # a text that is no UTF-8 has a digest too
    text = unicodedata.normalize("NFC", value.decode(errors="surrogateescape")).strip()
    return blake2b(text.encode(errors="surrogateescape"), digest_size=DIGEST_BYTES).digest()
