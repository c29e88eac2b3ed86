"""Learning curves of several runs in one chart, each named at its end, as a Vega-Lite specification."""

from __future__ import annotations

from typing import Any

import pandas as pd

from datamask.analyses.convergence.chart import AXES
from datamask.analyses.convergence.phases import BOUND, SWAPS
from datamask.analyses.run_lines.tables import Lines
from datamask.dashboard.drawing import palette, placement, words

PERCENT = "format(100 * datum.value, '.0f') + '\u00a0%'"
"""Labels of an axis of shares, with the same gap before the sign as in every text."""

DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])
"""One per run, so that the lines differ without their colours."""

FURNITURE = 48
"""Pixels of a chart's height that the axis along and its title take."""

LONGEST = 26
"""Letters of a run's name beside its curve."""

ROOM = 0.35
"""What lies farther below all ends and a random subset than this share of their span is cut off: greedy picks begin so
low that nothing else would be seen of the other curves."""

ABOVE = 0.06
"""Free space above what is drawn, as a share of the axis."""

LEAST_SPAN = 0.1
"""Share of the attainable gain that the span is taken to have at least."""

SWAPS_BEGIN, BOUND_BEGINS, GOES_ON, OTHER = (
    "local search begins",
    "bound begins",
    "continues from another run",
    "next phase",
)

SHAPES = {SWAPS_BEGIN: "triangle-up", BOUND_BEGINS: "square", GOES_ON: "cross", OTHER: "circle"}
"""Of what happens along a curve, with its mark."""


def run_lines(
    lines: Lines, x: str = "step", *, measure: str = "joint", dark: bool = False, height: int = 400
) -> dict[str, Any]:
    """The specification for ``st.vega_lite_chart(lines.table, spec)``.

    Args:
        lines: what to draw, at least one run. x: ``step`` or ``seconds``. measure: what the values are, for the axis.
        dark: whether the page's ground is dark. height: of the whole chart, in pixels.
    """
    tone = palette.shades(dark)
    inside = height - FURNITURE
    low, high = frame(lines)
    across = {
        "field": x,
        "type": "quantitative",
        "title": AXES[x],
        "axis": {"grid": False, "tickCount": 6, "format": ",~g" if x == "seconds" else ",~r"},
        "scale": {"zero": True, "nice": False},
    }
    up = {
        "field": "value",
        "type": "quantitative",
        "title": f"{measure} ({words.ends(measure)})",
        "scale": {"domain": [low, high], "nice": False, "zero": False},
        "axis": {"labelExpr": PERCENT, "tickCount": 6},
    }
    colour = {
        "field": "run",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(lines.runs), "range": palette.categories(len(lines.runs))},
    }
    dashes = [DASHES[place % len(DASHES)] for place in range(len(lines.runs))]
    dash = {**colour, "scale": {"domain": list(lines.runs), "range": dashes}}
    tooltip = [
        {"field": "run", "title": " "},
        {"field": "phase", "title": "phase"},
        {"field": "step", "title": "step", "format": ","},
        {"field": "seconds", "title": "seconds", "format": ".2f"},
        {"field": "value", "title": measure, "format": ".1%"},
    ]
    names = labels(lines, low, high, inside)
    zero = {"values": [{"value": 0, "label": "random subset"}]}
    turning = turns(lines)
    return {
        "height": height,
        "layer": [
            {
                "data": zero,
                "mark": {"type": "rule", "strokeDash": [2, 3], "color": tone.random},
                "encoding": {"y": up},
            },
            {
                "data": zero,
                "mark": {"type": "text", "align": "left", "dx": 4, "dy": -8, "fontSize": 12, "color": tone.random},
                "encoding": {"y": up, "x": {"value": 0}, "text": {"field": "label"}},
            },
            {
                "mark": {"type": "line", "strokeWidth": 2.4, "clip": True},
                "encoding": {"x": across, "y": up, "color": colour, "strokeDash": dash},
            },
            {  # from a curve's end to its name
                "data": {"values": names},
                "mark": {"type": "rule", "strokeDash": [1, 3], "opacity": 0.7},
                "encoding": {"x": across, "x2": {"value": "width"}, "y": up, "color": colour},
            },
            {
                "data": {"values": turning},
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 110,
                    "opacity": 1,
                    "stroke": tone.ground,
                    "clip": True,
                    "aria": bool(turning),  # without a mark it would be a picture without a name
                },
                "encoding": {
                    "x": across,
                    "y": up,
                    "color": colour,
                    "shape": {
                        "field": "turn",
                        "type": "nominal",
                        "title": None,
                        "scale": {"domain": list(SHAPES), "range": list(SHAPES.values())},
                        "legend": None,
                    },
                    "tooltip": tooltip,
                },
            },
            {
                "data": {"values": names},
                "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 80, "opacity": 1},
                "encoding": {"x": across, "y": up, "color": colour, "tooltip": tooltip},
            },
            {
                "data": {"values": names},
                "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 60, "opacity": 1, "xOffset": 10},
                "encoding": {"x": {"value": "width"}, "y": {**up, "field": "place"}, "color": colour},
            },
            {
                "data": {"values": names},
                "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 18, "fontSize": 12},
                "encoding": {
                    "x": {"value": "width"},
                    "y": {**up, "field": "place"},
                    "text": {"field": "label"},
                    "color": {"value": tone.text},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 0, "clip": True},
                "encoding": {"x": across, "y": up, "tooltip": tooltip},
            },
        ],
        "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
        "padding": {"left": 4, "right": 8, "top": 8, "bottom": 4},
    }


def frame(lines: Lines) -> tuple[float, float]:
    """The ends of the upright axis: a random subset and every curve's end are inside, and what lies near them."""
    core = [0.0, *lines.ends["value"]]
    span = max(max(core) - min(core), LEAST_SPAN)
    values = [*lines.table["value"], 0.0]
    low = max(min(values) - ABOVE * span, min(core) - ROOM * span)
    return low, max(values) + ABOVE * span


def cut_off(lines: Lines) -> bool:
    """Whether some of what was measured lies below the axis."""
    return bool((lines.table["value"] < frame(lines)[0]).any())


def turns(lines: Lines) -> list[dict[str, Any]]:
    """The points where something else begins, each with what it is as ``turn``."""
    marked = []
    for point in records(lines.turns):
        begins = point["phase"]
        named = {f"{SWAPS} begins": SWAPS_BEGIN, f"{BOUND} begins": BOUND_BEGINS}
        marked.append({**point, "turn": GOES_ON if begins.startswith("continues") else named.get(begins, OTHER)})
    return marked


def labels(lines: Lines, low: float, high: float, height: float) -> list[dict[str, Any]]:
    """The last point of each run with its name as ``label`` and, as ``place``, where its words stand on the axis.

    Args:
        low, high: ends of the upright axis. height: of the plotting area, in pixels.
    """
    ends = records(lines.ends)
    wanted = [(high - end["value"]) / (high - low) * height for end in ends]
    places = placement.column(wanted, 0.0, height)
    return [
        {
            **end,
            "label": _short(end["run"], f"{100 * end['value']:.1f} %".replace("-", "−")),
            "place": high - place / height * (high - low),
        }
        for end, place in zip(ends, places)
    ]


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, by column; what is not known is None, for which JSON has a word."""
    return [
        {str(name): None if cell != cell else cell for name, cell in row.items()} for row in frame.to_dict("records")
    ]


def _short(name: str, value: str) -> str:
    return f"{words.middle(name, LONGEST)}  {value}"
