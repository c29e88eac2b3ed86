"""The right side of the Data page: the open corpus at a glance."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.overview import tables
from datamask.analyses.overview.chart import quality_histogram
from datamask.corpus import Corpus
from datamask.dashboard.data.openings import Opening
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import cost
from datamask.dashboard.shell import background, session
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.plots import plot
from datamask.options.duplicates import duplicates_named

TABLE_HEIGHT = 340
ONWARD = (
    ("app.py", "Show on the map", ":material/scatter_plot:"),
    ("pages/frontier.py", "Show the frontier", ":material/show_chart:"),
)
"""Where else one goes from an open corpus: script, label, icon."""

NEAR_HELP = (
    "Rows with another row at cosine 0.95 or more. Of the diversity objectives, facility location gives them little "
    "credit; pair-wise similarity and DiSF do not avoid them."
)


def show(opening: Opening, corpus: Corpus) -> None:
    """The open corpus: tokens, quality, problems, first rows; the menu says how many rows.

    Args:
        opening: of the corpus; what is known of its copies changes while they are counted.
    """
    provenance = corpus.provenance
    session.all_openings().count_at_sight(opening)
    tokens, memory, copies = st.columns(3)
    if total := cost.token_total(corpus):
        with tokens, st.container(gap=None):
            st.metric("Tokens", words.short(total))
            st.caption(f"{total / len(corpus):,.0f} per row")
    with memory, st.container(gap=None):
        st.metric("Memory", words.size(corpus.nbytes))
        st.caption(f"{corpus.dim:,} dimensions")
    with copies, st.container(gap=None):
        _copies(opening, corpus)
    picture, remarks = st.columns([1.7, 1], gap="large")
    with picture:
        names = provenance.columns.get("quality") or ["quality"]
        label = " + ".join([names] if isinstance(names, str) else names)
        st.markdown("**Quality scores**")
        plot(
            quality_histogram(tables.quality_histogram(corpus), label=label),
            key="quality_histogram",
            alt=f"Histogram of {label} over {len(corpus):,} rows",
        )
    with remarks:
        with st.container(gap=None):
            views.page_link("pages/runs.py", "**Select from this corpus**")
            for script, label, icon in ONWARD:
                views.page_link(script, label, icon)
        st.markdown("**Notes**")
        _problems(corpus)
    st.markdown("**First rows**")
    table = tables.first_rows(corpus)
    st.dataframe(
        table,
        hide_index=True,
        height=TABLE_HEIGHT,
        lazy=False,
        alt="The first rows of the corpus",
        column_config={
            table.columns[0]: st.column_config.TextColumn(width="medium"),
            "quality": st.column_config.NumberColumn("quality score", format="%.3f"),
        },
    )
    st.caption(f"The first {min(tables.FIRST_ROWS, len(corpus))} rows. Corpus fingerprint: {corpus.fingerprint[:12]}.")


def _copies(opening: Opening, corpus: Corpus) -> None:
    copies, job = opening.copies, opening.counting
    near = words.percent(copies.near, 1) if copies.near is not None else "–"
    st.metric("Semantic duplicates", near, help=NEAR_HELP)
    if copies.exact is not None:
        st.caption(f"{copies.exact:,} {duplicates_named('exact', corpus.provenance.columns)}")
    if copies.near is None:
        background.offer(
            "" if job is None else job.key,
            "Count duplicates",
            lambda: session.all_openings().count_copies(opening),
            name="count_copies",
            icon=":material/search:",
            stopped="Counting was stopped.",
            look=background.Look(beneath=True, every=1.0, over=lambda: opening.copies.exact != copies.exact),
            type="tertiary",
        )
        return
    st.caption(f"Removing them drops {words.percent(copies.removed, 1)} of the rows")
    if copies.recall < 1:
        st.caption(f"Approximate: finds {words.percent(copies.recall, 1)} of the nearest rows")


def _problems(corpus: Corpus) -> None:
    provenance = corpus.provenance
    if constant := tables.constant_quality(corpus):
        st.warning(words.plain(constant, 300), icon=":material/warning:")
    table = tables.problems(corpus)
    if len(table):
        st.dataframe(
            table,
            hide_index=True,
            lazy=False,
            alt="Skipped rows by reason",
            column_config={"rows": st.column_config.NumberColumn(format="localized")},
        )
    if len(corpus) < provenance.total_rows and provenance.rows_read < provenance.total_rows:
        st.caption(f"A uniform sample of {provenance.rows_read:,} of {provenance.total_rows:,} rows.")
    for note in provenance.notes:
        st.caption(words.plain(note, 400))
