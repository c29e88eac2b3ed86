"""The near-copy rate against the size of the corpus, as a Vega-Lite specification."""

from __future__ import annotations

from datamask.dashboard import palette
from datamask.dashboard.charts.shares import PERCENT


def copies(*, dark: bool = False, height: int = 190) -> dict:
    """For ``st.vega_lite_chart(overview.copy_curve(...), spec)``.

    Args:
        dark: whether the page's ground is dark.
        height: of the plotting area, in pixels.
    """
    tone = palette.shades(dark)
    x = {
        "field": "rows",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "title": "rows",
        "axis": {"grid": False, "format": "~s", "tickCount": 5},
    }
    y = {
        "field": "rate",
        "type": "quantitative",
        "title": "rows with a near-copy",
        "axis": {"labelExpr": PERCENT, "tickCount": 4},
        "scale": {"zero": True},
    }
    tips = [
        {"field": "rows", "format": ",d"},
        {"field": "rate", "title": "with a near-copy", "format": ".1%"},
        {"field": "low", "title": "from", "format": ".1%"},
        {"field": "high", "title": "to", "format": ".1%"},
        {"field": "of", "title": " "},
    ]
    return {
        "height": height,
        "encoding": {"x": x},
        "layer": [
            {
                "transform": [{"filter": "datum.of == 'foretold'"}],
                "mark": {"type": "area", "color": tone.accent, "opacity": 0.18},
                "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line", "color": tone.accent, "strokeWidth": 2},
                "encoding": {
                    "y": y,
                    "strokeDash": {
                        "field": "of",
                        "type": "nominal",
                        "title": None,
                        "scale": {"domain": ["counted", "foretold"], "range": [[1, 0], [5, 4]]},
                        "legend": {"orient": "top", "offset": 2, "padding": 0},
                    },
                    "tooltip": tips,
                },
            },
            {
                "transform": [{"filter": "datum.whole"}],
                "mark": {"type": "point", "filled": True, "size": 70, "color": tone.accent, "opacity": 1},
                "encoding": {"y": y, "tooltip": tips},
            },
        ],
        "config": {"view": {"stroke": None}},
        "padding": {"left": 4, "right": 12, "top": 4, "bottom": 4},
    }
