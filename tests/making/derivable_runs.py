"""Runs to make recipes of, done once for each kind of settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs.execute import execute
from datamask.runs.store import Run, RunStore

N, D = 1200, 6


def shard(n: int = N, seed: int = 0, d: int = D) -> pa.Table:
    """Six clouds of different size and quality, a source and a number of tokens; features of any length, as float32."""
    rng = np.random.default_rng(seed)
    cloud = rng.choice(6, n, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    centres = np.random.default_rng(99).normal(size=(6, d)) + 0.6
    features = (centres[cloud] + 0.5 * rng.normal(size=(n, d))) * rng.uniform(0.5, 3.0, size=(n, 1))
    return pa.table(
        {
            "id": [f"{seed}-{row}" for row in range(n)],
            "quality_score": rng.normal(size=n) + 0.5 * (cloud == 0),
            "edu": rng.integers(0, 6, n).astype(np.float64),
            "n_tokens": rng.integers(20, 900, n),
            "source": np.array(["web", "code", "books"])[rng.integers(0, 3, n)],
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.astype(np.float32).ravel()), d),
        }
    )


def done(root: Path, corpus: dict | None = None, table: pa.Table | None = None, **selection) -> Run:
    """A run that has ended, on two shards below `root`, which are written where they are not there."""
    folder = root / "shards"
    if not folder.exists():
        folder.mkdir(parents=True)
        table = shard() if table is None else table
        pq.write_table(table.slice(0, len(table) // 3), folder / "a.parquet")
        pq.write_table(table.slice(len(table) // 3), folder / "b.parquet")
    options = {"objective": "pairwise", "select_ratio": 0.3, "device": "cpu"} | selection
    if "budget" in options:
        del options["select_ratio"]
    config = RunConfig(CorpusConfig((str(folder),), **(corpus or {})), SelectionConfig.from_options(**options))
    run = RunStore(root / "runs").create(config)
    execute(run)
    return run
