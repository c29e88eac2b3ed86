"""Learning curves of several runs in one chart, as a Vega-Lite specification; the data come beside it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from datamask.dashboard import palette
from datamask.dashboard.charts.convergence import AXES
from datamask.dashboard.charts.shares import PERCENT

DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])
"""One per run, so that the lines differ without their colours."""


def overlay(
    labels: Sequence[str],
    x: str = "step",
    *,
    measure: str = "joint",
    dark: bool = False,
    height: int = 260,
    finals: pd.DataFrame | None = None,
) -> dict:
    """The specification for ``st.vega_lite_chart(comparison.curves(...), spec)``.

    Args:
        labels: the runs in their order, which gives colour and dash.
        x: ``step`` or ``seconds``. measure: what the values are, for the axis.
        dark: whether the page's ground is dark. height: of the plotting area, in pixels.
        finals: where polished selections ended, as `comparison.finals` gives them; a diamond each.
    """
    tone = palette.shades(dark)
    across = {"field": x, "type": "quantitative", "title": AXES[x], "axis": {"grid": False, "tickCount": 6}}
    up = {
        "field": "value",
        "type": "quantitative",
        "title": f"{measure}, share of the attainable gain",
        "scale": {"zero": False, "nice": True},
        "axis": {"labelExpr": PERCENT, "tickCount": 6},
    }
    scale = {"domain": list(labels), "range": palette.categories(len(labels))}
    legend = {
        "orient": "top",
        "direction": "horizontal",
        "columns": 2,
        "symbolType": "stroke",
        "symbolStrokeWidth": 3,
        "labelLimit": 260,
        "offset": 4,
        "padding": 0,
    }
    colour = {"field": "run", "type": "nominal", "title": None, "scale": scale, "legend": legend}
    dash = {
        "field": "run",
        "type": "nominal",
        "title": None,
        "legend": legend,
        "scale": {"domain": list(labels), "range": list(DASHES[: len(labels)])},
    }
    tooltip = [
        {"field": "run", "title": " "},
        {"field": "step", "title": "step", "format": ","},
        {"field": "seconds", "title": "seconds", "format": ".1f"},
        {"field": "value", "title": measure, "format": ".1%"},
    ]
    zero = {"values": [{"value": 0, "label": "random subset"}]}
    ended = [] if finals is None else finals.dropna(subset=[x]).to_dict("records")
    return {
        "layer": [
            {
                "data": zero,
                "mark": {"type": "rule", "strokeDash": [2, 3], "color": tone.random},
                "encoding": {"y": {"field": "value", "type": "quantitative"}},
            },
            {
                "data": zero,
                "mark": {
                    "type": "text",
                    "align": "right",
                    "baseline": "bottom",
                    "dy": -3,
                    "fontSize": 12,
                    "color": tone.random,
                },
                "encoding": {
                    "y": {"field": "value", "type": "quantitative"},
                    "x": {"value": "width"},
                    "text": {"field": "label", "type": "nominal"},
                },
            },
            {
                "mark": {"type": "line", "strokeWidth": 2.4},
                "encoding": {"x": across, "y": up, "color": colour, "strokeDash": dash},
            },
            {
                "data": {"values": ended},
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 90,
                    "shape": "diamond",
                    "opacity": 1,
                    "stroke": tone.ground,
                    "strokeWidth": 1.2,
                    "aria": bool(ended),
                },
                "encoding": {
                    "x": across,
                    "y": up,
                    "color": colour,
                    "tooltip": [
                        {"field": "run", "title": " "},
                        {"field": "value", "title": "final selection", "format": ".1%"},
                    ],
                },
            },
            # a baseline has no steps: one mark instead of a line; the last layer says its value, and where there is no
            # baseline this one would have no name
            {
                "transform": [
                    {"joinaggregate": [{"op": "count", "as": "records"}], "groupby": ["run"]},
                    {"filter": "datum.records == 1"},
                ],
                "mark": {"type": "point", "filled": True, "size": 70, "shape": "diamond", "aria": False},
                "encoding": {"x": across, "y": up, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 0},
                "encoding": {"x": across, "y": up, "tooltip": tooltip},
            },
        ],
        "height": height,
        "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
        "padding": {"left": 4, "right": 8, "top": 4, "bottom": 4},
    }
