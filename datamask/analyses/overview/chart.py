"""Charts of the Data page."""

from __future__ import annotations

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette


def quality_histogram(table: pd.DataFrame, *, label: str = "quality", height: int = 190) -> go.Figure:
    """A histogram of `tables.quality_histogram`; its label is the quality column's name, its height in pixels."""
    drawn = figures.figure(
        figures.axis(figures.plain(label), grid=False, nticks=9),
        figures.axis("rows", nticks=5, tickformat=",d", rangemode="tozero"),
        height=height,
    )
    read = [
        figures.hover(("from", f"{bar.low:.3f}"), ("to", f"{bar.high:.3f}"), ("rows", f"{bar.rows:,}"))
        for bar in figures.records(table)
    ]
    look = {
        "width": table["high"] - table["low"],
        "offset": 0,
        "marker": {"color": palette.THEMED.quality, "line": figures.SEAM},
    }
    figures.add(drawn, table["low"], table["rows"], "", read, go.Bar, **look)
    return drawn
