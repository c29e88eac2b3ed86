"""What a session works on: the open corpus, the shown run, the problem, λ and filter. From address and session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.linked import brushing
from datamask.dashboard.map.filters import Filters
from datamask.dashboard.runs import candidates, listing
from datamask.dashboard.runs.candidates import Refused
from datamask.dashboard.shell import session
from datamask.dashboard.tradeoff import lambda_points
from datamask.runs.store import Run

MIDDLE = 0.5
"""Lambda where there is no run and nobody has moved it: nothing but a person chooses lambda."""


@dataclass(frozen=True)
class Workspace:
    """The corpus and the problem that every page is about.

    Attributes:
        opened: the corpus. run: the shown one; None: there is none.
        runs: the finished ones on the corpus, newest first, the shown one among them.
        names: what these are called, by id, each unlike the others; read once, as a run may be deleted meanwhile.
        refused: the run of the address with the reason why it cannot be shown; mostly empty.
        settings: the problem: objective, select ratio or tokens, rules. Its lambda is the run's.
        lamb: the lambda that somebody chose; None: the run's own, or the middle where there is no run.
        filters: the conditions on the rows that are shown, regions on the map aside.
    """

    opened: OpenCorpus
    run: Run | None
    runs: Sequence[Run]
    names: Mapping[str, str]
    refused: Sequence[Refused]
    settings: SelectionConfig
    lamb: float | None
    filters: Filters

    @property
    def corpus(self) -> Corpus:
        """The open corpus."""
        return self.opened.corpus

    @property
    def refusal(self) -> str:
        """Why lambda cannot be moved here, in a sentence; empty where it can."""
        if self.run is not None and self.run.whole is not None:
            return lambda_points.WHOLE
        return lambda_points.refusal(self.settings)


def read(opened: OpenCorpus) -> Workspace:
    """The workspace on an open corpus, as address and session have it.

    The run of the address is shown also where it was archived. Where it cannot be shown, or none is named, every page
    opens on the same one.
    """
    fingerprint = opened.corpus.fingerprint
    runs, _ = candidates.candidates(session.store().list(), fingerprint)
    named = session.current_run()
    asked, refused = candidates.candidates([named] if named is not None else [], fingerprint, archived=True)
    runs += [run for run in asked if run.id not in {other.id for other in runs}]
    run = next((run for run in runs if named is not None and run.id == named.id), None) or session.run_to_open(runs)
    names = listing.unlike({other.id: listing.name_of(other) for other in runs})
    settings = lambda_points.settings_of(None if run is None else run.config.selection)
    return Workspace(opened, run, runs, names, refused, settings, _chosen(opened, run), brushing.kept(opened.corpus))


def _chosen(opened: OpenCorpus, run: Run | None) -> float | None:
    """The lambda that was chosen beside this run of this corpus; one that was chosen beside another is let go."""
    beside, state = (opened.corpus.fingerprint, None if run is None else run.id), st.session_state
    if state.setdefault(session.LAMBDA_OF, beside) != beside:
        state[session.LAMBDA_OF], state[session.LAMBDA] = beside, None
    lamb: float | None = state.get(session.LAMBDA)
    return lamb
