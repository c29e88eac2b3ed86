"""An answer that a task is working on: waited for a blink, else its progress with a Stop, else why there is none."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard import tasks, words
from datamask.dashboard.tasks import Task

BLINK = 0.25
"""Seconds a page waits for an answer before it shows progress: what is prepared already comes without a flicker."""


def settled(task: Task, name: str) -> bool:
    """Whether the task's result is there. Where it is not, draws its progress, or its ending and a way to try again.

    Args:
        name: for the controls' keys.
    """
    task.wait(BLINK)
    if task.state == "done":
        return True
    if task.state == "working":
        st.fragment(_progress, run_every=0.5)(task.key, name)
        return False
    if task.state == "failed":
        st.error(words.sentence(task.error), icon=":material/error:")
    else:
        st.caption("Stopped.")
    st.button("Try again", key=f"{name}_again", icon=":material/refresh:", on_click=tasks.forget, args=(task.key,),
              help="Asks once more; it runs in the background.")
    return False


def _progress(key: str, name: str) -> None:
    task = tasks.find(key)
    if task is None or task.state != "working":
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        said = ", ".join(filter(None, (task.message, words.soon(task.left))))
        st.progress(min(max(task.share, 0.0), 1.0), text=words.plain(said))
        st.button("Stop", key=f"{name}_stop", icon=":material/stop:", type="tertiary", on_click=task.stop,
                  help="Stops within a second. You may leave this page; the work goes on.")
