"""Commands of the command line as tests give them, and a small corpus to give them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from datamask import cli

ROOT = Path(cli.__file__).parents[2]
TINY = str(ROOT / "sample_data" / "tiny")
N, D = 240, 8
FAST = ["--n_epochs", "12", "--device", "cpu"]


def table(n: int = N, first: int = 0) -> pa.Table:
    """Six clouds of different size and quality, so that every objective has something to gain."""
    rng = np.random.default_rng(first)
    cloud = rng.choice(6, n, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    centres = np.random.default_rng(99).normal(size=(6, D))
    features = (centres[cloud] + 0.3 * rng.normal(size=(n, D))).astype(np.float32)
    quality = rng.normal(size=n) + 0.5 * (cloud == 0)
    return pa.table(
        {
            "chunk_id": pa.array(range(first, first + n), pa.int64()),
            "quality_score": quality,
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), D),
        }
    )


def run(*words: str) -> int:
    """The exit status of a command line."""
    return cli.main([str(word) for word in words])


def last_json(capsys) -> dict:
    """What `--json` printed last."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])
