"""Under- and over-represented regions, classes and bands: selected share against the pool's; each opens its texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import streamlit as st

from datamask.corpus import Corpus
from datamask.corpus.projections import DEFAULT
from datamask.dashboard.drawing import palette, words
from datamask.dashboard.linked import brushing, columns, groups
from datamask.dashboard.linked.brushing import Linked
from datamask.dashboard.linked.distribution_panel import STRIPS
from datamask.dashboard.linked.groups_chart import first_groups, heat_map
from datamask.dashboard.linked.tally import Tally
from datamask.dashboard.map import map_layout, named_regions
from datamask.dashboard.map.filters import Among
from datamask.dashboard.map.layers import one_value
from datamask.dashboard.shell import chosen, session, tables
from datamask.dashboard.shell.components import component
from datamask.dashboard.shell.plots import plot

REGION = named_regions.column_of(DEFAULT)
HEAT, TABLE, GROUP_BY, FEW = "explore_heat", "explore_groups_table", "group", "explore_few_groups"
BESIDE, GROUPS_AT_ONCE = 8, 12
"""Groups beside the map, and in the table below it without scrolling."""

NOTHING_SHOWN = "The filter shows no rows."

ABOUT = "A region is a contiguous part of the map, named by the words frequent in its texts."


def show(view: Linked, selected: np.ndarray, cache_dir: Path) -> None:
    """The heat-map on the left, the groups on the right.

    Args:
        selected: bool ``(N,)`` of the run.
    """
    left, right = st.columns([1, 1.4], gap="large")
    with left:
        _heat(view, selected, cache_dir)
    with right:
        _groups(view, selected)


def few_tally(view: Linked) -> Tally | None:
    """The groups of `show_few`, to be counted along lambda; None: there are none."""
    by = _few_by(view)
    if by is None:
        return None
    codes, names = view.rows.classes[by]
    return Tally(f"groups {by}", codes, len(names), view.mask(skip=(by,)) if view.filters.without(by) else None)


def _few_by(view: Linked) -> str | None:
    """The column whose groups stand beside the map."""
    choices = [name for name in _choices(view) if name != columns.SELECTED]
    by = st.session_state.get(GROUP_BY, st.query_params.get(GROUP_BY))
    return by if by in choices else next(iter(choices), None)


def show_few(view: Linked, selected: np.ndarray) -> None:
    """The most under- and over-represented groups in a narrow column, as bars to press; nothing without groups.

    Args:
        selected: bool ``(N,)`` of the run.
    """
    by = _few_by(view)
    if by is None:
        return
    codes, names = view.rows.classes[by]
    if len(names) == 1:
        st.caption(words.plain(one_value(by)))
        return
    table = groups.shares(codes, names, selected, shown=view.mask(skip=(by,)))
    ratio, drawn = float(selected.mean()), first_groups(table, BESIDE)
    labels, tone = [str(group) for group in drawn["group"]], palette.shades(session.dark())
    condition = view.filters.of(by)
    taken = condition.names if isinstance(condition, Among) else ()

    st.markdown(
        "**Under- and over-represented**",
        help=f"Line: {words.percent(ratio)}, the selected share of the corpus. Bars: the {len(drawn):,} of "
        f"{len(table):,} groups farthest from it.",
    )
    component("strips", STRIPS)(
        key=FEW,
        on_brush_change=lambda: pressed(view.corpus, by, labels, st.session_state[FEW].get("brush")),
        data={
            "small": True,
            "facets": [
                {
                    "name": by,
                    "title": f"Selected share by {by}",
                    "labels": labels,
                    "tally": f"groups {by}",
                    "codes": [names.index(label) for label in labels],
                    "shares": drawn["share"].tolist(),
                    "n": drawn["n"].tolist(),
                    "selected": drawn["selected"].tolist(),
                    "verdicts": drawn["verdict"].tolist(),
                    "ratio": ratio,
                    "brush": [k for k, label in enumerate(labels) if label in taken],
                }
            ],
            "colors": {groups.UNDER: tone.best, groups.OVER: tone.accent, groups.EVEN: tone.random},
        },
    )


def pressed(corpus: Corpus, by: str, labels: Sequence[str], answer: object) -> None:
    """Take what the browser says was pressed: ``{"bars": [...]}``, places among the labels; the rest is ignored."""
    bars = answer.get("bars") if isinstance(answer, dict) else None
    if not isinstance(bars, list):
        return
    names = tuple(labels[k] for k in bars if isinstance(k, int) and 0 <= k < len(labels))
    if names:
        open_group(corpus, Among(by, names))
    else:
        brushing.take(None, by)


def _heat(view: Linked, selected: np.ndarray, cache_dir: Path) -> None:
    corpus = view.corpus
    st.markdown(
        "**Regions by quality and crowding**",
        help=ABOUT,
    )
    crowding = map_layout.crowding(corpus, cache_dir)
    if crowding is None or REGION not in view.rows.classes:
        reason = "The texts of this corpus name no regions." if named_regions.load(corpus, cache_dir, DEFAULT) else ""
        st.caption(reason or f"Waiting for the {DEFAULT} layout of the map.")
        return
    codes, names = view.rows.classes[REGION]
    heat = groups.heat(codes, names, corpus.quality, crowding, selected, view.mask(skip=(REGION,)))
    if heat.table.empty:
        st.caption(NOTHING_SHOWN)
        return

    def opened() -> None:
        cells = st.session_state[HEAT].selection.points
        if cells and 0 <= cells[0]["point_index"] < len(heat.table):
            open_group(corpus, Among(REGION, tuple(heat.table.iloc[cells[0]["point_index"]]["members"])))

    plot(
        heat_map(heat),
        key=HEAT,
        on_select=opened,
        alt="Selected share over mean quality and crowding of the regions",
    )
    st.caption(
        f"Brown: selected share below {words.percent(heat.ratio)}, the share of the whole corpus. Blue: above."
        f"{_counted(view, REGION)} Press a square to see its texts."
    )


def _counted(view: Linked, by: str) -> str:
    """Which rows are counted, where a filter other than the groups' own leaves some out; begins with a space."""
    if not view.filters.without(by):
        return ""
    return f" Counts the {int(view.mask(skip=(by,)).sum()):,} rows that the filter shows."


def _choices(view: Linked) -> list[str]:
    """Columns that divide the samples into groups."""
    return [name for name, (_, names) in view.rows.classes.items() if len(names) > 1]


def _groups(view: Linked, selected: np.ndarray) -> None:
    corpus, classes = view.corpus, view.rows.classes
    choices = _choices(view)
    if not choices:
        st.caption("This corpus has no column with groups.")
        return
    if st.session_state.get(GROUP_BY, choices[0]) not in choices:
        del st.session_state[GROUP_BY]
    by = st.selectbox(
        "Selected share of each",
        choices,
        key=GROUP_BY,
        bind="query-params",
        persist_state="session",
    )
    codes, names = classes[by]
    table = groups.shares(codes, names, selected, corpus.lengths, view.mask(skip=(by,)))
    if table.empty:
        st.caption(NOTHING_SHOWN)
        return
    ratio, count = float(selected.mean()), len(table)
    missed = max(1, round(0.05 * count))
    st.caption(
        f"{words.percent(ratio)} is the selected share of the corpus.{_counted(view, by)} By chance, about {missed:,} "
        f"of the {count:,} intervals {'misses' if missed == 1 else 'miss'} it. Choose a group to see its texts."
    )
    spans = [f"{words.percent(a)} to {words.percent(b)}" for a, b in zip(table["low"], table["high"], strict=True)]
    listed = table.assign(interval=spans, share=100 * table["share"])
    tokens = ["tokens"] if "tokens" in listed else []
    listed_columns = ["group", "verdict", "share", "interval", "selected", "n", *tokens]

    def opened() -> None:
        marked = st.session_state[TABLE].selection.rows
        if marked:
            open_group(corpus, Among(by, (str(table["group"].iloc[marked[0]]),)))

    st.dataframe(
        listed[listed_columns],
        hide_index=True,
        lazy=False,
        height=tables.height(count, GROUPS_AT_ONCE),
        key=TABLE,
        on_select=opened,
        selection_mode="single-row",
        column_config={
            "group": st.column_config.TextColumn(by, width="medium" if by == REGION else None),
            "verdict": st.column_config.TextColumn("against all rows", width=135),
            "interval": st.column_config.TextColumn(width="small"),
            "share": st.column_config.ProgressColumn("share", format="%.1f %%", max_value=100 * table["high"].max()),
            **{name: st.column_config.NumberColumn(format="localized") for name in listed_columns[4:]},
        },
        alt=f"Selected share of each {by}, under- and over-represented first",
    )


def open_group(corpus: Corpus, condition: Among) -> None:
    """Show these samples alone, and list them beside the map: a sample that was read there makes room."""
    brushing.take(condition)
    chosen.choose(corpus, None)
