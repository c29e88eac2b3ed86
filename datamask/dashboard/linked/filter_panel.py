"""Why so much is shown: the search box, a chip for each condition, and the way back to everything."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard.drawing import words
from datamask.dashboard.linked import brushing
from datamask.dashboard.linked.brushing import Linked
from datamask.dashboard.map import shared_view
from datamask.dashboard.map.filters import Holding, Inside


def search(view: Linked) -> None:
    """The search box; nothing where the corpus has no texts."""
    if view.rows.texts is not None:
        condition = view.filters.of("search")
        st.session_state.setdefault(brushing.SEARCH, condition.text if isinstance(condition, Holding) else "")
        st.text_input(
            "Search the texts",
            key=brushing.SEARCH,
            placeholder="words",
            on_change=brushing.search,
            args=(view.corpus,),
            help="Shows samples whose text holds all of these words, in any order. "
            "All samples are searched, not only the drawn ones.",
        )


def conditions(view: Linked, map_name: str) -> None:
    """The conditions of the filter, and the way back to everything; nothing where there is none.

    Args:
        map_name: of the map whose regions a chip stands for.
    """
    if not view.filters:
        return
    for condition in view.filters.conditions:
        st.button(
            words.plain(condition.description, 60),
            key=f"chip_{condition.name}",
            icon=":material/close:",
            type="tertiary",
            on_click=brushing.let_go,
            args=(view.corpus, condition.name, map_name),
            help="Press to let go of this condition.",
        )
    st.button(
        "Show all again",
        key="clear_all",
        icon=":material/restart_alt:",
        type="tertiary",
        on_click=brushing.let_go_of_all,
        args=(view.corpus, map_name),
        help="Lets go of every condition and of the region on the map.",
    )
    inside = view.filters.of(Inside(()).name)
    if shared_view.too_long(view.filters, inside.regions if isinstance(inside, Inside) else ()):
        st.caption("Too much for the page's address: a reload or a sent link will not bring all of it back.")
