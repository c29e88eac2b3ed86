"""The scoreboard: any set of rows, measured on quality and on every objective, whatever it was selected by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from datamask import catalogue
from datamask.corpus.corpus import Corpus
from datamask.errors import InputError
from datamask.evaluation.anchors import diversity_anchor, quality_anchor
from datamask.evaluation.pool import Pool, Progress
from datamask.learning.device import resolve
from datamask.objectives.contract import Poll, no_poll
from datamask.objectives.joint import Scale


def score_selection(corpus: Corpus, rows: np.ndarray, cache_dir: Path, device: str = "auto",
                    progress: Progress | None = None, poll: Poll = no_poll) -> dict:
    """Exact values of a selection on every measure.

    Args:
        rows: int64, row positions in the corpus, distinct, from 1 to N - 1 of them.

    Returns:
        ``selected``, ``n``, ``tokens`` (or None); ``quality`` and ``objectives`` ``{name: value}``, raw; ``calibrated``
        with the same names as shares of the attainable gain at this size, and ``anchors`` saying what 0 and 1 are.

    Raises:
        InputError: no rows, all rows, repeated rows or rows outside the corpus.
    """
    rows = np.asarray(rows, dtype=np.int64)
    n, size = len(corpus), len(rows)
    if not 0 < size < n or len(np.unique(rows)) != size or rows.min() < 0 or rows.max() >= n:
        raise InputError(f"a selection to score must hold 1 to {n - 1:,} distinct rows of the corpus, got {size:,}")
    pool = Pool(corpus, resolve(device), cache_dir, poll=poll, progress=progress)
    mask = torch.zeros(n, dtype=torch.bool, device=pool.device)
    mask[torch.from_numpy(rows).to(pool.device)] = True
    anchors = {"quality": quality_anchor(pool, size)}
    values = {"quality": pool.quality.value(mask)}
    for done, entry in enumerate(catalogue.OBJECTIVES):
        if progress:
            progress(done / len(catalogue.OBJECTIVES), f"measuring {entry.label}")
        values[entry.name] = pool.function(entry.name, size).value(mask, poll)
        anchors[entry.name] = diversity_anchor(pool, entry.name, size, poll)
    return {
        "selected": size,
        "n": n,
        "tokens": None if corpus.lengths is None else float(corpus.lengths[rows].sum()),
        "quality": values["quality"],
        "objectives": {name: value for name, value in values.items() if name != "quality"},
        "calibrated": {name: Scale.calibrated(anchors[name])(value) for name, value in values.items()},
        "anchors": {name: anchor.to_dict() for name, anchor in anchors.items()},
    }
