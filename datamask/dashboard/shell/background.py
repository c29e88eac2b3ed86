"""Long work on a page: offered, waiting for its turn, under way, stopped or failed, and its result once it is there.

`offer` draws each of these states, and `answer` those of work that starts by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from datamask.dashboard.drawing import words
from datamask.dashboard.shell.garbage import settled
from datamask.work.job import Job
from datamask.work.worker import worker

BLINK = 0.5
"""Seconds a page waits for an answer before it shows progress: what is prepared already comes without a flicker, and a
sample of a million is explained within it."""


def working(key: str) -> bool:
    """Whether the job of that key is at work."""
    job = worker().find(key)
    return job is not None and not job.ended


def message(job: Job) -> str:
    """What the job is doing, or for how many it waits, as a page may show it."""
    ahead = job.ahead
    return f"waiting for {ahead} other job{'s' if ahead > 1 else ''}" if ahead else words.plain(job.message)


@dataclass(frozen=True)
class Look:
    """How a job under way is drawn, where a panel has words, keys or room of its own.

    Attributes:
        stop_key: of the Stop button; without one it has the job's.
        beneath: whether Stop stands under the bar, as wide as it, for narrow columns.
        every: seconds from one drawing to the next.
        place: key of the container around it; without one it has the job's.
        title, about: heading of a card of its own, and a line under it; without a heading there is no card.
        says: the words over the bar, before the time left.
        beside: a line beside Stop, which then has the time left, if anything has.
        stop: what it does.
        over: whether the page is to be drawn again although the job goes on, asked at each drawing.
    """

    stop_key: str = ""
    beneath: bool = False
    every: float = 0.5
    place: str = ""
    title: str = ""
    about: str = ""
    says: Callable[[Job], str] = message
    beside: Callable[[Job], str] | None = None
    stop: Callable[[Job], None] = Job.stop
    over: Callable[[], bool] = lambda: False


def offer(
    key: str,
    label: str,
    start: Callable[[], Any],
    *,
    name: str,
    icon: str = ":material/refresh:",
    find: Callable[[], Any] | None = None,
    cost: str = "",
    stopped: str = "Stopped. Unfinished work is removed.",
    row: str = "",
    look: Look = Look(),
    **button: Any,
) -> Any:
    """Return a result that takes long; while there is none, draw how its job stands and return None.

    A job under way has its progress with a Stop. Otherwise a button starts one: after a failure it says *Try again*,
    under the sentence of the failure.

    Args:
        key: of the job. label: of the button. start: what a press does.
        name: of the button, and the end of the names of what is drawn while the job is under way.
        find: where the result lies; None: the job holds it.
        cost: a sentence over the button: what a press takes, or why it is needed. stopped: one after a stop.
        row: where the offer has one line: what has failed, to stand before the sentence of the failure there.
        look: of the job under way. button: how the button looks, as `st.button` has it.
    """
    if under_way(key, replace(look, stop_key=look.stop_key or f"stop_{name}", place=look.place or f"live_{name}")):
        return None
    job = worker().find(key)
    # after the look at the job: one that ends meanwhile has kept its result
    result = find() if find is not None else job and job.result
    if result is not None:
        return result
    state = "" if job is None else job.state
    ended = stopped if state == "stopped" else ""
    if job is not None and state == "failed":
        label, icon = "Try again", ":material/refresh:"
        if row:
            ended = f"{row}: {words.sentence(job.error).rstrip('.')}."
        else:
            st.error(words.sentence(job.error), icon=":material/error:")
    with st.container(horizontal=bool(row), vertical_alignment="center"):
        if ended or cost:
            st.caption(f"{ended} {cost}".strip(), width="content")
        st.button(label, key=name, icon=icon, on_click=start, **button)
    return None


def answer(job: Job, name: str) -> Any:
    """Return the result of a job that the page has started; as `offer` where there is none within a blink."""
    job.wait(BLINK)
    return offer(job.key, "Try again", lambda: worker().forget(job.key), name=f"{name}_again", stopped="Stopped.")


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
        "Stop",
        key=look.stop_key or f"stop-{job.key}",
        icon=":material/stop:",
        type="secondary" if look.beneath or look.title else "tertiary",
        on_click=look.stop,
        args=(job,),
        width="stretch" if look.beneath else "content",
    )
