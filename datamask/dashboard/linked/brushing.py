"""The filters of the linked views: what a session has brushed on a corpus, and the rows that pass, for every view.

Conditions live in the session, per corpus. The mask of a single condition is kept for all sessions, so that brushing
one view costs one new test of the rows and not one per view.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.map import canvas_map
from datamask.dashboard.map.filters import Condition, Filters, Holding, Inside, Rows

SELECTED = "selected"
"""Name of the column that says what is selected."""

MAP = "explore_map"
"""Key of the map whose regions are conditions too."""

SEARCH = "explore_search"
FILTERS = "explore_filters"
"""Of the session state: the corpus's fingerprint and its `Filters`; None for the fingerprint: the next corpus's."""


@dataclass(frozen=True)
class Linked:
    """The rows and what is let through.

    Attributes:
        corpus: whose rows.
        rows: what conditions look at.
        filters: the conditions that hold now.
        key: names run and projection: conditions on them mean other rows elsewhere.
        selection: names the selection that the rows are divided by.
    """

    corpus: Corpus
    rows: Rows
    filters: Filters
    key: str
    selection: str = ""

    def mask(self, skip: Iterable[str] = ()) -> np.ndarray:
        """The rows that are shown, bool ``(N,)``, but for the conditions named."""
        return self.filters.mask(self.rows, skip, lambda condition, _: self.meeting(condition))

    def meeting(self, condition: Condition) -> np.ndarray:
        """The rows that meet one condition, be it one of those that hold or not: bool ``(N,)``, read-only."""
        # most conditions hold whatever is selected: they are not tested again when λ moves
        key = f"{self.key} {self.selection}" if condition.name == SELECTED else self.key
        return _mask(self.corpus.identity, key, _key_text(condition), condition, self.rows)


@st.cache_resource(max_entries=48, show_spinner=False)
def _mask(identity: str, key: str, text: str, _condition: Condition, _rows: Rows) -> np.ndarray:
    mask = _condition.mask(_rows)
    mask.flags.writeable = False
    return mask


def _key_text(condition: Condition) -> str:
    if isinstance(condition, Inside):
        return "inside " + " ".join(region.corners.tobytes().hex() for region in condition.regions)
    return repr(condition)


def kept(corpus: Corpus) -> Filters:
    """The conditions of this session on this corpus, regions on the map aside; those of another corpus are let go,
    with its regions."""
    fingerprint, filters = st.session_state.get(FILTERS, (None, Filters()))
    if fingerprint not in (None, corpus.fingerprint):
        filters = Filters()
        canvas_map.clear(MAP)
    st.session_state[FILTERS] = (corpus.fingerprint, filters)
    return filters


def joined(kept: tuple[str | None, Filters] | None, more: tuple[str | None, Filters]) -> tuple[str | None, Filters]:
    """What is kept with more conditions, for whatever corpus comes."""
    filters = kept[1] if kept is not None else Filters()
    for condition in more[1].conditions:
        filters = filters.taking(condition)
    return None, filters


def take(corpus: Corpus, condition: Condition | None, name: str = "") -> None:
    """One more condition, in the place of the one of its name; None lets go of the one called `name`."""
    filters = kept(corpus)
    filters = filters.without(name) if condition is None else filters.taking(condition)
    st.session_state[FILTERS] = (corpus.fingerprint, filters)


def let_go(corpus: Corpus, name: str, map_name: str) -> None:
    """Without the condition of that name, wherever it is kept. For a button's `on_click`."""
    if name == Inside(()).name:
        canvas_map.clear(map_name)
    else:
        take(corpus, None, name)
    if name == Holding("").name:
        st.session_state[SEARCH] = ""


def let_go_of_all(corpus: Corpus, map_name: str) -> None:
    """Without any condition. For a button's `on_click`."""
    st.session_state[FILTERS] = (corpus.fingerprint, Filters())
    st.session_state[SEARCH] = ""
    canvas_map.clear(map_name)


def search(corpus: Corpus) -> None:
    """Take over the words in the search box. For its `on_change`."""
    words = st.session_state[SEARCH].strip()
    take(corpus, Holding(words) if words else None, Holding("").name)
