"""Results measured elsewhere over lambda, one small chart per task, as Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Sequence

from datamask.dashboard import palette

SHAPES = ("circle", "diamond", "triangle-up", "square", "cross", "triangle-down", "stroke", "triangle-right")
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [1, 3], [12, 3], [6, 2, 1, 2])


def downstream(task: str, curves: Sequence[str], *, dark: bool = False, height: int = 220) -> dict:
    """For ``st.vega_lite_chart(points of one task, spec)``. What has no lambda is a line across.

    Args:
        task: whose scores they are. curves: all curves of all tasks, so that each keeps its colour and mark.
        dark: whether the page's ground is dark.
    """
    tone = palette.shades(dark)
    few = list(curves[: len(SHAPES)])
    colors = [tone.accent, *palette.categories(len(SHAPES))[1:]]
    across = {
        "field": "lamb",
        "type": "quantitative",
        "title": "λ: 0 diversity alone, 1 quality alone",
        "scale": {"domain": [0, 1]},
        "axis": {"tickCount": 6, "grid": False},
    }
    up = {
        "field": "mean",
        "type": "quantitative",
        "title": task,
        "scale": {"zero": False, "padding": 8},
        "axis": {"tickCount": 5, "format": "~g"},
    }
    legend = {"orient": "top", "direction": "horizontal", "columns": 1, "labelLimit": 300, "offset": 2, "padding": 0}
    colour = {
        "field": "curve",
        "type": "nominal",
        "title": None,
        "legend": legend,
        "scale": {"domain": few, "range": colors[: len(few)]},
    }
    shape = {**colour, "scale": {"domain": few, "range": list(SHAPES[: len(few)])}}
    dash = {**colour, "scale": {"domain": few, "range": [list(part) for part in DASHES[: len(few)]]}}
    tooltip = [
        {"field": "curve", "title": " "},
        {"field": "lamb", "title": "λ"},
        {"field": "mean", "title": "mean", "format": ".4f"},
        {"field": "low", "title": "less one sd", "format": ".4f"},
        {"field": "high", "title": "plus one sd", "format": ".4f"},
        {"field": "seeds", "title": "numbers"},
    ]
    at_lambda = "isValid(datum.lamb) && isFinite(datum.lamb)"
    spread = {
        "transform": [{"filter": f"{at_lambda} && isValid(datum.low) && isFinite(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}, "color": colour},
    }
    return {
        "layer": [
            {
                "transform": [{"filter": at_lambda}],
                "mark": {"type": "line", "strokeWidth": 1.8},
                "encoding": {"x": across, "y": up, "color": colour, "strokeDash": dash},
            },
            spread,
            {
                "transform": [{"filter": f"!({at_lambda})"}],
                "mark": {"type": "rule", "strokeWidth": 1.8},
                "encoding": {"y": up, "color": colour, "strokeDash": dash, "tooltip": tooltip},
            },
            {
                "transform": [{"filter": at_lambda}],
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": {"x": across, "y": up, "color": colour, "shape": shape, "tooltip": tooltip},
            },
        ],
        "height": height,
        "config": {"view": {"stroke": None}},
        "padding": {"left": 4, "right": 10, "top": 2, "bottom": 2},
    }
