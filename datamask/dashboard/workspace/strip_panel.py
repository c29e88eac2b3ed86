"""The strip on top of every page: the current selection in one line, kept as a run or downloaded with one press."""

from __future__ import annotations

import streamlit as st

from datamask import catalogue
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session
from datamask.dashboard.shell.garbage import settled
from datamask.dashboard.tradeoff import lambda_points, live
from datamask.dashboard.workspace import current as currently
from datamask.dashboard.workspace import files, keeping, wording
from datamask.dashboard.workspace.current import Current
from datamask.dashboard.workspace.selection import Selection
from datamask.dashboard.workspace.workspace import Workspace

KEY = "strip"
"""Of the strip's place. It is dimmed while the map draws another selection."""

HEIGHT = 36
"""Pixels."""

EVERY = 0.3
"""Seconds between two looks at whether the selection of the chosen λ is there."""

STYLE = f"""<style>
.st-key-{KEY} {{min-height: {HEIGHT}px}}
@media (min-width: 701px) {{
.st-key-{KEY} {{flex-wrap: nowrap; overflow-x: auto; scrollbar-width: none}}
.st-key-{KEY} p {{white-space: nowrap}}
}}
@media (min-width: 701px) and (max-width: 1100px) {{.st-key-{KEY} p {{font-size: 0.875rem}}}}
.st-key-{KEY} button {{min-height: 2rem; padding-top: 0.1rem; padding-bottom: 0.1rem}}
:root[data-lambda-moved] .st-key-{KEY} {{opacity: 0.4}}
</style>"""


def show(known: Current | None) -> Current | None:
    """Draw the strip, and give the current selection that the page shows; None where no corpus is open."""
    if known is None:
        with st.container(key=KEY, horizontal=True, vertical_alignment="center", gap="small"):
            st.caption("No selection yet.", width="content")
        return None
    current = currently.chosen(known)
    with st.container(key=KEY, horizontal=True, vertical_alignment="center", gap="small"):
        _draw(current)
    return current


def _draw(current: Current) -> None:
    workspace, selection = current.workspace, current.selection
    if selection is not None:
        # the page is drawn again at the end of what the menu says is under way
        proving = selection.run is None and current.under_way and not current.settled(selection.lamb)
        _line(workspace, selection, proving)
    if current.waits or (selection is None and current.under_way):
        st.fragment(_watch, run_every=EVERY)(current)
    elif selection is None or current.unsolved:
        _offer(current)
    if selection is None:
        return
    if selection.run is not None:
        st.caption(f"run {words.named(listing.name_of(selection.run), 40)}", width="content")
    elif (run := keeping.started()) is not None:
        learns = catalogue.estimator(run.config.selection.estimator).draws_masks
        st.caption(f"{'learning' if learns else 'solving'}; then kept as a run", width="content")
    else:
        st.button(
            "Keep as run",
            key="strip_keep",
            icon=":material/bookmark_add:",
            type="tertiary",
            on_click=keeping.keep,
            args=(workspace, selection),
        )
    st.download_button(
        wording.download(selection),
        files.content(workspace.corpus, selection),
        on_click="ignore",
        file_name=files.name(selection),
        mime="application/vnd.apache.parquet",
        # another file has another button: an old one is never pressed for a new file
        key=f"strip_download_{selection.key}_{selection.name}",
        icon=":material/download:",
        type="tertiary",
    )


def _line(workspace: Workspace, selection: Selection, proving: bool) -> None:
    """The selection in words.

    Args:
        proving: whether its gap may still become smaller.
    """
    said = wording.parts(workspace.corpus, selection, proving=proving)
    st.markdown(f"**{words.plain(said[0])}** · " + " · ".join(words.plain(part) for part in said[1:]), width="content")


def _solve(workspace: Workspace) -> None:
    live.session(workspace.corpus, workspace.settings, session.store().cache_dir)


def _watch(current: Current) -> None:
    """What is being solved; once it is there, the page is drawn with it."""
    settled()
    workspace = current.workspace
    now = currently.current(workspace, 0.0, begin=False)
    if not now.waits or (now.point is not None and current.selection is None):
        st.rerun()
    st.caption(f"solving λ {workspace.wanted:g}", width="content")


def _offer(current: Current) -> None:
    """Nothing is selected at the chosen λ, and nothing begins without being asked."""
    workspace = current.workspace
    seconds = lambda_points.expected_seconds(workspace.corpus, workspace.settings)
    takes = "" if seconds is None else f" (about {words.roughly(seconds)})"
    error = "" if current.behind is None else current.behind.error
    if error or current.selection is None:
        st.caption(words.plain(words.unmarked(error), 200) if error else "Nothing is selected yet.", width="content")
    st.button(
        f"Solve λ {workspace.wanted:g}{takes}",
        key="strip_solve",
        icon=":material/bolt:",
        type="tertiary",
        on_click=_solve,
        args=(workspace,),
    )
