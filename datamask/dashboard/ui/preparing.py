"""Crowding and the UMAP layout under way: started by themselves, with progress and a stop, drawn in a fragment."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard import grounds, words
from datamask.dashboard.ui import session
from datamask.dashboard.views import listing
from datamask.work.worker import worker


def prepare(corpus: Corpus, cache_dir: Path) -> None:
    """Start what is missing where it may start by itself, and draw how it stands; nothing once all is there.

    It waits for the user on a large corpus, after it was stopped or has failed, and while a run needs the cores.
    """
    has_crowding = grounds.crowding(corpus, cache_dir) is not None
    if has_crowding and grounds.layout(corpus, cache_dir) is not None:
        return
    job = worker().find(grounds.key_of(corpus))
    if job is not None and not job.ended:
        st.fragment(_progress, run_every=1.0)(job.key, has_crowding, corpus, cache_dir)
        return
    if job is not None and job.state in ("failed", "stopped"):
        what = "was stopped" if job.state == "stopped" else f"failed: {words.plain(job.error, 300)}"
        _offer(f"The UMAP layout {what}. The map below is PCA.", corpus, cache_dir)
    elif len(corpus) > grounds.BY_ITSELF:
        _offer(f"UMAP of {len(corpus):,} samples takes many minutes. The map below is PCA.", corpus, cache_dir)
    elif listing.running(session.store(), session.office()):
        _offer("The UMAP layout waits until no run needs the processor. The map below is PCA.", corpus, cache_dir)
    else:
        job = grounds.start(corpus, cache_dir)
        st.fragment(_progress, run_every=1.0)(job.key, has_crowding, corpus, cache_dir)


def _offer(sentence: str, corpus: Corpus, cache_dir: Path) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(sentence, width="content")
        st.button("Compute it now", key="start_layout", type="tertiary", icon=":material/play_arrow:",
                  on_click=grounds.start, args=(corpus, cache_dir),
                  help="Runs in the background, once per corpus; it is kept on disk.")


def _progress(key: str, had_crowding: bool, corpus: Corpus, cache_dir: Path) -> None:
    job = worker().find(key)
    crowding_came = not had_crowding and grounds.crowding(corpus, cache_dir) is not None
    if job is None or job.ended or crowding_came:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(min(max(job.share, 0.0), 1.0),
                    text=f"The map is PCA for now; UMAP comes next. {words.plain(job.message)}")
        st.button("Stop UMAP", key="stop_layout", type="tertiary", icon=":material/stop:", on_click=job.stop,
                  help="Stops within a second. You can start it again later.")
