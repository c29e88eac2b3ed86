"""Sweeps over something else than lambda: the select ratio, the group size, parts of the corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from datamask.dashboard.analyses.frontier import form_panel as frontier_form
from datamask.dashboard.analyses.frontier.form_panel import Shared
from datamask.dashboard.analyses.sweeps import panel
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.frame import sections
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session, theme
from datamask.runs.varying import Plan, Point

PAGE = "Lab"


def ratio() -> None:
    """Over the select ratio."""
    _show(frontier_form.ratio_points, panel.ratio, ratio=True)


def group() -> None:
    """Over the group size."""
    _show(frontier_form.group_points, panel.group)


def transfer() -> None:
    """Over lambda, on parts of the corpus."""
    opened = session.opened_or_stop()
    controls, place = st.columns([1, 3.6], gap="large")
    with controls:
        settings = frontier_form.shared(opened, False)
        plans = frontier_form.planned(
            lambda: frontier_form.transfer_plans(opened, frontier_form.lambda_points(settings))
        )
        _start(opened, plans, "Start the check")
    with place:
        panel.transfer(opened, settings)
    theme.follow()


def _show(
    points: Callable[[Shared], Sequence[Point]], picture: Callable[[OpenCorpus], None], *, ratio: bool = False
) -> None:
    """The form on the left, the picture of what is stored on the right.

    Args:
        points: asks for what is varied, and gives the points.
        ratio: whether that is the select ratio, for as many objectives as one likes.
    """
    opened = session.opened_or_stop()
    controls, place = st.columns([1, 3.6], gap="large")
    with controls:
        settings = frontier_form.shared(opened, ratio, ratio=not ratio)
        _start(opened, frontier_form.planned(lambda: frontier_form.plan_of(opened, points(settings))))
    with place:
        picture(opened)
    theme.follow()


def _start(opened: OpenCorpus, plans: Sequence[Plan], label: str = "Start the sweep") -> None:
    watched = ("pages/lab.py", sections.remembered(PAGE))
    frontier_form.start(opened, listing.runs_on(session.store(), opened), plans, label, watched)
