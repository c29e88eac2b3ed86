"""How pages draw the Plotly figures that stand still (`drawing.figures`): below their key, as wide as their place."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from plotly import graph_objects as go

from datamask.dashboard.drawing.legend import key_of

CONFIG = {"displayModeBar": False, "doubleClick": False}


def plot(figure: go.Figure, *, key: str, alt: str, on_select: Callable[[], None] | None = None) -> None:
    """Draw a figure below its key.

    Args:
        key: of the element, and of the selection in the session's state.
        alt: what a screen reader calls it by.
        on_select: called when marks are pressed; None: they cannot be.
    """
    with st.container(gap="xxsmall"):
        legend = key_of(figure)
        if legend:
            st.html(legend)
        st.plotly_chart(
            figure,
            key=key,
            theme=None,
            config=CONFIG,
            width="stretch",
            alt=alt,
            on_select="ignore" if on_select is None else on_select,
            selection_mode="points",
        )
