"""Charts of one sample: the waterfall of its score, and the lambdas at which it is in."""

from __future__ import annotations

import pandas as pd
from plotly import graph_objects as go

from datamask.analyses.explanation.tables import AGAINST, FOR, TOTAL
from datamask.dashboard.drawing import figures, palette, words

STEP = 24
"""Pixels of a bar's line."""


def waterfall(table: pd.DataFrame, low: float, high: float) -> go.Figure:
    """Bars that begin where the one above ends; the line at 0 is the threshold.

    Args:
        table: of `tables.waterfall`.
        low, high: the farthest that any bar reaches.
    """
    tone = palette.THEMED
    room = 0.4 * max(high - low, 1e-9)  # for the numbers beside the bars
    drawn = figures.figure(
        figures.axis("standard deviations<br>from the threshold", nticks=5, range=[low - room, high + room]),
        figures.rows(list(table["part"]), 120, grid=False),
        height=STEP * len(table) + figures.NUMBERS + 2 * figures.LINE + 8,
    )
    for kind, color in ((FOR, tone.accent), (AGAINST, tone.best), (TOTAL, tone.random)):
        there = table["kind"] == kind
        bars = table[there]
        read = [
            figures.hover(("", row.part), ("adds", words.signed(row.amount, 3)), ("then at", words.signed(row.end, 3)))
            for row in figures.records(bars)
        ]
        figures.add(
            drawn,
            bars["end"] - bars["start"] if len(bars) else [None],
            there.to_numpy().nonzero()[0] if len(bars) else [0],
            kind,
            read,
            go.Bar,
            orientation="h",
            base=bars["start"] if len(bars) else [0.0],
            width=0.7,
            marker={"color": color},
            text=[words.signed(amount, 2) for amount in bars["amount"]],
            textposition="outside",
            textangle=0,
            constraintext="none",
            textfont=figures.HALO,
            cliponaxis=False,
        )
    drawn.add_vline(0, line_color=tone.text, **figures.ACROSS)
    return drawn


def strip(table: pd.DataFrame, *, height: int = 126) -> go.Figure:
    """A dot per stored run over lambda: filled where the sample is in, else a ring.

    Args:
        table: of `tables.strip`.
        height: of the whole figure, in pixels.
    """
    tone = palette.THEMED
    drawn = figures.figure(
        figures.axis("λ (0: diversity alone,<br>1: quality alone)", grid=False, range=[-0.04, 1.04], dtick=0.2),
        figures.axis(visible=False, range=[-1, 1]),
        height=height,
    )
    own, mark = table[table["here"]], {"symbol": "line-ns", "size": 13, "line": {"width": 2, "color": tone.text}}
    figures.add(drawn, own["lambda"], [0] * len(own), mode="markers", marker=mark, opacity=0.6)
    for state, color, symbol in (("in", tone.accent, "circle"), ("out", tone.random, "circle-open")):
        dots = table["lambda"][table["state"] == state]
        read = [figures.hover(("λ", f"{lamb:g}"), ("this row is", state)) for lamb in dots]
        mark = {"size": 11, "color": color, "symbol": symbol, "line": {"width": 2, "color": color}}
        x = dots if len(dots) else [None]
        figures.add(drawn, x, [0] * len(x), state, read, mode="markers", marker=mark)
    return drawn
