"""Sweeps over the select ratio and over G, as Vega-Lite specifications; their tables come beside them."""

from __future__ import annotations

from datamask.dashboard import palette

PADDING = {"left": 4, "right": 8, "top": 4, "bottom": 4}
CONFIG = {"view": {"stroke": None}, "axis": {"labelFlush": False}}


def ratio(*, dark: bool = False, height: int = 380) -> dict:
    """Quality and diversity as shares of the attainable gain over the select ratio: columns of `views.ratio_series`."""
    tone = palette.shades(dark)
    colour = {
        "field": "term",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["quality", "diversity"], "range": [tone.quality, tone.diversity]},
        "legend": {"orient": "top", "symbolStrokeWidth": 3, "offset": 4},
    }
    dash = {
        "field": "term",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": ["quality", "diversity"], "range": [[1, 0], [6, 3]]},
    }
    across = {
        "field": "ratio",
        "type": "quantitative",
        "title": "select ratio, % of the rows",
        "scale": {"zero": True},
        "axis": {"grid": False, "tickCount": 8},
    }
    up = {
        "field": "share",
        "type": "quantitative",
        "title": "share of the attainable gain at that ratio, %",
        "scale": {"zero": False, "nice": True},
        "axis": {"tickCount": 6},
    }
    tooltip = [
        {"field": "term", "title": " "},
        {"field": "ratio", "title": "select ratio, %", "format": ".4~g"},
        {"field": "share", "title": "share, %", "format": ".1f"},
        {"field": "raw", "title": "raw value", "format": ".4~g"},
        {"field": "n", "title": "seeds"},
    ]
    return {
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 2.5},
                "encoding": {"x": across, "y": up, "color": colour, "strokeDash": dash},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {"x": across, "y": up, "color": colour, "tooltip": tooltip},
            },
        ],
        "height": height,
        "config": CONFIG,
        "padding": PADDING,
    }


def groups(sizes: list[int], *, dark: bool = False, height: int = 380) -> dict:
    """Joint value over seconds of learning for each G, log x, the band from the worst to the best seed.

    Columns of `views.group_series`.

    Args:
        sizes: the group sizes, rising.
    """
    colours = [palette.OKABE_ITO[i % 7] for i in range(len(sizes))]
    names = [str(size) for size in sizes]
    colour = {
        "field": "G",
        "type": "nominal",
        "title": "masks per step, G",
        "sort": names,
        "scale": {"domain": names, "range": colours},
        "legend": {"orient": "top", "symbolStrokeWidth": 3, "offset": 4, "symbolType": "stroke"},
    }
    dash = {
        "field": "G",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": names, "range": [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 2], [1, 3]]},
    }
    across = {
        "field": "seconds",
        "type": "quantitative",
        "title": "seconds of learning",
        "scale": {"type": "log"},
        "axis": {"grid": False, "tickCount": 6, "format": "~g"},
    }
    up = {
        "field": "mean",
        "type": "quantitative",
        "title": "joint value of the subset, whole corpus",
        "scale": {"zero": False, "nice": True},
        "axis": {"tickCount": 6},
    }
    tooltip = [
        {"field": "G"},
        {"field": "seconds", "format": ".2~f"},
        {"field": "mean", "format": ".4f"},
        {"field": "low", "title": "worst seed", "format": ".4f"},
        {"field": "high", "title": "best seed", "format": ".4f"},
        {"field": "seeds"},
    ]
    named = {"calculate": "toString(datum.G)", "as": "G"}
    return {
        "transform": [named],
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.18},
                "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}, "color": colour},
            },
            {
                "mark": {"type": "line", "strokeWidth": 2.2},
                "encoding": {"x": across, "y": up, "color": colour, "strokeDash": dash},
            },
            {
                "mark": {"type": "point", "opacity": 0, "size": 80},
                "encoding": {"x": across, "y": up, "tooltip": tooltip},
            },
        ],
        "height": height,
        "config": CONFIG,
        "padding": PADDING,
    }
