"""The band over lambda as a Vega-Lite specification; its points come beside it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from datamask.dashboard import palette
from datamask.dashboard.charts.overlay import DASHES

EDGES, MARGIN = (-0.02, 1.02), 0.012
"""The picture's ends, and how far a recommendation reaches beyond its last lambda, so that a single one is seen too."""

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
    tried = sorted(points["lambda"].unique())
    across = {"field": "lambda", "type": "quantitative", "title": None if small else
              "lambda: diversity alone at 0, quality alone at 1",
              "scale": {"domain": list(EDGES), "nice": False},
              "axis": {"grid": False, "values": tried, "labelExpr": "format(datum.value, '.3~f')",
                       "labelOverlap": "greedy"}}
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
    layers = [
        *_shaded(recommended, tone, low, high),
        {"mark": {"type": "area", "opacity": 0.18, "clip": True},
         "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"},
                      "color": colour}},
        *_random(tone),
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
        *_far(points, objectives, high, top_quality, tone),
        *_top_quality(top_quality, span, tone),
    ]
    return {"layer": layers, "height": height, "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
            "padding": {"left": 4, "right": 12, "top": 4, "bottom": 4}}


def _shaded(recommended: pd.DataFrame | None, tone: palette.Shades, low: float, high: float) -> list[dict]:
    """The recommended lambdas, behind everything, with their word at the bottom."""
    if recommended is None or recommended.empty:
        return []
    at = {"values": [{"from": max(row.low - MARGIN, EDGES[0]), "to": min(row.high + MARGIN, EDGES[1]), "low": low,
                      "high": high, "label": "recommended" if row.low == row.high else
                      f"recommended: {row.low:g} to {row.high:g}"} for row in recommended.itertuples()]}
    # its word goes where there is room for it
    right = len(recommended) == 1 and recommended["low"].iloc[0] > 0.7
    across = {"type": "quantitative"}
    return [
        {"data": at, "mark": {"type": "rect", "color": tone.diversity, "opacity": 0.16},
         "encoding": {"x": {"field": "from", **across}, "x2": {"field": "to"},
                      "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}},
        *_written(at, {"x": {"field": "to" if right else "from", **across},
                       "y": {"field": "low", "type": "quantitative"}},
                  {"align": "right" if right else "left", "baseline": "bottom", "dx": -4 if right else 4, "dy": -4},
                  tone.text, tone),
    ]


def _random(tone: palette.Shades) -> list[dict]:
    """A random selection: the line at 0."""
    at = {"values": [{"value": 0, "label": "a random selection; below is better"}]}
    up = {"field": "value", "type": "quantitative"}
    return [{"data": at, "mark": {"type": "rule", "strokeDash": [2, 3], "strokeWidth": 1.5, "color": tone.random},
             "encoding": {"y": up}},
            *_written(at, {"y": up, "x": {"value": "width"}}, {"align": "right", "baseline": "top", "dy": 4, "dx": -2},
                      tone.random, tone)]


def _top_quality(value: float | None, span: tuple[float, float], tone: palette.Shades) -> list[dict]:
    """The name of the place where all curves end, if it is in the picture."""
    if value is None or not span[0] <= value <= span[1]:
        return []
    above = value < span[0] + 0.8 * (span[1] - span[0])
    at = {"values": [{"lambda": 1, "value": value, "label": "top quality"}]}
    place = {"x": {"field": "lambda", "type": "quantitative"}, "y": {"field": "value", "type": "quantitative"}}
    return [{"data": at, "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 120, "opacity": 1,
                                  "color": tone.best}, "encoding": place},
            *_written(at, place, {"align": "right", "dx": 6, "dy": -12 if above else 14}, tone.best, tone)]


def _far(points: pd.DataFrame, objectives: Sequence[str], high: float, top_quality: float | None,
         tone: palette.Shades) -> list[dict]:
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
    for row, (at, label, colour) in enumerate(lines):
        align = "left" if at < 0.3 else "right" if at > 0.7 else "center"
        place = {"x": {"field": "lambda", "type": "quantitative"}, "y": {"value": 0}}
        found += _written({"values": [{"lambda": at, "label": label}]}, place,
                          {"align": align, "baseline": "top", "dx": 8 if align == "right" else 0, "dy": 10 + 16 * row},
                          colour, tone)
    return found


def _written(data: dict, place: dict, look: dict, colour: str, tone: palette.Shades) -> list[dict]:
    """Words with a halo of the page's own colour, so that curves may pass behind them."""
    encoding = {**place, "text": {"field": "label", "type": "nominal"}}
    text = {"type": "text", "fontSize": 12, **look}
    return [{"data": data, "mark": {**text, "stroke": tone.ground, "strokeWidth": 4, "strokeOpacity": 0.85,
                                    "fillOpacity": 0}, "encoding": encoding},
            {"data": data, "mark": {**text, "color": colour}, "encoding": encoding}]
