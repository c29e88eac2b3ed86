"""The current selection in a comparison with runs, where it is no run itself."""

from __future__ import annotations

import numpy as np

from datamask.analyses.comparison.tables import LETTERS, Entry, draw_chances
from datamask.config import RunConfig
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.tradeoff.ends import Ends, ends_of
from datamask.dashboard.workspace.selection import Selection
from datamask.evaluation.result import NO_RESULT
from datamask.measured import TermValues
from datamask.runs.store import Run


def current_entry(place: int, selection: Selection, opened: OpenCorpus, run: Run | None) -> Entry:
    """The current selection as an entry, behind those of runs.

    Args:
        place: in the comparison, from 0. run: the shown run, whose problem and scales it shares; None: there is none.
    """
    letter, config = LETTERS[place], RunConfig(opened.config, selection.settings)
    eligible = np.ones(selection.rows, bool)
    if run is not None:
        eligible = run.rows(["eligible"])["eligible"].to_numpy(zero_copy_only=False).astype(bool)
    joint = None
    if selection.quality is not None and selection.diversity is not None:
        joint = selection.lamb * selection.quality + (1 - selection.lamb) * selection.diversity
    return Entry(
        "",
        letter,
        f"{letter} · current, {selection.name}",
        selection.settings,
        {"inputs": opened.config.inputs, **config.corpus_given()},
        selection.mask,
        draw_chances(selection.count, eligible | selection.mask, np.zeros(selection.rows, bool)),
        TermValues(selection.quality, selection.diversity, joint),
        TermValues(float(opened.corpus.quality[selection.mask].mean())),
        Ends("", {}) if run is None else ends_of(selection.settings, run.status().result or NO_RESULT, run.facts()),
    )
