"""Charts of one sample: the waterfall of its score, and the lambdas at which it is in. Vega-Lite specifications."""

from __future__ import annotations

from datamask.dashboard import palette
from datamask.dashboard.views.why import AGAINST, FOR, TOTAL


def waterfall(low: float, high: float, *, dark: bool = False) -> dict:
    """Bars that begin where the one above ends; the line at 0 is the threshold. For `views.why.waterfall`.

    Args:
        low, high: the farthest that any bar reaches.
    """
    tone = palette.shades(dark)
    room = 0.22 * max(high - low, 1e-9)  # for the numbers beside the bars
    up = {
        "field": "part",
        "type": "nominal",
        "sort": None,
        "title": None,
        "axis": {"labelLimit": 110, "ticks": False, "domain": False, "grid": False},
    }
    kind = {
        "field": "kind",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [FOR, AGAINST, TOTAL], "range": [tone.accent, tone.quality, tone.random]},
        "legend": {"orient": "top", "offset": 0, "padding": 0, "symbolType": "square"},
    }
    across = {
        "type": "quantitative",
        "title": "standard deviations from the threshold",
        "axis": {"tickCount": 4},
        "scale": {"domain": [low - room, high + room], "nice": False},
    }
    tooltip = [
        {"field": "part", "title": "part"},
        {"field": "amount", "title": "adds", "format": "+.3f"},
        {"field": "end", "title": "then at", "format": "+.3f"},
    ]
    return {
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.7}},
                "encoding": {
                    "x": {**across, "field": "start"},
                    "x2": {"field": "end"},
                    "y": up,
                    "color": kind,
                    "tooltip": tooltip,
                },
            },
            {
                "data": {"values": [{"at": 0}]},
                "mark": {"type": "rule", "color": tone.text, "strokeDash": [3, 3]},
                "encoding": {"x": {"field": "at", "type": "quantitative"}},
            },
            *[
                {
                    "transform": [{"filter": f"datum.end {sign} datum.start"}],
                    "mark": {"type": "text", "align": align, "dx": shift, "color": tone.text, "fontSize": 11},
                    "encoding": {
                        "x": {**across, "field": "end"},
                        "y": up,
                        "text": {"field": "amount", "type": "quantitative", "format": "+.2f"},
                    },
                }
                for sign, align, shift in ((">=", "left", 4), ("<", "right", -4))
            ],
        ],
        "height": {"step": 24},
        "config": {"view": {"stroke": None}},
        "padding": {"left": 2, "right": 4, "top": 2, "bottom": 2},
    }


def strip(*, dark: bool = False) -> dict:
    """A dot per stored run over lambda: filled where the sample is in, else a ring. For `views.why.strip`."""
    tone = palette.shades(dark)
    across = {
        "field": "lambda",
        "type": "quantitative",
        "title": "λ (0: diversity alone, 1: quality alone)",
        "scale": {"domain": [0, 1]},
        "axis": {"tickCount": 5, "grid": False},
    }
    tooltip = [{"field": "lambda", "title": "λ"}, {"field": "state", "title": "this sample is"}]
    state = {"field": "state", "type": "nominal", "title": None}
    legend = {"orient": "top", "offset": 0, "padding": 0}
    return {
        "layer": [
            {
                "transform": [{"filter": "datum.here"}],
                "mark": {
                    "type": "point",
                    "shape": "stroke",
                    "angle": 90,
                    "size": 700,
                    "strokeWidth": 2,
                    "color": tone.text,
                    "opacity": 0.6,
                },
                "encoding": {"x": across},
            },
            {
                "mark": {"type": "point", "size": 90, "strokeWidth": 2, "opacity": 1},
                "encoding": {
                    "x": across,
                    "tooltip": tooltip,
                    "shape": {
                        **state,
                        "scale": {"domain": ["in", "out"], "range": ["circle", "circle"]},
                        "legend": None,
                    },
                    "stroke": {
                        **state,
                        "legend": legend,
                        "scale": {"domain": ["in", "out"], "range": [tone.accent, tone.random]},
                    },
                    "fill": {
                        **state,
                        "legend": legend,
                        "scale": {"domain": ["in", "out"], "range": [tone.accent, tone.ground]},
                    },
                },
            },
        ],
        "height": 104,
        "config": {"view": {"stroke": None}},
        "padding": {"left": 8, "right": 12, "top": 2, "bottom": 2},
    }
