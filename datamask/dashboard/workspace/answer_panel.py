"""The answer bar on top of every page: the current selection, how good it is, and what to do with it.

It is the only place of these numbers. While λ is dragged on the map, `browser/answer.js` shows those of the solved λ
that the map draws, and names it.
"""

from __future__ import annotations

import streamlit as st

from datamask import catalogue
from datamask.dashboard.drawing import palette, words
from datamask.dashboard.shell import session
from datamask.dashboard.shell.components import component
from datamask.dashboard.shell.garbage import settled
from datamask.dashboard.tradeoff import answers, lambda_points, live
from datamask.dashboard.workspace import current as currently
from datamask.dashboard.workspace import files, keeping, wording
from datamask.dashboard.workspace.current import Current
from datamask.dashboard.workspace.selection import Selection
from datamask.dashboard.workspace.workspace import Workspace

KEY, BUTTONS = "answer", "answer_buttons"
"""Of the bar, and of its buttons, which are dimmed while the map draws another selection."""

EVERY = 0.3
"""Seconds between two looks at whether the selection of the chosen λ is there."""

STYLE = f"""<style>
.st-key-{KEY} {{min-height: 78px}}
.st-key-{BUTTONS} button {{min-height: 2rem; padding-top: 0.1rem; padding-bottom: 0.1rem}}
:root[data-lambda-moved] .st-key-{BUTTONS} {{opacity: 0.4}}
@media (min-width: 701px) {{.st-key-{KEY} {{flex-wrap: nowrap}} div:has(> .st-key-{BUTTONS}) {{flex: none}}}}
</style>"""


def show(known: Current | None, welcome: str = "") -> Current | None:
    """Draw the bar, and give the current selection that the page shows; None where no corpus is open.

    Args:
        welcome: what stands above it in a browser where λ was never moved.
    """
    current = None if known is None else currently.chosen(known)
    with st.container(key=KEY, horizontal=True, vertical_alignment="center", gap="small"):
        if current is None:
            st.caption("No selection yet.", width="content")
        else:
            _draw(current, welcome)
    return current


def _draw(current: Current, welcome: str) -> None:
    workspace, selection = current.workspace, current.selection
    if selection is not None or current.waits:
        _numbers(current, selection, welcome)
    with st.container(key=BUTTONS, horizontal=True, vertical_alignment="center", gap="xsmall", width="content"):
        if current.waits or (selection is None and current.under_way):
            st.fragment(_watch, run_every=EVERY)(current)
        elif (run := keeping.started()) is not None and (selection is None or selection.run is None):
            learns = catalogue.estimator(run.config.selection.estimator).draws_masks
            st.caption(f"{'learning' if learns else 'solving'}; then kept as a run", width="content")
        elif selection is None or current.unsolved or selection.preview:
            _offer(current)
        elif selection.run is None:
            _keep(workspace, selection)
        if selection is not None and not (current.unsolved or selection.preview):
            _download(workspace, selection)


def _numbers(current: Current, selection: Selection | None, welcome: str) -> None:
    workspace, answer = current.workspace, None
    if selection is not None:
        # the page is drawn again at the end of what the menu says is under way
        proving = selection.run is None and current.under_way and not current.settled(selection.lamb)
        answer = wording.answer_of(workspace.corpus, current.units, selection, final=not proving)
    tone = palette.shades(session.dark())
    component("answer", ("store", "elements", "answer"))(
        key="answer_numbers",
        data={
            # without one the bar goes on with what was last under the hand
            "answer": answer,
            "heard": st.session_state.get(currently.HEARD),
            "welcome": welcome,
            "ticks": answers.ticks(current.units),
            "problem": wording.problem(workspace.settings if selection is None else selection.settings),
            "colors": [tone.quality, tone.diversity],
        },
    )


def _keep(workspace: Workspace, selection: Selection) -> None:
    st.button(
        "Keep as run",
        key="answer_keep",
        icon=":material/bookmark_add:",
        type="tertiary",
        on_click=keeping.keep,
        args=(workspace, selection),
    )


def _download(workspace: Workspace, selection: Selection) -> None:
    st.download_button(
        f"Download {selection.stored:,} ids",
        files.content(workspace.corpus, selection),
        on_click="ignore",
        file_name=files.name(selection),
        mime="application/vnd.apache.parquet",
        # another file has another button: an old one is never pressed for a new file
        key=f"answer_download_{selection.key}_{selection.name}",
        icon=":material/download:",
        type="primary",
    )


def _watch(current: Current) -> None:
    """What is being solved; once it is there, the page is drawn with it."""
    settled()
    workspace = current.workspace
    now = currently.current(workspace, 0.0, begin=False)
    if not now.waits or (now.point is not None and current.selection is None):
        st.rerun()
    st.caption(f"solving λ {workspace.wanted:g}", width="content")


def _offer(current: Current) -> None:
    """Nothing is solved at the chosen λ, and nothing begins without being asked."""
    workspace, selection = current.workspace, current.selection
    error = workspace.reason or ("" if current.behind is None else current.behind.error)
    if error or selection is None:
        st.caption(words.plain(words.unmarked(error), 200) if error else "Nothing is selected yet.", width="content")
    if workspace.reason:
        return
    # the solver behind the slider has nothing better than a preview, or than the nearest λ of a slow objective
    shown = selection is not None and (selection.preview or not live.quick(workspace.settings))
    by_run = bool(workspace.refusal) or shown
    seconds = None if by_run else lambda_points.expected_seconds(workspace.corpus, workspace.settings)
    takes = "" if seconds is None else f" ({words.roughly(seconds)})"
    st.button(
        f"Solve exactly{takes}"
        if selection is not None and selection.preview
        else f"Solve λ {workspace.wanted:g}{takes}",
        key="answer_solve",
        icon=":material/bolt:",
        type="primary",
        on_click=_solve_by_run if by_run else _solve,
        args=(workspace,),
    )


def _solve(workspace: Workspace) -> None:
    live.session(workspace.corpus, workspace.settings, session.store().cache_dir)


def _solve_by_run(workspace: Workspace) -> None:
    keeping.start(workspace, workspace.asked)
