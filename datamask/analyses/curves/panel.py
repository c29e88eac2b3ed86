"""The curves of several runs in one chart."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from datamask.analyses.curves import chart, tables
from datamask.analyses.curves.tables import MEASURES
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import session
from datamask.dashboard.shell.option_control import one_of
from datamask.errors import DatamaskError
from datamask.runs.store import Run

HEIGHT = 430
"""Pixels of the whole chart."""

ALONG = {"step": "Steps", "seconds": "Seconds"}


def show(runs: Sequence[Run]) -> None:
    """Their curves on one scale; redrawn every second while one of them is at work."""
    if any(run.status().active for run in runs):
        with st.container(key="live_runs"):
            st.fragment(_live, run_every=1.0)([run.id for run in runs], _states(runs))
    else:
        _draw(runs)


def _states(runs: Sequence[Run]) -> list[str]:
    return [run.status().state for run in runs]


def _live(ids: list[str], states: list[str]) -> None:
    try:
        runs = [session.store().get(run_id) for run_id in ids]
    except DatamaskError:  # one was removed meanwhile
        st.rerun()
    if _states(runs) != states:
        st.rerun()
    _draw(runs)


def _draw(runs: Sequence[Run]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        unlabeled = {"persist_state": "session", "label_visibility": "collapsed"}
        measure = one_of("Value", MEASURES, "lines_measure", format_func=str.capitalize, **unlabeled)
        across = one_of("Along", ALONG, "lines_x", default="step", **unlabeled)
        found = tables.lambdas(runs)
        weighed_at = None
        if measure == "joint" and len(found) > 1:
            weighed_at = st.selectbox(
                "Weighed at λ",
                found,
                key="lines_lambda",
                format_func="weighed at λ {:g}".format,
                label_visibility="collapsed",
                width=170,
                help="Joint values of different λ do not compare, so all are computed at this λ.",
            )
    lines = tables.curves(runs, measure, weighed_at)
    if lines.series:
        # not Plotly: while a run is at work it changes each second, and a Plotly figure that changes is mounted anew
        st.vega_lite_chart(
            lines.table,
            chart.curves(lines, across, dark=session.dark(), height=HEIGHT),
            key="lines",
            width="stretch",
            height=HEIGHT,
            alt=f"{lines.unit} of {len(lines.series)} runs over {across}",
        )
        st.caption(" ".join([*chart.notes(lines), *_notes(runs, weighed_at)]))
    for label, reason in (lines.without or {}).items():
        st.caption(f"**{words.plain(label, 80)}** has no curve: {words.plain(reason, 300)}.")
    if len(runs) > tables.MOST:
        st.caption(f"The first {tables.MOST} of {len(runs)} ticked runs are drawn.")


def _notes(runs: Sequence[Run], weighed_at: float | None) -> list[str]:
    """What does not compare."""
    settings = [run.config.selection for run in runs]
    if len({run.facts().get("fingerprint") for run in runs}) > 1:
        return ["The runs are of several corpora, so their heights do not compare."]
    if len({selection.objective for selection in settings}) > 1:
        return ["The runs have several objectives: compare quality, not diversity or joint."]
    return [] if weighed_at is None else [f"All joint values are computed at λ {weighed_at:g}."]
