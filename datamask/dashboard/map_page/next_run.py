"""The next run, started and taken home where one works: on the Map, without a way to another page.

It is the problem of the shown run, solved at the λ of the slider and under the rules made on the map; beside no run,
what the form of Runs was left with. Once it has ended, the map shows it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.dashboard.analyses.lambda_slider import lambda_points
from datamask.dashboard.analyses.lambda_slider import panel as lambda_slider
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import form_panel, listing, outcome, start_panel, steering_panel
from datamask.dashboard.shell import background, downloads, session
from datamask.errors import DatamaskError, OptionError
from datamask.runs import run_queue
from datamask.runs.store import Run

STARTED = "explore_next_run"
"""Of the session: the run that was started here, and the one that was shown then (None: none was)."""

KEPT = "selection.parquet"
"""In a run's folder: the selected ids."""


def arrive() -> None:
    """Take the run that was started here once it has ended for the shown one, where nobody has gone on to another one
    meanwhile. Call it before anything is drawn.
    """
    if STARTED not in st.session_state:
        return
    started, shown = st.session_state[STARTED]
    try:
        run = session.store().get(started)
    except DatamaskError:
        del st.session_state[STARTED]
        return
    if run.status().active:
        return
    del st.session_state[STARTED]
    if not run.has_selection:
        story = outcome.story(run)
        if story is not None:
            trouble = st.session_state.get("trouble")
            failure = f"{listing.name_of(run)}: {story.heading}. {words.unmarked(story.text)}"
            st.session_state["trouble"] = f"{trouble} {failure}" if trouble else failure
    elif st.query_params.get("run") == shown:
        session.choose_run(run.id)


def offer(opened: OpenCorpus, run: Run | None, runs: Sequence[Run], name: str) -> None:
    """The button that solves, or how far it is; and the ids of the shown run.

    Args:
        run: the shown one; None: none is. runs: finished ones on the corpus, to start from.
        name: of the map that the slider stands on.
    """
    if not _at_work():
        _solve(opened, run, runs, name)
    if run is not None:
        count = (run.status().summary or {}).get("selected")
        ids = "ids" if count is None else f"{count:,} ids"
        st.download_button(
            f"Download {ids} of {words.plain(listing.name_of(run), 32)}",
            downloads.of_file(run.path / KEPT),
            on_click="ignore",
            file_name=f"{run.id}.parquet",
            mime="application/vnd.apache.parquet",
            key="map_selection",
            icon=":material/download:",
            type="tertiary",
            help="All that this run selected, whatever is filtered and wherever the slider stands: ids with rank, "
            "score and their place in the shards, as parquet. Rows, masks and a report are on the Export page.",
        )


def _at_work() -> bool:
    """Draw how far the run is that was started here; whether it is under way."""
    with contextlib.suppress(DatamaskError):  # discarded meanwhile
        if STARTED in st.session_state:
            begun = session.store().get(st.session_state[STARTED][0])
            look = background.Look(place="next_run_live", stop_key="stop_next_run")
            return background.under_way(run_queue.key_of(begun), look)
    return False


def _solve(opened: OpenCorpus, run: Run | None, runs: Sequence[Run], name: str) -> None:
    way = "" if run is None else catalogue.estimator(lambda_points.settings_of(run.config.selection).estimator).label
    st.button(
        "Solve",
        key="map_solve",
        icon=":material/bolt:",
        type="primary",
        on_click=_start,
        args=(opened, run, tuple(runs), name),
        help=(
            "Selects again as the shown run did, at the λ of the slider"
            if run is not None
            else "Selects with the settings of the Runs page"
        )
        + ", under the rules made here, in the quickest proved way"
        + (f": {way}" if way else "")
        + ". In the background; the map shows what it gives.",
    )


def _start(opened: OpenCorpus, run: Run | None, runs: Sequence[Run], name: str) -> None:
    try:
        settings, reason = steering_panel.applied(_settings(opened, run, name), opened.corpus)
        if reason:
            st.session_state["trouble"] = f"No selection can obey these rules. {reason}"
            return
        rules = len(steering_panel.book(opened.corpus).rules)
        with session.starting():
            begun = _under_way(opened, settings) or start_panel.begin(opened, runs, settings, rules)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
        return
    st.session_state[STARTED] = (begun.id, st.query_params.get("run"))


def _under_way(opened: OpenCorpus, settings: SelectionConfig) -> Run | None:
    """The run that a first press began, here or in another tab."""
    for run in session.store().list():
        with contextlib.suppress(DatamaskError):  # of a damaged record nobody knows what it asked
            if run.status().active and run.config.corpus == opened.config and run.config.selection == settings:
                return run
    return None


def _settings(opened: OpenCorpus, run: Run | None, name: str) -> SelectionConfig:
    """What the press asks for, by what stands on the page then: the slider is let go without a drawing of the page.

    Raises:
        OptionError: what the form was left with contradicts itself; or nothing was searched for in the shown run.
    """
    moved = lambda_slider.chosen(name)
    if run is not None:
        entry = catalogue.estimator(run.config.selection.estimator)
        if not entry.learns:
            raise OptionError(
                f"{entry.label} took the rows of the shown run by a rule of its own, which has no λ to solve at; show "
                "a run that was solved or learned, or press Solve on the Runs page"
            )
        settings = lambda_points.settings_of(run.config.selection)
        return replace(settings, lamb=run.config.selection.lamb if moved is None else moved)
    settings = form_panel.remembered(form_panel.SOLVE)
    if opened.sample and "collapse" not in st.session_state.get("form_values", {}):
        settings = replace(settings, collapse="exact")  # as the form has it there: half of the sample are copies
    return settings if moved is None else replace(settings, lamb=moved)
