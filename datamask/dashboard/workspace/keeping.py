"""The current selection kept as a run: the same problem at its λ, solved in the background, shown once it has ended."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import streamlit as st

from datamask.config import RunConfig, SelectionConfig
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing, outcome
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.workspace.selection import Selection
from datamask.dashboard.workspace.workspace import Workspace
from datamask.errors import DatamaskError
from datamask.runs.store import Run
from datamask.runs.warm import warm_start

STARTED = "explore_next_run"
"""Of the session: the id of the run that was started last, and the view then."""


def keep(workspace: Workspace, selection: Selection) -> None:
    """Start the run of a selection. For a button's `on_click`; what cannot be done is kept in `trouble`."""
    start(workspace, selection.settings)


def start(workspace: Workspace, settings: SelectionConfig, name: str = "", continued: Sequence[Run] = ()) -> None:
    """Start a run, unless one of these settings is under way, and show it once it has ended if the view is still this.

    What cannot be done is kept in `trouble`.

    Args:
        name: empty: made from the settings.
        continued: runs of which the nearest is where it starts; empty: it starts anew, as the selections along λ do. Of
            facility location other swaps end in other rows, which would not be those that the page shows.
    """
    try:
        with session.starting():
            run = under_way(workspace.opened, settings) or begin(workspace.opened, settings, name, continued)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
        return
    st.session_state[STARTED] = (run.id, views.now())
    views.change(watched=run.id)


def started() -> Run | None:
    """The run that was started here and is under way; None: there is none."""
    run, active = _noted()
    return run if active else None


def ended() -> bool:
    """Return whether the run that was started here has ended since `arrive`: a small one takes less than a drawing."""
    run, active = _noted()
    return run is not None and not active


def _noted() -> tuple[Run | None, bool]:
    """Return the run that was started here, None where there is none any more, and whether it is under way."""
    with contextlib.suppress(DatamaskError):  # discarded meanwhile
        if STARTED in st.session_state:
            run = session.store().get(st.session_state[STARTED][0])
            return run, run.status().active
    return None, False


def arrive(*, told: bool) -> None:
    """Show the run that was started here once it has ended, unless another problem, λ or run was chosen since. Call it
    before anything is drawn.

    Args:
        told: whether the page tells itself how a run stands that did not finish.
    """
    if STARTED not in st.session_state:
        return
    run, active = _noted()
    if active:
        return
    _, view = st.session_state.pop(STARTED)
    if run is None:
        return
    if not run.has_selection:
        story = outcome.story(run)
        if story is not None and not told:
            trouble = st.session_state.get("trouble")
            failure = f"{listing.name_of(run)}: {story.heading}. {words.unmarked(story.text)}"
            st.session_state["trouble"] = f"{trouble} {failure}" if trouble else failure
    elif views.now().selects == view.selects:
        views.choose_run(run.id)


def begin(opened: OpenCorpus, settings: SelectionConfig, name: str = "", continued: Sequence[Run] = ()) -> Run:
    """Make a run and queue it.

    Args:
        name, continued: as of `start`.

    Raises:
        StoreError: the runs folder cannot be written.
    """
    rules = sum(path is not None for path in (settings.pin, settings.ban, settings.given)) + len(settings.quotas)
    name = name or outcome.proposed_name(
        settings.objective, settings.lamb, settings.select_ratio, settings.estimator, settings.budget, rules
    )
    run = session.store().create(RunConfig(opened.config, settings, name))
    start_from = warm_start(settings, continued, opened.corpus.fingerprint)
    if start_from is not None:
        with run.writer() as writer:
            writer.update_facts(start_from=start_from)
    session.run_queue().submit(run.id)
    return run


def under_way(opened: OpenCorpus, settings: SelectionConfig) -> Run | None:
    """The run with these settings that a first press began, here or in another tab."""
    for run in session.store().list():
        with contextlib.suppress(DatamaskError):  # of a damaged record nobody knows what it asked
            if run.status().active and run.config.corpus == opened.config and run.config.selection == settings:
                return run
    return None
