"""Of compared runs the one table, and the rows that both select, or one of them: listed, and group by group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import streamlit as st

from datamask.analyses.comparison import tables as comparison
from datamask.analyses.comparison.tables import Entry
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.linked import columns
from datamask.dashboard.map import scene
from datamask.dashboard.map.filters import Holding, Rows
from datamask.dashboard.runs import listing
from datamask.dashboard.runs.candidates import Refused
from datamask.dashboard.shell import downloads, ordering, tables
from datamask.dashboard.shell.option_control import one_of

REFUSED_AT_ONCE = 50
PAGE = 100
TEXTS_AT_ONCE, GROUPS_AT_ONCE = 10, 14
SAMPLES, TOKENS = "rows", "tokens"
OVERLAP = (
    "Overlap with A: rows that both select, divided by the rows that at least one selects. In brackets: two random "
    "selections of these sizes with the same pins, bans and quotas."
)
ABOUT = {
    "both": "Selected by both.",
    "added": "Selected by {second} only.",
    "left out": "Selected by {first} only.",
}


def draw_refused(refused: Sequence[Refused]) -> None:
    """The runs that cannot be compared here, each by its name and with the reason."""
    if not refused:
        return
    with st.expander(f"{len(refused):,} other run{'s' if len(refused) > 1 else ''} not offered here, and why"):
        for entry in refused[:REFUSED_AT_ONCE]:
            st.caption(f"**{words.named(listing.label_of(entry.run), 80)}**: {words.plain(entry.reason, 300)}.")
        if len(refused) > REFUSED_AT_ONCE:
            st.caption(f"and {len(refused) - REFUSED_AT_ONCE:,} more")


def summary(entries: Sequence[Entry], lengths: np.ndarray | None = None, *, narrow: bool = False) -> None:
    """One row per run: its values, its overlap with the first, and the settings that differ.

    Args:
        lengths: tokens ``(N,)``; None: not shown.
        narrow: whether there is room for a letter and the first numbers alone.
    """
    table = comparison.summary(entries, lengths)
    table["run"] = [entry.letter if narrow else words.plain(name) for entry, name in zip(entries, table["run"])]
    table["What differs"] = [words.plain(text, 500) for text in table["What differs"]]
    if narrow:
        table = table[["run", "Quality", "Diversity", "Rows", "Overlap"]]
    # no grid of cells: the browser would load it before the maps
    st.table(table.rename(columns={"run": ""}), border="horizontal", hide_index=True, alt="Values of each run")
    caveats = " ".join(words.plain(text, 400) for text in comparison.caveats(entries))
    st.caption(caveats or "Overlap with A, and by chance.", help=OVERLAP)


def pair(entries: Sequence[Entry]) -> tuple[Entry, Entry]:
    """A and the run that it is held against: the reader's choice where there are several."""
    first, *others = entries
    if len(others) == 1:
        return first, others[0]
    names = {place: words.named(entry.label, 60) for place, entry in enumerate(others)}
    if st.session_state.get("compare_other", 0) not in names:
        # of a longer list of runs
        del st.session_state["compare_other"]
    about = f"{words.plain(first.label, 40)} against"
    return first, others[one_of(about, names, "compare_other", persist_state="session")]


def texts(first: Entry, other: Entry, corpus: Corpus) -> None:
    """The rows of each kind: how many, a search, a page of them, and a download."""
    parts = comparison.masks(first.selected, other.selected)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kinds = {name: f"{name.capitalize()} {int(parts[name].sum()):,}" for name in comparison.KINDS}
        about = f"{first.letter} to {other.letter}"
        kind = one_of(about, kinds, "compare_kind", default="left out", persist_state="session")
        search = st.text_input(
            "Search",
            key="compare_search",
            placeholder="words in the text",
            width=220,
            disabled=corpus.texts is None,
        )
        mask = parts[kind]
        if search.strip():
            mask = mask & Holding(search).mask(Rows(len(corpus), texts=corpus.texts))
        rows = np.flatnonzero(mask)
        order = st.selectbox("Order", ordering.ORDERS, key="compare_order", width=140)
        pages = max(1, -(-len(rows) // PAGE))
        page = st.number_input("Page", 1, pages, 1, key=f"compare_page_{kind}_{pages}", width=105)
        st.download_button(
            f"Download {len(rows):,} {kind} ids (CSV)",
            downloads.of_rows(len(rows), lambda: scene.id_file(corpus, rows, ".csv")),
            file_name=f"{kind}-{first.letter}-{other.letter}.csv",
            mime="text/csv",
            on_click="ignore",
            key="compare_csv",
            icon=":material/download:",
            disabled=not len(rows),
        )
    if not len(rows):
        st.caption("No text contains these words." if search.strip() else _none(kind, first, other))
        return
    about = ABOUT[kind].format(first=first.letter, second=other.letter)
    summary = f"{about} {len(rows):,} rows"
    if corpus.lengths is not None:
        summary += f", {words.count(corpus.lengths[rows].sum())} tokens"
    st.caption(
        f"{summary}. Mean quality score {words.value(float(corpus.quality[rows].mean()))}, all rows "
        f"{words.value(float(corpus.quality.mean()))}."
    )
    listed = ordering.in_order(corpus, rows, order)[(page - 1) * PAGE : page * PAGE]
    st.dataframe(
        scene.sample_table(corpus, listed),
        hide_index=True,
        lazy=False,
        height=tables.height(len(listed), TEXTS_AT_ONCE),
        alt=f"Rows {kind} from {first.letter} to {other.letter}",
        column_config={
            # no wider than fits a small window; it takes what room there is
            "text": st.column_config.TextColumn("text", width=430),
            "quality": st.column_config.NumberColumn("quality score", format="%.4g", width="small"),
        },
    )


def _none(kind: str, first: Entry, other: Entry) -> str:
    return {
        "both": "None: the two selections have no row in common.",
        "added": f"None: {first.letter} selects all rows of {other.letter}.",
        "left out": f"None: {other.letter} selects all rows of {first.letter}.",
    }[kind]


def groups(first: Entry, other: Entry, corpus: Corpus, cache_dir: Path) -> None:
    """What changes in each domain, length band or region, the largest change first."""
    classes = columns.rows(corpus, cache_dir, "", None).classes
    choices = [name for name in classes if len(classes[name][1]) > 1]
    if not choices:
        st.caption("This corpus has no column with groups and no texts.")
        return
    if st.session_state.get("compare_group_by", choices[0]) not in choices:
        del st.session_state["compare_group_by"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.selectbox("Change in each", choices, key="compare_group_by", persist_state="session", width=300)
        counted = SAMPLES
        if corpus.lengths is not None:
            counted = one_of(
                "Count",
                (SAMPLES, TOKENS),
                "compare_counted",
                persist_state="session",
                help="The unit of the columns *both*, *added* and *left out*. Shares always count rows.",
            )
    codes, names = classes[by]
    table = comparison.by_group(codes, names, first.selected, other.selected, corpus.lengths)
    overall = other.ratio - first.ratio
    still = (
        "no change" if abs(overall) < 5e-5 else f"{words.percent(overall, 1)}, because the selections differ in size"
    )
    st.caption(
        f"{other.letter} minus {first.letter}; over all rows {still}. By chance, 1 in 20 intervals of unchanged groups "
        "misses that."
    )
    _table(table, by, counted, first, other)


def _table(table, by: str, counted: str, first: Entry, other: Entry) -> None:
    points = [f"{words.signed(100 * value, 1)}" for value in table["change"]]
    spans = [
        f"{words.signed(100 * a, 1)} to {words.signed(100 * b, 1)}"
        for a, b in zip(table["low"], table["high"], strict=True)
    ]
    listed = table.assign(points=points, interval=spans, before=100 * table["before"], after=100 * table["after"])
    kinds = [name if counted == SAMPLES else f"tokens_{name}" for name in comparison.KINDS]
    st.dataframe(
        listed[["group", "points", "interval", "before", "after", "n", *kinds]],
        hide_index=True,
        lazy=False,
        height=tables.height(len(listed), GROUPS_AT_ONCE),
        alt=f"What changes in each {by}, the clearest change first",
        column_config={
            "group": st.column_config.TextColumn(by, width=122),
            "points": st.column_config.TextColumn("change", width=62, help="Percentage points of the group."),
            "interval": st.column_config.TextColumn("95 % interval", width=106),
            "before": st.column_config.NumberColumn(f"{first.letter} selects", format="%.1f %%", width=64),
            "after": st.column_config.NumberColumn(f"{other.letter} selects", format="%.1f %%", width=64),
            "n": st.column_config.NumberColumn(
                "n", format="localized", width=56, help="Rows of the group in the corpus."
            ),
            **{
                column: st.column_config.NumberColumn(
                    kind,
                    format="localized" if counted == SAMPLES else "compact",
                    width=58,
                    help=f"{ABOUT[kind].format(first=first.letter, second=other.letter)} Counted in {counted}.",
                )
                for kind, column in zip(comparison.KINDS, kinds, strict=True)
            },
        },
    )
