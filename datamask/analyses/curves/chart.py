"""Curves of one run or several as one Vega-Lite specification. Its data come beside it, and it does not change with
them, so that a live chart stays mounted.
"""

from __future__ import annotations

from typing import Any

from datamask.analyses.curves.phases import BOUND, LEARNING, PICKING, SOLVING, SWAPS
from datamask.analyses.curves.tables import BATCH, CURVE, END, FINAL, GAP, GOES_ON, MASKS, RULE, TURN, Curves
from datamask.dashboard.drawing import palette

PERCENT = "format(100 * datum.value, '.3~g') + '\u00a0%'"
"""Labels of an axis of shares, with the digits that small ones need."""

AXES = {"step": "update steps", "seconds": "seconds of learning", "masks": "masks scored"}

DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])
"""One per line, so that they differ without their colors."""

TURNS = {
    f"{SWAPS} begins": ("triangle-up", "▲ local search"),
    f"{BOUND} begins": ("square", "■ bound"),
    GOES_ON: ("cross", f"✚ {GOES_ON}"),
    f"{PICKING} begins": ("triangle-down", "▼ picks"),
    f"{LEARNING} begins": ("circle", "● mask learning"),
    f"{SOLVING} begins": ("triangle-left", "◀ solver"),
}
"""What happens along a curve, with its mark and what the caption says of it."""

LETTERS = {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal"}

SIDES = {"random subset": ("left", 4), "best-quality rows": ("right", -4)}
"""Where the words of a reference stand, so that none lies on another's; those of a bound in the middle."""


def curves(shown: Curves, x: str = "step", *, dark: bool = False, height: int = 340) -> dict[str, Any]:
    """The specification for ``st.vega_lite_chart(shown.table, spec)``.

    Args:
        shown: what to draw. x: ``step``, ``seconds`` or ``masks``.
        dark: whether the page's ground is dark. height: of the whole chart in pixels.
    """
    tone, several = palette.shades(dark), len(shown.series) > 1
    domain = [*shown.series]
    shades = [tone.batch if name == BATCH else shade for name, shade in zip(shown.series, palette.categories(8) * 2)]
    dashes = [DASHES[0] if BATCH in shown.series else DASHES[k % len(DASHES)] for k in range(len(shown.series))]
    form = ".3%" if shown.measure == GAP else ".1%"
    number = ".4g" if shown.raw else form
    axis: dict[str, Any] = {"tickCount": 6, **({"format": "~g"} if shown.raw else {"labelExpr": PERCENT})}
    scale: dict[str, Any] = {"type": "log", "nice": False} if shown.measure == GAP else {"zero": not shown.unit}
    named: dict[str, Any] = {"field": "series", "type": "nominal", "title": None}
    legend = {"orient": "top", "symbolType": "stroke", "symbolStrokeWidth": 3, "symbolOpacity": 1, "labelLimit": 320}
    places: dict[str, Any] = {
        "x": {
            "field": x,
            "type": "quantitative",
            "title": AXES[x],
            "axis": {"grid": False, "tickCount": 6, "format": ",~g" if x == "seconds" else ",~r"},
            "scale": {"type": "log", "nice": False} if shown.key else {},
        },
        "y": {"field": "value", "type": "quantitative", "title": shown.unit or None, "scale": scale, "axis": axis},
        "color": {
            **named,
            "title": shown.key or None,
            "scale": {"domain": domain, "range": shades},
            "legend": legend if several else None,
        },
    }
    dash = {**named, "scale": {"domain": domain, "range": dashes}, "legend": None}
    tooltip = [
        {"field": "series", "title": " "},
        {"field": "step", "title": "step", "format": ","},
        {"field": "value", "title": shown.measure, "format": number},
    ]
    if shown.unit:  # a vital sign has neither
        tooltip += [{"field": "note", "title": "phase"}, {"field": "seconds", "title": "seconds", "format": ".2f"}]
    if shown.key:
        ends = [
            {"field": end, "title": f"{of} seed", "format": number} for end, of in (("low", "worst"), ("high", "best"))
        ]
        tooltip = [{**tooltip[0], "title": shown.key}, tooltip[2], *ends, {**tooltip[3], "title": "seeds"}, tooltip[4]]
    shape = {
        "field": "note",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [*TURNS, FINAL], "range": [*(sign for sign, _ in TURNS.values()), "diamond"]},
    }
    batch: dict[str, Any] = {"y": {**places["y"], "field": "low"}, "y2": {"field": "high"}}
    mark = {"type": "point", "filled": True, "size": 110, "opacity": 1, "stroke": tone.ground, "aria": False}
    level = {"y": places["y"]}
    layers = [
        _layer({"type": "rule", "strokeDash": [4, 3], "color": tone.muted, "aria": False}, (RULE,), level),
        # who cannot see it hears of the spread at each point
        _layer({"type": "area", "opacity": 0.25, "aria": False}, (MASKS,), {**places, **batch}),
        _layer({"type": "line", "strokeWidth": 1.3, "opacity": 0.25}, (MASKS,), places),
        # a curve goes the whole way to the final value
        _layer({"type": "line", "strokeWidth": 2.6}, (CURVE, END), {**places, "strokeDash": dash}),
        _layer({"type": "point", "opacity": 0, "size": 90}, (CURVE, MASKS), {**places, "tooltip": tooltip}),
        _layer(mark, (TURN, END), {**places, "shape": shape, "tooltip": tooltip}),
    ]
    for side, dx in (*SIDES.values(), ("center", 0)):
        there = [name for name, (other, _) in SIDES.items() if other == side]
        words = {
            "type": "text",
            "align": side,
            "dx": dx,
            "dy": -8 if shown.unit else 9,
            "fontSize": 13,
            "color": tone.text,
        }
        place = {"x": {"value": {"left": 0, "right": "width"}.get(side, {"expr": "width / 2"})}}
        layer = _layer(words, (RULE,), {**level, **place, "text": {"field": "words", "type": "nominal"}})
        chosen = {"field": "note", "oneOf": there or list(SIDES)}
        value = "format(datum.value, '.3~g')" if shown.raw else PERCENT
        layer["transform"] += [
            {"filter": chosen if there else {"not": chosen}},
            {"calculate": f"datum.note + '  ' + {value}", "as": "words"},
        ]
        layers.append(layer)
    # the theme's own are paler than WCAG asks for
    letters = {**LETTERS, "labelColor": tone.text, "titleColor": tone.text}
    config = {"view": {"stroke": None}, "axis": {"labelFlush": False, **letters}, "legend": letters}
    return {"layer": layers, "height": height, "config": config}


def notes(shown: Curves) -> list[str]:
    """What the marks of a chart mean, and what lies too far off to be drawn, in sentences."""
    turns = shown.of(TURN)["note"].tolist()
    marks = [words for note, (_, words) in TURNS.items() if note in turns]
    marks += [f"◆ {FINAL}"] if len(shown.of(END)) else []
    said = [f"{', '.join(marks)}."] if marks else []
    return [*said, *([f"Not drawn: {', '.join(shown.far)}."] if shown.far else [])]


def _layer(mark: dict[str, Any], kinds: tuple[str, ...], encoding: dict[str, Any]) -> dict[str, Any]:
    return {"transform": [{"filter": {"field": "kind", "oneOf": [*kinds]}}], "mark": mark, "encoding": encoding}
