"""Stability: which rows of a run are settled, by its proof or selected again on random parts of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import streamlit as st

from datamask.analyses.comparison.tables import Entry
from datamask.analyses.scoreboard import measuring
from datamask.analyses.scoreboard.chart import agreement
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.linked import settled_rows
from datamask.dashboard.linked.settled_rows import FLIP, PARTS, Agreed
from datamask.dashboard.map import scene
from datamask.dashboard.map.hexagons import Hexagons
from datamask.dashboard.map.layers import Blank, Layer
from datamask.dashboard.map.scene import RunColumns
from datamask.dashboard.shell import background, downloads, tables
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.option_control import one_of
from datamask.dashboard.shell.plots import plot
from datamask.evaluation.result import NO_RESULT
from datamask.runs.store import Run
from datamask.runs.stored_measures import stored_agreement

SHOWN, LISTED = 100, 8
"""Coin-flips listed on the page, and how many of them without scrolling; the download has all of them."""

ABOUT = (
    f"Repeats the run on {PARTS} random subsets of the corpus, each with 80 % of the rows. A stable row is "
    "selected in at least 90 % of the subsets that contain it, an unstable row in "
    f"{words.percent(FLIP[0])} to {words.percent(FLIP[1])}."
)

NAMES = (settled_rows.BY_PROOF, settled_rows.BY_PARTS)
"""What the map can be colored by."""


def read(run: Run, selected: np.ndarray, corpus: Corpus, cache_dir: Path) -> Agreed | None:
    """What is stored about a run; None: not computed yet.

    Args:
        selected: bool ``(N,)``, the run's own rows.
    """
    stored = stored_agreement(run, corpus.fingerprint, cache_dir).find_again()
    if stored is None or len(stored[0]) != len(corpus):
        return None
    return settled_rows.agreed(*stored, selected)


def layer(name: str, run: Run, columns: RunColumns, corpus: Corpus, cache_dir: Path, cells: Hexagons | None) -> Layer:
    """One of `NAMES` as a layer; a blank panel with the reason where the run has no such thing."""
    config = run.config.selection
    if name == settled_rows.BY_PROOF:
        if columns.settled is None or not (columns.settled >= 0).any():
            reason = settled_rows.no_proof(config, run.status().result or NO_RESULT)
            return Blank(settled_rows.title_of(name), reason)
        return settled_rows.layer(name, settled_rows.proof_codes(columns.settled, columns.eligible), cells)
    found = read(run, columns.selected, corpus, cache_dir)
    if found is None:
        reason = settled_rows.never(config) or "not computed yet; see Stability on the Evidence page"
        return Blank(settled_rows.title_of(name), reason)
    return settled_rows.layer(name, settled_rows.part_codes(found), cells)


def show(entries: Sequence[Entry], runs: Sequence[Run], corpus: Corpus, cache_dir: Path) -> None:
    """Numbers, distribution and coin-flips of one of the compared runs."""
    labels = {entry.letter: entry for entry in entries}
    letter = "A"
    if len(labels) > 1 and st.session_state.get("compare_agreement", "A") in labels:
        names = {name: words.named(entry.label, 60) for name, entry in labels.items()}
        letter = one_of("Stability of", names, "compare_agreement")
    entry, run = labels[letter], runs[list(labels).index(letter)]
    found = read(run, entry.selected, corpus, cache_dir)
    if found is None:
        _missing(run, runs, entry, corpus, cache_dir)
        return
    numbers, picture = st.columns([1, 1.5], gap="large")
    with numbers:
        with st.container(horizontal=True, gap="small"):
            for label, mask, caption in (
                ("Stable rows", found.core, "in at least 9 of 10 subsets"),
                ("Unstable rows", found.flips, "in 3 to 7 of 10 subsets"),
            ):
                with st.container(gap=None, width="content"):
                    st.metric(label, words.count(mask.sum()), width="content", help=ABOUT)
                    st.caption(caption)
        inside = int((found.flips & entry.selected).sum())
        st.markdown(
            f"{words.percent(found.kept)} of the rows selected by {letter} are stable. A subset that contains a "
            f"selected row selects it again in {words.percent(found.repeated)} of cases. {letter} selects "
            f"{inside:,} of the {int(found.flips.sum()):,} unstable rows."
        )
        colored = {**views.address_of_run(run.id), "colour": settled_rows.BY_PARTS}
        views.page_link("app.py", "Show on the map", address=colored)
    with picture:
        plot(
            agreement(found, entry.selected),
            key="compare_agreement_chart",
            alt="Rows by the share of random subsets that select them",
        )
        st.caption("Rows that almost all or almost no subsets select are not drawn.")
    _flips(found, entry, corpus)


def _flips(found: Agreed, entry: Entry, corpus: Corpus) -> None:
    rows = np.flatnonzero(found.flips)
    if not len(rows):
        st.caption("There is no unstable row: subsets almost always or almost never select each row.")
        return
    rows = rows[np.argsort(np.abs(found.share[rows] - 0.5), kind="stable")]
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        st.markdown(
            (
                "**Unstable rows**, nearest to one half "
                f"first{(f', {SHOWN} of {len(rows):,}' if len(rows) > SHOWN else '')}"
            ),
            width="content",
        )
        st.download_button(
            f"Download {len(rows):,} ids (CSV)",
            downloads.of_rows(len(rows), lambda: scene.id_file(corpus, rows, ".csv", entry.selected)),
            file_name=f"coin-flips-{entry.run_id}.csv",
            mime="text/csv",
            on_click="ignore",
            key="compare_flips_csv",
            icon=":material/download:",
        )
    listed = rows[:SHOWN]
    table = scene.sample_table(corpus, listed)
    table = table.add_column(0, "parts", [100 * found.share[listed]]).add_column(
        1, "selected", [entry.selected[listed]]
    )
    st.dataframe(
        table,
        hide_index=True,
        lazy=False,
        height=tables.height(len(listed), LISTED),
        alt="Unstable rows, nearest to one half first",
        column_config={
            "parts": st.column_config.NumberColumn(
                "parts", format="%.0f %%", width="small", help="Share of the subsets that select the row."
            ),
            "selected": st.column_config.CheckboxColumn(width="small"),
            "text": st.column_config.TextColumn("text", width=370),
            "quality": st.column_config.NumberColumn("quality score", format="%.4g", width="small"),
        },
    )


def _missing(run: Run, runs: Sequence[Run], entry: Entry, corpus: Corpus, cache_dir: Path) -> None:
    with st.container(border=True):
        st.markdown(f"**Is the selection of {entry.letter} stable across subsets?**")
        st.write(ABOUT)
        if reason := settled_rows.never(run.config.selection):
            st.caption(f"Not available for this run: {reason}.")
            return
        link = {name: st.query_params[name] for name in ("corpus",) if name in st.query_params}
        link |= {"runs": ",".join(other.id for other in runs), "evidence_tab": "Stability"}
        sign = Sign(f"Stability of {run.config.name or run.id}", "pages/evidence.py", link)
        background.offer(
            measuring.agreement_key(run, corpus),
            f"Repeat on {PARTS} subsets",
            lambda: measuring.start_agreement(run, corpus, cache_dir, sign),
            name="measure_agreement",
            icon=":material/casino:",
            cost=f"Takes about {PARTS} times as long as the run.",
            type="primary",
        )
