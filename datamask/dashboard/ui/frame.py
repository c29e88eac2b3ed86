"""The frame of every page: menu, open corpus and whatever is running on the left, the page's question on top."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from datamask.dashboard import words
from datamask.dashboard.openings import Opening
from datamask.dashboard.ui import session
from datamask.dashboard.views import listing

ROOT = Path(__file__).resolve().parents[3]

PAGES: tuple[tuple[str, str, str, str], ...] = (
    ("app.py", "Home", ":material/database:", "Which corpus? Open the sample or your own shards."),
    ("pages/run.py", "Run", ":material/play_circle:", "How does the learner choose? Set, start and watch a run."),
    ("pages/explore.py", "Explore", ":material/scatter_plot:", "What was selected? The map of quality and diversity."),
    ("pages/compare.py", "Compare", ":material/compare_arrows:", "What differs between runs?"),
    ("pages/export.py", "Export", ":material/download:", "Take the selection home: ids, rows or masks."),
)
"""Script, label, icon and help of each page, in the order of the menu."""

MARK = """<svg xmlns="http://www.w3.org/2000/svg" width="148" height="28" viewBox="0 0 148 28">
<g fill="#2B86C5"><circle cx="5" cy="6" r="3.2"/><circle cx="14" cy="14" r="3.2"/><circle cx="23" cy="6" r="3.2"/>
<circle cx="5" cy="22" r="3.2"/></g><g fill="none" stroke="#8A949E" stroke-width="1.3"><circle cx="14" cy="6" r="2.6"/>
<circle cx="5" cy="14" r="2.6"/><circle cx="23" cy="14" r="2.6"/><circle cx="14" cy="22" r="2.6"/>
<circle cx="23" cy="22" r="2.6"/></g><text x="36" y="20.5" font-family="Source Sans, Source Sans Pro, sans-serif"
font-size="20" font-weight="600" fill="#2B86C5">datamask</text></svg>"""
"""Nine samples, four of them kept, and the name; its two tones read on light and on dark."""


def frame(title: str, question: str) -> None:
    """Draw what every page shares. Call it first: it sets the page's configuration.

    Args:
        title: the page's name, as in the menu and the browser's tab.
        question: the one question the page answers, drawn on top.
    """
    st.set_page_config(page_title=f"{title} · datamask", page_icon=":material/grain:", layout="wide",
                       initial_sidebar_state="expanded")
    st.logo(MARK, size="large")
    opening = session.current_opening()
    with st.sidebar:
        with st.container(gap=None):
            for script, label, icon, about in PAGES:
                if (ROOT / script).exists():
                    st.page_link(script, label=label, icon=icon, help=about, query_params=session.link_parameters(),
                                 width="stretch")
        st.space("xsmall")
        _corpus(opening)
        st.space("xsmall")
        _running()
    st.title(question, anchor=False)


def _corpus(opening: Opening | None) -> None:
    st.caption("Corpus")
    if opening is None:
        st.markdown("None open yet")
    elif opening.state == "ready":
        corpus = opening.corpus
        st.markdown(f"**{words.plain(opening.title, 60)}**  \n"
                    f"{words.of_total(len(corpus), corpus.provenance.total_rows)}  \n{corpus.dim:,} dimensions")
    elif opening.state == "opening":
        st.markdown(f"**{words.plain(opening.title, 60)}**  \nopening …")
    else:
        st.markdown(f"**{words.plain(opening.title, 60)}**  \nnot open: {opening.state}")


def _running() -> None:
    busy = listing.running(session.store(), session.office())
    if busy:
        st.caption("Running")
        st.fragment(_running_live, run_every=1.0)(tuple(job.run_id for job in busy))


def _running_live(drawn: tuple[str, ...]) -> None:
    """The jobs that were under way when the page was drawn; once one of them ends, the whole page is drawn again."""
    busy = {job.run_id: job for job in listing.running(session.store(), session.office(), only=drawn)}
    if set(busy) != set(drawn):
        st.rerun()
    for run_id in drawn:
        job = busy[run_id]
        st.page_link("pages/run.py", label=job.name, icon=":material/show_chart:", width="stretch",
                     query_params={**session.link_parameters(), "run": run_id})
        st.progress(min(max(job.share, 0.0), 1.0), text=words.plain(job.sentence))
        if job.stoppable:
            st.button("Stop", key=f"stop_{run_id}", icon=":material/stop:", on_click=session.office().stop,
                      args=(run_id,), help="Stops within a second. What was learned is kept and can be resumed.")
