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
from datamask.evaluation.pool import Pool
from datamask.learning.device import resolve
from datamask.options import OPTIONS
from datamask.polling import Poll, no_poll
from datamask.work.context import Report, Work, no_report


def score_selection(
    corpus: Corpus,
    rows: np.ndarray,
    cache_dir: str | Path,
    device: str = "auto",
    progress: Report | None = None,
    poll: Poll = no_poll,
    *,
    panel: bool = False,
    center: bool = False,
    components: str | None = None,
    objectives: Sequence[str] = (),
) -> dict[str, Any]:
    """Measure a set of rows on every objective, and on request on every measure.

    Args:
        corpus: from `open_corpus`.
        rows: int64, 1 to N - 1 distinct positions of rows in the corpus.
        cache_dir: folder for neighbor graphs and anchors.
        device: auto, cpu, cuda or cuda:K.
        progress: called with a share from 0 to 1 and a few words.
        poll: called at least every 0.3 s; what it raises ends the work.
        panel: also measure everything else, next to a random and the top-quality selection of that size.
        center: subtract the mean of the corpus from the features, as runs with ``--center`` do.
        components: how many principal components disf, disf_fixed and vendi are measured on, or ``all``; as in runs.
        objectives: names of your own objectives to measure too (`datamask.objectives.own`).

    Returns:
        ``selected``, ``n``, ``tokens`` (or None); ``quality`` and ``objectives`` ``{name: value}``, raw; ``calibrated``
        with the same names, from 0 (random) to 1 (best found) at this size, and ``anchors``, the raw ends. With
        `panel` also ``panel``, the measures of `datamask.evaluate` for this selection, each with ``value``, ``low``,
        ``high``, ``against_random``, ``random``, ``top_quality`` and so on.

    Raises:
        InputError: no rows, all rows, repeated rows or rows outside the corpus.
        OptionError: both `panel` and `center`: the panel's other measures see the features as they are.
        Stopped: `poll` raised it.

    Examples:
        >>> from tempfile import mkdtemp
        >>> from datamask import CorpusConfig, open_corpus, score_selection
        >>> corpus = open_corpus(CorpusConfig(["sample_data/tiny"]))
        >>> best = corpus.quality.argsort()[-100:]
        >>> round(score_selection(corpus, best, cache_dir=mkdtemp())["calibrated"]["quality"], 6)
        1.0
    """
    if panel and center:
        raise OptionError("--center and --panel exclude each other: the panel measures the features as they are")
    components = None if components is None else OPTIONS["components"].checked(components, {})
    rows = np.sort(checked_rows(corpus, rows))
    size = len(rows)
    work = Work(poll, progress or no_report)
    pool = Pool(corpus, resolve(device), Path(cache_dir), work=work, center=center, components=components)
    ground = Ground(pool, poll, resampling=panel)
    result: dict[str, Any] = {
        "selected": size,
        "n": len(corpus),
        "tokens": None if corpus.lengths is None else float(corpus.lengths[rows].sum()),
    }
    values = {}
    entries = (QUALITY, *OBJECTIVES, *map(objective_measure, objectives))
    if panel:
        whole = panel_rows(compare(ground, {"selection": rows}, work=work), "selection")
        values = {row["measure"]: (row["value"], row["calibrated"]) for row in whole if "calibrated" in row}
        entries = tuple(entry for entry in OBJECTIVES if entry not in PANEL)
    for measured in measure_all(ground, {"selection": rows}, entries, work):
        reading = measured.readings["selection"]
        values[measured.name] = (reading.value, reading.extra["calibrated"])
    result |= {
        "quality": values["quality"][0],
        "objectives": {name: value for name, (value, _) in values.items() if name != "quality"},
        "calibrated": {name: share for name, (_, share) in values.items()},
        "anchors": {name: ground.anchor(name, size).to_dict() for name in values},
    }
    return result | ({"panel": whole} if panel else {})
