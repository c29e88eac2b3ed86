"""The near-copy rate against the size of the corpus."""

from __future__ import annotations

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, words

DASHES = {"counted": "solid", "projected": "5px,4px"}


def copies(table: pd.DataFrame, *, dark: bool = False, height: int = 180) -> go.Figure:
    """Both curves, the band of the projection, and a mark at the corpus itself.

    Args:
        table: of `overview.tables.copy_curve`.
        dark: whether the page's ground is dark.
        height: of the whole figure, in pixels.
    """
    tone = palette.shades(dark)
    drawn = figures.figure(
        figures.log_axis("rows", float(table["rows"].min()), float(table["rows"].max())),
        figures.axis("rows with a<br>semantic duplicate", nticks=5, rangemode="tozero", **figures.PERCENT),
        height=height,
        dark=dark,
    )
    projected = table[table["of"] == "projected"]
    figures.band(
        drawn, projected["rows"], 100 * projected["low"], 100 * projected["high"], figures.faded(tone.accent, 0.18)
    )
    for of, dash in DASHES.items():
        drawn.add_trace(
            _trace(
                table[table["of"] == of],
                mode="lines",
                name=of,
                showlegend=True,
                line={"color": tone.accent, "width": 2, "dash": dash},
            )
        )
    drawn.add_trace(_trace(table[table["whole"]], mode="markers", marker={"color": tone.accent, "size": 9}))
    return drawn


def _trace(points: pd.DataFrame, **look) -> go.Scatter:
    return go.Scatter(
        x=points["rows"],
        y=100 * points["rate"],
        text=[
            figures.hover(
                ("", point.of),
                ("rows", f"{point.rows:,}"),
                ("with a semantic duplicate", words.percent(point.rate, 1)),
                ("from", words.percent(point.low, 1)),
                ("to", words.percent(point.high, 1)),
            )
            for point in figures.records(points)
        ],
        **figures.HOVER,
        **look,
    )
