"""The current selection: at the chosen λ the shown run's, a solved one, a stored run's, or a preview, in this order."""

from __future__ import annotations

from dataclasses import dataclass

from datamask.dashboard.map import scene
from datamask.dashboard.tradeoff import lambda_points, live
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from datamask.dashboard.workspace import along as along_lambda
from datamask.dashboard.workspace.along import SAME, Along
from datamask.dashboard.workspace.selection import Selection, of_point, of_run
from datamask.dashboard.workspace.workspace import Workspace

WAITS = 1.0
"""Seconds that a page waits for the selection at a lambda, before it is drawn without it."""


@dataclass(frozen=True)
class Current:
    """What a page shows.

    Attributes:
        selection: the current one; None: nothing is selected yet.
        along: what is known of the problem along lambda.
        waits: whether the selection of the chosen lambda is being made; until it is there, `selection` is the nearest.
        point: the selection along lambda; None: it has no value there.
    """

    workspace: Workspace
    along: Along
    selection: Selection | None
    waits: bool
    point: LambdaPoint | None

    @property
    def unsolved(self) -> bool:
        """Whether the selection is of another lambda than the chosen one, which would be solved if somebody asked."""
        quick = not self.workspace.refusal and live.quick(self.workspace.settings)
        return (
            quick and not self.waits and self.point is not None and abs(self.point.lamb - self.workspace.wanted) >= SAME
        )


def current(workspace: Workspace, seconds: float = WAITS) -> Current:
    """The current selection of a workspace. Solving begins where nothing is selected yet and it takes moments.

    Args:
        seconds: that it may be waited for.
    """
    moved = workspace.run is None or workspace.lamb is not None
    along = along_lambda.known(workspace, begin=True, stored=moved, near=workspace.wanted)
    point, waits = at(workspace, along, seconds)
    return Current(workspace, along, selection(workspace, point), waits, point)


def at(workspace: Workspace, along: Along, seconds: float) -> tuple[LambdaPoint | None, bool]:
    """The point that stands at the workspace's lambda, and whether a better one is being made.

    Returns:
        None for the shown run, where it is no point of the problem, and where there is nothing yet.
    """
    run, lamb = workspace.run, workspace.lamb
    if workspace.refusal or (run is not None and lamb is None):
        return along.own, False
    lamb = workspace.wanted
    for point in along.points:
        if abs(point.lamb - lamb) < SAME:
            return point, False
    found = along_lambda.answer(workspace, along, lamb, seconds)
    if found is not None:
        return found, False
    behind = along.behind
    waits = behind is not None and behind.alive and (behind.preparing or behind.quick)
    near = lambda_points.drawn_at(along.points, lamb) if along.points else None
    if run is None and waits and not along.kept:
        near = None  # a fresh corpus opens in the middle, not at an end that happens to be solved first
    return (along.own if near is None else near), waits


def selection(workspace: Workspace, point: LambdaPoint | None) -> Selection | None:
    """The selection of a point of `at`."""
    run = workspace.run
    if point is None or point.run:
        return None if run is None else of_run(run, scene.run_columns(run).selected, point)
    stored = next((other for other in workspace.runs if other.id == point.run_id), None) if point.run_id else None
    return of_point(workspace.settings if stored is None else stored.config.selection, point, stored)
