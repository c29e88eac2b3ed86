"""Charts of where a selection is starved or over-fed, as Vega-Lite specifications; the data come beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd

from datamask.dashboard import palette
from datamask.dashboard.charts.shares import PERCENT
from datamask.dashboard.groups import EVEN, FED, STARVED, Heat


def dots(ratio: float, *, dark: bool = False) -> dict:
    """Selected share of each group with its interval, the dashed line being the share of all samples.

    For ``st.vega_lite_chart(groups.shares(...), spec)``.
    """
    tone = palette.shades(dark)
    up = {
        "field": "group",
        "type": "nominal",
        "title": None,
        "sort": None,
        "axis": {"labelLimit": 210, "ticks": False, "domain": False, "grid": True},
    }
    title = "selected share, with 95 % interval"
    across = {
        "type": "quantitative",
        "title": title,
        "scale": {"zero": True},
        "axis": {"labelExpr": PERCENT, "tickCount": 5},
    }
    kind = {
        "field": "verdict",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [STARVED, FED, EVEN], "range": [tone.best, tone.accent, tone.random]},
        "legend": {"orient": "top", "offset": 2, "padding": 0},
    }
    shape = {**kind, "scale": {"domain": [STARVED, FED, EVEN], "range": ["triangle-down", "triangle-up", "circle"]}}
    tooltip = [
        {"field": "group", "title": "group"},
        {"field": "share", "title": "selected share", "format": ".1%"},
        {"field": "low", "title": "from", "format": ".1%"},
        {"field": "high", "title": "to", "format": ".1%"},
        {"field": "selected", "title": "selected", "format": ","},
        {"field": "n", "title": "of", "format": ","},
    ]
    return {
        "layer": [
            {
                "data": {"values": [{"share": ratio}]},
                "mark": {"type": "rule", "strokeDash": [3, 3], "color": tone.text, "opacity": 0.7},
                "encoding": {"x": {"field": "share", "type": "quantitative"}},
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
                    "x": {**across, "field": "share"},
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


def first_groups(table: pd.DataFrame, limit: int = 14) -> pd.DataFrame:
    """The groups worth a look, most starved on top, most over-fed at the bottom; all where there are few.

    Half of the places belong to each side, as far as it has groups; what is left goes to the farthest others.
    """
    if len(table) <= limit:
        return table.sort_values("share", kind="stable")
    sides = [table[table["verdict"] == verdict].head(limit // 2).index for verdict in (STARVED, FED)]
    kept = sides[0].append(sides[1])
    kept = kept.append(table.index.difference(kept, sort=True)[: limit - len(kept)])
    return table.loc[kept].sort_values("share", kind="stable")


def heat_map(found: Heat, *, dark: bool = False, height: int = 330) -> dict:
    """Selected share over the clusters' mean quality (up) and mean similarity to neighbours (across).

    For ``st.vega_lite_chart(heat_table(found), spec)``; ``cell`` is the name of the selection a click makes.
    """
    tone = palette.shades(dark)
    top = max(float(found.table["share"].max()), found.ratio + 0.25 * (1 - found.ratio))
    x = {
        "field": "crowding",
        "type": "ordinal",
        "title": "similarity to neighbours, from … on: crowded on the right",
        "scale": {"domain": list(range(len(found.crowding)))},
        "axis": _steps([label.partition(" to ")[0] for label in found.crowding]),
    }
    y = {
        "field": "quality",
        "type": "ordinal",
        "title": "quality, rising upwards",
        "scale": {"domain": list(range(len(found.quality)))[::-1]},
        "axis": _steps(found.quality),
    }
    color = {
        "field": "share",
        "type": "quantitative",
        "title": "selected",
        "scale": {
            "domain": [0, found.ratio, top],
            "range": [c for _, c in palette.share_scale(dark)],
            "clamp": True,
            "interpolate": "rgb",
        },
        "legend": {"orient": "right", "format": ".0%", "gradientLength": height * 0.6, "titleLimit": 90},
    }
    tooltip = [
        {"field": "share", "title": "selected share", "format": ".1%"},
        {"field": "low", "title": "from", "format": ".1%"},
        {"field": "high", "title": "to", "format": ".1%"},
        {"field": "n", "title": "samples", "format": ","},
        {"field": "clusters", "title": "clusters"},
        {"field": "quality range", "title": "mean quality of the clusters"},
        {"field": "similarity range", "title": "mean similarity"},
    ]
    return {
        "params": [
            {
                "name": "cell",
                "select": {"type": "point", "fields": ["crowding", "quality"], "toggle": False},
                "views": ["cells"],
            }
        ],
        "layer": [
            {
                "name": "cells",
                "mark": {"type": "rect", "stroke": tone.ground, "strokeWidth": 2, "cursor": "pointer"},
                "encoding": {"x": x, "y": y, "color": color, "tooltip": tooltip},
            },
            {
                "mark": {"type": "text", "fontSize": 12, "color": tone.text, "cursor": "pointer"},
                "encoding": {
                    "x": x,
                    "y": y,
                    "tooltip": tooltip,
                    "text": {"field": "share", "type": "quantitative", "format": ".0%"},
                },
            },
        ],
        "height": height,
        "config": {"view": {"stroke": None}},
    }


def heat_table(found: Heat) -> pd.DataFrame:
    """What `heat_map` draws."""
    table = found.table.drop(columns="members")
    table["quality range"] = [found.quality[k] for k in table["quality"]]
    table["similarity range"] = [found.crowding[k] for k in table["crowding"]]
    return table


def _steps(labels: Sequence[str]) -> dict:
    lines = [label.replace(" to ", " to|").split("|") for label in labels]
    return {
        "labelExpr": f"{json.dumps(lines)}[datum.value]",
        "labelAngle": 0,
        "ticks": False,
        "domain": False,
        "labelFontSize": 10,
        "labelOverlap": False,
    }
