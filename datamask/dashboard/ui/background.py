"""A job on a page: its progress and a Stop while it runs, a sentence when it failed.

Every page draws the progress of a job with this; `asking` adds the wait for answers that come at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec

import streamlit as st

from datamask.dashboard import words
from datamask.work.job import Job
from datamask.work.worker import worker

P = ParamSpec("P")

STOPS = "Stops within seconds. You may leave this page meanwhile; the work goes on."
"""What Stop does, where a panel says nothing of its own."""


def on_press(start: Callable[P, object]) -> Callable[P, None]:
    """A button's `on_click` that starts long work: the job that `start` gives is the worker's, nobody takes it here."""

    @functools.wraps(start)
    def pressed(*args: P.args, **kwargs: P.kwargs) -> None:
        start(*args, **kwargs)

    return pressed


def working(key: str) -> bool:
    """Whether the job of that key is at work."""
    job = worker().find(key)
    return job is not None and not job.ended


@dataclass(frozen=True)
class Look:
    """How a job under way is drawn, where a panel has words, keys or room of its own.

    Attributes:
        stop_key, stop_help: of the Stop button; without a key it has the job's.
        beneath: whether Stop stands under the bar, as wide as it, for narrow columns.
        instead: a sentence in the place of bar and Stop, for what takes seconds and is not worth stopping.
        every: seconds from one drawing to the next.
    """

    stop_key: str = ""
    stop_help: str = STOPS
    beneath: bool = False
    instead: str = ""
    every: float = 0.5


def under_way(key: str, look: Look = Look()) -> bool:
    """Draw the job of that key where it is at work; the page is drawn again once it ends."""
    if not working(key):
        return False
    with st.container(key=f"live-{key}"):
        st.fragment(_progress, run_every=look.every)(key, look)
    return True


def ending(key: str, stopped: str = "Stopped. Nothing half done is kept.") -> None:
    """Say why the job of that key ended without a result, where it did.

    Args:
        stopped: what to say where it was stopped.
    """
    job = worker().find(key)
    if job is not None and job.state == "failed":
        st.error(words.sentence(job.error), icon=":material/error:")
    elif job is not None and job.state == "stopped":
        st.caption(stopped)


def bar(job: Job) -> None:
    """The job's progress: how far, with what, and about how long it still takes."""
    text = ", ".join(filter(None, (words.plain(job.message), words.soon(job.left))))
    st.progress(min(max(job.share, 0.0), 1.0), text=text)


def _progress(key: str, look: Look) -> None:
    job = worker().find(key)
    if job is None or job.ended:
        st.rerun()
    if look.instead:
        st.caption(look.instead)
        return
    place = st.container() if look.beneath else st.container(horizontal=True, vertical_alignment="center")
    with place:
        bar(job)
        st.button(
            "Stop",
            key=look.stop_key or f"stop-{key}",
            icon=":material/stop:",
            type="secondary" if look.beneath else "tertiary",
            on_click=job.stop,
            width="stretch" if look.beneath else "content",
            help=look.stop_help,
        )
