"""The scoreboard of the compared runs: measured on request in the background, kept, and shown at once next time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from datamask.analyses.comparison.tables import Entry
from datamask.analyses.scoreboard import measuring, tables
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.shell import background
from datamask.dashboard.shell import tables as heights
from datamask.runs.store import Run
from datamask.runs.stored_measures import stored_board

ROWS_AT_ONCE = 16
ABOUT = (
    "Measures each run by all objectives, the effective number of different rows, duplicates, prediction of held-out "
    "text, and the distance to the corpus."
)


def show(entries: Sequence[Entry], runs: Sequence[Run], corpus: Corpus, cache_dir: Path) -> None:
    """What is measured so far, and the way to the rest."""
    board = stored_board(runs, corpus.fingerprint, cache_dir).find()
    if board is None:
        with st.container(border=True):
            st.markdown("**How do the runs score on independent metrics?**")
            st.write(ABOUT + " Random rows and top-quality rows are measured too.")
            _rest(runs, corpus, cache_dir, "Measure these runs")
    elif board["left"]:
        _rest(runs, corpus, cache_dir, f"Measure the remaining {len(board['left'])}")
    working = background.working(measuring.board_key(runs, corpus, cache_dir))
    with st.container(key="live-board"):
        st.fragment(_drawn, run_every=1.0 if working else None)(entries, runs, corpus, cache_dir)


def sign_of(runs: Sequence[Run]) -> Sign:
    """How the menu names the measuring of these runs; Watch leads to this panel with these runs."""
    link = {"runs": ",".join(run.id for run in runs), "evidence_tab": "Independent metrics"}
    carried = {name: st.query_params[name] for name in ("corpus",) if name in st.query_params}
    return Sign(f"Independent metrics of {len(runs)} runs", "pages/evidence.py", {**link, **carried})


def _drawn(entries: Sequence[Entry], runs: Sequence[Run], corpus: Corpus, cache_dir: Path) -> None:
    board = stored_board(runs, corpus.fingerprint, cache_dir).find()
    if board is None:
        return
    letters = {entry.run_id: (entry.letter, entry.label) for entry in entries}
    rows = tables.rows(board, letters)
    summary = tables.summary(rows, letters)
    if board["left"]:
        there = len(rows) - len(board["left"])
        summary = f"{there} of {len(rows)} measures are ready. {summary}"
    st.markdown(f"**{words.plain(summary, 600)}**", help=ABOUT)
    st.dataframe(
        tables.table(rows),
        hide_index=True,
        lazy=False,
        height=heights.height(len(rows), ROWS_AT_ONCE),
        alt="Independent metrics of each run, with intervals",
    )
    st.caption(" ".join([tables.READING, *(words.plain(note, 400) for note in board["notes"])]))


def _rest(runs: Sequence[Run], corpus: Corpus, cache_dir: Path, label: str) -> None:
    """The measuring under way, or the button that starts it or goes on with it."""
    background.offer(
        measuring.board_key(runs, corpus, cache_dir),
        label,
        lambda: measuring.start_board(list(runs), corpus, cache_dir, sign_of(runs)),
        name="measure_board",
        icon=":material/leaderboard:",
        stopped="Stopped. Finished measures are kept.",
        type="primary",
    )
