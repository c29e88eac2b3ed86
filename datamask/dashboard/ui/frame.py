"""The frame of every page: menu, open corpus and whatever is running on the left, the page's question on top."""

from __future__ import annotations

import numpy as np
import streamlit as st
from PIL import Image

from datamask.dashboard import words
from datamask.dashboard.garbage import settled
from datamask.dashboard.openings import Opening
from datamask.dashboard.signs import signed
from datamask.dashboard.ui import address, session
from datamask.dashboard.views import listing

PAGES: tuple[tuple[str, str, str], ...] = (
    ("app.py", "Home", ":material/database:"),
    ("pages/run.py", "Run", ":material/play_circle:"),
    ("pages/explore.py", "Explore", ":material/scatter_plot:"),
    ("pages/frontier.py", "Frontier", ":material/show_chart:"),
    ("pages/which_lambda.py", "Which lambda", ":material/balance:"),
    ("pages/compare.py", "Compare", ":material/compare_arrows:"),
    ("pages/export.py", "Export", ":material/download:"),
)
"""Script, label and icon of each page, in the order of the menu. No help texts: their bubbles would stay after the
click and cover the next link; every page begins with its question."""

KEPT = ((0, 0), (2, 0), (1, 1), (0, 2))
"""Which of nine samples the mark shows as selected: (column, row)."""

SIDEBAR_WIDTH = 248

LISTED = 3
"""Runs under way that the menu shows one by one; how many more there are stands below them."""

STYLE = """<style>
[data-testid="stMainBlockContainer"] {padding-left: 3rem; padding-right: 3rem}
[class*="st-key-live"] [data-stale="true"] {opacity: 1; transition: none}
[data-testid="stPageLink"] a:focus-visible {outline: 2px solid currentColor; outline-offset: -2px}
</style>"""
"""What the theme has no option for: room for the pictures; nothing that is redrawn every second may turn pale
meanwhile; and the keyboard's place in the menu must not look like the page one is on. Pages work without it."""


def _mark() -> str:
    """Nine samples, four of them kept, and the name, as SVG; its two tones read on a light and on a dark ground."""
    dots = "".join(
        f'<circle cx="{5 + 9 * x}" cy="{5 + 9 * y}" r="3.3" fill="#2B86C5"/>'
        if (x, y) in KEPT
        else f'<circle cx="{5 + 9 * x}" cy="{5 + 9 * y}" r="2.7" fill="none" stroke="#8A949E" stroke-width="1.2"/>'
        for x in range(3)
        for y in range(3)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="148" height="28" viewBox="0 0 148 28">'
        + dots
        + '<text x="37" y="20" font-family="system-ui, sans-serif" font-size="19" font-weight="600" '
        'fill="#2B86C5">datamask</text></svg>'
    )


def _favicon() -> Image.Image:
    """The mark without its name, 60 by 60. Drawn here, because an icon by name would be fetched from the web."""
    y, x = np.mgrid[0:60, 0:60]
    picture = np.zeros((60, 60, 4), np.uint8)
    for column in range(3):
        for row in range(3):
            distance = np.hypot(x - (10 + 20 * column), y - (10 + 20 * row))
            selected = (column, row) in KEPT
            picture[(distance < 8.5) if selected else (distance < 7) & (distance > 4.5)] = (
                (43, 134, 197, 255) if selected else (138, 148, 158, 255)
            )
    return Image.fromarray(picture)


def frame(title: str, question: str) -> None:
    """Draw what every page shares. Call it first: it sets the page's configuration.

    Args:
        title: the page's name, as in the menu and the browser's tab.
        question: the one question the page answers, drawn on top.
    """
    settled()
    st.set_page_config(
        page_title=f"{title} · datamask", page_icon=_favicon(), layout="wide", initial_sidebar_state=SIDEBAR_WIDTH
    )
    st.html(STYLE)
    st.logo(_mark(), size="large")
    address.follow(title)
    opening = session.current_opening()
    with st.sidebar:
        with st.container(gap="xxsmall"):
            for script, label, icon in PAGES:
                st.page_link(script, label=label, icon=icon, query_params=session.link_parameters(), width="stretch")
        with st.container(gap="xxsmall"):
            _corpus(opening)
        _running()
    st.title(question, anchor=False)
    trouble = st.session_state.pop("trouble", None)
    if trouble:
        st.warning(words.sentence(trouble))


def _corpus(opening: Opening | None) -> None:
    st.caption("Corpus")
    if opening is None:
        st.markdown("None open yet")
    elif (corpus := opening.corpus) is not None:
        st.markdown(
            f"**{words.plain(opening.title, 60)}**  \n"
            f"{words.of_total(len(corpus), corpus.provenance.total_rows)}  \n{corpus.dim:,} dimensions"
        )
    elif opening.under_way:
        st.markdown(f"**{words.plain(opening.title, 60)}**")
        st.fragment(_opening_live, run_every=1.0)(opening.key)
    else:
        st.markdown(f"**{words.plain(opening.title, 60)}**  \nnot open: {opening.job.state}")


def _opening_live(key: str) -> None:
    opening = session.all_openings().get(key)
    if opening is None or not opening.under_way:
        st.rerun()
    st.progress(min(opening.job.share, 1.0), text="opening …")


def _running() -> None:
    long_work = signed()
    # the run that a sweep computes now is a line in the sweep's block: two Stops would leave open which one ends what
    busy = listing.apart(
        listing.running(session.store(), session.run_queue()),
        [sweep for job in long_work for sweep in job.sign.sweeps],
        [run_id for job in long_work for run_id in job.sign.runs],
    )
    if busy or long_work:
        with st.container(gap="xxsmall"):
            st.caption("Running")
            # those at work first: a queue may be long
            busy.sort(key=lambda job: job.state != "running")
            with st.container(key="live"):
                if long_work:
                    st.fragment(_signed_live, run_every=1.0)(tuple((job.key, job.sign.arrived()) for job in long_work))
                if busy:
                    st.fragment(_running_live, run_every=1.0)(tuple(job.run_id for job in busy[:LISTED]))
            if len(busy) > LISTED:
                st.caption(f"and {len(busy) - LISTED:,} more")


def _signed_live(drawn: tuple[tuple[str, int], ...]) -> None:
    """Long work that is no run; once one of them ends, or more of it has come, the whole page is drawn again."""
    settled()
    jobs = {(job.key, job.sign.arrived()): job for job in signed()}
    if set(jobs) != set(drawn):
        st.rerun()
    for key, arrived in drawn:
        job = jobs[key, arrived]
        with st.container(gap="xxsmall"):
            st.markdown(f"**{words.plain(job.sign.title, 40)}**")
            progress = [words.percent(job.share), words.soon(job.left)]
            st.progress(min(max(job.share, 0.0), 1.0), text=", ".join(filter(None, progress)))
            if job.sign.sweeps:
                st.caption(words.plain(job.message, 80))
            with st.container(horizontal=True):
                if st.button(
                    "Watch",
                    key=f"watch_{key}",
                    icon=":material/show_chart:",
                    type="tertiary",
                    help="Goes to the page that shows it.",
                ):
                    address.take_again()
                    st.switch_page(job.sign.page, query_params={**session.link_parameters(), **job.sign.link})
                st.button(
                    "Stop",
                    key=f"halt_{key}",
                    icon=":material/stop:",
                    type="tertiary",
                    on_click=job.stop,
                    help=job.sign.stops,
                )


def _running_live(drawn: tuple[str, ...]) -> None:
    """The jobs that were under way when the page was drawn; once one of them ends, the whole page is drawn again."""
    settled()
    busy = {job.run_id: job for job in listing.running(session.store(), session.run_queue(), only=drawn)}
    if set(busy) != set(drawn):
        st.rerun()
    for run_id in drawn:
        job = busy[run_id]
        with st.container(gap="xxsmall"):
            st.markdown(f"**{words.plain(job.name, 40)}**")
            st.progress(min(max(job.share, 0.0), 1.0), text=words.plain(job.sentence))
            with st.container(horizontal=True):
                if st.button(
                    "Watch",
                    key=f"watch_{run_id}",
                    icon=":material/show_chart:",
                    type="tertiary",
                    help="Goes to this run's curve.",
                ):
                    st.switch_page("pages/run.py", query_params={**session.link_parameters(), "run": run_id})
                st.button(
                    "Stop",
                    key=f"halt_{run_id}",
                    icon=":material/stop:",
                    type="tertiary",
                    on_click=session.stop_run,
                    args=(run_id,),
                    help="Stops within a second. What was learned is kept and can be resumed.",
                )
