"""Runs of small corpora in memory and in mapped files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs.execute import execute
from datamask.runs.store import RunStore


def written_shards(place: Path, features: np.ndarray, quality: np.ndarray, parts: int = 3) -> Path:
    """Write a corpus whose ids are its row numbers; features keep their type."""
    place.mkdir(parents=True)
    dim = features.shape[1]
    for number, rows in enumerate(np.array_split(np.arange(len(quality)), parts)):
        arrays = pa.FixedSizeListArray.from_arrays(pa.array(features[rows].ravel()), dim)
        table = pa.table({"id": rows, "quality_score": quality[rows], "feature_arr": arrays})
        pq.write_table(table, place / f"{number}.parquet")
    return place


def done_run(
    place: Path, *, rows: int | None = None, scratch: bool = True, **selection: object
) -> tuple[dict, np.ndarray]:
    """Do a run on such a corpus, in mapped files or in memory; return its summary and the selected rows, sorted."""
    if scratch:
        selection["scratch_dir"] = str(place.parent / "scratch")
    config = SelectionConfig.from_options(device="cpu", **selection)
    run = RunStore(place.parent / "runs").create(RunConfig(CorpusConfig((str(place),), rows=rows), config))
    summary = execute(run).to_dict()
    return summary, np.sort(run.selection()["id"].to_numpy())
