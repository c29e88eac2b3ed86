"""A small made corpus with everything the measures look at: clouds, copies, texts, domains, lengths, two qualities."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from datamask.corpus.corpus import ColumnNames, Corpus, Provenance
from datamask.evaluation.measures import PANEL
from datamask.evaluation.measures.entry import MeasureEntry
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.pool import Pool

CLOUDS = 6


def corpus_of(
    features: np.ndarray, quality: np.ndarray | None = None, *, lengths: np.ndarray | None = None, **metadata
) -> Corpus:
    """A corpus straight from arrays; a metadata column named ``text`` is its text, ``q_...`` its quality columns."""
    n = len(features)
    features = np.ascontiguousarray(features / np.linalg.norm(features, axis=1, keepdims=True), np.float32)
    quality = np.linspace(0, 1, n) if quality is None else quality
    table = pa.table(metadata) if metadata else pa.table({"none": pa.nulls(n)}).select([])
    columns: ColumnNames = {
        "id": "id",
        "feature": "x",
        "quality": [name for name in metadata if name.startswith("q_")] or ["q"],
        "length": None if lengths is None else "tokens",
        "text": "text" if "text" in metadata else None,
    }
    print_ = hashlib.sha256(features.tobytes() + quality.tobytes()).hexdigest()[:16]
    return Corpus(
        pa.array(np.arange(n)),
        quality,
        features,
        lengths,
        table,
        np.zeros(n, np.int32),
        np.arange(n),
        print_,
        Provenance(("made.parquet",), n, n, columns),
    )


def made_corpus(n: int = 1200, dim: int = 12, seed: int = 0, texts: bool = True) -> Corpus:
    """Clouds of uneven size and quality; one row in ten is an exact copy of the one before it, text included."""
    rng = np.random.default_rng(seed)
    cloud = rng.choice(CLOUDS, n, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    features = np.random.default_rng(99).normal(size=(CLOUDS, dim))[cloud] + 0.4 * rng.normal(size=(n, dim))
    first, second = rng.normal(size=n) + (cloud == 0), rng.normal(size=n)
    words = [[f"w{w}" for w in rng.zipf(1.5, 25) % 60] + [f"c{k}x{w}" for w in rng.integers(0, 30, 15)] for k in cloud]
    spelled = [" ".join(rng.permutation(line)) for line in words]
    for i in range(9, n, 10):
        features[i], spelled[i], cloud[i] = features[i - 1], spelled[i - 1], cloud[i - 1]
    metadata = {"domain": pa.array([f"d{k}" for k in cloud]).dictionary_encode(), "q_a": first, "q_b": second}
    if texts:
        metadata["text"] = pa.array(spelled)
    return corpus_of(features, first + second, lengths=rng.integers(20, 60, n).astype(float), **metadata)


def ground_of(corpus: Corpus, folder: Path, **options) -> Ground:
    return Ground(Pool(corpus, torch.device("cpu"), folder), **options)


def entry(name: str) -> MeasureEntry:
    return next(entry for entry in PANEL if entry.name == name)


def reading(ground: Ground, name: str, rows: np.ndarray):
    """The one reading of a measure that gives one row in a panel."""
    (measured,) = entry(name).measure(ground, {"it": rows}, entry(name))
    return measured.readings["it"]
