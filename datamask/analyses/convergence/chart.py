"""The convergence chart as a Vega-Lite specification; its data come beside it, so live updates keep the chart.

Lines of reference and all words travel with the data too. Where the words stand is computed (`datamask.dashboard.
placement`), so that they cover neither each other nor the bold line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from datamask.analyses.convergence.tables import BATCH, EDGE, GAP, SUBSET, Curve, said
from datamask.dashboard.drawing import palette, placement

PERCENT = "format(100 * datum.value, '.3~g') + '\u00a0%'"
"""Labels of an axis of shares, with the digits that small ones need."""

AXES = {"step": "update steps", "seconds": "seconds of learning", "masks": "masks scored"}


NARROW = 560
"""Pixels that the plotting area is wide at least; what is kept free for words there is free in a wider one."""

FURNITURE = 98
"""Pixels of a chart's height that its key, the numbers and the title of the axis take."""

ROOM, EDGE_ROOM = 0.06, 0.09
"""Free space above and below what is drawn, and for the words of each arrow there, as a share of it."""

RULE, WORDS, FRAME, PHASE, NAME, START = "rule", "words", "frame", "phase", "name", "start"
"""Series of the rows that `drawn` adds: lines of reference, their words, the ends of the axis, where a phase begins,
its name, and the first point of a run that went on from another."""

NAMES = 18
"""Pixels above the plotting area for the names of phases."""

ROLES = {"random": [2, 3], "best": [7, 4], "bound": [1, 0], "final": [1, 2]}
"""Of a reference, with its dash."""

ARROWS = {"above": "▲", "below": "▼"}


def convergence(curve: Curve, x: str = "step", *, dark: bool = False, height: int = 340) -> dict:
    """The specification for ``st.vega_lite_chart(drawn(curve, x, height), spec)``.

    Args:
        curve: what to draw. x: ``step``, ``seconds`` or ``masks``.
        dark: whether the page's ground is dark. height: of the whole chart in pixels, the same as of `drawn`.
    """
    tone = palette.shades(dark)
    across = {
        "field": x,
        "type": "quantitative",
        "title": AXES[x],
        "scale": {"zero": True},
        "axis": {"grid": False, "tickCount": 6, "format": ",~g" if x == "seconds" else ",~r"},
    }
    scale = {"type": "log", "nice": False} if curve.measure == GAP else {"zero": False, "nice": False}
    axis: dict[str, Any] = {"tickCount": 6}
    if not curve.raw:
        axis["labelExpr"] = PERCENT
    elif curve.measure == GAP:
        axis["format"] = "~g"
    digits = (".2e" if curve.measure == GAP else ".4f") if curve.raw else (".3%" if curve.measure == GAP else ".1%")
    up = {"field": "value", "type": "quantitative", "title": curve.unit, "scale": scale, "axis": axis}
    # a run without masks has no line for them, and needs no key to it
    masks = bool((curve.table["series"] == BATCH).any())
    drawn = [(SUBSET, tone.accent), *([(BATCH, tone.batch)] if masks else [])]
    colour = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [name for name, _ in drawn], "range": [shade for _, shade in drawn]},
        "legend": {
            "orient": "top",
            "direction": "horizontal",
            "symbolType": "stroke",
            "symbolStrokeWidth": 3,
            "labelLimit": 320,
            "offset": 4 + NAMES,
            "padding": 0,
        },
    }
    tooltip = [
        {"field": "series", "title": " "},
        {"field": "step", "title": "step", "format": ","},
        {"field": "seconds", "title": "seconds", "format": ".1f"},
        {
            "field": "value",
            "title": "below the bound" if curve.measure == GAP else curve.measure,
            "format": digits,
        },
    ]
    if curve.measure != GAP:
        tooltip.append({"field": "high", "title": "mean + spread", "format": digits})
    inside = {"filter": {"field": "series", "oneOf": [BATCH, SUBSET]}}
    batch = {"filter": {"field": "series", "equal": BATCH}}
    subset = {"filter": {"field": "series", "equal": SUBSET}}
    # lines have points because the first step alone is no line, and nothing would be seen of it
    layers = [
        {
            "transform": [batch],
            # who cannot see it hears of the spread at each point
            "mark": {"type": "area", "opacity": 0.22, "color": tone.batch, "aria": False},
            "encoding": {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "transform": [batch],
            "mark": {"type": "line", "strokeWidth": 1.3, "opacity": 0.75, "point": {"size": 5}},
            "encoding": {"x": across, "y": up, "color": colour},
        },
        {
            "transform": [subset],
            "mark": {"type": "line", "strokeWidth": 2.8, "point": {"size": 14}},
            "encoding": {"x": across, "y": up, "color": colour},
        },
        {
            "transform": [inside],
            "mark": {"type": "point", "opacity": 0, "size": 90, "filled": True},
            "encoding": {"x": across, "y": up, "tooltip": tooltip},
        },
    ]
    if curve.measure == GAP or not masks:
        del layers[:2]
    layers += [*_phases(across, up, tone), *_references(up, tone), *_final(curve, x, up, tone)]
    return {
        "layer": layers,
        "height": height,
        "config": {"view": {"stroke": None}, "axis": {"labelFlush": False}},
        "padding": {"left": 4, "right": 8, "top": 4, "bottom": 4},
    }


def drawn(curve: Curve, x: str = "step", height: int = 340) -> pd.DataFrame:
    """The data of the chart: the curve's table, then rows for the lines of reference and for all words.

    Args:
        curve: what to draw. x: the axis, as for `convergence`. height: of the whole chart, in pixels.

    Returns:
        The table's columns and ``role``. Words have the place of their middle as ``value`` and themselves as ``note``.
    """
    table = curve.table[curve.table["series"] != EDGE].assign(role="")
    if table.empty:
        return table
    stretches = pd.DataFrame(phase_rows(curve, x))
    table = pd.concat([table, stretches], ignore_index=True) if len(stretches) else table
    if curve.measure == GAP:
        return table
    low, high = frame(curve, table)
    rows = [{"series": FRAME, "value": end, "role": ""} for end in (low, high)]
    rows += [
        {"series": RULE, "value": line.value, "role": line.role}
        for line in curve.references
        if math.isfinite(line.value) and not line.edge
    ]
    rows += [{"series": WORDS, **label} for label in labels(curve, x, low, high, height - FURNITURE)]
    return pd.concat([table, pd.DataFrame(rows)], ignore_index=True)


def phase_rows(curve: Curve, x: str) -> list[dict]:
    """Rows of where phases begin, of their names in one line without lying on each other, and of a warm start."""
    rows: list[dict] = [] if curve.start is None else [{"series": START, "role": "", **curve.start}]
    if curve.phases is None or curve.phases.empty:
        return rows
    begins = curve.phases.dropna(subset=[x])
    along = float(np.nanmax([*curve.table[x], *begins[x], 0.0])) or 1.0
    rows += [{"series": PHASE, "role": "", x: float(at)} for at in begins[x].iloc[1:]]
    # a name that comes again (blocks swap after each round) is known by then
    first = begins.drop_duplicates("note")
    widths = [placement.width_of(name) + placement.MARK for name in first["note"]]
    wanted = [float(at) / along * NARROW for at in first[x]]
    for name, left in zip(first["note"], placement.row(wanted, widths, NARROW)):
        rows.append({"series": NAME, "role": "", "note": name, x: left / NARROW * along})
    return rows


def frame(curve: Curve, table: pd.DataFrame) -> tuple[float, float]:
    """The ends of the upright axis, with some room around all that is drawn."""
    table = table[table["series"].isin((SUBSET, BATCH))]
    ends = [*table["value"], *table["low"], *table["high"], *(line.value for line in curve.references if not line.edge)]
    ends += [] if curve.final is None else [curve.final["value"]]
    ends = [value for value in ends if math.isfinite(value)]
    span = max(ends) - min(ends) or max(abs(ends[0]), 1e-6)
    above, below = (sum(line.edge == edge for line in curve.references) for edge in ("above", "below"))
    far = curve.table.loc[curve.table["series"] == EDGE, "value"]
    above, below = max(above, int((far > 0).any())), max(below, int((far < 0).any()))
    return min(ends) - (ROOM + EDGE_ROOM * below) * span, max(ends) + (ROOM + EDGE_ROOM * above) * span


def labels(curve: Curve, x: str, low: float, high: float, height: float, width: float = NARROW) -> list[dict]:
    """Words beside the lines of reference, at the right, and of what lies beyond the axis: ``value, note, role``.

    The role of words at the left is `EDGE`.

    Args:
        low, high: ends of the upright axis. height, width: of the plotting area, in pixels.
    """

    def at(value: float) -> float:
        return (high - value) / (high - low) * height

    lines = [line for line in curve.references if math.isfinite(line.value)]
    # what has a line of its own first: an arrow may stand anywhere
    lines.sort(key=lambda line: (bool(line.edge), line.role not in ("final", "bound")))
    wanted, texts, taken = [], [], []
    rules = [(at(line.value) - 2, at(line.value) + 2) for line in lines if not line.edge]
    for line in lines:
        arrow = f"{ARROWS[line.edge]} " if line.edge else ""
        texts.append(f"{arrow}{line.label}  {said(line.value, curve.raw)}")
        wanted.append({"above": 0.0, "below": height}.get(line.edge, at(min(max(line.value, low), high))))
        share = placement.width_of(texts[-1]) / width
        taken.append([*rules, *bold(curve, x, at, 1 - share, math.inf)])
    places = placement.column(wanted, 0.0, height, taken)
    placed = [
        {"value": high - place / height * (high - low), "note": text, "role": line.role}
        for place, text, line in zip(places, texts, lines)
    ]
    for _, row in curve.table[curve.table["series"] == EDGE].iterrows():
        # a curve that does not reach the right side lies farther left than it seems
        share = 1.4 * placement.width_of(row["note"]) / width
        (place,) = placement.column(
            [0.0 if row["value"] > 0 else height], 0.0, height, [[*rules, *bold(curve, x, at, -math.inf, share)]]
        )
        placed.append({"value": high - place / height * (high - low), "note": row["note"], "role": EDGE})
    return placed


def bold(curve: Curve, x: str, at, first: float, last: float) -> Iterator[placement.Interval]:
    """Where the bold line and its final mark run, between two shares of the axis along: intervals in pixels."""
    line = curve.table[curve.table["series"] == SUBSET].dropna(subset=[x, "value"]).sort_values(x)
    if line.empty:
        return
    along = line[x].to_numpy(float) / (float(line[x].max()) or 1.0)
    y = np.array([at(value) for value in line["value"]])
    # with the point before and the point after, since the line runs on to them
    inside = (along >= first) & (along <= last)
    inside[:-1] |= inside[1:]
    inside[1:] |= inside[:-1]
    kept = y[inside]
    if len(kept):
        yield from zip(np.minimum(kept[:-1], kept[1:]) - 3, np.maximum(kept[:-1], kept[1:]) + 3)
        yield kept[-1] - 4, kept[-1] + 4
    if curve.final is not None and last >= 1:
        yield at(curve.final["value"]) - 8, at(curve.final["value"]) + 8


def _references(up: dict, tone: palette.Shades) -> Iterator[dict]:
    """A line for each reference, and all words, from the data; a halo of the ground lets paler lines pass behind."""
    colours = {"random": tone.random, "best": tone.best, "bound": tone.text, "final": tone.accent, EDGE: tone.text}

    def rows(series: str, role: str) -> list[dict]:
        return [{"filter": f"datum.series === '{series}' && datum.role === '{role}'"}]

    # nothing to see: it makes the axis reach from end to end, by the data, so that a live chart is not drawn anew
    hidden = {"type": "point", "opacity": 0, "aria": False}
    yield {"transform": rows(FRAME, ""), "mark": hidden, "encoding": {"y": up}}
    for role, dash in ROLES.items():
        yield {
            "transform": rows(RULE, role),
            "encoding": {"y": up},
            # its words, which are read aloud, say its value; and a rule that is not there would have no name
            "mark": {"type": "rule", "strokeDash": dash, "strokeWidth": 1.4, "color": colours[role], "aria": False},
        }
    for role, color in colours.items():
        left = role == EDGE
        text = {
            "type": "text",
            "align": "left" if left else "right",
            "baseline": "middle",
            "fontSize": 12,
            "dx": 4 if left else -2,
        }
        place = {"y": up, "x": {"value": 0 if left else "width"}, "text": {"field": "note", "type": "nominal"}}
        halo = {"stroke": tone.ground, "strokeWidth": 4, "strokeOpacity": 0.8, "fillOpacity": 0}
        yield from (
            {"transform": rows(WORDS, role), "mark": text | look, "encoding": place}
            for look in (halo, {"color": color})
        )


def _phases(across: dict, up: dict, tone: palette.Shades) -> Iterator[dict]:
    """A thin line where a phase begins, the names above, and a cross where a run went on from another."""

    def rows(series: str) -> list[dict]:
        return [{"filter": f"datum.series === '{series}'"}]

    yield {
        "transform": rows(PHASE),
        # the phase's name beside it is read aloud
        "mark": {"type": "rule", "strokeWidth": 1, "strokeDash": [4, 3], "color": tone.muted, "aria": False},
        "encoding": {"x": across},
    }
    yield {
        "transform": rows(NAME),
        "mark": {"type": "text", "align": "left", "baseline": "bottom", "dx": 2, "fontSize": 12, "color": tone.text},
        "encoding": {"x": across, "y": {"value": -4}, "text": {"field": "note", "type": "nominal"}},
    }
    yield {
        "transform": rows(START),
        "mark": {
            "type": "point",
            "shape": "cross",
            "filled": True,
            "size": 110,
            "color": tone.best,
            "opacity": 1,
            "aria": False,  # most runs have none, and then it would be a picture without a name
        },
        "encoding": {"x": across, "y": up},
    }


def _final(curve: Curve, x: str, up: dict, tone: palette.Shades) -> list[dict]:
    """A diamond where the selection ended after it was polished."""
    if curve.final is None or x not in curve.final:
        return []
    mark = {
        "type": "point",
        "shape": "diamond",
        "filled": True,
        "size": 110,
        "color": tone.accent,
        "stroke": tone.ground,
        "strokeWidth": 1.2,
        "opacity": 1,
        "tooltip": f"final selection: {said(curve.final['value'], curve.raw, curve.measure)}",
    }
    return [
        {
            "data": {"values": [curve.final]},
            "mark": mark,
            "encoding": {"x": {"field": x, "type": "quantitative"}, "y": up},
        }
    ]
