"""The report of a run on the Export page: one click, one HTML file that opens anywhere without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from datamask.analyses.report import page, report
from datamask.analyses.scoreboard import measuring
from datamask.corpus import Corpus
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.shell import background
from datamask.pages.export import lines_panel
from datamask.pages.export.lines_panel import File
from datamask.runs.store import Run


def show(run: Run, runs: Sequence[Run], corpus: Corpus | None, cache_dir: Path) -> None:
    """The line of the report, and the button that adds measures to it.

    Args:
        runs: others on the corpus, for the frontier and for names. corpus: the run's, where it is open, else None.
    """
    board = _board(run, cache_dir)
    left = len(board.get("left", ())) if board is not None else 0
    content = "texts, groups and the map" if corpus is not None else "no texts: open the corpus to add them"
    if board is not None:
        content += f"; independent metrics{f', {left} not measured yet' if left else ''}"
    draw(f"{run.id}-report.html", content, lambda: report(run, runs, corpus, cache_dir).encode())
    if corpus is not None and (board is None or left):
        background.offer(
            measuring.board_key([run], corpus, cache_dir),
            "Add independent metrics",
            lambda: measuring.start_board([run], corpus, cache_dir, _sign(run)),
            name="report_measure",
            icon=":material/leaderboard:",
            stopped="Stopped. Finished measures are kept.",
            type="tertiary",
        )


def draw(name: str, content: str, make: Callable[[], bytes]) -> None:
    """The line of a report.

    Args:
        name: of the file. content: what it has beside numbers and settings. make: writes it.
    """
    about = f"One HTML page with {content}. It may contain texts of your corpus: check them before you share it."
    lines_panel.line("report_html", "Report", about, "", [File("HTML", name, "text/html", make)])


def _sign(run: Run) -> Sign:
    link = {"run": run.id, **{name: st.query_params[name] for name in ("corpus",) if name in st.query_params}}
    return Sign(
        f"Scoreboard of {run.config.name or run.id}",
        "pages/export.py",
        link,
    )


def _board(run: Run, cache_dir: Path) -> dict | None:
    return page.latest_board(run, str(run.facts().get("fingerprint") or ""), cache_dir)
