"""The report of a run on the Export page: one click, one HTML file that opens anywhere without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from datamask.analyses.report import page, report
from datamask.analyses.scoreboard import measuring
from datamask.corpus import Corpus
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.shell import background
from datamask.runs.store import Run

MEASURED_AT_ONCE = 4_000
"""Up to this many rows all objectives are measured while the report is made; more take longer than a click may."""


def show(run: Run, runs: Sequence[Run], corpus: Corpus | None, cache_dir: Path) -> None:
    """The card.

    Args:
        runs: others on the corpus, for the frontier and for names. corpus: the run's, where it is open, else None.
    """
    with st.container(border=True, height="stretch"):
        st.markdown(
            "**Report**",
            help="One HTML page. It contains texts of your corpus, so check them before you share it.",
        )
        board = _board(run, cache_dir)
        left = len(board.get("left", ())) if board is not None else 0
        if left:
            st.caption(f"Includes the stored part of the scoreboard. Not measured yet: {left}.")
        elif board is not None:
            st.caption("Includes the independent metrics.")
        st.space("stretch")
        if corpus is None:
            st.caption("Open the corpus of this run to add its map, groups and texts.")
        elif board is None or left:
            background.offer(
                measuring.board_key([run], corpus, cache_dir),
                "Add independent metrics",
                lambda: measuring.start_board([run], corpus, cache_dir, _sign(run)),
                name="report_measure",
                icon=":material/leaderboard:",
                stopped="Stopped. Finished measures are kept.",
                width="stretch",
                type="tertiary",
            )
        st.download_button(
            "Download report (HTML)",
            lambda: made(run, runs, corpus, cache_dir).encode(),
            on_click="ignore",
            file_name=f"{run.id}-report.html",
            mime="text/html",
            icon=":material/description:",
            width="stretch",
            key="report_html",
        )


def made(run: Run, runs: Sequence[Run], corpus: Corpus | None, cache_dir: Path) -> str:
    """The report, with all objectives where they are quick to measure and no scoreboard is stored."""
    values = None
    if corpus is not None and len(corpus) <= MEASURED_AT_ONCE and _board(run, cache_dir) is None:
        values = measuring.objective_values(run, corpus, cache_dir)
    return report(run, runs, corpus, cache_dir, values)


def _sign(run: Run) -> Sign:
    link = {"run": run.id, **{name: st.query_params[name] for name in ("corpus",) if name in st.query_params}}
    return Sign(
        f"Scoreboard of {run.config.name or run.id}",
        "pages/export.py",
        link,
    )


def _board(run: Run, cache_dir: Path) -> dict | None:
    return page.latest_board(run, str(run.facts().get("fingerprint") or ""), cache_dir)
