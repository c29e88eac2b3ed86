"""Selected share of each class, one mark per run."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, words

SHAPES = ("circle", "diamond", "triangle-up", "square")

STEP = 22
"""Pixels of a class' line."""


def shares(
    table: pd.DataFrame, labels: Sequence[str], ratios: Sequence[float], title: str, *, dark: bool = False
) -> go.Figure:
    """The largest class on top.

    Args:
        table: of `comparison.by_category`.
        labels, ratios: the runs in their order, and what share of all rows each selects: the dashed line that a run
            without preference would stay on.
        title: of the classes.
        dark: whether the page's ground is dark.
    """
    tone = palette.shades(dark)
    classes = table.drop_duplicates("category").sort_values("n", ascending=False, kind="stable")
    places = {category: place for place, category in enumerate(classes["category"])}
    most = 100 * max([*table["share"], *ratios])
    drawn = figures.figure(
        figures.axis(nticks=6, range=[-0.025 * most, 1.025 * most], **figures.PERCENT),
        figures.rows([f"{figures.ended(row.category, 140)}  (n {row.n:,})" for row in figures.records(classes)]),
        height=STEP * len(places) + figures.NUMBERS + figures.LINE + 8,
        dark=dark,
    )
    figures.write_below(drawn, "selected share", dark)
    for ratio in dict.fromkeys(ratios):
        figures.line_across(drawn, tone.random, x=100 * ratio, dash="2px,3px")
    for label, color, symbol in zip(labels, palette.categories(len(labels)), SHAPES):
        marks = table[table["run"] == label]
        drawn.add_trace(
            go.Scatter(
                x=100 * marks["share"],
                y=[places[category] for category in marks["category"]],
                mode="markers",
                cliponaxis=False,
                name=figures.cut(label, 420),
                showlegend=True,
                marker={"color": color, "symbol": symbol, "size": 10, "opacity": 0.95},
                text=[
                    figures.hover(
                        (title, row.category),
                        ("", row.run),
                        ("selected share", words.percent(row.share, 1)),
                        ("selected", f"{row.selected:,}"),
                        ("of", f"{row.n:,}"),
                    )
                    for row in figures.records(marks)
                ],
                **figures.HOVER,
            )
        )
    return drawn
