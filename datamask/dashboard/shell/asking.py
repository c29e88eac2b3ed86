"""An answer that a job is working on: waited for a blink, else its progress with a Stop, else why there is none."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard.shell import background
from datamask.work.job import Job
from datamask.work.worker import worker

BLINK = 0.5
"""Seconds a page waits for an answer before it shows progress: what is prepared already comes without a flicker, and a
sample of a million is explained within it."""


def settled(job: Job, name: str) -> bool:
    """Whether the job's result is there. Where it is not, draws its progress, or its ending and a way to try again.

    Args:
        name: for the controls' keys.
    """
    job.wait(BLINK)
    if background.under_way(job.key):
        return False
    if job.state == "done":
        return True
    background.ending(job.key, "Stopped.")
    st.button(
        "Try again",
        key=f"{name}_again",
        icon=":material/refresh:",
        on_click=worker().forget,
        args=(job.key,),
    )
    return False
