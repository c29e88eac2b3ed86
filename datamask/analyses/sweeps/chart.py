"""Charts of a sweep: values over numbers, values of named levels, and the joint value over seconds."""

from __future__ import annotations

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, words

TITLE = "% of the way from random to the best found"
FARTHEST = -60.0
"""Percent. A level below it is an arrow at the edge with its value, or it would squeeze all others."""

TERMS = ("quality", "diversity")
LOG_FROM = 20.0
"""An axis whose last value is so many times the first is logarithmic."""


def lines(
    table: pd.DataFrame, title: str, *, percent: bool = False, dark: bool = False, height: int = 420
) -> go.Figure:
    """Quality and diversity over the values of a number.

    Args:
        table: of `tables.ends`. title: of the axis across. percent: whether the values are shares, drawn as percent.
        dark: whether the page's ground is dark. height: of the whole figure, in pixels.
    """
    at = table["value"].astype(float) * (100 if percent else 1)
    low, high = float(at.min()), float(at.max())
    log = low > 0 and high / low >= LOG_FROM
    across = figures.log_axis(title, low, high) if log else figures.axis(title, grid=False, nticks=9)
    if percent:
        across.update(figures.PERCENT)
    drawn = figures.figure(across, figures.axis(TITLE, nticks=7), height=height, dark=dark)
    figures.line_across(drawn, palette.shades(dark).random, y=0)
    for term, color, dash in zip(TERMS, _colors(dark), ("solid", "6px,3px")):
        points = table[table["term"] == term].assign(at=at).sort_values("at")
        drawn.add_trace(
            go.Scatter(
                x=points["at"],
                y=points["share"],
                mode="lines+markers",
                name=term,
                showlegend=True,
                line={"color": color, "width": 2.5, "dash": dash},
                marker={"color": color, "size": 8.5},
                error_y=_spread(points, color),
                text=_read(points, title),
                **figures.HOVER,
            )
        )
    return drawn


def dots(table: pd.DataFrame, title: str, *, dark: bool = False) -> go.Figure:
    """Quality and diversity of named levels, one line each, the first on top.

    Args:
        table: of `tables.ends`. title: of what varies, for the pointer.
    """
    levels = list(dict.fromkeys(table["level"]))
    least = max(min(table["low"].min(), 0.0), FARTHEST)
    most = max(table["high"].max(), 100.0)
    room = 0.04 * (most - least)
    drawn = figures.figure(
        figures.axis(range=[least - room, most + room], nticks=8, **figures.PERCENT),
        figures.rows(levels),
        height=34 * len(levels) + 64,
        dark=dark,
    )
    figures.write_below(drawn, TITLE, dark)
    figures.line_across(drawn, palette.shades(dark).random, x=0)
    for term, color, symbol, lift in zip(TERMS, _colors(dark), ("circle", "diamond"), (-0.14, 0.14)):
        points = table[table["term"] == term]
        points = points.assign(row=[levels.index(name) + lift for name in points["level"]])
        near = points[points["share"] >= least]
        far = points[points["share"] < least].assign(share=least, low=least, high=least)
        for those, mark in ((near, symbol), (far, "triangle-left")):
            drawn.add_trace(
                go.Scatter(
                    x=those["share"],
                    y=those["row"],
                    mode="markers",
                    name=term,
                    showlegend=those is near,
                    cliponaxis=False,
                    marker={"color": color, "size": 9.5, "symbol": mark},
                    error_x=_spread(those.assign(low=those["low"].clip(lower=least)), color),
                    text=_read(points.loc[those.index], title),
                    **figures.HOVER,
                )
            )
        for row in figures.records(points.loc[far.index]):
            figures.write(drawn, words.percent(row.share / 100), least, row.row, color, right=9)
    return drawn


def curves(table: pd.DataFrame, title: str, *, dark: bool = False, height: int = 460) -> go.Figure:
    """Joint value over seconds of learning for each level, log x, the band from the worst to the best seed.

    Args:
        table: of `tables.curves`. title: of what varies, for key and pointer.
    """
    drawn = figures.figure(
        figures.log_axis("seconds of learning", float(table["seconds"].min()), float(table["seconds"].max())),
        figures.axis("joint value, whole corpus", nticks=7),
        height=height,
        dark=dark,
    )
    drawn.update_layout(legend={"title": {"text": title}})
    levels = [(name, table[table["level"] == name].sort_values("seconds")) for name in dict.fromkeys(table["level"])]
    colors = [palette.OKABE_ITO[place % 7] for place in range(len(levels))]
    for (_, points), color in zip(levels, colors):
        figures.band(drawn, points["seconds"], points["low"], points["high"], figures.faded(color, 0.18))
    for place, ((name, points), color) in enumerate(zip(levels, colors)):
        drawn.add_trace(
            go.Scatter(
                x=points["seconds"],
                y=points["mean"],
                mode="lines+markers" if len(points) == 1 else "lines",
                name=figures.plain(name),
                showlegend=True,
                marker={"color": color, "size": 8},
                line={"color": color, "width": 2.2, "dash": figures.DASHES[place % len(figures.DASHES)]},
                text=[
                    figures.hover(
                        (title, name),
                        ("seconds", f"{row.seconds:.2f}"),
                        ("mean", f"{row.mean:.4f}"),
                        ("worst seed", f"{row.low:.4f}"),
                        ("best seed", f"{row.high:.4f}"),
                        ("seeds", row.n),
                    )
                    for row in figures.records(points)
                ],
                **figures.HOVER,
            )
        )
    return drawn


def _colors(dark: bool) -> tuple[str, str]:
    tone = palette.shades(dark)
    return tone.quality, tone.diversity


def _spread(points: pd.DataFrame, color: str) -> dict[str, object]:
    """From the worst to the best seed, as bars around each mean."""
    return figures.error_bar(points["share"], points["low"], points["high"], color, thickness=1.5)


def _read(points: pd.DataFrame, title: str) -> list[str]:
    return [
        figures.hover(
            ("", row.term),
            (title, row.level),
            ("share, %", f"{row.share:.1f}".replace("-", "−")),
            ("raw value", words.value(row.raw)),
            ("seeds", row.n),
        )
        for row in figures.records(points)
    ]
