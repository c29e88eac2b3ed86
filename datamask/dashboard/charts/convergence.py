"""The convergence chart as a Vega-Lite specification; its data come beside it, so live updates keep the chart."""

from __future__ import annotations

import math

from datamask.dashboard import palette, words
from datamask.dashboard.views.convergence import BATCH, EDGE, GAP, SUBSET, Curve, Reference

CLOSE = 0.07
"""Of two lines nearer to each other than this share of the axis, the lower one's words stand below it."""

AXES = {"step": "update steps", "seconds": "seconds of learning", "masks": "masks scored"}


def convergence(curve: Curve, x: str = "step", *, dark: bool = False, height: int = 340) -> dict:
    """The specification for ``st.vega_lite_chart(curve.table, spec)``.

    Args:
        curve: what to draw; its table is passed beside the specification.
        x: ``step``, ``seconds`` or ``masks``.
        dark: whether the page's ground is dark.
        height: of the plotting area, in pixels.
    """
    tone = palette.shades(dark)
    across = {"field": x, "type": "quantitative", "title": AXES[x], "scale": {"zero": True},
              "axis": {"grid": False, "tickCount": 6, "format": ",~g" if x == "seconds" else ",~r"}}
    scale = {"type": "log", "nice": False} if curve.measure == GAP else {"zero": False, "nice": True}
    axis = {"tickCount": 6, **({"format": "~g"} if curve.measure == GAP else {})}
    up = {"field": "value", "type": "quantitative", "title": curve.unit, "scale": scale, "axis": axis}
    # a run without masks has no line for them, and needs no key to it
    drawn = [(name, shade) for name, shade in ((SUBSET, tone.accent), (BATCH, tone.batch))
             if name == SUBSET or (curve.table["series"] == BATCH).any()]
    colour = {"field": "series", "type": "nominal", "title": None,
              "scale": {"domain": [name for name, _ in drawn], "range": [shade for _, shade in drawn]},
              "legend": {"orient": "top", "direction": "horizontal", "symbolType": "stroke", "symbolStrokeWidth": 3,
                         "labelLimit": 320, "offset": 4, "padding": 0}}
    tooltip = [{"field": "series", "title": " "}, {"field": "step", "title": "step", "format": ","},
               {"field": "seconds", "title": "seconds", "format": ".1f"},
               {"field": "value", "title": "below the bound" if curve.measure == GAP else curve.measure,
                "format": ".2e" if curve.measure == GAP else ".4f"}]
    if curve.measure != GAP:
        tooltip.append({"field": "high", "title": "mean + spread", "format": ".4f"})
    inside = {"filter": {"not": {"field": "series", "equal": EDGE}}}
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
        {"transform": [inside], "mark": {"type": "point", "opacity": 0, "size": 90, "filled": True},
         "encoding": {"x": across, "y": up, "tooltip": tooltip}},
    ]
    if curve.measure == GAP:
        del layers[:2]
    layers += _references(curve, tone) + _edges(curve, tone) + _final(curve, x, up, tone)
    return {"layer": layers, "height": height, "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
            "padding": {"left": 4, "right": 8, "top": 4, "bottom": 4}}


def _references(curve: Curve, tone: palette.Shades) -> list[dict]:
    """A dashed line and its words for each reference, on data of their own: the curve's table stays the curve."""
    colours = {"random": tone.random, "best": tone.best, "bound": tone.text, "final": tone.accent}
    dashes = {"random": [2, 3], "best": [7, 4], "bound": [1, 0], "final": [1, 2]}
    drawn = [*curve.table.loc[curve.table["series"] != EDGE, "value"],
             *(line.value for line in curve.references if not line.edge)]
    span, above = max(drawn, default=0.0) - min(drawn, default=0.0), None
    layers = []
    for reference in curve.references:
        if not math.isfinite(reference.value) or reference.edge:
            continue
        at = {"values": [{"value": reference.value, "label": f"{reference.label}  {words.value(reference.value, 3)}"}]}
        y = {"field": "value", "type": "quantitative"}
        layers.append({"data": at, "mark": {"type": "rule", "strokeDash": dashes[reference.role], "strokeWidth": 1.4,
                                            "color": colours[reference.role]}, "encoding": {"y": y}})
        text = {"type": "text", "align": "right", "baseline": "bottom", "dy": -3, "dx": -2, "fontSize": 12}
        if reference.role == "final":
            # just under the bound and just above where the curve ends: its words stand below both
            text |= {"baseline": "top", "dy": 14, "dx": -10}
        elif above is not None and abs(above - reference.value) < CLOSE * span:
            text |= {"baseline": "top", "dy": 4}
        above = reference.value
        place = {"y": y, "x": {"value": "width"}, "text": {"field": "label", "type": "nominal"}}
        # a halo of the page's own colour, so that curves may pass behind the words
        halo = {"stroke": tone.ground, "strokeWidth": 4, "strokeOpacity": 0.8, "fillOpacity": 0}
        layers.append({"data": at, "mark": text | halo, "encoding": place})
        layers.append({"data": at, "mark": text | {"color": colours[reference.role]}, "encoding": place})
    return layers


def _edges(curve: Curve, tone: palette.Shades) -> list[dict]:
    """An arrow at the edge for whatever lies too far off to be drawn: at the right references, at the left masks."""
    colours = {"random": tone.random, "best": tone.best, "bound": tone.text, "final": tone.accent}
    layers = []
    for edge, at, side in (("above", 0, 1), ("below", "height", -1)):
        # rows of words inside the plot, one above the other
        def words_at(align: str, row: int, color: str, source: dict, field: str, edge: str = edge,
                     at: int | str = at) -> list[dict]:
            down = (12 + 16 * row) * (1 if edge == "above" else -1)
            text = {"type": "text", "align": align, "baseline": "middle", "fontSize": 12,
                    "dx": 4 if align == "left" else -2, "dy": down}
            place = {"y": {"value": at}, "x": {"value": 0 if align == "left" else "width"},
                     "text": {"field": field, "type": "nominal"}}
            halo = {"stroke": tone.ground, "strokeWidth": 4, "strokeOpacity": 0.8, "fillOpacity": 0}
            return [{**source, "mark": text | look, "encoding": place} for look in (halo, {"color": color})]
        far: list[Reference] = [line for line in curve.references if line.edge == edge]
        for row, line in enumerate(far):
            label = f"{'▲' if side > 0 else '▼'} {line.label}  {words.value(line.value, 3)}"
            layers += words_at("right", row, colours[line.role], {"data": {"values": [{"label": label}]}}, "label")
        if curve.measure != GAP:
            kept = {"transform": [{"filter": f"datum.series === '{EDGE}' && datum.value === {side}"}]}
            layers += words_at("left", 0, tone.text, kept, "note")
    return layers


def _final(curve: Curve, x: str, up: dict, tone: palette.Shades) -> list[dict]:
    """A diamond where the selection ended after it was polished."""
    if curve.final is None or x not in curve.final:
        return []
    mark = {"type": "point", "shape": "diamond", "filled": True, "size": 110, "color": tone.accent,
            "stroke": tone.ground, "strokeWidth": 1.2, "opacity": 1,
            "tooltip": f"final selection: {words.value(curve.final['value'])}"}
    return [{"data": {"values": [curve.final]}, "mark": mark,
             "encoding": {"x": {"field": x, "type": "quantitative"}, "y": up}}]
