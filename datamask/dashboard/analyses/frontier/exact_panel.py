"""The exact λ for a wanted share of quality, and waiting for an answer of a live session with progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from datamask.config import SelectionConfig
from datamask.dashboard.analyses.frontier import form_panel, sweeping
from datamask.dashboard.analyses.frontier.tables import Line, Spot, below_random_words
from datamask.dashboard.analyses.lambda_slider import live
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import session
from datamask.dashboard.shell.presses import pressed
from datamask.errors import DatamaskError
from datamask.runs.varying import Plan, Point

if TYPE_CHECKING:
    from datamask.evaluation.lambda_path import Answer

AT_ONCE = 0.4
"""Seconds an answer is waited for before progress is shown."""


def offer(opened: OpenCorpus, line: Line, quality: float) -> None:
    """A button that solves between the stored points, and what it found, with a way to store it as a run.

    Only for curves whose solver is quick: pair-wise similarity and facility location by the relaxed estimator.
    """
    settings = line.settings
    free = not settings.ruled and settings.budget is None
    if settings.objective not in form_panel.LIVE or settings.estimator != "relaxed" or not free:
        return
    wanted = (line.key, quality)
    if pressed(
        "Find the exact λ",
        key="frontier_exact",
        icon=":material/target:",
        type="tertiary",
        help="Solves between the stored points for the smallest λ that keeps this share of the attainable "
        "quality. The first time the problem has to be prepared.",
    ):
        st.session_state["frontier_exact_found"] = (wanted, None)
    asked, answer = st.session_state.get("frontier_exact_found", (None, None))
    if asked != wanted:
        return
    if answer is None:
        behind = live.session(opened.corpus, settings, session.store().cache_dir)
        answer = waited(behind, lambda seconds: behind.keeping(quality, seconds))
        if answer is None:
            st.error(words.sentence(behind.error or "The solver was stopped."), icon=":material/error:")
            return
        # the session goes on solving and may answer finer later: what is read and stored must stay what it is
        answer = (answer.lamb, answer.quality, answer.diversity)
        st.session_state["frontier_exact_found"] = (wanted, answer)
    lamb, kept_quality, kept_diversity = answer
    st.markdown(
        f"**λ {lamb:g}** keeps {words.percent(kept_quality, 1)} of the attainable quality and "
        f"{words.percent(kept_diversity, 1)} of the attainable diversity."
    )
    warn_below_random(kept_quality, kept_diversity)
    store_button(opened, settings, lamb, stored(line, quality) is not None)


def warn_below_random(quality: float, diversity: float) -> None:
    """Say so where what is proposed is worse on a term than a random selection."""
    if warning := below_random_words(quality, diversity):
        st.warning(warning, icon=":material/warning:")


def stored(line: Line, quality: float) -> Spot | None:
    """The run of a curve at the exact λ that was found for this share; None: none was found, or it is not stored."""
    asked, answer = st.session_state.get("frontier_exact_found", (None, None))
    if asked != (line.key, quality) or answer is None:
        return None
    return next((spot for spot in line.spots if spot.lamb == answer[0]), None)


def store_button(opened: OpenCorpus, settings: SelectionConfig, lamb: float, done: bool = False) -> None:
    """A button that makes a stored run of a λ; where there is one already it says so."""
    if done:
        st.button(
            "Stored",
            key=f"stored_{lamb:g}",
            icon=":material/check:",
            disabled=True,
            help="The run at this λ is a point of the curve.",
        )
    elif pressed(
        "Store it as a run",
        key=f"store_{lamb:g}",
        icon=":material/add:",
        disabled=form_panel.working(opened),
        help="Selects at this λ and keeps it as a point of the frontier that opens on every page.",
    ):
        _store(opened, settings, lamb)
        # this stands in a fragment: only the whole page, drawn again, shows progress and waits for the point
        st.rerun()


def waited(behind: live.Session, ask: Callable[[float], Answer | None]) -> Answer | None:
    """An answer; progress is drawn while it takes long, and another input of the user ends the waiting."""
    answer = ask(AT_ONCE)
    if answer is not None:
        return answer
    place = st.empty()
    while answer is None and behind.alive:
        place.progress(min(behind.job.share, 1.0), text=words.plain(behind.job.message, 200))
        answer = ask(0.3)
    place.empty()
    return answer


def _store(opened: OpenCorpus, settings: SelectionConfig, lamb: float) -> None:
    try:
        points = (Point((("lamb", lamb),), replace(settings, lamb=lamb)),)
        plan = Plan(opened.config, points, sweeping.plan_name(points[0]))
        sweeping.start(session.runs_dir(), opened.corpus.fingerprint, [plan])
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
