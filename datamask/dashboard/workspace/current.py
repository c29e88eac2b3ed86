"""The current selection, and what is known of its problem along λ: stored runs, solved points, and answers between."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import streamlit as st

from datamask.dashboard.map import scene
from datamask.dashboard.shell import session
from datamask.dashboard.tradeoff import kept_baselines, kept_points, lambda_point, lambda_points, live, spots
from datamask.dashboard.tradeoff.answers import Units
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from datamask.dashboard.workspace.selection import Selection, of_point, of_run
from datamask.dashboard.workspace.workspace import Workspace
from datamask.errors import DatamaskError
from datamask.evaluation.result import NO_RESULT
from datamask.runs.store import Run

ANSWER, BEGUN = "explore_lambda_answer", "explore_lambda_begun"
"""Of the session: the last selection that was made for a chosen lambda; the problems that were prepared unasked."""

HEARD = "explore_lambda_heard"
"""Of the session: the browser's time of the last move of the map's sliders that was taken note of."""

SAME = 1e-9
"""Lambdas are given in hundredths."""

WAITS = 3.0
"""Seconds that a page waits for the selection at a lambda, before it is drawn without it. The map shows it by itself,
and a page that is drawn twice takes the processor from what is solved."""

SCORES_WAIT = 0.3
"""Seconds that a page waits for what each row adds to a selection that is no run."""


@dataclass(frozen=True)
class Current:
    """What a page shows: what is known of one problem along lambda, and what stands at the lambda that was chosen.

    Attributes:
        behind: the solver that is kept ready; None: none is, or lambda cannot be moved.
        solved: what was solved and kept on disk; it counts before what `behind` has solved so far.
        own: the shown run; None: there is none, or it has no lambda or no values on this scale.
        points: selections by rising lambda, of each lambda one; of stored runs the shown one and the nearest at most.
        lasting: those of `points` that are stored runs, the shown one last.
        point: the chosen one of them, or an answer between; None: what is shown has no value there.
        waits: whether the selection of the chosen lambda is being made; until it is there, `point` is the nearest.
        problem: its name, of `kept_points.key_of`, which looks at files of ids: found once.
    """

    workspace: Workspace
    behind: live.Session | None
    solved: tuple[LambdaPoint, ...]
    own: LambdaPoint | None
    points: tuple[LambdaPoint, ...] = ()
    lasting: tuple[LambdaPoint, ...] = ()
    point: LambdaPoint | None = None
    waits: bool = False
    problem: str = ""

    @cached_property
    def selection(self) -> Selection | None:
        """The shown run's, a solved one, a stored run's or a preview; None: nothing is selected yet."""
        run, point = self.workspace.run, self.point
        if point is None or point.run:
            return None if run is None else of_run(run, scene.run_columns(run).selected, point)
        stored = next((other for other in self.workspace.runs if other.id == point.run_id), None)
        return of_point(self.workspace.settings if stored is None else stored.config.selection, point, stored)

    @cached_property
    def units(self) -> Units:
        """In what the rows are measured, with the baselines once they are computed."""
        corpus, by_tokens = self.workspace.corpus, self.workspace.settings.budget is not None
        return Units(by_tokens, kept_baselines.find(corpus.fingerprint, self.problem, session.store().cache_dir))

    @property
    def kept(self) -> bool:
        """Whether points were solved before and kept on disk."""
        return bool(self.solved)

    @cached_property
    def along(self) -> Current:
        """The same with all stored runs of the problem among the points, which takes reading each of them once."""
        return _with_points(self, self.workspace.alike)

    @property
    def stamp(self) -> str:
        """Names the points, among all of the same problem: it changes when one of them does."""
        solved = "" if self.behind is None else f"{self.behind.number} {self.behind.solved[0]} {self.final}"
        solved = "kept" if self.kept else solved
        return f"{solved} {[(point.lamb, point.joint) for point in self.lasting]}"

    @property
    def final(self) -> bool:
        """Whether all points are solved and proved as far as they will be."""
        return self.kept or (self.behind is not None and self.behind.ready)

    def settled(self, lamb: float) -> bool:
        """Whether what stands at a lambda is solved and proved as far as it will be: kept points are, answers later."""
        kept = self.kept and any(abs(point.lamb - lamb) < SAME for point in self.points)
        return kept or (self.behind is not None and self.behind.ready)

    def row_scores(self, seconds: float = SCORES_WAIT) -> np.ndarray | None:
        """What each row adds to the selection: a run's scores, else those of the solver that is kept ready.

        Args:
            seconds: that the solver may be waited for. Ask again: it is under way.

        Returns:
            float64 ``(N,)``, under a token budget per token; NaN where a row may not be selected. None: not known.
        """
        selection, behind = self.selection, self.behind
        if selection is not None and selection.run is not None:
            run, lengths = scene.run_columns(selection.run), self.workspace.corpus.lengths
            score = np.where(run.eligible, run.score.astype(np.float64), np.nan)
            return score if selection.settings.budget is None or lengths is None else score / np.maximum(lengths, 1.0)
        if selection is None or behind is None or not behind.alive or behind.preparing:
            return None
        return behind.row_scores(selection.mask, selection.lamb, seconds)

    def mask_at(self, lamb: float) -> np.ndarray | None:
        """The selection of the point at a lambda, bool ``(N,)``; None where there is none."""
        return next((point.mask for point in self.points if abs(point.lamb - lamb) < SAME), None)

    @property
    def unsolved(self) -> bool:
        """Whether the selection is of another lambda than the chosen one, which would be solved if somebody asked."""
        if self.workspace.refusal or self.waits or self.point is None:
            return False
        return abs(self.point.lamb - self.workspace.wanted) >= SAME

    @property
    def under_way(self) -> bool:
        """Whether selections are being solved; beside kept ones, whether somebody asked for others."""
        behind = self.behind
        return behind is not None and behind.alive and not behind.job.ended and (behind.asked or not self.kept)

    @property
    def begins_later(self) -> bool:
        """Whether `begin_later` has a solver to begin: points are kept, and it takes moments to answer between them."""
        if not self.kept or self.behind is not None:
            return False
        begun = self.problem in st.session_state.get(BEGUN, ())
        return not begun and lambda_points.prepared_at_once(self.workspace.corpus, self.workspace.settings)

    @property
    def awaits_scores(self) -> bool:
        """Whether the solver beside kept points is not ready to say what each row adds."""
        return self.kept and self.behind is not None and self.behind.alive and self.behind.preparing


def current(workspace: Workspace, seconds: float = WAITS, *, begin: bool = True) -> Current:
    """The current selection of a workspace: `known`, then `chosen`."""
    return chosen(known(workspace, begin=begin), seconds)


def known(workspace: Workspace, *, begin: bool = False) -> Current:
    """What is known now without a look at stored runs, and without the selection that stands at the chosen lambda.

    Args:
        begin: have the points prepared where that takes so little time that nobody has to ask for it.
    """
    refused, corpus = bool(workspace.refusal), workspace.corpus
    problem = kept_points.key_of(corpus, workspace.settings)
    behind = None if refused else live.of_key(problem)
    kept = () if refused else kept_points.find(corpus.fingerprint, problem, len(corpus), session.store().cache_dir)
    if begin and behind is None and not refused:
        there = any(abs(point.lamb - workspace.wanted) < SAME for point in kept)
        needed = not there and (workspace.run is None or workspace.lamb is not None)
        behind = _begun(workspace, problem, needed) if needed or not kept else None
    return Current(workspace, behind, kept, _own(workspace), problem=problem)


def chosen(now: Current, seconds: float = WAITS) -> Current:
    """What is known, with the selection at the chosen lambda. Of stored runs only the nearest is read.

    Args:
        seconds: that it may be waited for.
    """
    workspace, near = now.workspace, []
    if workspace.run is None or workspace.lamb is not None:
        nearest = min((abs(lamb - workspace.wanted) for lamb, _ in workspace.alike), default=0.0)
        near = [(lamb, run) for lamb, run in workspace.alike if abs(lamb - workspace.wanted) <= nearest]
    now = _with_points(now, near)
    point, waits = _chosen(now, seconds)
    return replace(now, point=point, waits=waits)


def _with_points(now: Current, stored: Sequence[tuple[float, Run]]) -> Current:
    lasting = _stored(now.workspace, stored)
    if now.own is not None:
        lasting.append(now.own)
    points = lambda_points.with_stored(now.solved or lambda_points.solved_by(now.behind), lasting)
    return replace(now, points=tuple(points), lasting=tuple(lasting))


def begin_later(workspace: Workspace) -> None:
    """Begin the solver that answers between kept points, once in a session."""
    begun = st.session_state.setdefault(BEGUN, set())
    begun.add(kept_points.key_of(workspace.corpus, workspace.settings))
    live.unasked(workspace.corpus, workspace.settings, session.store().cache_dir)


def _chosen(now: Current, seconds: float) -> tuple[LambdaPoint | None, bool]:
    """The point that stands at the workspace's lambda, and whether a better one is being made.

    Returns:
        None for the shown run, where it is no point of the problem, and where there is nothing yet.
    """
    workspace, behind = now.workspace, now.behind
    if workspace.refusal or (workspace.run is not None and workspace.lamb is None):
        return now.own, False
    lamb = workspace.wanted
    for point in now.points:
        if abs(point.lamb - lamb) < SAME:
            return point, False
    found = _answer(now, lamb, seconds)
    if found is not None:
        return found, False
    waits = behind is not None and behind.alive and (behind.preparing or behind.quick)
    near = lambda_points.drawn_at(now.points, lamb) if now.points else None
    if workspace.run is None and waits and not now.kept:
        near = None  # a fresh corpus opens in the middle, not at an end that happens to be solved first
    return (now.own if near is None else near), waits


def _answer(now: Current, lamb: float, seconds: float) -> LambdaPoint | None:
    """The selection at a lambda that is none of the points; None where the solver has not found one by then.

    It is solved for this lambda where that takes moments; else it is the quick one. Ask again: it is under way. The
    session keeps the last one with what it is of: asking again would take the solver from what it is solving.
    """
    behind = now.behind
    if behind is None or not behind.alive or not behind.quick:
        return None
    asked, point = st.session_state.get(ANSWER, (None, None))
    if asked == (behind.number, lamb, behind.ready):
        return cast(LambdaPoint, point)
    ready = behind.ready
    # asked before the problem is posed, it is solved before all other lambdas; a page waits for that if a person asked
    # for it and it takes moments
    moments = behind.asked and lambda_points.prepared_at_once(behind.corpus, behind.config)
    found = lambda_points.selected_at(behind, lamb, seconds if moments or not behind.preparing else 0.0)
    if found is None:
        return None
    point = lambda_point.of_answer(found)
    st.session_state[ANSWER] = (behind.number, lamb, ready), point
    return point


def _begun(workspace: Workspace, problem: str, needed: bool) -> live.Session | None:
    """A solver that nobody asked for, once: few are held, and one that made room must not take another's each time.

    Args:
        problem: its name. needed: whether the page has no selection to show otherwise.
    """
    begun = st.session_state.setdefault(BEGUN, set())
    if (problem in begun and not needed) or not lambda_points.prepared_unasked(
        workspace.corpus, workspace.settings, needed
    ):
        return None
    behind = live.unasked(workspace.corpus, workspace.settings, session.store().cache_dir, needed=needed)
    if behind is not None:
        begun.add(problem)
    return behind


def _own(workspace: Workspace) -> LambdaPoint | None:
    """The shown run as a point."""
    if workspace.run is None:
        return None
    selected = scene.run_columns(workspace.run).selected
    return _of_run(workspace.run, workspace.corpus.fingerprint, selected, shown=True)


def _of_run(run: Run, fingerprint: str, selected: np.ndarray, *, shown: bool) -> LambdaPoint | None:
    spot = spots.spot_of(run, fingerprint)
    if spot is None or not spot.priced:
        return None
    estimated = (run.status().result or NO_RESULT).estimate is not None
    return lambda_point.of_run(spot, selected, exact=not estimated, shown=shown)


def _stored(workspace: Workspace, alike: Sequence[tuple[float, Run]]) -> list[LambdaPoint]:
    """What stored runs found for this problem at their lambdas, on one scale."""
    points = []
    for _, run in alike:
        with contextlib.suppress(DatamaskError, OSError):  # discarded since it was listed
            # the record of a run is written last
            changed = (run.path / "status.json").stat().st_mtime_ns
            point = _stored_point(run.id, changed, workspace.corpus.fingerprint, run)
            if point is not None and point.rows == len(workspace.corpus):
                points.append(point)
    return points


@st.cache_resource(max_entries=128, show_spinner=False)
def _stored_point(run_id: str, changed: int, fingerprint: str, _run: Run) -> LambdaPoint | None:
    try:
        selected = _run.mask()
    except DatamaskError:  # a damaged run is listed elsewhere, with its reason
        return None
    return _of_run(_run, fingerprint, selected, shown=False)
