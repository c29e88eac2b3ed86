"""What is compared: finished runs, and the current selection where it is no run itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datamask.analyses.comparison.tables import LETTERS, MOST, Entry, draw_chances, load
from datamask.config import RunConfig
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.tradeoff.ends import Ends, ends_of
from datamask.dashboard.workspace.selection import Selection
from datamask.evaluation.result import NO_RESULT
from datamask.measured import TermValues
from datamask.runs.store import Run


def entries_of(
    runs: Sequence[Run], opened: OpenCorpus, selection: Selection | None = None, shown: Run | None = None
) -> list[Entry]:
    """The runs, A first, and last the current selection, where it is no run and there is room for it.

    Args:
        selection: the current one; None: only runs are compared.
        shown: the run whose problem and scales it shares; None: there is none.

    Raises:
        DatamaskError: a run cannot be read, or is of another corpus.
    """
    rows = len(opened.corpus)
    if selection is None or selection.run is not None or len(runs) == MOST:
        return load(runs, rows)
    entries = load(runs, rows, beside=1)
    return [*entries, _current_entry(len(entries), selection, opened, shown)]


def _current_entry(place: int, selection: Selection, opened: OpenCorpus, run: Run | None) -> Entry:
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
