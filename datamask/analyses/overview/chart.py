"""Charts of the Data page."""

from __future__ import annotations

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette


def quality_histogram(table: pd.DataFrame, *, label: str = "quality", height: int = 190) -> go.Figure:
    """A histogram.

    Args:
        table: of `tables.quality_histogram`.
        label: the quality column's name, for the axis.
        height: of the whole figure, in pixels.
    """
    tone = palette.THEMED
    drawn = figures.figure(
        figures.axis(figures.plain(label), grid=False, nticks=9),
        figures.axis("rows", nticks=5, tickformat=",d", rangemode="tozero"),
        height=height,
    )
    drawn.add_trace(
        go.Bar(
            x=table["low"],
            width=table["high"] - table["low"],
            offset=0,
            y=table["rows"],
            marker={"color": tone.quality, "line": {"color": tone.ground, "width": 1}},
            hovertext=[
                figures.hover(("from", f"{bar.low:.3f}"), ("to", f"{bar.high:.3f}"), ("rows", f"{bar.rows:,}"))
                for bar in figures.records(table)
            ],
            **figures.BAR_HOVER,
        )
    )
    return drawn
