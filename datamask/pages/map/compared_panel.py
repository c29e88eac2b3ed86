"""The current selection held against a run, on the Map: how much they share, and which rows one of them selects."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from datamask.analyses.comparison import panel as comparison_panel
from datamask.analyses.comparison.entries import entries_of
from datamask.analyses.comparison.tables import Entry
from datamask.analyses.samples import sample_panel
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.map.layers import Change
from datamask.dashboard.runs import candidates
from datamask.dashboard.shell import chosen, session
from datamask.dashboard.shell import view as views
from datamask.dashboard.workspace.current import Current
from datamask.errors import DatamaskError
from datamask.runs.store import Run


@dataclass(frozen=True)
class Compared:
    """The two selections.

    Attributes:
        run: the one that the current selection is held against. entries: A, of this run, and B, the current one.
    """

    run: Run
    entries: tuple[Entry, Entry]

    @property
    def layer(self) -> Change:
        """What the map draws where it is colored by what is selected."""
        first, second = self.entries
        return Change.between(f"{second.label} against {first.label}", first.selected, second.selected)


def compared(current: Current) -> Compared | None:
    """What is compared now; None: nothing, or the run is the current selection itself, or was deleted."""
    selection, workspace = current.selection, current.workspace
    named = views.now().against
    run = next((run for run in workspace.runs if run.id == named), None)
    if run is None or selection is None or (selection.run is not None and selection.run.id == run.id):
        return None
    try:
        runs = [run] if selection.run is None else [run, selection.run]
        first, second = entries_of(runs, workspace.opened, selection, workspace.run)
    except DatamaskError:  # deleted or damaged since it was listed; the Runs page says so
        return None
    return Compared(run, (first, second))


def offer(current: Current, now: Compared | None) -> None:
    """The button that compares, or ends the comparison; nothing where there is no run to compare with."""
    if now is not None:
        st.button("End comparison", key="map_compare_end", icon=":material/close:", on_click=_end)
    elif (run := _other(current)) is not None:
        st.button(
            "Compare",
            key="map_compare",
            icon=":material/compare:",
            on_click=_begin,
            args=(current.workspace.corpus, run.id),
        )


def show(now: Compared) -> None:
    """Overlap and values of both, and the way to the whole comparison."""
    first, second = now.entries
    with st.container(gap=None):  # it shows nothing and takes no room
        sample_panel.begin_reading(f"{first.label} {second.label}")
    st.markdown(
        f"**A** {words.named(first.label.partition(' · ')[2], 40)}  \n"
        f"**B** {words.named(second.label.partition(' · ')[2], 40)}"
    )
    comparison_panel.summary(now.entries, narrow=True)
    views.page_link(
        "pages/compare.py",
        "Maps, texts and groups of both",
        address=views.address_with(compared=tuple(entry.run_id for entry in now.entries if entry.run_id)),
    )


def _other(current: Current) -> Run | None:
    """The run that was looked at before the current selection, else the newest other one."""
    selection, workspace = current.selection, current.workspace
    if selection is None:
        return None
    if selection.run is None:
        return workspace.run
    if len(workspace.runs) < 2:
        return None
    opened = [selection.run.id, *(run_id for run_id in session.opened_runs() if run_id != selection.run.id)]
    try:
        return candidates.first_pair(workspace.runs, opened).first
    except DatamaskError:  # one was deleted since it was listed
        return None


def _begin(corpus: Corpus, run_id: str) -> None:
    chosen.choose(corpus, None)  # the comparison stands where a sample is read
    views.change(against=run_id)


def _end() -> None:
    views.change(against="")
