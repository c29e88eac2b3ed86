"""The band over lambda as a Vega-Lite specification; its points come beside it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from datamask.dashboard import palette
from datamask.dashboard.charts.lambda_words import Room, Spot
from datamask.dashboard.charts.overlay import DASHES

EDGES, MARGIN = (-0.02, 1.02), 0.012
"""The picture's ends, and how far a recommendation reaches beyond its last lambda, so that a single one is seen too."""

APART = 0.045
"""How far apart lambdas must be for both to be written on the axis."""

SIGNED = "(datum.value > 0 ? '+' : datum.value < 0 ? '−' : '') + format(abs(datum.value), '~g')"


def band(points: pd.DataFrame, objectives: Sequence[str], span: tuple[float, float], unit: str, *,
         recommended: pd.DataFrame | None = None, top_quality: float | None = None, dark: bool = False,
         small: bool = False, height: int = 360) -> dict:
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
    across = {"field": "lambda", "type": "quantitative", "title": None if small else
              "lambda: diversity alone at 0, quality alone at 1",
              "scale": {"domain": list(EDGES), "nice": False},
              "axis": {"grid": False, "values": _ticks(sorted(points["lambda"].unique())),
                       "labelExpr": "format(datum.value, '.3~f')", "labelOverlap": False}}
    scale = {"domain": [low, high], "nice": False}
    up = {"field": "difference", "type": "quantitative", "title": unit if small else f"{unit} against random",
          "scale": scale, "axis": {"minExtent": 42, "tickCount": 4 if small else 6, "labelExpr": SIGNED}}
    legend = None if small else {
        "orient": "top", "direction": "horizontal", "symbolType": "stroke", "symbolStrokeWidth": 3, "symbolSize": 700,
        "offset": 4, "symbolOpacity": 1, "padding": 0, "labelLimit": 300}
    series = {"field": "objective", "type": "nominal", "title": None, "legend": legend}
    colour = {**series, "scale": {"domain": list(objectives), "range": palette.categories(len(objectives))}}
    dash = {**series, "scale": {"domain": list(objectives),
                                "range": [DASHES[i % len(DASHES)] for i in range(len(objectives))]}}
    tooltip = [{"field": "objective", "title": " "}, {"field": "lambda", "title": "lambda", "format": "~g"},
               {"field": "difference", "title": "difference to random", "format": "+.4f"},
               {"field": "low", "title": "interval from", "format": "+.4f"},
               {"field": "high", "title": "to", "format": "+.4f"}]
    inside = {"filter": f"datum.difference <= {high!r}"}
    outside = {"filter": f"datum.difference > {high!r}"}
    # what the axis and the legend leave
    room = Room(points, EDGES, span, height - (32 if small else 88))
    named, shaded = _top_quality(top_quality, span, tone, room), _shaded(recommended, span, tone, room)
    layers = [
        *shaded,
        {"mark": {"type": "area", "opacity": 0.18, "clip": True},
         "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"},
                      "color": colour}},
        *_random(tone, span, room),
        {"mark": {"type": "line", "strokeWidth": 2.4, "clip": True},
         "encoding": {"x": across, "y": up, "color": colour, "strokeDash": dash}},
        {"transform": [inside], "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
         "encoding": {"x": across, "y": up, "color": colour}},
        {"transform": [inside, {"filter": "datum.best"}],
         "mark": {"type": "point", "filled": False, "size": 190, "strokeWidth": 2, "opacity": 1},
         "encoding": {"x": across, "y": up, "color": colour}},
        {"transform": [inside], "mark": {"type": "point", "filled": True, "size": 220, "opacity": 0},
         "encoding": {"x": across, "y": up, "tooltip": tooltip}},
        {"transform": [outside], "mark": {"type": "point", "shape": "triangle-up", "filled": True, "size": 70,
                                          "opacity": 1},
         "encoding": {"x": across, "y": {"datum": high, "scale": scale}, "color": colour,
                      "tooltip": tooltip}},
        *_far(points, objectives, high, top_quality, tone, room),
        *named,
    ]
    return {"layer": layers, "height": height, "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
            "padding": {"left": 4, "right": 12, "top": 4, "bottom": 4}}


def _ticks(tried: Sequence[float]) -> list[float]:
    """The lambdas that are written below: first and last, and what has room between."""
    found = [float(tried[0])]
    for lamb in tried[1:-1]:
        if lamb - found[-1] >= APART and tried[-1] - lamb >= APART:
            found.append(float(lamb))
    return [*found, float(tried[-1])]


def _shaded(recommended: pd.DataFrame | None, span: tuple[float, float], tone: palette.Shades, room: Room
            ) -> list[dict]:
    """The recommended lambdas, behind everything, each run of them with its words."""
    found = []
    for row in () if recommended is None else recommended.itertuples():
        left, right = max(row.low - MARGIN, EDGES[0]), min(row.high + MARGIN, EDGES[1])
        label = "recommended" + ("" if row.low == row.high else f": {row.low:g} to {row.high:g}")
        spot = room.place(label, [Spot(at, end, 4 if align == "left" else -4, down, align)
                                  for end, down in ((span[0], -12), (span[1], 12))
                                  for at, align in ((left, "left"), (right, "right"))
                                  if (align == "left") == (left < 0.7) or 0.2 < left < 0.7])
        data = {"values": [{"from": left, "to": right, "low": span[0], "high": span[1]}]}
        across, up = {"type": "quantitative"}, {"type": "quantitative"}
        found.append({"data": data, "mark": {"type": "rect", "color": tone.diversity, "opacity": 0.16},
                      "encoding": {"x": {"field": "from", **across}, "x2": {"field": "to"},
                                   "y": {"field": "low", **up}, "y2": {"field": "high"}}})
        found += _written(label, spot, tone.text, tone)
    return found


def _random(tone: palette.Shades, span: tuple[float, float], room: Room) -> list[dict]:
    """A random selection: the line at 0."""
    label = "a random selection; below is better"
    spot = room.place(label, [Spot(at, 0.0, 0, down, align)
                              for at, align in ((EDGES[1], "right"), (0.5, "center"), (0.3, "left"), (0.0, "left"))
                              for down in (11, -11)])
    return [{"data": {"values": [{"value": 0}]},
             "mark": {"type": "rule", "strokeDash": [2, 3], "strokeWidth": 1.5, "color": tone.random},
             "encoding": {"y": {"field": "value", "type": "quantitative"}}},
            *_written(label, spot, tone.random, tone)]


def _top_quality(value: float | None, span: tuple[float, float], tone: palette.Shades, room: Room) -> list[dict]:
    """The name of the place where all curves end, if it is in the picture."""
    if value is None or not span[0] <= value <= span[1]:
        return []
    spot = room.place("top quality", [Spot(1.0, value, right, down, "right")
                                      for right, down in ((6, -13), (6, 14), (-12, 0), (-12, -13), (-12, 14))])
    place = {"x": {"field": "lambda", "type": "quantitative"}, "y": {"field": "value", "type": "quantitative"}}
    return [{"data": {"values": [{"lambda": 1, "value": value}]},
             "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 120, "opacity": 1,
                      "color": tone.best}, "encoding": place},
            *_written("top quality", spot, tone.best, tone)]


def _far(points: pd.DataFrame, objectives: Sequence[str], high: float, top_quality: float | None,
         tone: palette.Shades, room: Room) -> list[dict]:
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
    found = []
    for at, label, colour in lines:
        align = "left" if at < 0.3 else "right" if at > 0.7 else "center"
        spots = [Spot(at + aside, high, 8 if align == "right" else 0, down, align)
                 for aside in (0.0, -0.15, -0.3) for down in (16, 33, 50) if at + aside >= 0]
        found += _written(label, room.place(label, spots), colour, tone)
    return found


def _written(label: str, spot: Spot, colour: str, tone: palette.Shades) -> list[dict]:
    """Words with a halo of the page's own colour, so that curves may pass behind them."""
    data = {"values": [{"across": spot.across, "up": spot.up, "label": label}]}
    encoding = {"x": {"field": "across", "type": "quantitative"}, "y": {"field": "up", "type": "quantitative"},
                "text": {"field": "label", "type": "nominal"}}
    text = {"type": "text", "fontSize": 12, **spot.look}
    return [{"data": data, "mark": {**text, "stroke": tone.ground, "strokeWidth": 4, "strokeOpacity": 0.85,
                                    "fillOpacity": 0}, "encoding": encoding},
            {"data": data, "mark": {**text, "color": colour}, "encoding": encoding}]
