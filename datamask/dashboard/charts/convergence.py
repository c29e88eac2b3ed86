"""The convergence chart as a Vega-Lite specification; its data come beside it, so live updates keep the chart."""

from __future__ import annotations

import math

from datamask.dashboard import palette, words
from datamask.dashboard.views.convergence import BATCH, SUBSET, Curve

AXES = {"step": "update steps", "seconds": "seconds of learning"}


def convergence(curve: Curve, x: str = "step", *, dark: bool = False, height: int = 340) -> dict:
    """The specification for ``st.vega_lite_chart(curve.table, spec)``.

    Args:
        curve: what to draw; its table is passed beside the specification.
        x: ``step`` or ``seconds``.
        dark: whether the page's ground is dark.
        height: of the plotting area, in pixels.
    """
    tone = palette.shades(dark)
    across = {"field": x, "type": "quantitative", "title": AXES[x], "scale": {"zero": True},
              "axis": {"grid": False, "tickCount": 6, "format": ",~r" if x == "step" else ",~g"}}
    up = {"field": "value", "type": "quantitative", "title": curve.unit, "scale": {"zero": False, "nice": True},
          "axis": {"tickCount": 6}}
    # a run without masks has no line for them, and needs no key to it
    drawn = [(name, shade) for name, shade in ((SUBSET, tone.accent), (BATCH, tone.batch))
             if name == SUBSET or (curve.table["series"] == BATCH).any()]
    colour = {"field": "series", "type": "nominal", "title": None,
              "scale": {"domain": [name for name, _ in drawn], "range": [shade for _, shade in drawn]},
              "legend": {"orient": "top", "direction": "horizontal", "symbolType": "stroke", "symbolStrokeWidth": 3,
                         "labelLimit": 320, "offset": 4, "padding": 0}}
    tooltip = [{"field": "series", "title": " "}, {"field": "step", "title": "step", "format": ","},
               {"field": "seconds", "title": "seconds", "format": ".1f"},
               {"field": "value", "title": curve.measure, "format": ".4f"},
               {"field": "high", "title": "mean + spread", "format": ".4f"}]
    batch = {"filter": {"field": "series", "equal": BATCH}}
    subset = {"filter": {"field": "series", "equal": SUBSET}}
    # lines have points because the first step alone is no line, and nothing would be seen of it
    layers = [
        {"transform": [batch], "mark": {"type": "area", "opacity": 0.22, "color": tone.batch},
         "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}}},
        {"transform": [batch], "mark": {"type": "line", "strokeWidth": 1.3, "opacity": 0.75, "point": {"size": 5}},
         "encoding": {"x": across, "y": up, "color": colour}},
        {"transform": [subset], "mark": {"type": "line", "strokeWidth": 2.8, "point": {"size": 14}},
         "encoding": {"x": across, "y": up, "color": colour}},
        {"mark": {"type": "point", "opacity": 0, "size": 90, "filled": True},
         "encoding": {"x": across, "y": up, "tooltip": tooltip}},
    ]
    layers += _references(curve, tone)
    return {"layer": layers, "height": height, "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
            "padding": {"left": 4, "right": 8, "top": 4, "bottom": 4}}


def _references(curve: Curve, tone: palette.Shades) -> list[dict]:
    """A dashed line and its words for each reference, on data of their own: the curve's table stays the curve."""
    colours = {"random": tone.random, "best": tone.best, "bound": tone.text, "final": tone.accent}
    dashes = {"random": [2, 3], "best": [7, 4], "bound": [1, 0], "final": [1, 2]}
    layers = []
    for reference in curve.references:
        if not math.isfinite(reference.value):
            continue
        at = {"values": [{"value": reference.value, "label": f"{reference.label}  {words.value(reference.value, 3)}"}]}
        y = {"field": "value", "type": "quantitative"}
        layers.append({"data": at, "mark": {"type": "rule", "strokeDash": dashes[reference.role], "strokeWidth": 1.4,
                                            "color": colours[reference.role]}, "encoding": {"y": y}})
        text = {"type": "text", "align": "right", "baseline": "bottom", "dy": -3, "dx": -2, "fontSize": 12}
        if reference.role == "final":
            # just under the bound, and just above where the curve ends: at the left, below its line, its words keep
            # clear of the bound's words and of the curve
            text |= {"align": "left", "baseline": "top", "dx": 4, "dy": 4}
        end = {"value": 0 if text["align"] == "left" else "width"}
        place = {"y": y, "x": end, "text": {"field": "label", "type": "nominal"}}
        # a halo of the page's own colour, so that curves may pass behind the words
        halo = {"stroke": tone.ground, "strokeWidth": 4, "strokeOpacity": 0.8, "fillOpacity": 0}
        layers.append({"data": at, "mark": text | halo, "encoding": place})
        layers.append({"data": at, "mark": text | {"color": colours[reference.role]}, "encoding": place})
    return layers
