"""Starved and over-fed: the selected share of clusters, classes and bands against the pool's; each opens its texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard import grounds, groups, topics, words
from datamask.dashboard.charts.groups import dots, first_groups, heat_map, heat_table
from datamask.dashboard.filters import Among
from datamask.dashboard.ui import background, linked, scene, session
from datamask.dashboard.ui.linked import Linked
from datamask.work.worker import worker

CLUSTER = "cluster"
HEAT, TABLE = "explore_heat", "explore_groups_table"
GROUPING = background.Look("stop_topics", "Stops within a second. You can start it again later.")
ABOUT = (
    "Clusters hold similar samples, found by k-means on the features; they are called by the words that their "
    "texts hold more often than all texts do."
)


def show(view: Linked, selected: np.ndarray, cache_dir: Path, tab: tuple[str, str]) -> None:
    """The heat-map on the left, the groups on the right.

    Args:
        selected: bool ``(N,)`` of the run.
        tab: key of the page's tabs and the name of the one that lists texts: opening a group goes there.
    """
    left, right = st.columns([1, 1.4], gap="large")
    with left:
        _heat(view, selected, cache_dir, tab)
    with right:
        _groups(view, selected, tab)


def _heat(view: Linked, selected: np.ndarray, cache_dir: Path, tab: tuple[str, str]) -> None:
    corpus = view.corpus
    st.markdown(
        "**Clusters by quality and crowding**",
        help=f"What share of them was selected. {ABOUT} The steps hold about equal numbers of samples. Press a "
        "cell to see its texts.",
    )
    if topics.load(corpus, cache_dir) is None:
        _waiting(corpus, cache_dir)
        return
    crowding = grounds.crowding(corpus, cache_dir)
    if crowding is None:
        st.caption("Waits for the neighbours, which are being found for the map.")
        return
    codes, names = view.rows.classes[CLUSTER]
    heat = groups.heat(codes, names, corpus.quality, crowding, selected)

    def opened() -> None:
        cells = st.session_state[HEAT].selection.get("cell") or []
        if cells:
            table = heat.table
            hit = table[(table["crowding"] == cells[0]["crowding"]) & (table["quality"] == cells[0]["quality"])]
            if len(hit):
                _open(corpus, Among(CLUSTER, tuple(hit.iloc[0]["members"])), tab)

    st.vega_lite_chart(
        heat_table(heat),
        heat_map(heat, dark=session.dark()),
        key=HEAT,
        on_select=opened,
        width="stretch",
        alt="Selected share over mean quality and crowding of the clusters",
    )
    st.caption(
        f"Orange: less than everywhere, which is {words.percent(heat.ratio)}; blue: more. All samples count, "
        "filtered out or not. Press a cell to see its texts."
    )


def _waiting(corpus: Corpus, cache_dir: Path) -> None:
    job = worker().find(topics.key_of(corpus))
    if job is None:
        job = topics.start(corpus, scene.texts_of(corpus), cache_dir)
    if background.under_way(job.key, GROUPING):
        return
    if job.state == "done":
        st.rerun()
    else:
        st.caption(
            "Grouping " + ("was stopped." if job.state == "stopped" else f"failed: {words.plain(job.error, 300)}")
        )
        st.button(
            "Group them now",
            key="start_topics",
            icon=":material/play_arrow:",
            on_click=background.on_press(topics.start),
            args=(corpus, scene.texts_of(corpus), cache_dir),
            help="Runs in the background, once per corpus.",
        )


def _groups(view: Linked, selected: np.ndarray, tab: tuple[str, str]) -> None:
    corpus, classes = view.corpus, view.rows.classes
    choices = [name for name in classes if len(classes[name][1]) > 1]
    if not choices:
        st.caption("This corpus has no column with groups.")
        return
    if st.session_state.get("explore_group_by", choices[0]) not in choices:
        del st.session_state["explore_group_by"]
    by = st.selectbox(
        "Selected share of each",
        choices,
        key="explore_group_by",
        persist_state="session",
        help=ABOUT + " Columns of your shards with repeating values are groups too, and so are bands of length.",
    )
    codes, names = classes[by]
    table = groups.shares(codes, names, selected, corpus.lengths)
    ratio, count = float(selected.mean()), len(table)
    drawn = first_groups(table)
    st.vega_lite_chart(
        drawn,
        dots(ratio, dark=session.dark()),
        width="stretch",
        key="explore_dots",
        alt=f"Selected share of each {by} with its interval",
    )
    more = f" The {len(drawn):,} farthest from it of {count:,}." if len(drawn) < count else ""
    st.caption(
        f"Dashed: {words.percent(ratio)}, the share of all samples.{more} The intervals are Wilson's at 95 %: a "
        f"selection without preference would leave about {max(1, round(0.05 * count)):,} of {count:,} groups "
        "outside of theirs."
    )
    listed = table.assign(
        interval=[
            f"{words.percent(a)} to {words.percent(b)}" for a, b in zip(table["low"], table["high"], strict=True)
        ],
        share=100 * table["share"],
    )
    columns = ["group", "verdict", "share", "interval", "selected", "n", *(["tokens"] if "tokens" in listed else [])]

    def opened() -> None:
        marked = st.session_state[TABLE].selection.rows
        if marked:
            _open(corpus, Among(by, (str(table["group"].iloc[marked[0]]),)), tab)

    st.dataframe(
        listed[columns],
        hide_index=True,
        lazy=False,
        height=240 if count > 6 else "auto",
        key=TABLE,
        on_select=opened,
        selection_mode="single-row",
        column_config={
            "group": st.column_config.TextColumn(by, width="medium" if by == CLUSTER else None),
            "verdict": st.column_config.TextColumn(width="small"),
            "interval": st.column_config.TextColumn(width="small"),
            "share": st.column_config.NumberColumn("share", format="%.1f %%"),
            **{name: st.column_config.NumberColumn(format="localized") for name in columns[4:]},
        },
        alt=f"Selected share of each {by}, starved and over-fed first",
    )
    st.caption("Starved and over-fed groups first. Mark a row to see its texts.")


def _open(corpus: Corpus, condition: Among, tab: tuple[str, str]) -> None:
    linked.take(corpus, condition)
    st.session_state[tab[0]] = tab[1]
