"""A synthetic corpus of any size, with clusters, domains, lengths and short texts: parquet shards in a given folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CLUSTERS = 200
SHARD = 100_000
DOMAINS = ("web", "code", "papers", "books", "forum", "news", "law", "recipes")
WORDS = (
    "gamma",
    "delta",
    "river",
    "kernel",
    "motor",
    "garden",
    "tensor",
    "verdict",
    "novel",
    "market",
    "orbit",
    "cell",
    "sonata",
    "harbour",
    "lemma",
    "socket",
)


def build(folder: Path, rows: int, dim: int, seed: int = 0) -> Path:
    """Write the corpus where it is missing.

    Cluster sizes fall as a power law; a row is its cluster's centre and noise of the same length, quality depends on
    the cluster and on the row, and 2 % of the rows are exact copies of another one in their shard.

    Args:
        folder: a folder is made below it. rows, dim: of the corpus; features are float16 on disk.

    Returns:
        The folder with the shards.
    """
    target = folder / f"clustered-{rows}-{dim}"
    if (target / "done").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(CLUSTERS, dim)).astype(np.float32)
    share = 1 / np.arange(1, CLUSTERS + 1) ** 0.8
    level = rng.normal(size=CLUSTERS)
    for shard, start in enumerate(range(0, rows, SHARD)):
        n = min(SHARD, rows - start)
        cluster = rng.choice(CLUSTERS, n, p=share / share.sum())
        features = centres[cluster] + rng.normal(size=(n, dim)).astype(np.float32)
        copies = rng.choice(n, n // 50, replace=False)
        features[copies] = features[np.maximum(copies - 1, 0)]
        chosen = pa.array(rng.integers(0, len(WORDS), n).astype(np.int8))
        domain = pa.DictionaryArray.from_arrays(pa.array((cluster % len(DOMAINS)).astype(np.int8)), list(DOMAINS))
        number = pa.array(np.arange(start, start + n))
        text = pc.binary_join_element_wise(
            pa.array(WORDS).take(chosen),
            domain.cast(pa.string()),
            number.cast(pa.string()),
            "and some more words of a short text",
            " ",
        )
        pq.write_table(
            pa.table(
                {
                    "chunk_id": pc.binary_join_element_wise("doc", number.cast(pa.string()), "-"),
                    "quality_score": pa.array((level[cluster] + rng.normal(size=n)).astype(np.float32)),
                    "n_tokens": pa.array(rng.lognormal(5.5, 0.8, n).astype(np.int32) + 16),
                    "domain": domain,
                    "text": text,
                    "feature_arr": pa.FixedSizeListArray.from_arrays(
                        pa.array(features.astype(np.float16).ravel()), dim
                    ),
                }
            ),
            target / f"part-{shard:04d}.parquet",
        )
    (target / "done").write_text("")
    return target
