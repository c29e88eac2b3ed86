"""Charts of a sweep: quality and diversity over what varies."""

from __future__ import annotations

from typing import Any

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, words

TITLE = "% of the way from random to the best found"
FARTHEST = -60.0
"""Percent. A named level below it stands at the edge with its value, or it would squeeze all others."""

LOG_FROM = 20.0
"""An axis whose last value is so many times the first is logarithmic."""

HEIGHT = 460


def over_numbers(table: pd.DataFrame, title: str, *, percent: bool = False) -> go.Figure:
    """Quality and diversity over the values of a number.

    Args:
        table: of `series.ends`. title: of the axis across. percent: whether the values are shares, drawn as percent.
    """
    table = table.assign(at=table["value"].astype(float) * (100 if percent else 1)).sort_values("at", kind="stable")
    low, high = float(table["at"].min()), float(table["at"].max())
    log = low > 0 and high / low >= LOG_FROM
    across = figures.log_axis(title, low, high) if log else figures.axis(title, grid=False, nticks=9)
    if percent:
        across.update(figures.PERCENT)
    drawn = figures.figure(across, figures.axis(TITLE, nticks=7), height=HEIGHT)
    drawn.add_hline(0, line_color=palette.THEMED.random, **figures.ACROSS)
    for dash, points in zip(("solid", "6px,3px"), _terms(table)):
        _trace(drawn, points, title, x="at", y="share", mode="lines+markers", line={"width": 2.5, "dash": dash})
    return drawn


def over_levels(table: pd.DataFrame, title: str) -> go.Figure:
    """Quality and diversity of named levels, one line each, the first on top.

    Args:
        table: of `series.ends`. title: of what varies, for the pointer.
    """
    levels = list(dict.fromkeys(table["level"]))
    least, most = max(min(table["low"].min(), 0.0), FARTHEST), max(table["high"].max(), 100.0)
    room = 0.04 * (most - least)
    drawn = figures.figure(
        figures.axis(TITLE.replace(" to", "<br>to"), range=[least - room, most + room], nticks=8, **figures.PERCENT),
        figures.rows(levels),
        height=34 * len(levels) + 82,
    )
    drawn.add_vline(0, line_color=palette.THEMED.random, **figures.ACROSS)
    for symbol, lift, points in zip(("circle", "diamond"), (-0.14, 0.14), _terms(table)):
        points = points.assign(row=[levels.index(name) + lift for name in points["level"]])
        near = points.assign(**{name: points[name].clip(lower=least) for name in ("at", "low", "high")})
        # what lies beyond stands at the edge with its value
        text = [f"◂ {words.percent(share / 100)}" if share < least else "" for share in points["share"]]
        look = {"mode": "markers+text", "text": text, "textposition": "middle right", "marker": {"symbol": symbol}}
        _trace(drawn, near, title, x="at", y="row", textfont=figures.LETTERS, cliponaxis=False, **look)
    return drawn


def _terms(table: pd.DataFrame) -> list[pd.DataFrame]:
    """The rows of either term, quality first."""
    table = table if "at" in table else table.assign(at=table["share"])
    return [table[table["term"] == term] for term in ("quality", "diversity")]


def _trace(drawn: go.Figure, points: pd.DataFrame, title: str, *, x: str, y: str, **look: Any) -> None:
    """One term; the bars around each mean go from the worst to the best seed."""
    tone, term = palette.THEMED, points["term"].iloc[0]
    color = tone.quality if term == "quality" else tone.diversity
    mean = points["share"] if y == "share" else points[x]
    bar = figures.error_bar(mean, points["low"], points["high"], color, thickness=1.5)
    read = [
        figures.hover(
            ("", row.term),
            (title, row.level),
            ("share, %", f"{row.share:.1f}".replace("-", "−")),
            ("raw value", words.value(row.raw)),
            ("seeds", row.n),
        )
        for row in figures.records(points)
    ]
    figures.add(drawn, points[x], points[y], term, read, **look)
    drawn.data[-1].update({"line": {"color": color}, "marker": {"color": color, "size": 9}})
    drawn.data[-1].update({"error_y" if y == "share" else "error_x": bar})
