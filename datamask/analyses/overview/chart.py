"""Charts of the Data page."""

from __future__ import annotations

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, words


def quality_histogram(
    table: pd.DataFrame, *, label: str = "quality", dark: bool = False, height: int = 190
) -> go.Figure:
    """A histogram.

    Args:
        table: of `tables.quality_histogram`.
        label: the quality column's name, for the axis.
        dark: whether the page's ground is dark.
        height: of the whole figure, in pixels.
    """
    tone = palette.shades(dark)
    drawn = figures.figure(
        figures.axis(figures.plain(label), grid=False, nticks=9),
        figures.axis("rows", nticks=5, tickformat=",d", rangemode="tozero"),
        height=height,
        dark=dark,
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


def rough_frontier(table: pd.DataFrame, *, dark: bool = False, height: int = 260) -> go.Figure:
    """A frontier, random at 0, 0.

    Args:
        table: of `first_looks.FirstPicture.frontier`.
        dark: whether the page's ground is dark.
        height: of the whole figure, in pixels.
    """
    tone = palette.shades(dark)
    drawn = figures.figure(
        figures.axis("quality (0 % random, 100 % best found)", nticks=6, **figures.PERCENT),
        figures.axis("diversity (0 % random,<br>100 % best found)", nticks=6, **figures.PERCENT),
        height=height,
        dark=dark,
    )
    points = table.sort_values("lamb")
    drawn.add_trace(
        go.Scatter(
            x=100 * points["quality"],
            y=100 * points["diversity"],
            mode="lines+markers",
            line={"color": tone.accent, "width": 2, "dash": "6px,4px"},
            marker={"color": tone.accent, "size": 8},
            text=[
                figures.hover(
                    ("lambda", f"{point.lamb:g}"),
                    ("quality", words.percent(point.quality, 1)),
                    ("diversity", words.percent(point.diversity, 1)),
                )
                for point in figures.records(points)
            ],
            **figures.HOVER,
        )
    )
    for point in figures.records(points):
        # to the left of λ 0 are the numbers of the axis
        first = point.lamb == 0
        figures.write(
            drawn,
            "top quality" if point.lamb == 1 else f"λ {point.lamb:g}",
            100 * point.quality,
            100 * point.diversity,
            tone.text,
            align="left" if first else "right",
            right=4 if first else -8,
            down=14 if first else 10,
        )
    drawn.add_trace(
        go.Scatter(
            x=[0],
            y=[0],
            mode="markers",
            marker={"symbol": "square", "size": 8, "color": tone.random},
            text=["random (0 % by definition)"],
            **figures.HOVER,
        )
    )
    figures.write(drawn, "random", 0, 0, tone.random, right=8, down=-8)
    return drawn
