"""The runs that are compared, at most four: a choice that Compare and the Evidence page share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from datamask.analyses.comparison import panel, tables
from datamask.analyses.comparison.entries import entries_of
from datamask.analyses.comparison.tables import Entry
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import candidates, label_panel, listing
from datamask.dashboard.runs.candidates import Refused
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.workspace.current import Current
from datamask.runs.store import Run

KEY = "compare"
"""Of the menu of runs."""


@dataclass(frozen=True)
class Compared:
    """What was chosen, and from what.

    Attributes:
        corpus: the open one. runs: those compared, A first; entries: what is drawn of each of them, and last of the
            current selection, where it is no run and the page compares it too.
        refused: runs that cannot be compared, each with the reason.
    """

    corpus: Corpus
    runs: Sequence[Run]
    entries: Sequence[Entry]
    refused: Sequence[Refused]


def choose(current: Current | None = None, *, needed: int = 2) -> Compared:
    """Draw the choice; where there is none, or too few are chosen, say what to do and end the page.

    Args:
        current: what the page shows. Where that selection is no run, it is compared with the runs.
        needed: how many runs there is something to show of, 1 or 2; one less where the selection is compared too.
    """
    selection = None if current is None else current.selection
    now = current if selection is not None and selection.run is None else None
    needed -= now is not None
    opened = session.opened_or_stop()
    corpus = opened.corpus
    everyone, refused = candidates.candidates(
        session.store().list(), corpus.fingerprint, archived=True, config=opened.config
    )
    archived = st.session_state.get("compare_archived", False)
    runs = [run for run in everyone if archived or not run.label().archived]
    names = listing.unlike({run.id: listing.name_of(run) for run in everyone})
    if len(runs) < needed and not archived:
        _too_few(runs, names, len(everyone) - len(runs), needed, now is not None)
        panel.draw_refused(refused)
        st.stop()
    by_id = {run.id: run for run in everyone}
    chosen, why = [run_id for run_id in views.now().compared if run_id in by_id][: tables.MOST], ""
    if not chosen and len(runs) > 1:
        pair = candidates.first_pair(runs, session.opened_runs())
        chosen, why = [pair.first.id, pair.second.id], pair.why
    elif not chosen and len(runs) == needed == 1:
        chosen = [runs[0].id]
    _menu(everyone, runs, names, chosen, needed)
    if why:
        st.caption(f"Comparing {why}.")
    if len(chosen) < needed:
        one = "Choose a run." if now is None else "Choose a run to compare the current selection with."
        st.info(one if needed == 1 else "Choose at least two runs.")
        panel.draw_refused(refused)
        st.stop()
    compared = [by_id[run_id] for run_id in chosen]
    shown = None if now is None else now.workspace.run
    return Compared(corpus, compared, entries_of(compared, opened, selection, shown), refused)


def _menu(
    everyone: Sequence[Run], runs: Sequence[Run], names: Mapping[str, str], chosen: list[str], needed: int
) -> None:
    """The runs that are compared, in a menu.

    Args:
        runs: those of `everyone` that are offered. chosen: ids. needed: how many of them at least.
    """
    st.session_state[KEY] = chosen
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        # those chosen before stay in the menu, or a search would take them off the page
        matching = {run.id for run in listing.matching(runs, st.session_state.get("compare_find", ""))}
        matching.update(chosen)
        st.multiselect(
            "Runs",
            [run.id for run in everyone if run.id in matching],
            key=KEY,
            max_selections=tables.MOST,
            format_func=names.__getitem__,
            width="stretch",
            placeholder="Choose up to four" if needed == 1 else "Choose two to four",
            help="The first run is A. The others are compared with A.",
            on_change=_take,
        )
        label_panel.find("compare")
        if chosen:
            described = [run for run_id in chosen for run in everyone if run.id == run_id]
            label_panel.edit_any(described, names, listing.tags_of(everyone), "compare")


def _take() -> None:
    views.change(compared=tuple(st.session_state[KEY]))


def _too_few(runs: Sequence[Run], names: Mapping[str, str], archived: int, needed: int, beside: bool) -> None:
    """How many runs are needed, and the way to them.

    Args:
        beside: whether they are to be compared with the current selection.
    """
    with st.container(border=True):
        which = "one more finished run" if runs else "a finished run" if needed == 1 else "two finished runs"
        st.subheader(f"This page needs {which}", anchor=False)
        if runs:
            st.write(f"This corpus has one finished run, **{words.named(names[runs[0].id], 80)}**.")
        if beside or needed > 1:
            st.write("Choose another λ, objective, ratio or method.")
        else:
            st.write("Start one, or store the current selection with *Keep as run*.")
        address = views.now().address
        views.page_link("pages/runs.py", "Start a run", address=address)
    if archived:
        st.caption(f"{archived:,} more are archived.")
        st.toggle("Show archived runs", key="compare_archived", persist_state="session")
