"""A job on a page: its progress and a Stop while it runs, a sentence when it failed.

Every page draws the progress of a job with this; `asking` adds the wait for answers that come at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec

import streamlit as st

from datamask.dashboard.drawing import words
from datamask.dashboard.shell.garbage import settled
from datamask.work.job import Job
from datamask.work.worker import worker

P = ParamSpec("P")


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


def message(job: Job) -> str:
    """What the job is doing, as a page may show it."""
    return words.plain(job.message)


@dataclass(frozen=True)
class Look:
    """How a job under way is drawn, where a panel has words, keys or room of its own.

    Attributes:
        stop_key: of the Stop button; without one it has the job's.
        beneath: whether Stop stands under the bar, as wide as it, for narrow columns.
        instead: a sentence in the place of bar and Stop, for what takes seconds and is not worth stopping.
        every: seconds from one drawing to the next.
        place: key of the container around it; without one it has the job's.
        title, about: heading of a card of its own, and a line under it; without a heading there is no card.
        says: the words over the bar, before the time left.
        beside: a line beside Stop, which then has the time left, if anything has.
        stop_label: what the Stop button says.
        stop: what it does.
        over: whether the page is to be drawn again although the job goes on, asked at each drawing.
    """

    stop_key: str = ""
    beneath: bool = False
    instead: str = ""
    every: float = 0.5
    place: str = ""
    title: str = ""
    about: str = ""
    says: Callable[[Job], str] = message
    beside: Callable[[Job], str] | None = None
    stop_label: Callable[[Job], str] = lambda job: "Stop"
    stop: Callable[[Job], None] = Job.stop
    over: Callable[[], bool] = lambda: False


def under_way(key: str, look: Look = Look()) -> bool:
    """Draw the job of that key where it is at work; the page is drawn again once it ends."""
    if not working(key):
        return False
    with st.container(key=look.place or f"live-{key}"):
        st.fragment(_progress, run_every=look.every)(key, look)
    return True


def follow(job: Job, look: Look) -> None:
    """Draw a job that was at work a moment ago; where it has ended since, the page is drawn again at once."""
    if not under_way(job.key, look) and job.ended:
        st.rerun()


def ending(key: str, stopped: str = "Stopped. Unfinished work is removed.") -> None:
    """Say why the job of that key ended without a result, where it did.

    Args:
        stopped: what to say where it was stopped.
    """
    job = worker().find(key)
    if job is not None and job.state == "failed":
        st.error(words.sentence(job.error), icon=":material/error:")
    elif job is not None and job.state == "stopped":
        st.caption(stopped)


def _progress(key: str, look: Look) -> None:
    settled()
    job = worker().find(key)
    if job is None or job.ended or look.over():
        st.rerun()
    if look.instead:
        st.caption(look.instead)
        return
    if not look.title:
        with st.container() if look.beneath else st.container(horizontal=True, vertical_alignment="center"):
            _bar(job, look)
            _stop(job, look)
        return
    with st.container(border=True):
        st.subheader(look.title, anchor=False)
        if look.about:
            st.caption(look.about)
        _bar(job, look)
        with st.container(horizontal=True, vertical_alignment="center"):
            _stop(job, look)
            if look.beside is not None:
                st.caption(look.beside(job))


def _bar(job: Job, look: Look) -> None:
    """How far, with what, and about how long it still takes."""
    left = words.soon(job.left) if look.beside is None else ""
    st.progress(min(max(job.share, 0.0), 1.0), text=", ".join(filter(None, (look.says(job), left))))


def _stop(job: Job, look: Look) -> None:
    st.button(
        look.stop_label(job),
        key=look.stop_key or f"stop-{job.key}",
        icon=":material/stop:",
        type="secondary" if look.beneath or look.title else "tertiary",
        on_click=look.stop,
        args=(job,),
        width="stretch" if look.beneath else "content",
    )
