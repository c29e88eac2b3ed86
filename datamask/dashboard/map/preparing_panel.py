"""Crowding and a layout: started by themselves, and offered where they were not."""

from __future__ import annotations

from pathlib import Path

from datamask.corpus import Corpus
from datamask.corpus.projections import DEFAULT, PROJECTIONS
from datamask.dashboard.map import map_layout
from datamask.dashboard.map.places import HEXAGONS_FROM
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import background, session
from datamask.dashboard.shell.option_control import KEPT, one_of
from datamask.work.job import Job
from datamask.work.worker import worker


def layout_control() -> str:
    """The control that chooses a projection; its name."""
    about = " ".join(kind.about for kind in PROJECTIONS.values())
    projection: str = one_of("Layout", list(PROJECTIONS), "projection", default=DEFAULT, help=about, **KEPT)
    return projection


def marks_control(corpus: Corpus, about: str) -> bool:
    """The choice between points and hexagons, told `about`; whether it is hexagons."""
    usual = "hexagons" if len(corpus) > HEXAGONS_FROM else "points"
    marks: str = one_of("Marks", ("points", "hexagons"), "marks", default=usual, help=about, **KEPT)
    return marks == "hexagons"


def begin(corpus: Corpus, cache_dir: Path, wanted: str, first: Job | None = None) -> bool:
    """Start what is missing where it may start by itself; whether it was.

    It waits for the user on a large corpus, after it was stopped or has failed, and while a run needs the cores. One
    layout is computed at a time: a second waits for the first.

    Args:
        wanted: name of the projection. first: a job that goes before.
    """
    key = map_layout.key_of(corpus)
    if background.working(key) or map_layout.prepared(corpus, cache_dir, wanted):
        return False
    job = worker().find(key)
    if job is not None and (job.state == "done" or job.about != wanted):
        # done and not there: the cache was emptied since; how another layout ended says nothing of this one
        worker().forget(key)
    if worker().find(key) is not None or waits(corpus):
        return False
    map_layout.start(corpus, cache_dir, wanted, first=first)
    return True


def offer(corpus: Corpus, cache_dir: Path, wanted: str) -> None:
    """Offer what is missing and did not start by itself, was stopped or has failed; nothing once it is under way."""
    key = map_layout.key_of(corpus)
    if background.working(key) or map_layout.prepared(corpus, cache_dir, wanted):
        return
    what = f"The {wanted} layout"
    if PROJECTIONS[wanted].at_once is not None:
        what = f"Measuring how many neighbors {wanted} keeps"
    background.offer(
        key,
        "Compute it now",
        lambda: map_layout.start(corpus, cache_dir, wanted),
        name="layout",
        icon=":material/play_arrow:",
        cost=f"{what} {waits(corpus)}." if waits(corpus) else "",
        stopped=f"{what} was stopped.",
        row=f"{what} failed",
        type="tertiary",
    )


def waits(corpus: Corpus) -> str:
    """Why nothing of the map starts by itself; empty where it does."""
    if len(corpus) > map_layout.BY_ITSELF:
        return f"of {len(corpus):,} rows takes many minutes"
    return "waits for a run to end" if listing.running(session.store(), session.run_queue()) else ""
