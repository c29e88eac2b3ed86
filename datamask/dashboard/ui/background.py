"""Work of `datamask.dashboard.tasks` on a page: its progress and a Stop while it runs, a sentence when it failed.

Every page draws the progress of a task with this; `asking` adds the wait for answers that come at once.
"""

from __future__ import annotations

import streamlit as st

from datamask.dashboard import tasks, words
from datamask.dashboard.tasks import Task


def working(key: str) -> bool:
    """Whether the task of that key is at work."""
    task = tasks.find(key)
    return task is not None and task.state == "working"


def under_way(key: str) -> bool:
    """Draw the task of that key where it is at work; the page is drawn again once it ends."""
    if not working(key):
        return False
    with st.container(key=f"live-{key}"):
        st.fragment(_progress, run_every=0.5)(key)
    return True


def ending(key: str, stopped: str = "Stopped. Nothing half done is kept.") -> None:
    """Say why the task of that key ended without a result, where it did.

    Args:
        stopped: what to say where it was stopped.
    """
    task = tasks.find(key)
    if task is not None and task.state == "failed":
        st.error(words.sentence(task.error), icon=":material/error:")
    elif task is not None and task.state == "stopped":
        st.caption(stopped)


def bar(task: Task) -> None:
    """The task's progress: how far, with what, and about how long it still takes."""
    said = ", ".join(filter(None, (words.plain(task.message), words.soon(task.left))))
    st.progress(min(max(task.share, 0.0), 1.0), text=said)


def _progress(key: str) -> None:
    task = tasks.find(key)
    if task is None or task.state != "working":
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        bar(task)
        st.button("Stop", key=f"stop-{key}", icon=":material/stop:", type="tertiary", on_click=task.stop,
                  help="Stops within seconds. You may leave this page meanwhile; the work goes on.")
