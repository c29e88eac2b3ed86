"""The sweeps of the Lab: over the select ratio, over G, and the transfer check."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from datamask.config import CorpusConfig, SelectionConfig
from datamask.dashboard.analyses.frontier import chart as charts
from datamask.dashboard.analyses.frontier import form_panel as frontier_form
from datamask.dashboard.analyses.frontier import sweeping
from datamask.dashboard.analyses.frontier.form_panel import Shared
from datamask.dashboard.analyses.frontier.picture_panel import CONFIG, SHARES
from datamask.dashboard.analyses.sweeps import chart, tables
from datamask.dashboard.analyses.sweeps.tables import Series
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import menus, session
from datamask.dashboard.shell.plots import plot


def ratio(opened: OpenCorpus) -> None:
    """Quality and diversity over the select ratio, live while a sweep runs."""
    _live(opened, _ratio)


def group(opened: OpenCorpus) -> None:
    """The joint value over seconds for each G, live while a sweep runs."""
    _live(opened, _group)


def transfer(opened: OpenCorpus, settings: Shared) -> None:
    """The frontier of slices of the corpus over the whole one's, live while a sweep runs."""
    _live(opened, _transfer, settings)


def _live(opened: OpenCorpus, draw, *arguments) -> None:
    with st.container(key="live_sweep_picture"):
        st.fragment(draw, run_every=2.0 if frontier_form.working(opened) else None)(opened, *arguments)


def _ratio(opened: OpenCorpus) -> None:
    stored = tables.ratio_series(listing.runs_on(session.store(), opened), opened.corpus.fingerprint)
    series = _chosen(
        stored,
        "ratio",
        "What does keeping more cost?",
        "Two lines over the select ratio will stand here: "
        "how much of the attainable quality, and of the attainable diversity, one selection keeps. Two "
        "runs that differ in the ratio alone make the first picture. Press **Start the sweep**.",
    )
    if series is None:
        return
    plot(
        chart.ratio(series.table, dark=session.dark()),
        key="ratio_chart",
        alt=f"Quality and diversity over the select ratio: {series.label}",
    )
    st.caption(
        "Every ratio has ends of its own: 100 % is the best that quality, or diversity, reaches alone at that "
        "ratio. The lines tell how close one selection comes to both; the raw values stand under the pointer."
    )


def _group(opened: OpenCorpus) -> None:
    stored = tables.group_series(listing.runs_on(session.store(), opened), opened.corpus.fingerprint)
    series = _chosen(
        stored,
        "group",
        "Which group size is worth its time?",
        "More masks per step steady the steps and "
        "make each one slower. Two values of G on the same settings make the first picture. Press "
        "**Start the sweep**.",
    )
    if series is None:
        return
    sizes = sorted(series.table["G"].unique().tolist())
    plot(
        chart.groups(series.table, sizes, dark=session.dark()),
        key="group_chart",
        alt=f"Joint value over seconds of learning for each G: {series.label}",
    )
    seeds = series.table.groupby("G")["seeds"].first()
    st.caption(
        "Bold: mean over seeds. Band: from the worst to the best of them ("
        + ", ".join(f"G {size}: {seeds[size]} seed{'s' if seeds[size] > 1 else ''}" for size in sizes)
        + "). A curve that is higher at the same second is the better use of time."
    )


def _transfer(opened: OpenCorpus, settings: Shared) -> None:
    slices = sweeping.slices(opened.config, len(opened.corpus))
    config = SelectionConfig.from_options(objective=settings.objectives[0], **settings.options)
    frontiers = tables.transfer(session.store().list(), slices, opened.corpus.fingerprint, config)
    if not frontiers.lines:
        _nothing(
            "Does a λ chosen on a part hold for the whole?",
            "The same sweep runs on an eighth and on a quarter "
            "of the rows, drawn at random, and on all of them. If the curves lie on each other, λ may be chosen "
            "on the small one. Press **Start the check**.",
        )
        return
    lines = list(frontiers.lines.values())
    names = _names(frontiers.lines, slices, opened)
    st.html(charts.legend(lines, names, dark=session.dark()))
    st.plotly_chart(
        charts.frontier(lines, names=names, dark=session.dark(), height=560),
        key="transfer_chart",
        theme=None,
        config=CONFIG,
        width="stretch",
        alt="Frontiers of slices of the corpus over that of the whole",
    )
    st.markdown(words.plain(tables.transfer_words(frontiers), 600))
    st.caption(f"{SHARES} Each slice has ends of its own.")


def _names(lines: Mapping[str, object], slices: Mapping[str, CorpusConfig], opened: OpenCorpus) -> dict[str, str]:
    return {
        name: f"{name}: {slices[name].rows or len(opened.corpus):,} rows"
        if name != "N"
        else f"all {len(opened.corpus):,} rows"
        for name in lines
    }


def _chosen(stored: list[Series], name: str, question: str, way: str) -> Series | None:
    """One series, by a menu where there are several; None, with what to do, where there is none."""
    if not stored:
        _nothing(question, way)
        return None
    by_key = {series.key: series for series in stored}
    menus.settle(f"{name}_series", {key: series.label for key, series in by_key.items()})
    key = st.selectbox(
        question,
        list(by_key),
        format_func=lambda key: by_key[key].label,
        key=f"{name}_series",
        help="Runs that differ in nothing else, the longest series first.",
    )
    return by_key[key]


def _nothing(question: str, way: str) -> None:
    with st.container(border=True):
        st.subheader(question, anchor=False)
        st.markdown(way)
