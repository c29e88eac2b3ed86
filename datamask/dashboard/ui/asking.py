"""An answer that a task is working on: waited for a blink, else its progress with a Stop, else why there is none."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard import tasks
from datamask.dashboard.tasks import Task
from datamask.dashboard.ui import background

BLINK = 0.25
"""Seconds a page waits for an answer before it shows progress: what is prepared already comes without a flicker."""


def settled(task: Task, name: str) -> bool:
    """Whether the task's result is there. Where it is not, draws its progress, or its ending and a way to try again.

    Args:
        name: for the controls' keys.
    """
    task.wait(BLINK)
    if background.under_way(task.key):
        return False
    if task.state == "done":
        return True
    background.ending(task.key, "Stopped.")
    st.button("Try again", key=f"{name}_again", icon=":material/refresh:", on_click=tasks.forget, args=(task.key,),
              help="Asks once more; it runs in the background.")
    return False
