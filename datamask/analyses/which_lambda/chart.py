"""The band over lambda."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, placement, svg, words

Along = TypeVar("Along", float, np.ndarray)
"""Where something lies along an axis: one value, or one for each of several points."""

EDGES, MARGIN = (-0.02, 1.02), 0.012
"""The picture's ends, and how far a recommendation reaches beyond its last lambda, so that a single one is seen too."""

APART = 0.045
"""How far apart lambdas must be for both to be written on the axis."""

WIDTH = 660.0
"""Pixels across of the plotting area in a window of 1440; on a wider one words have only more room."""

LEFT = 64
"""Pixels left of the plotting area: the same for pictures below each other, so that their lambdas stand in line."""

DASHES = figures.DASHES[:4]


@dataclass(frozen=True)
class Spot:
    """A place for a line of words: a point in the picture's own units, and from there in pixels to the right and down.

    Attributes:
        align: the part of the words that stands there: ``left``, ``center`` or ``right``; the middle of their height is
            meant.
    """

    across: float
    up: float
    right: float
    down: float
    align: str


@dataclass(frozen=True)
class Label:
    """A line of words, its colour, and where it may stand, the best first."""

    text: str
    colour: str
    spots: Sequence[Spot]


def band(
    points: pd.DataFrame,
    objectives: Sequence[str],
    span: tuple[float, float],
    unit: str,
    *,
    recommended: pd.DataFrame | None = None,
    top_quality: float | None = None,
    dark: bool = False,
    small: bool = False,
    height: int = 360,
) -> go.Figure:
    """Differences to random over lambda with their intervals, a line for each objective.

    Args:
        points: of `tables.points`. objectives: their labels in order, which gives colour and dash.
        span: bottom and top of the picture; points above it become arrows at the edge.
        unit: of the difference, for the axis.
        recommended: of `tables.recommended`, shaded behind the curves.
        top_quality: the difference of the selection by quality alone, where every curve ends.
        dark: whether the page's ground is dark.
        small: for a picture that stands below another one of the same curves: no key, no title across.
        height: of the whole figure, in pixels.
    """
    tone = palette.shades(dark)
    low, high = span
    written = _ticks(sorted(points["lambda"].unique()))
    ticks = svg.ticks(low, high, 4 if small else 6)
    drawn = figures.figure(
        figures.axis(
            "" if small else "λ (0: diversity alone, 1: quality alone)",
            grid=False,
            range=list(EDGES),
            tickvals=written,
            ticktext=[f"{round(lamb, 3):g}" for lamb in written],
            tickangle=0,
        ),
        figures.axis(
            figures.plain(unit if small else f"{unit} against random"),
            range=[low, high],
            tickvals=ticks,
            ticktext=[_signed(tick) for tick in ticks],
            automargin=False,
        ),
        height=height,
        dark=dark,
        margin={"l": LEFT, "r": 12},
    )
    for left, right in (_shade(*reach) for reach in _reaches(recommended)):
        drawn.add_shape(
            type="rect",
            x0=left,
            x1=right,
            y0=low,
            y1=high,
            line={"width": 0},
            fillcolor=figures.faded(tone.diversity, 0.16),
            layer="between",
        )
    colors = palette.categories(len(objectives))
    curves = [points[points["objective"] == objective].sort_values("lambda") for objective in objectives]
    for curve, color in zip(curves, colors):
        figures.band(drawn, curve["lambda"], curve["low"], curve["high"], figures.faded(color, 0.18))
    figures.line_across(drawn, tone.random, y=0, dash="2px,3px")
    for place, (curve, color) in enumerate(zip(curves, colors)):
        _curve(drawn, curve, str(objectives[place]), color, DASHES[place % len(DASHES)], high, not small)
    shown = top_quality if top_quality is not None and low <= top_quality <= high else None
    if shown is not None:
        drawn.add_trace(
            go.Scatter(
                x=[1],
                y=[shown],
                mode="markers",
                marker={"symbol": "diamond", "size": 11, "color": tone.best},
                hoverinfo="skip",
                cliponaxis=False,
            )
        )
    labels = [
        *_top_quality_label(shown, tone),
        *_shaded_labels(recommended, span, tone),
        _random_label(tone),
        *_far_labels(points, objectives, high, top_quality, tone),
    ]
    # what the margin and the axis leave
    for label, spot in zip(labels, _placed(labels, points, span, height - (28 if small else 46))):
        figures.write(
            drawn,
            label.text,
            spot.across,
            spot.up,
            label.colour,
            align=spot.align,
            right=spot.right,
            down=spot.down,
            ground=tone.ground,
        )
    return drawn


def _curve(drawn: go.Figure, curve: pd.DataFrame, name: str, color: str, dash: str, high: float, keyed: bool) -> None:
    """A line, its points in the picture, a ring around the best, and arrows at the top for those beyond."""
    line = {"color": color, "width": 2.4, "dash": dash}
    drawn.add_trace(
        go.Scatter(
            x=curve["lambda"],
            y=curve["difference"],
            mode="lines",
            name=figures.cut(name, 300),
            showlegend=keyed,
            line=line,
            hoverinfo="skip",
        )
    )
    inside, outside = curve[curve["difference"] <= high], curve[curve["difference"] > high]
    best = inside[inside["best"].astype(bool)]
    for dots, up, marker in (
        (inside, inside["difference"], {"color": color, "size": 7.5}),
        (outside, [high] * len(outside), {"color": color, "size": 9.5, "symbol": "triangle-up"}),
        (best, best["difference"], {"color": color, "size": 15, "symbol": "circle-open", "line": {"width": 2}}),
    ):
        if len(dots):
            drawn.add_trace(
                go.Scatter(
                    x=dots["lambda"],
                    y=up,
                    mode="markers",
                    marker=marker,
                    cliponaxis=False,
                    text=[
                        figures.hover(
                            ("", name),
                            ("lambda", f"{lamb:g}"),
                            ("difference to random", words.signed(difference, 4)),
                            ("interval from", words.signed(below, 4)),
                            ("to", words.signed(above, 4)),
                        )
                        for lamb, difference, below, above in dots[["lambda", "difference", "low", "high"]].to_numpy()
                    ],
                    **figures.HOVER,
                )
            )


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{abs(value):g}"


def _ticks(tried: Sequence[float]) -> list[float]:
    """The lambdas that are written below: first and last, and what has room between."""
    ticks = [float(tried[0])]
    for lamb in tried[1:-1]:
        if lamb - ticks[-1] >= APART and tried[-1] - lamb >= APART:
            ticks.append(float(lamb))
    return [*ticks, float(tried[-1])]


def _placed(labels: Sequence[Label], points: pd.DataFrame, span: tuple[float, float], height: float) -> list[Spot]:
    """Where the labels stand, the first ones first: off each other, and where the fewest curves run through them.

    Args:
        height: of the plotting area, in pixels.
    """

    def place(across: Along, up: Along) -> tuple[Along, Along]:
        """In pixels, downwards."""
        return ((across - EDGES[0]) / (EDGES[1] - EDGES[0]) * WIDTH, (span[1] - up) / (span[1] - span[0]) * height)

    roads, dots = [np.zeros((0, 4))], []
    for _, curve in points.groupby("objective", sort=False):
        curve = curve.sort_values("lambda")
        right, down = place(curve["lambda"].to_numpy(), curve["difference"].to_numpy())
        ends = np.column_stack([right, height - down])
        roads.append(np.column_stack([ends[:-1], ends[1:]]))
        dots += [tuple(end) for end in ends]
    texts, spot_at = [], []
    for label in labels:
        there: dict[placement.Offset, Spot] = {}
        for spot in label.spots:
            x, y = place(spot.across, spot.up)
            there.setdefault((x + spot.right, y + spot.down, spot.align), spot)
        spot_at.append(there)
        # all from one corner, because the spots of a label stand at different points
        texts.append(placement.Words(label.text, 0.0, height, tuple(there), needed=True))
    # half a pixel more on all sides: words may end where the picture does
    offsets = placement.around(
        texts, placement.Box(-0.5, -0.5, WIDTH + 0.5, height + 0.5), (1.0,), np.concatenate(roads), dots
    )
    # words that are needed have an offset always
    return [there[offset] for there, offset in zip(spot_at, offsets) if offset is not None]


def _reaches(recommended: pd.DataFrame | None) -> list[tuple[float, float]]:
    """From where to where each group of recommended lambdas goes."""
    return (
        []
        if recommended is None
        else [(float(low), float(high)) for low, high in recommended[["low", "high"]].to_numpy()]
    )


def _shade(low: float, high: float) -> tuple[float, float]:
    """From where to where recommended lambdas are shaded."""
    return max(low - MARGIN, EDGES[0]), min(high + MARGIN, EDGES[1])


def _shaded_labels(
    recommended: pd.DataFrame | None, span: tuple[float, float], tone: palette.Shades
) -> Iterator[Label]:
    for low, high in _reaches(recommended):
        left, right = _shade(low, high)
        yield Label(
            "recommended" + ("" if low == high else f": {low:g} to {high:g}"),
            tone.text,
            [
                Spot(at, end, 4 if align == "left" else -4, down, align)
                for end, down in ((span[0], -12), (span[1], 12))
                for at, align in ((left, "left"), (right, "right"))
                if (align == "left") == (left < 0.7) or 0.2 < left < 0.7
            ],
        )


def _random_label(tone: palette.Shades) -> Label:
    """A random selection is the line at 0."""
    return Label(
        "a random selection; lower is better",
        tone.random,
        [
            Spot(at, 0.0, 0, down, align)
            for at, align in ((EDGES[1], "right"), (0.5, "center"), (0.3, "left"), (0.0, "left"))
            for down in (11, -11)
        ],
    )


def _top_quality_label(value: float | None, tone: palette.Shades) -> Iterator[Label]:
    if value is not None:
        yield Label(
            "top quality",
            tone.best,
            [
                Spot(1.0, value, right, down, "right")
                for right, down in ((6, -13), (6, 14), (-12, 0), (-12, -13), (-12, 14))
            ],
        )


def _far_labels(
    points: pd.DataFrame, objectives: Sequence[str], high: float, top_quality: float | None, tone: palette.Shades
) -> Iterator[Label]:
    """A line of words for every objective that leaves the picture, and for top quality: how far away they are."""
    lines = []
    for objective in objectives:
        far = points[(points["objective"] == objective) & (points["difference"] > high) & (points["lambda"] < 1)]
        if len(far):
            ends = [f"{value:+.2f}" for value in (far["difference"].min(), far["difference"].max())]
            values = ends[0] if ends[0] == ends[1] else " to ".join(ends)
            lines.append((float(far["lambda"].mean()), f"{objective}: {values}", tone.text))
    if top_quality is not None and top_quality > high:
        lines.append((1.0, f"top quality: {top_quality:+.2f}", tone.best))
    for at, text, colour in lines:
        align = "left" if at < 0.3 else "right" if at > 0.7 else "center"
        yield Label(
            text,
            colour,
            [
                Spot(at + aside, high, 8 if align == "right" else 0, down, align)
                for aside in (0.0, -0.15, -0.3)
                for down in (16, 33, 50)
                if at + aside >= 0
            ],
        )
