"""Crowding and a layout under way: started by themselves, with progress and a stop, drawn in a fragment."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from datamask.corpus import Corpus
from datamask.corpus.projections import DEFAULT, PROJECTIONS, STAND_IN
from datamask.corpus.projections.layouts import Layout
from datamask.dashboard.map import map_layout
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import background, session
from datamask.work.job import Job
from datamask.work.worker import worker


def layout_control(key: str) -> str:
    """The control that chooses a projection; its name."""
    about = " ".join(kind.about for kind in PROJECTIONS.values())
    return st.segmented_control(
        "Layout",
        list(PROJECTIONS),
        default=DEFAULT,
        required=True,
        key=key,
        persist_state="session",
        help=about,
    )


def prepare(corpus: Corpus, cache_dir: Path, wanted: str) -> None:
    """Start what is missing where it may start by itself, and draw how it stands; nothing once all is there.

    It waits for the user on a large corpus, after it was stopped or has failed, and while a run needs the cores. One
    layout is computed at a time: a second waits for the first.

    Args:
        wanted: name of the projection.
    """
    key = map_layout.key_of(corpus)
    had_crowding = map_layout.crowding(corpus, cache_dir) is not None
    what, meanwhile = _words(wanted)
    why = ""
    if not background.working(key):
        if had_crowding and map_layout.layout(corpus, cache_dir, wanted) is not None:
            return
        job = worker().find(key)
        if job is not None and (job.state == "done" or job.about != wanted):
            # done and not there: the cache was emptied since; how another layout ended says nothing of this one
            worker().forget(key)
        if len(corpus) > map_layout.BY_ITSELF:
            why = f"{what} of {len(corpus):,} rows takes many minutes."
        elif listing.running(session.store(), session.run_queue()):
            why = f"{what} waits for a run to end."
        elif worker().find(key) is None:
            map_layout.start(corpus, cache_dir, wanted)

    def find() -> Layout | None:
        crowded = map_layout.crowding(corpus, cache_dir) is not None
        return map_layout.layout(corpus, cache_dir, wanted) if crowded else None

    def says(job: Job) -> str:
        if PROJECTIONS[wanted].at_once is None and map_layout.layout(corpus, cache_dir, wanted) is None:
            after = f", then {wanted}" if str(job.about) != wanted else ""
            text = f"The map shows {STAND_IN.name} for now. Next: {job.about}{after}."
        else:
            text = f"{job.about} is being computed."
        return f"{text} {background.message(job)}"

    found = background.offer(
        key,
        "Compute it now",
        lambda: map_layout.start(corpus, cache_dir, wanted),
        name="layout",
        icon=":material/play_arrow:",
        find=find,
        cost=f"{why}{meanwhile}".strip(),
        stopped=f"{what} was stopped.",
        row=f"{what} failed",
        look=background.Look(
            every=1.0,
            says=says,
            stop_label=lambda job: f"Stop {job.about}",
            over=lambda: not had_crowding and map_layout.crowding(corpus, cache_dir) is not None,
        ),
        type="tertiary",
    )
    if found is not None:
        st.rerun()


def _words(wanted: str) -> tuple[str, str]:
    """What is computed, as the subject of a sentence, and a sentence on what is drawn until then."""
    if PROJECTIONS[wanted].at_once is not None:
        return f"Measuring how many neighbors {wanted} keeps", ""
    return f"The {wanted} layout", f" The map below is {STAND_IN.name}."
