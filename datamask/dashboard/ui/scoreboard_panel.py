"""The scoreboard of the compared runs: measured on request in the background, kept, and shown at once next time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard import measuring, words
from datamask.dashboard.charts import scoreboard
from datamask.dashboard.comparison import Entry
from datamask.dashboard.ui import background, session
from datamask.dashboard.views import scoreboards
from datamask.runs.boards import read_board
from datamask.runs.store import Run

ABOUT = ("Each run is judged by what it was made for and by what it was not: all objectives, the effective number of "
         "different samples, copies, how well held-out text is predicted, and how far it moves from the corpus.")


def show(entries: Sequence[Entry], runs: Sequence[Run], corpus: Corpus, cache_dir: Path) -> None:
    """The stored scoreboard, or the way to it."""
    board = read_board(runs, corpus.fingerprint, cache_dir)
    if board is None:
        _missing(runs, corpus, cache_dir)
        return
    letters = {entry.run_id: (entry.letter, entry.label) for entry in entries}
    rows = scoreboards.rows(board, letters)
    st.markdown(f"**{words.plain(scoreboards.summary(rows, letters), 600)}**", help=ABOUT)
    if any(place.optimised for row in rows for place in row.places):
        st.caption("Hollow: the run was made by this measure, and is not praised for it. Lines are 95 % intervals; "
                   "rest the pointer on a picture for its numbers. "
                   "Whether two runs can be told apart is judged by their difference, sample by sample, not by whether "
                   "their lines overlap.")
    for note in board["notes"]:
        st.caption(f":material/info: {words.plain(note, 400)}")
    st.html(f"<style>{scoreboard.STYLE}</style>" + scoreboard.scoreboard(rows, session.dark()))
    if any(not row.places for row in rows):
        st.caption(words.plain(scoreboard.missing(rows), 600))
    with st.expander("All numbers"):
        st.dataframe(scoreboards.numbers(rows), hide_index=True, lazy=False, alt="Every number of the scoreboard",
                     column_config={name: st.column_config.NumberColumn(format="%.4g")
                                    for name in ("value", "from", "to")})


def _missing(runs: Sequence[Run], corpus: Corpus, cache_dir: Path) -> None:
    key = measuring.board_key(runs, corpus, cache_dir)
    with st.container(border=True):
        st.markdown("**How do they do on measures they were not made for?**")
        st.write(ABOUT + " Beside them stand a random subset and the best-quality rows of the same size.")
        if background.under_way(key):
            return
        background.ending(key)
        st.button("Measure these runs", key="measure_board", type="primary", icon=":material/leaderboard:",
                  on_click=measuring.start_board, args=(list(runs), corpus, cache_dir),
                  help="Seconds on thousands of samples, minutes on a hundred thousand. In the background; kept on "
                       "disk, so that it is there at once next time.")
