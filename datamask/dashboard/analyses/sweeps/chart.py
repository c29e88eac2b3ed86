"""Sweeps over the select ratio and over G."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, words

DASHES = ("solid", "6px,3px", "2px,2px", "8px,3px,2px,3px", "4px,4px", "10px,2px", "1px,3px")


def ratio(table: pd.DataFrame, *, dark: bool = False, height: int = 360) -> go.Figure:
    """Quality and diversity as shares of the attainable gain over the select ratio.

    Args:
        table: of `tables.ratio_series`.
        dark: whether the page's ground is dark.
        height: of the whole figure, in pixels.
    """
    tone = palette.shades(dark)
    drawn = figures.figure(
        figures.axis("select ratio, % of the rows", grid=False, nticks=9, rangemode="tozero"),
        figures.axis("share of the attainable gain at that ratio, %", nticks=7),
        height=height,
        dark=dark,
    )
    for term, color, dash in (("quality", tone.quality, "solid"), ("diversity", tone.diversity, "6px,3px")):
        points = table[table["term"] == term].sort_values("ratio")
        drawn.add_trace(
            go.Scatter(
                x=points["ratio"],
                y=points["share"],
                mode="lines+markers",
                name=term,
                showlegend=True,
                line={"color": color, "width": 2.5, "dash": dash},
                marker={"color": color, "size": 8.5},
                text=[
                    figures.hover(
                        ("", row.term),
                        ("select ratio, %", f"{row.ratio:.4g}"),
                        ("share, %", f"{row.share:.1f}".replace("-", "−")),
                        ("raw value", words.value(row.raw)),
                        ("seeds", row.n),
                    )
                    for row in figures.records(points)
                ],
                **figures.HOVER,
            )
        )
    return drawn


def groups(table: pd.DataFrame, sizes: Sequence[int], *, dark: bool = False, height: int = 360) -> go.Figure:
    """Joint value over seconds of learning for each G, log x, the band from the worst to the best seed.

    Args:
        table: of `tables.group_series`.
        sizes: the group sizes, rising.
        dark: whether the page's ground is dark.
        height: of the whole figure, in pixels.
    """
    drawn = figures.figure(
        figures.log_axis("seconds of learning", float(table["seconds"].min()), float(table["seconds"].max())),
        figures.axis("joint value of the subset, whole corpus", nticks=7),
        height=height,
        dark=dark,
    )
    drawn.update_layout(legend={"title": {"text": "masks per step, G"}})
    curves = [(size, table[table["G"] == size].sort_values("seconds")) for size in sizes]
    colors = [palette.OKABE_ITO[place % 7] for place in range(len(sizes))]
    for (_, points), color in zip(curves, colors):
        figures.band(drawn, points["seconds"], points["low"], points["high"], figures.faded(color, 0.18))
    for place, ((size, points), color) in enumerate(zip(curves, colors)):
        drawn.add_trace(
            go.Scatter(
                x=points["seconds"],
                y=points["mean"],
                mode="lines",
                name=str(size),
                showlegend=True,
                line={"color": color, "width": 2.2, "dash": DASHES[place % len(DASHES)]},
                text=[
                    figures.hover(
                        ("G", size),
                        ("seconds", f"{row.seconds:.2f}"),
                        ("mean", f"{row.mean:.4f}"),
                        ("worst seed", f"{row.low:.4f}"),
                        ("best seed", f"{row.high:.4f}"),
                        ("seeds", row.seeds),
                    )
                    for row in figures.records(points)
                ],
                **figures.HOVER,
            )
        )
    return drawn
