"""Work of `datamask.dashboard.tasks` on a page: its progress and a Stop while it runs, a sentence when it failed."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard import tasks, words


def under_way(key: str) -> bool:
    """Draw the task of that key where it is at work; the page is drawn again once it ends."""
    task = tasks.find(key)
    if task is None or task.state != "working":
        return False
    with st.container(key=f"live-{key}"):
        st.fragment(_progress, run_every=0.5)(key)
    return True


def ending(key: str) -> None:
    """Say why the task of that key ended without a result, where it did."""
    task = tasks.find(key)
    if task is not None and task.state == "failed":
        st.error(words.sentence(task.error), icon=":material/error:")
    elif task is not None and task.state == "stopped":
        st.caption("Stopped. Nothing half done is kept.")


def _progress(key: str) -> None:
    task = tasks.find(key)
    if task is None or task.state != "working":
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(min(max(task.share, 0.0), 1.0), text=words.plain(task.message))
        st.button("Stop", key=f"stop-{key}", icon=":material/stop:", type="tertiary", on_click=task.stop,
                  help="Stops within seconds. You may leave this page meanwhile; the work goes on.")
