"""The two to four runs that are compared: a choice that Compare and the Evidence page share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.analyses.comparison import candidates, panel, tables
from datamask.dashboard.analyses.comparison.candidates import Refused
from datamask.dashboard.analyses.comparison.tables import Entry
from datamask.dashboard.drawing import words
from datamask.dashboard.frame import sections
from datamask.dashboard.runs import label_panel, listing
from datamask.dashboard.shell import menus, session
from datamask.runs.store import Run


@dataclass(frozen=True)
class Compared:
    """What was chosen, and from what.

    Attributes:
        corpus: the open one. runs: those compared, A first; entries: what is drawn of each of them.
        everyone: all finished runs on the corpus; names: theirs by id. refused: the others, each with the reason.
    """

    corpus: Corpus
    runs: Sequence[Run]
    entries: Sequence[Entry]
    everyone: Sequence[Run]
    names: Mapping[str, str]
    refused: Sequence[Refused]

    @property
    def ids(self) -> list[str]:
        """Of those compared."""
        return [run.id for run in self.runs]


def choose() -> Compared:
    """Draw the choice; where there is none, or less than two are chosen, say what to do and end the page."""
    opened = session.opened_or_stop()
    corpus = opened.corpus
    everyone, refused = candidates.candidates(
        session.store().list(), corpus.fingerprint, archived=True, config=opened.config
    )
    archived = st.session_state.get("compare_archived", False)
    runs = [run for run in everyone if archived or not run.label().archived]
    names = listing.unlike({run.id: listing.name_of(run) for run in everyone})
    if len(runs) < 2 and not archived:
        _too_few(runs, names, len(everyone) - len(runs))
        panel.draw_refused(refused)
        st.stop()
    session.current_run()
    menus.settle("compare", names)
    panel.begin(runs)
    st.session_state["compare"] = list(st.session_state.get("compare", ()))
    by_id = {run.id: run for run in everyone}
    chosen = [run_id for run_id in _menu(everyone, runs, names) if run_id in by_id]
    panel.say_begun(chosen)
    if len(chosen) < 2:
        st.info("Choose at least two runs.")
        panel.draw_refused(refused)
        st.stop()
    compared = [by_id[run_id] for run_id in chosen]
    return Compared(corpus, compared, tables.load(compared, len(corpus)), everyone, names, refused)


def _menu(everyone: Sequence[Run], runs: Sequence[Run], names: Mapping[str, str]) -> list[str]:
    """The ids that are chosen.

    Args:
        runs: those of `everyone` that are offered.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        # those chosen before stay in the menu, or a search would take them off the page
        matching = {run.id for run in listing.matching(runs, st.session_state.get("compare_find", ""))}
        matching.update(st.session_state["compare"])
        chosen = st.multiselect(
            "Runs",
            [run.id for run in everyone if run.id in matching],
            key="compare",
            max_selections=tables.MOST,
            persist_state="session",
            format_func=names.__getitem__,
            width="stretch",
            placeholder="Choose two to four",
            help="Finished runs on the open corpus, newest first. The first one chosen is A, which the "
            "others are held against.",
        )
        label_panel.find("compare")
        if chosen:
            described = [run for run_id in chosen for run in everyone if run.id == run_id]
            label_panel.edit_any(described, names, listing.tags_of(everyone), "compare")
    return chosen


def _too_few(runs: Sequence[Run], names: Mapping[str, str], archived: int) -> None:
    """What is needed, and the way to it."""
    with st.container(border=True):
        st.subheader(
            "Two finished runs on this corpus are needed" if not runs else "One more finished run is needed",
            anchor=False,
        )
        begun = f"There is one: **{words.plain(names[runs[0].id], 80)}**. Start another" if runs else "Start two"
        st.write(
            f"{begun} with a different balance λ, objective or ratio; a random subset or top quality makes a good "
            "baseline. Then they can be held against each other here."
        )
        if st.session_state.get(session.SHOWN) == "Runs":
            st.button(
                "Start a run",
                key="start_another",
                icon=":material/arrow_forward:",
                type="tertiary",
                on_click=sections.turn_to,
                args=("Runs", "All runs"),
                help="Goes to the form beside all runs.",
            )
        else:
            st.page_link(
                "pages/runs.py",
                label="Start a run",
                icon=":material/arrow_forward:",
                query_params=session.link_parameters(),
            )
    if archived:
        st.caption(f"{archived:,} more are archived.")
        st.toggle(
            "Show archived runs",
            key="compare_archived",
            persist_state="session",
            help="Runs that were put away are left out of every menu, unless this is on.",
        )
