"""The filters of the linked views: what was brushed on a corpus, and the rows that pass, for every view.

Conditions are a part of the view. The mask of a single condition is kept for all sessions, so that brushing
one view costs one new test of the rows and not one per view.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.map import shared_view
from datamask.dashboard.map.filters import Condition, Filters, Holding, Inside, Rows
from datamask.dashboard.shell import view as views

SELECTED = "selected"
"""Name of the column that says what is selected."""

MAP = "explore_map"
"""Key of the map whose regions are conditions too."""

DRAWN = (Inside(()).name, "like")
"""Names of conditions on the map's places and on the features; each is a part of the view of that name."""

SEARCH = "explore_search"
"""Key of the search box."""


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


def kept() -> Filters:
    """The conditions of the view, regions on the map aside; what cannot be read is none."""
    view = views.now()
    filters = Filters((Holding(view.search),) if view.search else ())
    with contextlib.suppress(ValueError):
        for condition in shared_view.where_of(view.where).conditions if view.where else ():
            filters = filters.taking(condition)
    return filters


def take(condition: Condition | None, name: str = "") -> None:
    """One more condition, in the place of the one of its name; None lets go of the one called `name`."""
    filters = kept().without(name) if condition is None else kept().taking(condition)
    views.change(where=shared_view.where_text(filters), search=shared_view.search_text(filters))


def let_go(name: str) -> None:
    """Without the condition of that name. For a button's `on_click`."""
    if name in DRAWN:
        views.change(**{name: ""})
    else:
        take(None, name)


def let_go_of_all() -> None:
    """Without any condition. For a button's `on_click`."""
    views.change(where="", search="", **dict.fromkeys(DRAWN, ""))


def search() -> None:
    """Take over the words in the search box. For its `on_change`."""
    views.change(search=st.session_state[SEARCH].strip())
