"""The view on an open corpus: what of the stored runs and rules it names is there, and the problem that follows."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import streamlit as st

from datamask.config import SelectionConfig
from datamask.config.selection import RULES
from datamask.corpus import Corpus
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.linked import brushing
from datamask.dashboard.map.filters import Filters
from datamask.dashboard.runs import candidates, listing
from datamask.dashboard.runs.candidates import Refused
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import lambda_points, spots
from datamask.dashboard.workspace import rules as kept_rules
from datamask.errors import DatamaskError
from datamask.options import OPTIONS
from datamask.runs.rule_book import RuleBook
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
        rules: what the problem is posed under. reason: why nothing can obey them; empty where something can.
        settings: the problem: objective, select ratio or tokens, rules. Its lambda is the run's.
        lamb: the lambda that somebody chose; None: the run's own, or the middle where there is no run.
        filters: the conditions on the rows that are shown, regions on the map aside.
    """

    opened: OpenCorpus
    run: Run | None
    runs: Sequence[Run]
    names: Mapping[str, str]
    refused: Sequence[Refused]
    rules: RuleBook
    reason: str
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
        if self.reason:
            return "No selection satisfies these rules"
        return lambda_points.refusal(self.settings)

    @property
    def wanted(self) -> float:
        """The lambda that it asks for."""
        if self.lamb is not None:
            return self.lamb
        return MIDDLE if self.run is None else self.run.config.selection.lamb

    @property
    def asked(self) -> SelectionConfig:
        """The problem under its rules, at the lambda that the view asks for: what a press solves."""
        return replace(self.settings, lamb=self.wanted)

    @cached_property
    def alike(self) -> Sequence[tuple[float, Run]]:
        """The other runs that solve this problem, each with its lambda; none where lambda cannot be moved."""
        if self.refusal:
            return []
        fingerprint = self.corpus.fingerprint
        spot = None if self.run is None else spots.spot_of(self.run, fingerprint)
        scale = None if spot is None else spot.scale
        found = []
        for run in self.runs:
            with contextlib.suppress(DatamaskError):  # discarded since it was listed
                if run is self.run or run.whole is not None:
                    continue
                if not lambda_points.posed_alike(self.settings, run.config.selection):
                    continue
                spot = spots.spot_of(run, fingerprint)
                if spot is not None and spot.scale == (scale := scale or spot.scale):
                    found.append((spot.lamb, run))
        return found

    def renewed(self) -> Workspace:
        """The workspace as the view is now. For callbacks: what was chosen just before a press was not drawn yet."""
        return read(self.opened)


def read(opened: OpenCorpus) -> Workspace:
    """The view on an open corpus.

    The run that it names is shown also where it was archived. Where it cannot be shown, or neither a run nor a problem
    was chosen yet, the first finished one is; what was chosen so for the visitor stays chosen.
    """
    corpus = opened.corpus
    runs, _ = candidates.candidates(session.store().list(), corpus.fingerprint)
    named = session.current_run()
    asked, refused = candidates.candidates([named] if named is not None else [], corpus.fingerprint, archived=True)
    runs += [run for run in asked if run.id not in {other.id for other in runs}]
    run = next((run for run in runs if named is not None and run.id == named.id), None)
    view = views.now()
    if run is None and view.problem is None:
        run = candidates.first_shown(runs)
        if run is not None and named is None:
            views.change(run=run.id)
        elif run is None and view.lamb is not None:
            views.change(problem=lambda_points.settings_of(None))
    names = listing.unlike({other.id: listing.name_of(other) for other in runs})
    if run is not None:
        book, reason = kept_rules.book_of_run(corpus, run), ""
        settings = lambda_points.settings_of(run.config.selection)
    else:
        book = kept_rules.kept_book(corpus, view.rules)
        settings, reason = kept_rules.applied(lambda_points.settings_of(view.problem), book, corpus)
    return Workspace(opened, run, runs, names, refused, book, reason, settings, view.lamb, brushing.kept())


def pose(settings: SelectionConfig, book: RuleBook) -> None:
    """Have the view pose this problem under these rules. For callbacks; what cannot be done is kept in `trouble`.

    Args:
        settings: with its lambda; its own rules do not count.
    """
    try:
        name = kept_rules.store().save(book) if book.rules else ""
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
        return
    views.pose(without_rules(lambda_points.settings_of(settings)), name, settings.lamb)


def without_rules(settings: SelectionConfig) -> SelectionConfig:
    """Settings without pins, bans, given rows and quotas."""
    return replace(settings, **{name: OPTIONS[name].default for name in RULES})
