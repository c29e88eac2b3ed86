"""Why so much is shown: the search box, a chip for each condition, and the way back to everything."""

from __future__ import annotations

import numpy as np
import streamlit as st

from datamask.dashboard.drawing import words
from datamask.dashboard.linked import brushing
from datamask.dashboard.linked.brushing import Linked
from datamask.dashboard.linked.columns import WITHOUT_UNIT
from datamask.dashboard.map.filters import Between, Condition, Holding, Rows
from datamask.dashboard.shell import view as views


def search(view: Linked) -> None:
    """The search box; nothing where the corpus has no texts."""
    if view.rows.texts is not None:
        condition = view.filters.of("search")
        st.session_state[brushing.SEARCH] = condition.text if isinstance(condition, Holding) else ""
        st.text_input(
            "Search the texts",
            key=brushing.SEARCH,
            placeholder='words, or "a phrase"',
            on_change=brushing.search,
        )


def described(condition: Condition, rows: Rows) -> str:
    """A condition in words; a range of a number without a unit by the percentiles of its ends."""
    if not isinstance(condition, Between) or condition.name not in WITHOUT_UNIT:
        return condition.description
    values = np.asarray(rows.numbers[condition.name], np.float64)
    values = values[np.isfinite(values)]
    low, high = 100 * np.mean(values < condition.low), 100 * np.mean(values <= condition.high)
    return f"{condition.name}: percentile {low:.0f} to {high:.0f}"


def conditions(view: Linked) -> None:
    """The conditions of the filter, and the way back to everything; nothing where there is none."""
    if not view.filters:
        return
    for condition in view.filters.conditions:
        st.button(
            words.plain(described(condition, view.rows), 60),
            key=f"chip_{condition.name}",
            icon=":material/close:",
            type="tertiary",
            on_click=brushing.let_go,
            args=(condition.name,),
        )
    st.button(
        "Show all rows",
        key="clear_all",
        icon=":material/restart_alt:",
        type="tertiary",
        on_click=brushing.let_go_of_all,
    )
    if not views.now().fits:
        st.caption("The page's address is too short for all of these conditions. A reload or a copied link loses some.")
