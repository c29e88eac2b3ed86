"""The report of a run on the Export page: one click, one HTML file that opens anywhere without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.analyses.scoreboard import measuring
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.report import page, report
from datamask.dashboard.shell import background
from datamask.runs.store import Run

MEASURED_AT_ONCE = 4_000
"""Up to this many rows all objectives are measured while the report is made; more take longer than a click may."""


def show(run: Run, runs: Sequence[Run], corpus: Corpus | None, cache_dir: Path) -> None:
    """The card.

    Args:
        runs: others on the corpus, for the frontier and for names. corpus: the run's, where it is open, else None.
    """
    with st.container(border=True):
        description, taken = st.columns([2.6, 1], gap="large", vertical_alignment="center")
        with description:
            st.markdown("**A report to send**")
            st.caption(
                "One HTML page with the result in a sentence, the map, how it learned, which groups are starved "
                "or over-fed, values, texts near the threshold, settings and the command line. It opens without "
                "a network, holds no script, and prints."
            )
            scored = _scored(run, corpus, cache_dir)
        with taken:
            st.download_button(
                "Report, HTML",
                lambda: made(run, runs, corpus, cache_dir).encode(),
                on_click="ignore",
                file_name=f"{run.id}-report.html",
                mime="text/html",
                icon=":material/description:",
                width="stretch",
                key="report_html",
                help="Texts of your corpus are in it: look before you send it to strangers.",
            )
            if corpus is None:
                st.caption("Open its corpus to have map, groups and texts in it.")
            elif not scored:
                st.button(
                    "Measure it first",
                    key="report_measure",
                    icon=":material/leaderboard:",
                    width="stretch",
                    type="tertiary",
                    on_click=background.on_press(measuring.start_board),
                    args=([run], corpus, cache_dir, _sign(run)),
                    help="Adds the scoreboard: every measure, beside a random subset and the best-quality rows. "
                    "In the background, seconds to minutes; kept on disk.",
                )


def made(run: Run, runs: Sequence[Run], corpus: Corpus | None, cache_dir: Path) -> str:
    """The report, with all objectives where they are quick to measure and no scoreboard is stored."""
    values = None
    if corpus is not None and len(corpus) <= MEASURED_AT_ONCE and _board(run, cache_dir) is None:
        values = measuring.objective_values(run, corpus, cache_dir)
    return report(run, runs, corpus, cache_dir, values)


def _scored(run: Run, corpus: Corpus | None, cache_dir: Path) -> bool:
    """Whether a scoreboard is there or on its way."""
    board = _board(run, cache_dir)
    if board is not None:
        left = len(board.get("left", ()))
        st.caption(
            "The stored scoreboard is in it too."
            if not left
            else f"The stored part of the scoreboard is in it too; measures that are not there yet: {left}."
        )
        if not left:
            return True
    if corpus is None:
        return False
    key = measuring.board_key([run], corpus, cache_dir)
    if background.under_way(key):
        return True
    background.ending(key, "Stopped. What was measured is kept.")
    return False


def _sign(run: Run) -> Sign:
    link = {"run": run.id, **{name: st.query_params[name] for name in ("corpus",) if name in st.query_params}}
    return Sign(
        f"Scoreboard of {run.config.name or run.id}",
        "pages/export.py",
        link,
        "Stops within a second or two. What was measured is kept, and can be gone on with.",
    )


def _board(run: Run, cache_dir: Path) -> dict | None:
    return page.stored_board(run, str(run.facts().get("fingerprint") or ""), cache_dir)
