"""Measure finished runs beside random and top quality: the scoreboard of several, all objectives of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.errors import RunStateError
from datamask.evaluation.comparing import scoreboard
from datamask.evaluation.verdicts import optimised_by
from datamask.runs.store import Run
from datamask.runs.stored_measures import stored_board
from datamask.work.context import UNWATCHED, Work


def write_board(
    runs: Sequence[Run],
    corpus: Corpus,
    cache_dir: Path,
    work: Work = UNWATCHED,
) -> dict[str, Any]:
    """Measure these runs' selections on the whole panel, beside random and top quality, or find the scoreboard.

    Selections of unequal size are cut at random to equal tokens (rows where the corpus has no lengths). Values are raw:
    the ends of scales would take longer than all measures together. Each measure is kept as soon as it is there, so
    that work which was stopped is gone on with.

    Raises:
        RunStateError: a run that is not done, or of other rows. StoreError: nothing can be kept. Stopped: from `work`.
    """
    stored = stored_board(runs, corpus.fingerprint, cache_dir)
    return stored.find_or_compute(
        lambda: scoreboard(
            corpus,
            {run.id: selected_rows(run, corpus) for run in runs},
            cache_dir,
            cut=True,
            device="cpu",
            progress=work.report,
            calibrate=False,
            optimised={run.id: optimised_by(run.config.selection) for run in runs},
            poll=work.poll,
            before=stored.find(),
            kept=stored.keep,
        ),
        work.poll,
        enough=lambda board: not board["left"],
    )


def selected_rows(run: Run, corpus: Corpus) -> np.ndarray:
    """Rows that a done run of this corpus selected."""
    state = run.status().state
    if state != "done":
        raise RunStateError(f"run {run.id} is {state}; only a done run has a selection to measure")
    recorded = run.facts().get("fingerprint")
    if recorded != corpus.fingerprint:
        raise RunStateError(
            f"run {run.id} selected from other rows (fingerprint {str(recorded)[:12]}, this corpus has "
            f"{corpus.fingerprint[:12]})"
        )
    return run.mask().nonzero()[0]
