"""Charts of the Data page."""

from __future__ import annotations

from datamask.dashboard import palette


def quality_histogram(*, label: str = "quality", dark: bool = False, height: int = 190) -> dict:
    """The specification of a histogram over the table of `views.overview.quality_histogram`.

    Args:
        label: the quality column's name, for the axis.
        dark: whether the page's ground is dark.
        height: of the plotting area, in pixels.
    """
    tone = palette.shades(dark)
    return {
        "height": height,
        "mark": {"type": "bar", "color": tone.quality, "binSpacing": 1},
        "encoding": {
            "x": {
                "field": "low",
                "type": "quantitative",
                "bin": {"binned": True},
                "title": label,
                "axis": {"grid": False, "tickCount": 8},
            },
            "x2": {"field": "high"},
            "y": {"field": "rows", "type": "quantitative", "title": "rows", "axis": {"tickCount": 4, "format": ",d"}},
            "tooltip": [
                {"field": "low", "title": "from", "format": ".3f"},
                {"field": "high", "title": "to", "format": ".3f"},
                {"field": "rows", "title": "rows", "format": ","},
            ],
        },
        "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
        "padding": {"left": 4, "right": 8, "top": 4, "bottom": 4},
    }


def rough_frontier(*, dark: bool = False, height: int = 260) -> dict:
    """The specification of a frontier over the table of `first_looks.FirstPicture.frontier`, random at 0, 0.

    Args:
        dark: whether the page's ground is dark.
        height: of the plotting area, in pixels.
    """
    tone = palette.shades(dark)
    share = {"format": ".0%", "tickCount": 5}
    x = {"field": "quality", "type": "quantitative", "title": "quality, share of the attainable gain", "axis": share}
    y = {
        "field": "diversity",
        "type": "quantitative",
        "title": "diversity, share of the attainable gain",
        "axis": share,
    }
    tips = [
        {"field": "lamb", "title": "lambda"},
        {"field": "quality", "format": ".1%"},
        {"field": "diversity", "format": ".1%"},
    ]
    names = {"calculate": "datum.lamb == 1 ? 'top quality' : 'λ ' + datum.lamb", "as": "name"}
    return {
        "height": height,
        "transform": [names],
        "encoding": {"x": x, "y": y, "order": {"field": "lamb", "type": "quantitative"}, "tooltip": tips},
        "layer": [
            {"mark": {"type": "line", "color": tone.accent, "strokeDash": [6, 4]}},
            {"mark": {"type": "point", "filled": True, "size": 60, "color": tone.accent}},
            {
                "transform": [{"filter": "datum.lamb > 0"}],
                "mark": {"type": "text", "align": "right", "dx": -8, "dy": 10, "color": tone.text},
                "encoding": {"text": {"field": "name"}},
            },
            {  # to the left of this one are the numbers of the axis
                "transform": [{"filter": "datum.lamb == 0"}],
                "mark": {"type": "text", "align": "left", "dx": 4, "dy": 14, "color": tone.text},
                "encoding": {"text": {"field": "name"}},
            },
            {
                "data": {"values": [{"quality": 0, "diversity": 0, "name": "random"}]},
                "mark": {"type": "point", "shape": "square", "filled": True, "size": 60, "color": tone.random},
                "encoding": {"tooltip": {"value": "a random subset: 0 % of both by definition"}},
            },
            {
                "data": {"values": [{"quality": 0, "diversity": 0, "name": "random"}]},
                "mark": {"type": "text", "align": "left", "dx": 8, "dy": -8, "color": tone.random},
                "encoding": {"text": {"field": "name"}, "tooltip": None},
            },
        ],
        "config": {"view": {"stroke": None}},
        "padding": {"left": 4, "right": 8, "top": 4, "bottom": 4},
    }
