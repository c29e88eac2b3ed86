"""Results measured elsewhere over lambda, one small chart per task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette

SHAPES = ("circle", "diamond", "triangle-up", "square", "cross", "triangle-down", "pentagon", "triangle-right")


def downstream(
    table: pd.DataFrame, task: str, curves: Sequence[str], *, dark: bool = False, height: int = 220
) -> go.Figure:
    """Means with their spread; what has no lambda is a line across.

    Args:
        table: of `tables.points`, of this task.
        task: whose scores they are. curves: all curves of all tasks, so that each keeps its colour and mark.
        dark: whether the page's ground is dark.
        height: of the whole figure, in pixels.
    """
    tone = palette.shades(dark)
    colors = [tone.accent, *palette.categories(len(SHAPES))[1:]]
    drawn = figures.figure(
        figures.axis("λ: 0 diversity alone, 1 quality alone", grid=False, range=[-0.03, 1.03], dtick=0.2),
        figures.axis(figures.cut(task, height), nticks=6),
        height=height,
        dark=dark,
    )
    for place, curve in enumerate(curves):
        color, symbol, dash = (looks[place % len(looks)] for looks in (colors, SHAPES, figures.DASHES))
        points = table[table["curve"] == curve].sort_values("lamb")
        look = {"line": {"color": color, "width": 1.8, "dash": dash}}
        marked = {**look, "mode": "lines+markers", "marker": {"color": color, "symbol": symbol, "size": 9}}
        across, along = points[points["lamb"].isna()], points[points["lamb"].notna()]
        figures.key_only(drawn, figures.cut(curve, 300), **(marked if across.empty else {**look, "mode": "lines"}))
        for point in figures.records(across):
            drawn.add_trace(
                go.Scatter(
                    x=np.linspace(0, 1, 21),
                    y=np.full(21, point.mean),
                    mode="lines",
                    text=[_hover_text(point)] * 21,
                    **figures.HOVER,
                    **look,
                )
            )
        if len(along):
            drawn.add_trace(
                go.Scatter(
                    x=along["lamb"],
                    y=along["mean"],
                    error_y={
                        "type": "data",
                        "array": (along["high"] - along["mean"]).fillna(0.0),
                        "color": color,
                        "thickness": 2,
                        "width": 0,
                    },
                    text=[_hover_text(point) for point in figures.records(along)],
                    **figures.HOVER,
                    **marked,
                )
            )
    return drawn


def _hover_text(point) -> str:
    facts: list[tuple[str, object]] = [("", point.curve)]
    facts += [("λ", f"{point.lamb:g}")] if np.isfinite(point.lamb) else []
    facts += [("mean", f"{point.mean:.4f}")]
    if np.isfinite(point.low):
        facts += [("less one sd", f"{point.low:.4f}"), ("plus one sd", f"{point.high:.4f}")]
    return figures.hover(*facts, ("numbers", point.seeds))
