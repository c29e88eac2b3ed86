"""Change of the selected share, group by group, as a Vega-Lite specification; the data come beside it."""

from __future__ import annotations

import pandas as pd

from datamask.dashboard import palette
from datamask.dashboard.changes import LESS, MORE, SAME

POINTS = "(datum.value > 0 ? '+' : datum.value < 0 ? '−' : '') + format(abs(100 * datum.value), '~r')"
"""Labels of an axis of differences of shares, in percentage points."""


def shifts(overall: float, *, dark: bool = False) -> dict:
    """For ``st.vega_lite_chart(first_shifts(changes.by_group(...)), spec)``.

    Args:
        overall: change over all rows, the dashed line.
        dark: whether the page's ground is dark.
    """
    tone = palette.shades(dark)
    up = {
        "field": "group",
        "type": "nominal",
        "title": None,
        "sort": None,
        "axis": {"labelLimit": 210, "ticks": False, "domain": False, "grid": True},
    }
    across = {
        "type": "quantitative",
        "title": ["change, percentage points,", "with 95 % interval"],
        "scale": {"zero": True},
        "axis": {"labelExpr": POINTS, "tickCount": 6},
    }
    kind = {
        "field": "verdict",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [LESS, MORE, SAME], "range": [tone.best, tone.accent, tone.random]},
        "legend": {"orient": "top", "columns": 2, "offset": 2, "padding": 0},
    }
    shape = {**kind, "scale": {"domain": [LESS, MORE, SAME], "range": ["triangle-down", "triangle-up", "circle"]}}
    tooltip = [
        {"field": "group", "title": "group"},
        {"field": "change", "title": "change", "format": "+.1%"},
        {"field": "low", "title": "from", "format": "+.1%"},
        {"field": "high", "title": "to", "format": "+.1%"},
        *({"field": name, "title": name, "format": ","} for name in ("kept", "gained", "lost", "n")),
    ]
    return {
        "layer": [
            {
                "data": {"values": [{"change": overall}]},
                "mark": {"type": "rule", "strokeDash": [3, 3], "color": tone.text, "opacity": 0.7},
                "encoding": {"x": {"field": "change", "type": "quantitative"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": {**across, "field": "low"},
                    "x2": {"field": "high"},
                    "y": up,
                    "color": kind,
                    "tooltip": tooltip,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
                "encoding": {
                    "x": {**across, "field": "change"},
                    "y": up,
                    "color": kind,
                    "shape": shape,
                    "tooltip": tooltip,
                },
            },
        ],
        "height": {"step": 21},
        "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
        "padding": {"left": 2, "right": 10, "top": 2, "bottom": 2},
    }


def first_shifts(table: pd.DataFrame, limit: int = 16) -> pd.DataFrame:
    """The groups worth a look, the greatest loss on top; all where there are few."""
    return table.head(limit).sort_values("change", kind="stable")
