"""Selected share of each class, one mark per run: a dot plot as a Vega-Lite specification; the data come beside it."""

from __future__ import annotations

from collections.abc import Sequence

from datamask.dashboard import palette

PERCENT = "format(100 * datum.value, '.0f') + '\u00a0%'"
"""Labels of an axis of shares, with the same gap before the sign as in every text."""

SHAPES = ("circle", "diamond", "triangle-up", "square")


def shares(labels: Sequence[str], ratios: Sequence[float], title: str, *, dark: bool = False) -> dict:
    """The specification for ``st.vega_lite_chart(comparison.by_category(...), spec)``.

    Args:
        labels, ratios: the runs in their order, and what share of all rows each selects: the dashed line that a run
            without preference would stay on.
        title: of the classes.
        dark: whether the page's ground is dark.
    """
    tone = palette.shades(dark)
    legend = {"orient": "top", "direction": "horizontal", "columns": 2, "labelLimit": 220, "offset": 4, "padding": 0}
    run = {"field": "run", "type": "nominal", "title": None, "legend": legend}
    colour = {**run, "scale": {"domain": list(labels), "range": palette.categories(len(labels))}}
    shape = {**run, "scale": {"domain": list(labels), "range": list(SHAPES[: len(labels)])}}
    across = {
        "field": "share",
        "type": "quantitative",
        "title": "selected share",
        "scale": {"zero": True},
        "axis": {"labelExpr": PERCENT, "tickCount": 5},
    }
    up = {
        "field": "label",
        "type": "nominal",
        "title": None,
        "sort": {"field": "n", "order": "descending"},
        "axis": {"labelLimit": 200, "ticks": False, "domain": False, "grid": True},
    }
    tooltip = [
        {"field": "category", "title": title},
        {"field": "run", "title": " "},
        {"field": "share", "title": "selected share", "format": ".1%"},
        {"field": "selected", "title": "selected", "format": ","},
        {"field": "n", "title": "of", "format": ","},
    ]
    lines = [{"share": ratio} for ratio in dict.fromkeys(ratios)]
    return {
        "transform": [{"calculate": "datum.category + '  (n ' + format(datum.n, ',') + ')'", "as": "label"}],
        "layer": [
            {
                "data": {"values": lines},
                "mark": {"type": "rule", "strokeDash": [2, 3], "color": tone.random},
                "encoding": {"x": {"field": "share", "type": "quantitative"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 0.95},
                "encoding": {"x": across, "y": up, "color": colour, "shape": shape, "tooltip": tooltip},
            },
        ],
        "height": {"step": 22},
        "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
        "padding": {"left": 4, "right": 8, "top": 4, "bottom": 4},
    }
