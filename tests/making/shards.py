"""Small corpora as scratch, with clusters."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.scratch_writing import write_scratch
from datamask.out_of_core.whole_corpus import WholeCorpus


def clustered(rows: int, dim: int = 16, clusters: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit features float32 ``(rows, dim)`` around so many centres, and qualities."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(clusters, dim)) + 0.3
    features = centres[rng.integers(0, clusters, rows)] + 0.6 * rng.normal(size=(rows, dim))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features.astype(np.float32), rng.normal(size=rows)


def scratch_of(folder: Path, features: np.ndarray, quality: np.ndarray, shards: int = 3) -> Scratch:
    """The scratch of a corpus of these rows in so many shards."""
    place = folder / "shards"
    place.mkdir(parents=True)
    for number, rows in enumerate(np.array_split(np.arange(len(features)), shards)):
        table = pa.table(
            {
                "id": pa.array([f"row-{row:07d}" for row in rows]),
                "quality": quality[rows],
                "features": pa.FixedSizeListArray.from_arrays(pa.array(features[rows].ravel()), features.shape[1]),
            }
        )
        pq.write_table(table, place / f"{number:03d}.parquet")
    return write_scratch(WholeCorpus.open(CorpusConfig((str(place),))), folder / "scratch")


def forget_dual(scratch: Scratch) -> None:
    """Remove what the passes of earlier solutions came to."""
    shutil.rmtree(scratch.folder / "dual", ignore_errors=True)
