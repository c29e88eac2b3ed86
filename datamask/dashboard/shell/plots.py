"""How pages draw the Plotly figures that stand still (`drawing.figures`), as wide as their place."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from plotly import graph_objects as go

LEGEND = 28
"""Pixels of a legend's line, which a figure must be higher by."""

CONFIG = {"displayModeBar": False, "doubleClick": False}


def plot(figure: go.Figure, *, key: str, alt: str, on_select: Callable[[], None] | None = None) -> None:
    """Draw a figure.

    Args:
        key: of the element, and of the selection in the session's state.
        alt: what a screen reader calls it by.
        on_select: called when marks are pressed; None: they cannot be.
    """
    if any(trace.showlegend for trace in figure.data):
        figure.update_layout(height=figure.layout.height + LEGEND)
    st.plotly_chart(
        figure,
        key=key,
        theme="streamlit",
        config=CONFIG,
        width="stretch",
        alt=alt,
        on_select="ignore" if on_select is None else on_select,
        selection_mode="points",
    )
