"""The scoreboard of the compared runs: measured on request in the background, kept, and shown at once next time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.analyses.comparison.tables import Entry
from datamask.dashboard.analyses.scoreboard import chart, measuring, tables
from datamask.dashboard.drawing import words
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.shell import background, session
from datamask.runs.store import Run
from datamask.runs.stored_measures import read_board

ABOUT = (
    "Each run is judged by what it was made for and by what it was not: all objectives, the effective number of "
    "different samples, copies, how well held-out text is predicted, and how far it moves from the corpus."
)

STOPS = "Stops within a second or two. What was measured is kept, and can be gone on with."


def show(entries: Sequence[Entry], runs: Sequence[Run], corpus: Corpus, cache_dir: Path) -> None:
    """What is measured so far, and the way to the rest."""
    board = read_board(runs, corpus.fingerprint, cache_dir)
    if board is None:
        with st.container(border=True):
            st.markdown("**How do they do on measures they were not made for?**")
            st.write(ABOUT + " Beside them stand a random subset and the best-quality rows of the same size.")
            _rest(runs, corpus, cache_dir, "Measure these runs")
    elif board["left"]:
        _rest(runs, corpus, cache_dir, f"Measure the {len(board['left'])} that are left")
    working = background.working(measuring.board_key(runs, corpus, cache_dir))
    with st.container(key="live-board"):
        st.fragment(_drawn, run_every=1.0 if working else None)(entries, runs, corpus, cache_dir)


def sign_of(runs: Sequence[Run]) -> Sign:
    """How the menu names the measuring of these runs; Watch leads to this panel with these runs."""
    link = {"runs": ",".join(run.id for run in runs), "view": "scoreboard"}
    carried = {name: st.query_params[name] for name in ("corpus",) if name in st.query_params}
    return Sign(f"Scoreboard of {len(runs)} runs", "pages/evidence.py", {**link, **carried}, STOPS)


def _drawn(entries: Sequence[Entry], runs: Sequence[Run], corpus: Corpus, cache_dir: Path) -> None:
    board = read_board(runs, corpus.fingerprint, cache_dir)
    if board is None:
        return
    letters = {entry.run_id: (entry.letter, entry.label) for entry in entries}
    rows = tables.rows(board, letters)
    summary = tables.summary(rows, letters)
    if board["left"]:
        there = len(rows) - len(board["left"])
        summary = f"So far {there} of {len(rows)} measures are there. {summary}"
    st.markdown(f"**{words.plain(summary, 600)}**", help=ABOUT)
    if any(place.optimised for row in rows for place in row.places):
        st.caption(
            "Hollow: the run was made by this measure, and is not praised for it. Lines are 95 % intervals; "
            "rest the pointer on a picture for its numbers. "
            "Whether two runs can be told apart is judged by their difference, sample by sample, not by whether "
            "their lines overlap."
        )
    for note in board["notes"]:
        st.caption(words.plain(note, 400))
    st.html(f"<style>{chart.STYLE}</style>" + chart.scoreboard(rows, session.dark()))
    missing = chart.missing(rows)
    if missing:
        st.caption(words.plain(missing, 600))
    with st.expander("All numbers"):
        st.dataframe(
            tables.numbers(rows),
            hide_index=True,
            lazy=False,
            alt="Every number of the scoreboard",
            column_config={name: st.column_config.NumberColumn(format="%.4g") for name in ("value", "from", "to")},
        )


def _rest(runs: Sequence[Run], corpus: Corpus, cache_dir: Path, label: str) -> None:
    """The measuring under way, or the button that starts it or goes on with it."""
    key = measuring.board_key(runs, corpus, cache_dir)
    if background.under_way(key):
        return
    background.ending(key, "Stopped. What was measured is kept.")
    st.button(
        label,
        key="measure_board",
        type="primary",
        icon=":material/leaderboard:",
        on_click=background.on_press(measuring.start_board),
        args=(list(runs), corpus, cache_dir, sign_of(runs)),
        help="Seconds on thousands of samples, minutes on hundreds of thousands. In the background; each measure "
        "shows as soon as it is there and is kept on disk.",
    )
