"""The curves of several runs in one chart."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from datamask.dashboard.analyses.convergence.tables import MEASURES
from datamask.dashboard.analyses.run_lines import chart, tables
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import session
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
        measure = st.segmented_control(
            "Value",
            MEASURES,
            default=MEASURES[0],
            key="lines_measure",
            required=True,
            format_func=str.capitalize,
            label_visibility="collapsed",
            help="Of the selected subset on the whole corpus, as share of the way from a random subset to the best.",
        )
        across = st.segmented_control(
            "Along",
            list(ALONG),
            default="step",
            key="lines_x",
            required=True,
            format_func=ALONG.__getitem__,
            label_visibility="collapsed",
            help="Lines of the record: steps, swaps and steps of the bound; or seconds without the neighbour graph.",
        )
    lines = tables.lines(runs, measure)
    if lines.runs:
        # not Plotly: while a run is at work it changes each second, and a Plotly figure that changes is mounted anew
        st.vega_lite_chart(
            lines.table,
            chart.run_lines(lines, across, measure=measure, dark=session.dark(), height=HEIGHT),
            key="lines",
            width="stretch",
            height=HEIGHT,
            alt=f"{measure} of {len(lines.runs)} runs over {across}",
        )
        st.caption(" ".join(_notes(runs, lines)))
    for label, reason in lines.without.items():
        st.caption(f"**{words.plain(label, 80)}** has no curve: {words.plain(reason, 300)}.")
    if len(runs) > tables.MOST:
        st.caption(f"The first {tables.MOST} of {len(runs):,} ticked runs are drawn.")


def _notes(runs: Sequence[Run], lines: tables.Lines) -> list[str]:
    """What the marks mean, and what does not compare."""
    turns = {turn["turn"] for turn in chart.turns(lines)}
    marks = [
        f"{sign} {note}"
        for note, sign in (
            (chart.SWAPS_BEGIN, "▲"),
            (chart.BOUND_BEGINS, "■"),
            (chart.GOES_ON, "✚"),
            (chart.OTHER, "●"),
        )
        if note in turns
    ]
    notes = [", ".join([*marks, "◆ the final selection"]) + "."]
    if chart.cut_off(lines):
        notes.append("What lies far below all ends is cut off.")
    settings = [run.config.selection for run in runs]
    if len({run.facts().get("fingerprint") for run in runs}) > 1:
        notes.append("They are of several corpora, so heights do not compare.")
    elif len({selection.objective for selection in settings}) > 1:
        notes.append("They have several objectives: quality compares, diversity and joint do not.")
    elif len({selection.lamb for selection in settings}) > 1:
        notes.append("They have several λ: quality and diversity compare, joint does not.")
    return notes
