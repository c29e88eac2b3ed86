"""How often random parts of the corpus select each sample again, as a Vega-Lite specification."""

from __future__ import annotations

from datamask.dashboard import palette
from datamask.dashboard.charts.shares import PERCENT
from datamask.dashboard.views.agreements import CORE, FLIP


def agreement(*, dark: bool = False, height: int = 230) -> dict:
    """For ``st.vega_lite_chart(agreements.histogram(...), spec)``."""
    tone = palette.shades(dark)
    of = ["selected by the run", "not selected"]
    zones = [{"low": FLIP[0], "high": FLIP[1], "label": "coin-flips"}]
    x = {"field": "low", "type": "quantitative", "scale": {"domain": [0, CORE]}}
    return {
        "layer": [
            {
                "data": {"values": zones},
                "mark": {"type": "rect", "color": tone.muted, "opacity": 0.22},
                "encoding": {"x": x, "x2": {"field": "high"}},
            },
            {
                "data": {"values": zones},
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "top",
                    "dx": 4,
                    "dy": 4,
                    "fontSize": 12,
                    "color": tone.text,
                },
                "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "label"}},
            },
            {
                "mark": {"type": "rect", "stroke": tone.ground, "strokeWidth": 1},
                "encoding": {
                    "x": {
                        **x,
                        "title": "share of the random parts that select the sample",
                        "axis": {"labelExpr": PERCENT, "tickCount": 9, "grid": False},
                    },
                    "x2": {"field": "high"},
                    "y": {
                        "field": "base",
                        "type": "quantitative",
                        "title": "undecided samples",
                        "axis": {"tickCount": 5, "format": ",~r"},
                    },
                    "y2": {"field": "top"},
                    "color": {
                        "field": "of",
                        "type": "nominal",
                        "title": None,
                        "scale": {"domain": of, "range": [tone.accent, tone.quality]},
                        "legend": {"orient": "top", "offset": 2, "padding": 0},
                    },
                    "tooltip": [
                        {"field": "of", "title": " "},
                        {"field": "low", "title": "from", "format": ".0%"},
                        {"field": "high", "title": "to", "format": ".0%"},
                        {"field": "rows", "title": "samples", "format": ","},
                    ],
                },
            },
        ],
        "height": height,
        "config": {"view": {"stroke": None}},
        "padding": {"left": 4, "right": 10, "top": 2, "bottom": 2},
    }
