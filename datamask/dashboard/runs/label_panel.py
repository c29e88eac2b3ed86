"""What people add to a run: its name, notes and tags, and whether it is put away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from datamask.dashboard.drawing import words
from datamask.errors import DatamaskError
from datamask.runs.store import Run

FIELDS = ("name", "notes", "tags", "archived")
"""How the keys of a run's fields begin."""


def find(key: str) -> tuple[str, bool]:
    """A search among runs and whether archived ones are shown, in a popover.

    Args:
        key: of the page, for the controls' keys.
    """
    search = st.session_state.get(f"{key}_find", "")
    with st.popover(
        f"Runs with “{words.plain(search, 20)}”" if search.strip() else "Find",
        icon=":material/filter_list:",
    ):
        search = st.text_input(
            "Name or tag",
            key=f"{key}_find",
            persist_state="session",
        )
        archived = st.toggle(
            "Show archived runs",
            key=f"{key}_archived",
            persist_state="session",
        )
    return search, archived


def edit_any(runs: Sequence[Run], names: Mapping[str, str], known: Sequence[str], key: str) -> None:
    """A popover with the name, notes and tags of one of these runs.

    Args:
        runs: which may be edited. names: of all, by id. known: tags to offer. key: of the page, for the controls' keys.
    """
    with st.popover("Labels", icon=":material/edit:"):
        by_id = {run.id: run for run in runs}
        if st.session_state.get(f"{key}_edit") not in by_id:
            st.session_state.pop(f"{key}_edit", None)
        run_id = st.selectbox(
            "Run",
            list(by_id),
            format_func=names.__getitem__,
            key=f"{key}_edit",
        )
        run = by_id.get(run_id, runs[0])
        edit(run, known)


def edit(run: Run, known: Sequence[str] = ()) -> None:
    """The fields of one run and a button that keeps them.

    Args:
        known: tags to offer beside the run's own.
    """
    label = run.label()
    st.text_input(
        "Name",
        run.config.name,
        key=f"name_{run.id}",
        max_chars=80,
    )
    st.text_area(
        "Notes",
        run.config.notes,
        key=f"notes_{run.id}",
        max_chars=2000,
    )
    st.multiselect(
        "Tags",
        list(dict.fromkeys([*label.tags, *known])),
        list(label.tags),
        key=f"tags_{run.id}",
        accept_new_options=True,
        placeholder="type a word, press Enter",
    )
    st.toggle(
        "Archived",
        label.archived,
        key=f"archived_{run.id}",
        help="Hides the run and deletes nothing.",
    )
    st.button("Save", key=f"save_{run.id}", type="primary", on_click=_save, args=(run,))


def _save(run: Run) -> None:
    name, notes, tags, archived = (st.session_state[f"{field}_{run.id}"] for field in FIELDS)
    try:
        run.relabel(name.strip(), notes.strip(), tags, archived)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
