"""A vital sign of the learner as a small Vega-Lite chart; its data come beside it, so live updates keep the chart."""

from __future__ import annotations

from typing import Any

from datamask.analyses.vitals.tables import Vital
from datamask.dashboard.drawing import palette

PERCENT = "format(100 * datum.value, '.3~g') + '\u00a0%'"
"""Labels of an axis of shares, with the digits that small ones need."""

KEY_LINE = 18
"""Pixels of one line of a key below the plotting area; the chart's height holds both."""


def vital(shown: Vital, *, dark: bool = False, height: int = 130) -> dict:
    """The specification for ``st.vega_lite_chart(shown.table, spec)``.

    Args:
        shown: what to draw; its table is passed beside the specification. height: of a chart without a key, in pixels.
    """
    tone = palette.shades(dark)
    names = list(dict.fromkeys(shown.table["series"]))
    axis = {"tickCount": 3, **({"labelExpr": PERCENT} if shown.shares else {"format": ",~r"})}
    across = {
        "field": "step",
        "type": "quantitative",
        "title": "update steps",
        "scale": {"zero": True},
        "axis": {"grid": False, "tickCount": 4, "format": ",~r"},
    }
    up = {"field": "value", "type": "quantitative", "title": None, "scale": {"zero": True}, "axis": axis}
    shades = [tone.accent] if len(names) == 1 else [tone.quality, tone.diversity, tone.accent, tone.batch, tone.text]
    colour = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": [shades[k % len(shades)] for k in range(len(names))]},
        "legend": None
        if len(names) == 1
        else {
            "orient": "bottom",
            "direction": "vertical",
            "symbolType": "stroke",
            "symbolStrokeWidth": 3,
            "labelLimit": 220,
            "offset": 2,
            "padding": 0,
        },
    }
    dash = {
        "field": "series",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": names, "range": [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4]][: len(names)]},
    }
    tooltip = [
        {"field": "series", "title": " "},
        {"field": "step", "title": "step", "format": ","},
        {"field": "value", "title": "value", "format": ".1%" if shown.shares else ".3~g"},
    ]
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "line", "strokeWidth": 2.0},
            "encoding": {"x": across, "y": up, "color": colour, "strokeDash": dash},
        },
        {
            "mark": {"type": "point", "opacity": 0, "size": 60, "filled": True},
            "encoding": {"x": across, "y": up, "tooltip": tooltip},
        },
    ]
    if shown.chance is not None:
        at = {"values": [{"value": shown.chance, "label": "by chance"}]}
        y = {"field": "value", "type": "quantitative"}
        layers += [
            {"data": at, "mark": {"type": "rule", "strokeDash": [2, 3], "color": tone.random}, "encoding": {"y": y}},
            {
                "data": at,
                "mark": {
                    "type": "text",
                    "align": "right",
                    "baseline": "top",
                    "dy": 3,
                    "dx": -2,
                    "fontSize": 11,
                    "color": tone.random,
                },
                "encoding": {"y": y, "x": {"value": "width"}, "text": {"field": "label", "type": "nominal"}},
            },
        ]
    key = 0 if len(names) == 1 else KEY_LINE * len(names)
    return {
        "layer": layers,
        "height": height + key,
        "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
        "padding": {"left": 2, "right": 6, "top": 4, "bottom": 2},
    }
