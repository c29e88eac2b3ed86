"""What the Plotly figures of the pages share: ground and axes, bands, lines across, words, hover texts.

These figures stand still: nothing in them is dragged or zoomed, and the wheel scrolls the page. Their legend names the
traces that have a name. Plotly reads marks such as ``<b>`` in all text, so whatever
letters come from a corpus or a run pass `plain`, `cut` or `hover`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import palette, words

PERCENT: dict[str, Any] = {"ticksuffix": f"{words.GAP}%"}
"""Of an axis whose values are percentages."""

LETTERS: dict[str, Any] = {"size": 13, "color": palette.THEMED.text}
"""Of all words in a figure: the theme's own are smaller, and paler than WCAG asks for."""

LINE, NUMBERS = 18, 26
"""Pixels that a line of an axis' title takes, and its numbers."""

LETTER = 6
"""Pixels that a letter of size 13 is wide, on average and rather more."""


def figure(
    across: dict[str, Any], up: dict[str, Any], *, height: int, margin: dict[str, int] | None = None
) -> go.Figure:
    """An empty figure.

    Args:
        across, up: its axes, of `axis`.
        height: of the whole figure, in pixels.
        margin: pixels at ``l, r, t, b`` where they are not the house's; axes and legend make themselves more room.
    """
    return go.Figure(
        layout={
            "height": height,
            "font": LETTERS,
            "margin": {"l": 4, "r": 10, "t": 6, "b": 4, "pad": 0, **(margin or {})},
            "xaxis": across,
            "yaxis": up,
            "hovermode": "closest",
            "hoverdistance": 24,
            "dragmode": False,
            "barmode": "overlay",
            "showlegend": True,
            "legend": {
                "orientation": "h",
                "yanchor": "bottom",
                "y": 1.0,
                "x": 0,
                "font": LETTERS,
                "title": {"font": LETTERS, "side": "left"},
                "itemclick": False,
                "itemdoubleclick": False,
            },
            "hoverlabel": {"font": LETTERS, "align": "left"},
        }
    )


def axis(title: str = "", *, grid: bool = True, **settings: Any) -> dict[str, Any]:
    """An axis that stands still.

    Args:
        title: as it is, so `plain` where it is a user's; lines are parted by ``<br>``.
        grid: whether its values have lines across.
        settings: whatever else Plotly's axes take.
    """
    # an empty title would take room too
    named = {"title": {"text": title, "standoff": 8, "font": LETTERS}} if title else {}
    return {
        **named,
        "tickfont": LETTERS,
        "ticks": "",
        "fixedrange": True,
        "showgrid": grid,
        "zeroline": False,
        "tickangle": 0,
        **settings,
    }


def rows(labels: Sequence[str], pixels: float = 210, *, grid: bool = True) -> dict[str, Any]:
    """An upright axis with a line for each label, the first on top: the place of the k-th is k."""
    return axis(
        grid=grid,
        tickvals=list(range(len(labels))),
        ticktext=[cut(label, pixels) for label in labels],
        range=[len(labels) - 0.5, -0.5],
        ticklabelstandoff=5,
    )


def log_axis(title: str, low: float, high: float, most: int = 7) -> dict[str, Any]:
    """A logarithmic axis across, from end to end, both above 0, with up to so many round numbers."""
    ticks = [float(tick) for tick in log_ticks(low, high, most)]
    room = 0.02 * max(math.log10(high / low), 0.1)
    return axis(
        title,
        grid=False,
        type="log",
        range=[math.log10(low) - room, math.log10(high) + room],
        tickvals=ticks,
        ticktext=[words.short(tick) if tick >= 1000 else f"{tick:g}" for tick in ticks],
    )


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two above 0: of 1, 2, 5 times powers of ten those that are at most so many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [factor * 10.0**power for power in powers for factor in factors]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(ticks) <= most:
            return ticks
    return ticks[:: -(-len(ticks) // most)]


SEAM: dict[str, Any] = {"color": palette.THEMED.ground, "width": 1}
"""The line around bars that stand side by side."""


def records(table: pd.DataFrame) -> list[Any]:
    """The rows of a table, their cells as attributes."""
    return list(table.itertuples())


def plain(text: object) -> str:
    """Text of unknown origin, with Plotly's marks escaped."""
    return html.escape(str(text))


def cut(text: object, pixels: float) -> str:
    """As `plain`, ended by … where it would be wider than so many pixels."""
    return plain(ended(text, pixels))


def ended(text: object, pixels: float) -> str:
    """Text that ends by … where it would be wider than so many pixels."""
    letters, most = str(text), max(int(pixels / LETTER), 2)
    return letters if len(letters) <= most else letters[: most - 1] + "…"


def hover(*lines: tuple[str, object]) -> str:
    """What the pointer reads at a mark: names with their values; one without a name is a title."""
    return "<br>".join(f"{plain(name)}: {plain(value)}" if name else f"<b>{plain(value)}</b>" for name, value in lines)


def add(
    drawn: go.Figure,
    x: Sequence | np.ndarray | pd.Series,
    y: Sequence | np.ndarray | pd.Series,
    name: str = "",
    read: Sequence[str] | None = None,
    kind: Any = go.Scatter,
    **look: Any,
) -> None:
    """Draw marks, a line or bars.

    Args:
        name: in the legend, as it is, so `plain` or `cut` where it is a user's; "": no entry.
        read: what the pointer reads at each, of `hover`; None: it passes through.
        kind: of Plotly's traces. look: whatever else it takes.
    """
    told = (
        {"hoverinfo": "skip"} if read is None else {"hovertext": read, "hovertemplate": "%{hovertext}<extra></extra>"}
    )
    drawn.add_trace(kind(x=x, y=y, name=name, showlegend=bool(name), **told, **look))


def area(
    drawn: go.Figure, x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray, color: str, name: str = ""
) -> None:
    """A filled outline without a border, which the pointer and the eye pass through."""
    add(drawn, x, y, name, mode="lines", line={"width": 0}, fill="toself", fillcolor=color, opacity=0.2)


ACROSS: dict[str, Any] = {
    "line_dash": "3px,3px",
    "line_width": 1.2,
    "layer": "below",
    "exclude_empty_subplots": False,
}
"""Of Plotly's ``add_hline`` and ``add_vline``: a thin line behind all marks."""


def error_bar(
    values: pd.Series, low: pd.Series, high: pd.Series, color: str, thickness: float = 2
) -> dict[str, object]:
    """Return the ``error_x`` or ``error_y`` of a trace: from low to high around each value, without caps."""
    return {
        "type": "data",
        "symmetric": False,
        "array": high - values,
        "arrayminus": values - low,
        "color": color,
        "thickness": thickness,
        "width": 0,
    }


HALO: dict[str, Any] = {**LETTERS, "shadow": ", ".join([f"0 0 2px {palette.THEMED.ground}"] * 4)}
"""A font with a halo of the page's own colour, so that lines may pass behind its letters."""
