"""The table of runs: which of them are shown, and what is done with those that are ticked.

A click on a row shows that run alone, boxes tick several. One run stands in the address, so that it is a step of Back;
several are of the session. The browser knows a row by its place: whatever it sends is read by the ids that were drawn
under the same key, and another list has another key.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from datamask.analyses.comparison import tables as comparison
from datamask.dashboard.data.openings import Opening
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import label_panel, listing, runs_table
from datamask.dashboard.runs.runs_table import COUNT, MOMENT, NUMBER, SECONDS, SHARE, TAGS, TEXT
from datamask.dashboard.shell import session, tables
from datamask.dashboard.shell import view as views
from datamask.errors import DatamaskError
from datamask.runs.folders import DeletedRun
from datamask.runs.store import Run

ROWS = 5
"""Rows of the table before it scrolls: what it chooses is below it, and must be seen too."""

TICKED = "runs_ticked"
"""Of the session state: ids of the ticked runs, in the order of the table."""

_SHOWN = "runs_ticked_beside"
"""The run in the address when these were ticked: once another one stands there, it is the ticked one."""

_DRAWN = "runs_drawn"
"""Key, ids and chosen cell of the table as it was drawn last."""

_LAST_DELETED = "runs_deleted"
"""Ids of the runs that the last press of Delete deleted."""

WIDE, NARROW, MIDDLE = 190, 76, 120
"""Pixels of a column."""

FITTING = ("state", "quality", "diversity", runs_table.BELOW, "lamb", "ratio", "objective", "estimator", "age")
"""Columns drawn after the name until others are chosen: at 1440 pixels they fit next to the form."""

WIDTHS = {
    "name": WIDE,
    "note": WIDE,
    "objective": MIDDLE,
    "estimator": MIDDLE,
    "tags": MIDDLE,
    "age": 96,
    "lamb": 60,
    "ratio": 60,
    "below": MIDDLE,
}


def choose(runs: Sequence[Run], run: Run | None, opening: Opening | None) -> list[Run]:
    """Draw the table and what can be done with the ticked runs.

    Args:
        runs: on the open corpus, newest first, without those put away. run: the one in the address, or the newest.

    Returns:
        The runs to show: those ticked, else `run`; empty where there is none.
    """
    ticked = _ticked(run)
    if not runs and run is None and not session.store().list():
        _deleted()
        return []
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        listed = _controls(runs, run, opening)
        actions = st.container(horizontal=True, vertical_alignment="center", gap="small", width="content")
    if not listed:
        return []
    by_id = {listed_run.id: listed_run for listed_run in listed}
    ticked = [run_id for run_id in ticked if run_id in by_id]
    st.session_state[TICKED] = ticked
    frame = runs_table.table(listed, _several())
    search = st.session_state.get("runs_find", "")
    # those ticked stay, or a search would take them off the page
    matching = frame.index.isin([*runs_table.matching(frame, search).index, *ticked])
    if _several():
        st.caption(f"{len(listed):,} runs on all corpora. Compare diversity on one corpus only.")
    _table(frame[matching], ticked)
    if not matching.any():
        st.caption("No run contains all of these words.")
    shown = [by_id[run_id] for run_id in ticked] or ([run] if run is not None else [])
    with actions:
        _actions(shown, listed)
    return shown


def _ticked(run: Run | None) -> list[str]:
    """The ticked ids; where the address names another run than when they were ticked, that one."""
    state = st.session_state
    shown = None if run is None else run.id
    if state.get(_SHOWN, ...) != shown:
        state[_SHOWN] = shown
        state[TICKED] = [] if shown is None else [shown]
    return list(state.get(TICKED, ()))


def _several() -> bool:
    return bool(st.session_state.get("runs_everywhere"))


def _controls(runs: Sequence[Run], run: Run | None, opening: Opening | None) -> list[Run]:
    """The search and what else is listed; the runs that are."""
    with st.popover("View", icon=":material/filter_list:"):
        archived = st.toggle(
            "Show archived runs",
            key="runs_archived",
            persist_state="session",
        )
        everywhere = st.toggle(
            "Show runs on all corpora",
            key="runs_everywhere",
            persist_state="session",
        )
        titles = {column.name: column.title for column in runs_table.COLUMNS[1:]}
        st.multiselect(
            "Columns",
            list(titles),
            FITTING,
            key="runs_columns",
            persist_state="session",
            format_func=titles.__getitem__,
        )
    _deleted()
    st.text_input(
        "Find runs",
        key="runs_find",
        persist_state="session",
        placeholder="Find by name, tag, state, objective, note …",
        label_visibility="collapsed",
    )
    if archived or everywhere:
        runs = listing.runs_on(session.store(), None if everywhere else opening, archived)
    listed = list(runs)
    if run is not None and run.id not in {listed_run.id for listed_run in listed}:
        listed.insert(0, run)
    return listed


def _table(frame: pd.DataFrame, ticked: Sequence[str]) -> None:
    """Draw the rows, sorted by a click on a title; those ticked are ticked."""
    ids = frame.index.tolist()
    key = f"runs_table_{hashlib.sha256('/'.join(ids).encode()).hexdigest()[:12]}"
    before = st.session_state.get(_DRAWN)
    cell = before[2] if before is not None and before[0] == key else None
    rows = [ids.index(run_id) for run_id in ticked if run_id in ids]
    state = st.session_state.get(key)
    if state is None or list(state["selection"]["rows"]) != rows:
        # it was not the browser that chose these: the address did, or a click on a row
        st.session_state[key] = {"selection": {"rows": rows, "columns": [], "cells": [] if cell is None else [cell]}}
    st.session_state[_DRAWN] = (key, ids, cell)
    columns = [column for column in runs_table.COLUMNS if column.name in frame and _wanted(column.name, frame)]
    st.dataframe(
        pd.DataFrame({column.name: _drawn(frame[column.name], column.kind) for column in columns}),
        key=key,
        on_select=_chosen,
        selection_mode=["multi-row", "single-cell"],
        # of a table that the browser mounts anew
        selection_default={"selection": {"rows": rows}},
        hide_index=True,
        lazy=False,
        height=tables.height(len(ids), ROWS),
        placeholder="",
        alt=f"Table of {len(ids):,} runs: " + ", ".join(column.title.lower() for column in columns),
        column_config={column.name: _config(column) for column in columns},
    )


def _wanted(name: str, frame: pd.DataFrame) -> bool:
    """Whether the column is drawn: the name always, the corpus where runs of several are listed."""
    if name == runs_table.BELOW and not frame[name].notna().any():
        return False
    always = (runs_table.COLUMNS[0].name, *((runs_table.CORPUS,) if _several() else ()))
    return name in (*always, *st.session_state.get("runs_columns", FITTING))


def _drawn(cells: pd.Series, kind: str) -> pd.Series:
    """Cells in the units in which they are drawn."""
    if kind == SHARE:
        return 100 * cells
    return cells.round(1) if kind == SECONDS else cells


def _config(column: runs_table.Column) -> Any:
    about: dict[str, Any] = {
        "label": column.title,
        "help": column.help or None,
        "width": WIDTHS.get(column.name, NARROW),
    }
    if column.kind == TEXT:
        return st.column_config.TextColumn(**about)
    if column.kind == TAGS:
        return st.column_config.ListColumn(**about)
    if column.kind == MOMENT:
        return st.column_config.DatetimeColumn(format="distance", **about)
    formats = {SHARE: "%.1f %%", NUMBER: "%.4g", COUNT: "compact", SECONDS: "localized"}
    return st.column_config.NumberColumn(format=formats[column.kind], **about)


def _chosen() -> None:
    """Take what was ticked or clicked in the table, by the ids under which it was drawn."""
    key, ids, cell_before = st.session_state[_DRAWN]
    selection = st.session_state[key]["selection"]
    cell = next(iter(selection["cells"]), None)
    if cell is not None and cell != cell_before and cell[0] < len(ids):
        ticked = [ids[cell[0]]]
    else:
        ticked = [ids[row] for row in sorted(selection["rows"]) if row < len(ids)]
    st.session_state[_DRAWN] = (key, ids, cell)
    st.session_state[TICKED] = ticked
    if len(ticked) == 1:
        st.session_state[_SHOWN] = ticked[0]
        _show(ticked[0])


def _show(run_id: str) -> None:
    """Show a run: a finished one on the open corpus is the current selection from now on."""
    run, opening = session.existing_run(run_id), session.current_opening()
    if run is not None and run.has_selection and listing.is_on(run, opening):
        views.choose_run(run_id)
    else:
        views.change(watched=run_id)


def _actions(shown: Sequence[Run], listed: Sequence[Run]) -> None:
    """What can be done with these runs."""
    if not shown:
        return
    several = len(shown) > 1
    archived = [run.id for run in shown if run.label().archived]
    ids = [run.id for run in shown]
    done = [run.id for run in shown if run.status().state == "done"][: comparison.MOST]
    active = any(run.status().active for run in shown)
    if several:
        st.caption(f"{len(shown):,} runs", width="content")
        views.page_link(
            "pages/compare.py",
            "Compare",
            ":material/compare_arrows:",
            address=views.address_with(compared=tuple(done)),
            disabled=len(done) < 2,
            width="content",
        )
    else:
        # a damaged record has no name to change
        with contextlib.suppress(DatamaskError), st.popover("Name and notes", icon=":material/edit:"):
            label_panel.edit(shown[0], listing.tags_of(listed))
    away = len(archived) < len(ids)
    st.button(
        "Archive" if away else "Bring back",
        key="archive_ticked",
        icon=":material/archive:" if away else ":material/unarchive:",
        on_click=_archive,
        args=(ids, away),
    )
    st.button(
        "Delete",
        key="remove_run",
        icon=":material/delete:",
        disabled=active,
        on_click=_delete,
        args=(ids,),
    )


def _archive(ids: Sequence[str], away: bool) -> None:
    with _said_if_refused():
        for run_id in ids:
            session.store().get(run_id).relabel(archived=away)
        if away and not st.session_state.get("runs_archived"):
            _let_go(ids)


def _delete(ids: Sequence[str]) -> None:
    gone: list[str] = []
    with _said_if_refused():
        for run_id in ids:
            session.store().discard(run_id)
            gone.append(run_id)
    st.session_state[_LAST_DELETED] = gone
    _let_go(gone)


def _let_go(ids: Sequence[str]) -> None:
    """These are shown no longer."""
    st.session_state[TICKED] = [run_id for run_id in st.session_state.get(TICKED, ()) if run_id not in ids]
    if views.now().watched in ids:
        views.change(watched="")
    if views.now().run in ids:
        views.choose_run("")


def _restore(ids: Sequence[str]) -> None:
    with _said_if_refused():
        for run_id in ids:
            session.store().restore(run_id)
        if ids:
            _show(ids[0])
    st.session_state[_LAST_DELETED] = []
    st.session_state.pop("restore_runs", None)


@contextlib.contextmanager
def _said_if_refused() -> Iterator[None]:
    """What cannot be done is said when the page is drawn again."""
    try:
        yield
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)


def _deleted() -> None:
    """Take back what was deleted: the last ones by a press, any of the last day by name."""
    deleted = {run.run_id: run for run in reversed(session.store().deleted())}
    if not deleted:
        return
    last = [run_id for run_id in st.session_state.get(_LAST_DELETED, ()) if run_id in deleted]
    if last:
        st.button(
            "Undo" if len(last) == 1 else f"Undo, {len(last)} runs",
            key="undo_delete",
            icon=":material/undo:",
            on_click=_restore,
            args=(last,),
        )
    with st.popover(f"Deleted, {len(deleted):,}", icon=":material/delete:"):
        names = {run_id: _name(run) for run_id, run in reversed(deleted.items())}
        names = listing.unlike(names)
        wanted = st.multiselect(
            "Deleted in the last day",
            list(names),
            key="restore_runs",
            format_func=names.__getitem__,
            placeholder="Choose runs to restore",
            help="Runs deleted more than a day ago are gone.",
        )
        st.button(
            "Restore",
            key="restore",
            icon=":material/undo:",
            disabled=not wanted,
            on_click=_restore,
            args=(wanted,),
        )


def _name(deleted: DeletedRun) -> str:
    name = deleted.run_id
    with contextlib.suppress(DatamaskError):
        name = Run(deleted.folder).config.name or name
    return f"{name}  ·  deleted {words.ago(deleted.deleted)}"
