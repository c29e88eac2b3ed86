"""Charts of the home page."""

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
