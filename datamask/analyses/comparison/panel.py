"""Of compared runs the overlap, values and settings."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from datamask.analyses.comparison import tables as comparison
from datamask.analyses.comparison.shares_chart import shares
from datamask.analyses.comparison.tables import Entry
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.map.layers import Category
from datamask.dashboard.runs import listing
from datamask.dashboard.runs.candidates import Refused
from datamask.dashboard.shell import session, tables
from datamask.dashboard.shell.plots import plot

SETTINGS_AT_ONCE, NAMED = 12, 5
REFUSED_AT_ONCE = 50


def draw_refused(refused: Sequence[Refused]) -> None:
    """The runs that cannot be compared here, each by its name and with the reason."""
    if not refused:
        return
    with st.expander(f"{len(refused):,} other run{'s' if len(refused) > 1 else ''} not offered here, and why"):
        for entry in refused[:REFUSED_AT_ONCE]:
            st.caption(f"**{words.named(listing.label_of(entry.run), 80)}**: {words.plain(entry.reason, 300)}.")
        if len(refused) > REFUSED_AT_ONCE:
            st.caption(f"and {len(refused) - REFUSED_AT_ONCE:,} more")


def overlaps(entries: Sequence[Entry]) -> None:
    """Overlap of every pair beside what chance gives; two runs get large numbers, more of them a table."""
    table = comparison.overlaps(entries)
    if len(table) == 1:
        pair = table.iloc[0]
        a, b = entries
        with st.container(horizontal=True, gap="medium"):
            for label, value, caption, help_ in (
                ("Overlap", words.percent(pair.overlap), f"by chance {words.percent(pair.chance)}", _about(pair)),
                ("Kept", words.count(pair.shared), "selected by both", None),
                ("Lost", words.count(pair.only_first), f"selected by {a.letter} only", None),
                ("Gained", words.count(pair.only_second), f"selected by {b.letter} only", None),
            ):
                with st.container(gap=None, width="content"):
                    st.metric(label, value, help=help_, width="content")
                    st.caption(caption)
        return
    st.markdown("**Overlap of each pair**", help=_about(None))
    pairs = pd.DataFrame(
        {
            "runs": table.pair,
            "overlap": 100 * table.overlap,
            "by chance": 100 * table.chance,
            "shared": table.shared,
            "only the first": table.only_first,
            "only the second": table.only_second,
        }
    )
    st.dataframe(
        pairs,
        hide_index=True,
        lazy=False,
        alt="Overlap of each pair of runs and its value by chance",
        column_config={
            "overlap": st.column_config.ProgressColumn(format="%.0f %%", min_value=0, max_value=100),
            "by chance": st.column_config.NumberColumn(format="%.0f %%"),
            **{name: st.column_config.NumberColumn(format="localized") for name in pairs.columns[3:]},
        },
    )


def _about(pair) -> str:
    text = (
        "Rows that both select, divided by the rows that at least one selects. By chance: two random selections of "
        "these sizes with the same pins, bans and quotas."
    )
    if pair is not None and pair.most < 1:
        text += f" Selections of these sizes overlap by at most {words.percent(pair.most)}."
    return text


def values(entries: Sequence[Entry], corpus: Corpus) -> None:
    """Quality, diversity, rows and tokens of each run."""
    table = comparison.values(entries)
    shares = pd.DataFrame(
        {
            "run": [words.middle(label, 22) for label in table.run],
            "quality": 100 * table.quality,
            "diversity": 100 * table.diversity,
            "rows": table.selected,
            **({} if corpus.lengths is None else {"tokens": comparison.tokens(entries, corpus.lengths)}),
            "mean quality": table.raw_quality,
            "raw diversity": table.raw_diversity,
        }
    )
    share = st.column_config.ProgressColumn(
        format="%.0f %%",
        min_value=0,
        max_value=100,
        width="small",
        help="0 % random, 100 % best found. Below 0 is worse than random.",
    )
    st.markdown("**Values**")
    st.dataframe(
        shares,
        hide_index=True,
        lazy=False,
        alt="Quality, diversity, rows and tokens of each run",
        column_config={
            "quality": share,
            "diversity": share,
            "run": st.column_config.TextColumn(width=150),
            "rows": st.column_config.NumberColumn(format="localized", width="small"),
            "tokens": st.column_config.NumberColumn(format="compact", width="small"),
            "mean quality": st.column_config.NumberColumn("mean quality score", format="%.4g", width=135),
            "raw diversity": st.column_config.NumberColumn(format="%.4g", width="small"),
        },
    )
    for sentence in comparison.caveats(entries):
        st.caption(words.plain(sentence, 400))


def categories(entries: Sequence[Entry], corpus: Corpus) -> None:
    """What share of each class every run selects, for a metadata column of the reader's choice."""
    names = [column.name for column in corpus.metadata_columns.values() if column.kind == "class"]
    if not names:
        return
    name = st.selectbox(
        "Selected share by",
        names,
        key="compare_category",
        persist_state="session",
        help="n: rows of the corpus with this value.",
    )
    table = comparison.by_category(entries, Category.of(name, corpus.metadata[name]))
    plot(
        shares(
            table, [entry.label for entry in entries], [entry.ratio for entry in entries], name, dark=session.dark()
        ),
        key="compare_shares",
        alt=f"Share of each {name} that each run selected",
    )


def settings(entries: Sequence[Entry]) -> None:
    """Only what differs; of more than two runs folded away, its names still to be read."""
    table = comparison.settings(entries)
    if table.empty:
        st.markdown("**Settings that differ**")
        st.caption("None: the settings and rows are equal.")
        return
    several = f" ({len(table)})" if len(table) > 1 else ""
    if len(entries) > 2:
        few = ", ".join(table["Setting"][:NAMED]) + (", …" if len(table) > NAMED else "")
        room: DeltaGenerator = st.expander(f"Settings that differ{several}: {words.plain(few, 300)}")
    else:
        st.markdown(f"**Settings that differ{several}**")
        room = st.container()
    room.dataframe(
        table,
        hide_index=True,
        lazy=False,
        height=tables.height(len(table), SETTINGS_AT_ONCE),
        alt="Settings that differ between the runs",
    )
