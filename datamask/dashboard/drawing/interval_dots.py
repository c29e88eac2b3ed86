"""A dot with its interval for each group, coloured by the verdict on it, and a dashed line at the value of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette

STEP = 21
"""Pixels of a group's line."""

SYMBOLS = ("triangle-down", "triangle-up", "circle")


def interval_dots(
    table: pd.DataFrame,
    value: str,
    hover_texts: Sequence[str],
    verdicts: Mapping[str, str],
    *,
    overall: float,
    title: str,
    ticks: Mapping[str, Any],
    pixels: float = 210,
    dark: bool = False,
) -> go.Figure:
    """Draw the groups in the table's order, the first on top.

    Args:
        table: with ``group, low, high, verdict`` and the value's column, all in shares.
        hover_texts: what the pointer reads at each.
        verdicts: three of them with their colours: less, more and neither, which have a shape each too.
        overall: share at the dashed line.
        pixels: that a group's name takes at most.
        title, ticks: of the axis across, in percent; the title's lines are parted by ``<br>``.
    """
    ends = [0.0, 100 * overall, *(100 * table["low"]), *(100 * table["high"])]
    room = 0.03 * (max(ends) - min(ends))
    drawn = figures.figure(
        figures.axis(range=[min(ends) - room, max(ends) + room], **ticks),
        figures.rows([str(group) for group in table["group"]], pixels),
        height=STEP * len(table) + figures.NUMBERS + figures.LINE * (title.count("<br>") + 1) + 8,
        dark=dark,
    )
    figures.write_below(drawn, title, dark)
    figures.line_across(drawn, figures.faded(palette.shades(dark).text, 0.7), x=100 * overall)
    places, texts = pd.Series(range(len(table)), table.index), pd.Series(list(hover_texts), table.index, dtype=object)
    for (verdict, color), symbol in zip(verdicts.items(), SYMBOLS, strict=True):
        marker = {"color": color, "symbol": symbol, "size": 9}
        those = table[table["verdict"] == verdict]
        if those.empty:
            figures.key_only(drawn, verdict, mode="markers", marker=marker)
            continue
        drawn.add_trace(
            go.Scatter(
                x=100 * those[value],
                y=places[those.index],
                mode="markers",
                cliponaxis=False,
                name=figures.plain(verdict),
                showlegend=True,
                marker=marker,
                error_x=figures.error_bar(100 * those[value], 100 * those["low"], 100 * those["high"], color),
                text=texts[those.index],
                **figures.HOVER,
            )
        )
    return drawn
