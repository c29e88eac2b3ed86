"""The band over lambda as a Vega-Lite specification; its points come beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from datamask.dashboard import palette, placement
from datamask.dashboard.charts.overlay import DASHES

Along = TypeVar("Along", float, np.ndarray)
"""Where something lies along an axis: one value, or one for each of several points."""

EDGES, MARGIN = (-0.02, 1.02), 0.012
"""The picture's ends, and how far a recommendation reaches beyond its last lambda, so that a single one is seen too."""

APART = 0.045
"""How far apart lambdas must be for both to be written on the axis."""

WIDTH = 660.0
"""Pixels across of the plotting area in a window of 1440; on a wider one words have only more room."""

SIGNED = "(datum.value > 0 ? '+' : datum.value < 0 ? '−' : '') + format(abs(datum.value), '~g')"


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
) -> dict:
    """The specification for ``st.vega_lite_chart(points, spec)``.

    Args:
        points: of `views.lambdas.points`. objectives: their labels in order, which gives colour and dash.
        span: bottom and top of the picture; points above it become arrows at the edge.
        unit: of the difference, for the axis.
        recommended: of `views.lambdas.recommended`, shaded behind the curves.
        top_quality: the difference of the selection by quality alone, where every curve ends.
        dark: whether the page's ground is dark.
        small: for a picture that stands below another one of the same curves: no legend, no title across.
        height: of the whole picture, in pixels.
    """
    tone = palette.shades(dark)
    low, high = span
    across = {
        "field": "lambda",
        "type": "quantitative",
        "title": None if small else "lambda: diversity alone at 0, quality alone at 1",
        "scale": {"domain": list(EDGES), "nice": False},
        "axis": {
            "grid": False,
            "values": _ticks(sorted(points["lambda"].unique())),
            "labelExpr": "format(datum.value, '.3~f')",
            "labelOverlap": False,
        },
    }
    scale = {"domain": [low, high], "nice": False}
    up = {
        "field": "difference",
        "type": "quantitative",
        "title": unit if small else f"{unit} against random",
        "scale": scale,
        "axis": {"minExtent": 42, "tickCount": 4 if small else 6, "labelExpr": SIGNED},
    }
    legend = (
        None
        if small
        else {
            "orient": "top",
            "direction": "horizontal",
            "symbolType": "stroke",
            "symbolStrokeWidth": 3,
            "symbolSize": 700,
            "offset": 4,
            "symbolOpacity": 1,
            "padding": 0,
            "labelLimit": 300,
        }
    )
    series = {"field": "objective", "type": "nominal", "title": None, "legend": legend}
    colour = {**series, "scale": {"domain": list(objectives), "range": palette.categories(len(objectives))}}
    dash = {
        **series,
        "scale": {"domain": list(objectives), "range": [DASHES[i % len(DASHES)] for i in range(len(objectives))]},
    }
    tooltip = [
        {"field": "objective", "title": " "},
        {"field": "lambda", "title": "lambda", "format": "~g"},
        {"field": "difference", "title": "difference to random", "format": "+.4f"},
        {"field": "low", "title": "interval from", "format": "+.4f"},
        {"field": "high", "title": "to", "format": "+.4f"},
    ]
    inside = {"filter": f"datum.difference <= {high!r}"}
    outside = {"filter": f"datum.difference > {high!r}"}
    shown = top_quality if top_quality is not None and low <= top_quality <= high else None
    labels = [
        *_top_quality_label(shown, tone),
        *_shaded_labels(recommended, span, tone),
        _random_label(tone),
        *_far_labels(points, objectives, high, top_quality, tone),
    ]
    # what the axis and the legend leave
    spots = _placed(labels, points, span, height - (32 if small else 88))
    layers = [
        *_shaded(recommended, span, tone),
        {
            "mark": {"type": "area", "opacity": 0.18, "clip": True},
            "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "data": {"values": [{"value": 0}]},
            "mark": {"type": "rule", "strokeDash": [2, 3], "strokeWidth": 1.5, "color": tone.random},
            "encoding": {"y": {"field": "value", "type": "quantitative"}},
        },
        {
            "mark": {"type": "line", "strokeWidth": 2.4, "clip": True},
            "encoding": {"x": across, "y": up, "color": colour, "strokeDash": dash},
        },
        {
            "transform": [inside],
            "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
            "encoding": {"x": across, "y": up, "color": colour},
        },
        {
            "transform": [inside, {"filter": "datum.best"}],
            "mark": {"type": "point", "filled": False, "size": 190, "strokeWidth": 2, "opacity": 1},
            "encoding": {"x": across, "y": up, "color": colour},
        },
        {
            "transform": [inside],
            "mark": {"type": "point", "filled": True, "size": 220, "opacity": 0},
            "encoding": {"x": across, "y": up, "tooltip": tooltip},
        },
        {
            "transform": [outside],
            "mark": {"type": "point", "shape": "triangle-up", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"x": across, "y": {"datum": high, "scale": scale}, "color": colour, "tooltip": tooltip},
        },
        *_top_quality(shown, tone),
        *(layer for label, spot in zip(labels, spots) for layer in _written(label, spot, tone)),
    ]
    return {
        "layer": layers,
        "height": height,
        "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
        "padding": {"left": 4, "right": 12, "top": 4, "bottom": 4},
    }


def _ticks(tried: Sequence[float]) -> list[float]:
    """The lambdas that are written below: first and last, and what has room between."""
    found = [float(tried[0])]
    for lamb in tried[1:-1]:
        if lamb - found[-1] >= APART and tried[-1] - lamb >= APART:
            found.append(float(lamb))
    return [*found, float(tried[-1])]


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
    said, spot_at = [], []
    for label in labels:
        there: dict[placement.Offset, Spot] = {}
        for spot in label.spots:
            x, y = place(spot.across, spot.up)
            there.setdefault((x + spot.right, y + spot.down, spot.align), spot)
        spot_at.append(there)
        # all from one corner, because the spots of a label stand at different points
        said.append(placement.Words(label.text, 0.0, height, tuple(there), needed=True))
    # half a pixel more on all sides: words may end where the picture does
    found = placement.around(
        said, placement.Box(-0.5, -0.5, WIDTH + 0.5, height + 0.5), (1.0,), np.concatenate(roads), dots
    )
    # words that are needed have an offset always
    return [there[offset] for there, offset in zip(spot_at, found) if offset is not None]


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


def _shaded(recommended: pd.DataFrame | None, span: tuple[float, float], tone: palette.Shades) -> Iterator[dict]:
    """The recommended lambdas, behind everything."""
    across, up = {"type": "quantitative"}, {"type": "quantitative"}
    for low, high in _reaches(recommended):
        left, right = _shade(low, high)
        yield {
            "data": {"values": [{"from": left, "to": right, "low": span[0], "high": span[1]}]},
            "mark": {"type": "rect", "color": tone.diversity, "opacity": 0.16},
            "encoding": {
                "x": {"field": "from", **across},
                "x2": {"field": "to"},
                "y": {"field": "low", **up},
                "y2": {"field": "high"},
            },
        }


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
        "a random selection; below is better",
        tone.random,
        [
            Spot(at, 0.0, 0, down, align)
            for at, align in ((EDGES[1], "right"), (0.5, "center"), (0.3, "left"), (0.0, "left"))
            for down in (11, -11)
        ],
    )


def _top_quality(value: float | None, tone: palette.Shades) -> Iterator[dict]:
    """The place where all curves end, if it is in the picture."""
    if value is not None:
        place = {"x": {"field": "lambda", "type": "quantitative"}, "y": {"field": "value", "type": "quantitative"}}
        yield {
            "data": {"values": [{"lambda": 1, "value": value}]},
            "mark": {
                "type": "point",
                "shape": "diamond",
                "filled": True,
                "size": 120,
                "opacity": 1,
                "color": tone.best,
            },
            "encoding": place,
        }


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
            said = ends[0] if ends[0] == ends[1] else " to ".join(ends)
            lines.append((float(far["lambda"].mean()), f"{objective}: {said}", tone.text))
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


def _written(label: Label, spot: Spot, tone: palette.Shades) -> list[dict]:
    """Words with a halo of the page's own colour, so that curves may pass behind them."""
    data = {"values": [{"across": spot.across, "up": spot.up, "label": label.text}]}
    encoding = {
        "x": {"field": "across", "type": "quantitative"},
        "y": {"field": "up", "type": "quantitative"},
        "text": {"field": "label", "type": "nominal"},
    }
    text = {
        "type": "text",
        "fontSize": 12,
        "align": spot.align,
        "baseline": "middle",
        "dx": spot.right,
        "dy": spot.down,
    }
    return [
        {
            "data": data,
            "mark": {**text, "stroke": tone.ground, "strokeWidth": 4, "strokeOpacity": 0.85, "fillOpacity": 0},
            "encoding": encoding,
        },
        {"data": data, "mark": {**text, "color": label.colour}, "encoding": encoding},
    ]
