"""Any set of rows, measured on quality and on every objective, and on request on the whole panel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.errors import OptionError
from datamask.evaluation.comparing import checked_rows, compare, measure_all, panel_rows
from datamask.evaluation.measures import OBJECTIVES, PANEL, QUALITY, objective_measure
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.pool import Pool, Progress
from datamask.learning.device import resolve
from datamask.objectives.contract import Poll, no_poll


def score_selection(
    corpus: Corpus,
    rows: np.ndarray,
    cache_dir: str | Path,
    device: str = "auto",
    progress: Progress | None = None,
    poll: Poll = no_poll,
    *,
    panel: bool = False,
    center: bool = False,
    objectives: Sequence[str] = (),
) -> dict[str, Any]:
    """Exact values of a selection on every objective, and on request on every measure.

    Args:
        rows: int64, row positions in the corpus, distinct, from 1 to N - 1 of them.
        center: whether objectives see the features with the corpus's mean subtracted, as runs with ``--center`` do.
        objectives: names of one's own to measure besides (`datamask.objectives.own`).
        panel: whether to measure everything else too, beside a random and the top-quality selection of that size.

    Returns:
        ``selected``, ``n``, ``tokens`` (or None); ``quality`` and ``objectives`` ``{name: value}``, raw; ``calibrated``
        with the same names as shares of the attainable gain at this size, and ``anchors`` saying what 0 and 1 are. With
        `panel` also ``panel``, the rows of `scoreboard` for this selection: ``measure, label, says, better,
        optimisable, interval, value, low, high, against_random, note, random, top_quality`` and so on.

    Raises:
        InputError: no rows, all rows, repeated rows or rows outside the corpus.
        OptionError: both `panel` and `center`: the panel's other measures see the features as they are.
        Stopped: `poll` raised it.
    """
    if panel and center:
        raise OptionError("--center and --panel exclude each other: the panel measures the features as they are")
    rows = np.sort(checked_rows(corpus, rows))
    size = len(rows)
    pool = Pool(corpus, resolve(device), Path(cache_dir), poll=poll, progress=progress, center=center)
    ground = Ground(pool, poll, resampling=panel)
    result: dict[str, Any] = {
        "selected": size,
        "n": len(corpus),
        "tokens": None if corpus.lengths is None else float(corpus.lengths[rows].sum()),
    }
    values = {}
    entries = (QUALITY, *OBJECTIVES, *map(objective_measure, objectives))
    if panel:
        whole = panel_rows(compare(ground, {"selection": rows}, progress=progress), "selection")
        values = {row["measure"]: (row["value"], row["calibrated"]) for row in whole if "calibrated" in row}
        entries = tuple(entry for entry in OBJECTIVES if entry not in PANEL)
    for measured in measure_all(ground, {"selection": rows}, entries, progress):
        reading = measured.readings["selection"]
        values[measured.name] = (reading.value, reading.extra["calibrated"])
    result |= {
        "quality": values["quality"][0],
        "objectives": {name: value for name, (value, _) in values.items() if name != "quality"},
        "calibrated": {name: share for name, (_, share) in values.items()},
        "anchors": {name: ground.anchor(name, size).to_dict() for name in values},
    }
    return result | ({"panel": whole} if panel else {})
