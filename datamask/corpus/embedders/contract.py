"""What every embedder gives, and the note that shards carry about theirs.

Features are made before the first shard is written, so their maker goes into the shards: the metadata of the parquet
schema holds it under `METADATA_KEY`, with name and digest of an embedder, or with the number of texts that TF-IDF
learned from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from datamask.errors import OptionError

METADATA_KEY = b"datamask.embedder"

TFIDF = "tfidf"
"""The kind of features that are learned from the texts themselves."""

FEATURES_BY = "Features by "
"""What the note about them begins with."""


def digest_of(folder: Path, files: Iterable[str]) -> str:
    """Return the SHA-256 of files of a model, by their names and contents.

    Raises:
        OptionError: one cannot be read.
    """
    digest = hashlib.sha256()
    for name in files:
        digest.update(name.encode())
        try:
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise OptionError(f"{folder / name} cannot be read: {error.strerror or error}") from error
    return digest.hexdigest()


class Features(Protocol):
    """What turns texts into features, one row a text, independent of the other texts.

    Attributes:
        dim: d, the number of dimensions. batch: texts given at a time, so that Stop is answered soon.
    """

    dim: int
    batch: int

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Return features of `texts`, float32 ``(n, d)``, rows of unit norm; all zero where a text has none."""
        ...


class Embedder(Features, Protocol):
    """Features by a model that does not learn from the texts.

    Attributes:
        kind: the word of the table. name: of the model, without folders of this machine.
        digest: SHA-256 in hex of the files that the features depend on.
    """

    kind: str
    name: str
    digest: str


def unit_rows(features: np.ndarray) -> np.ndarray:
    """Return rows ``(n, d)`` scaled to unit norm, float32; rows of zeros stay."""
    rows = np.asarray(features, dtype=np.float64)
    # the square of a number beyond 1e154 is infinite
    rows = rows / np.where(rows.any(axis=1, keepdims=True), np.abs(rows).max(axis=1, keepdims=True), 1.0)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: np.ndarray = (rows / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return unit


def metadata_of(embedder: Embedder) -> bytes:
    """Return what shards keep of their embedder, as JSON."""
    facts = {"kind": embedder.kind, "name": embedder.name, "digest": embedder.digest, "dim": embedder.dim}
    return json.dumps(facts).encode()


def tfidf_metadata(dim: int, fitted_on: int) -> bytes:
    """Return what shards keep of TF-IDF features, as JSON.

    Args:
        dim: dimensions of the features. fitted_on: texts that they were learned from.
    """
    return json.dumps({"kind": TFIDF, "name": "TF-IDF", "dim": dim, "fitted_on": fitted_on}).encode()


def embedder_note(metadata: Mapping[bytes, bytes] | None) -> str | None:
    """Return the sentence about what made a shard's features, by the metadata of its schema; None: it does not say."""
    text = (metadata or {}).get(METADATA_KEY)
    if text is None:
        return None
    try:
        facts = json.loads(text)
        kind, name = (str(facts[key]) for key in ("kind", "name"))
        if kind == TFIDF:
            return f"{FEATURES_BY}TF-IDF (fitted on {int(facts['fitted_on']):,} texts)."
    except (ValueError, KeyError, TypeError, OverflowError):  # of another program, or damaged: the features are as good
        return None
    return f"{FEATURES_BY}{name[:80]} ({kind[:20]})."
