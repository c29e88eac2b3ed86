"""How a layer looks on the map: one byte per mark, what each byte stands for, and the key that explains it. Pure numpy.

A mark is a drawn sample, or a hexagon where these are what is seen. Its byte is an index into a short table of colour,
shape and size, so that other colours cost one byte per mark and nothing else has to travel or to be placed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np

from datamask.dashboard.drawing import palette, words
from datamask.dashboard.map.ends import Ends, ends_of, net_counts, net_shares
from datamask.dashboard.map.hexagons import Hexagons
from datamask.dashboard.map.layers import (
    ADDED,
    BOTH,
    CHANGE_NAMES,
    LEFT_OUT,
    NEITHER,
    Blank,
    Category,
    Change,
    Classes,
    Layer,
    Number,
    Selection,
)
from datamask.dashboard.map.places import Places
from datamask.dashboard.map.scales import blend, category_colors, cividis, hexadecimal, rgb

STEPS = 250
"""Colour steps of a scale."""

MISSING = 255
"""The byte of a mark that has no value; it is drawn as the grey of what is in the background."""


@dataclass(frozen=True)
class Marks:
    """One panel, ready to be drawn.

    Attributes:
        title: over the panel.
        codes: uint8, ``(M,)`` per drawn sample or ``(C,)`` per hexagon; empty for a blank panel.
        colors: uint8 ``(256, 4)``, red, green, blue and opacity of each byte.
        shapes: name of the shape of each byte below `len(shapes)`; beyond it the first one holds.
        sizes: relative diameter, likewise.
        key: classes as (shape, colour, words); empty where there is a bar.
        bar: ends and ticks of a colour bar: ``{"stops": [[0, "#..."], ...], "ticks": [[0, "1.5"], ...]}``; or None.
        values: float32 beside `codes`, told under the pointer; None where the class says it all.
        told: how: words before and after the value, its format, names of the codes.
        text: what a blank panel says.
    """

    title: str
    codes: np.ndarray
    colors: np.ndarray
    shapes: tuple[str, ...] = ("circle",)
    sizes: tuple[float, ...] = (1.0,)
    key: tuple[tuple[str, str, str], ...] = ()
    bar: dict[str, Any] | None = None
    values: np.ndarray | None = None
    hover: dict[str, Any] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True)
class Seen:
    """How a layer is looked at: which rows a filter lets through, bool ``(N,)`` each; None: all of them.

    Attributes:
        shown: those that cells are made of. Colours keep the scale of all rows, so that both can be compared.
        counted: those that the key counts; what was drawn on the map narrows these too.
        ends: common scales of compared maps by kind of layer (`ends.common_ends`); without one, a layer has its own.
    """

    shown: np.ndarray | None = None
    counted: np.ndarray | None = None
    ends: Mapping[type, Ends] = field(default_factory=dict)

    def ends_for(self, layer: Layer) -> Ends | None:
        """The scale that a layer shares with others of its kind; None: its own."""
        return self.ends.get(type(layer))


EVERYTHING = Seen()
"""Nothing is filtered out."""


def marks_of(layer: Layer, places: Places, dark: bool = False, seen: Seen = EVERYTHING) -> Marks:
    """What a panel shows of a layer.

    Args:
        layer: of the places' N rows.
        dark: whether the page is dark.
        seen: what a filter lets through.

    Raises:
        ValueError: the layer has another number of rows than the places.
    """
    rows = rows_of(layer)
    if rows is not None and rows != len(places.points):
        raise ValueError(
            f"layer {layer.title!r} must have a value for each of {len(places.points):,} rows, got {rows:,}"
        )
    return _marks(layer, places, dark, seen)


def rows_of(layer: Layer) -> int | None:
    """How many rows a layer has values for; None for a blank one."""
    if isinstance(layer, Blank):
        return None
    if isinstance(layer, Number):
        return len(layer.values)
    return len(layer.selected if isinstance(layer, Selection) else layer.codes)


@singledispatch
def _marks(layer: Layer, places: Places, dark: bool, seen: Seen) -> Marks:
    raise TypeError(f"layer must be a Number, Category, Selection, Change, Classes or Blank, got {type(layer)}")


@_marks.register
def _blank(layer: Blank, places: Places, dark: bool, seen: Seen) -> Marks:
    return Marks(layer.title, np.empty(0, np.uint8), _table([], dark), text=layer.text)


@_marks.register
def _number(layer: Number, places: Places, dark: bool, seen: Seen) -> Marks:
    stops = cividis(dark)
    name = layer.title.lower()
    if places.cells is None:
        values, low, high = layer.values[places.drawn], layer.low, layer.high
        ticks = _ticks(low, high, layer.clipped)
        hover = {"before": f"{name} ", "format": "value"}
    else:
        values = places.cells.means(layer.values)
        ends = seen.ends_for(layer) or ends_of(layer, places.cells)
        low, high = ends.low, ends.high
        ticks = _ticks(low, high, True, "region mean")
        hover = {"before": f"{name} ", "format": "value", "after": " on average"}
        if seen.shown is not None:
            values = places.cells.means(np.where(seen.shown, layer.values, np.nan))
    return Marks(
        layer.title,
        _steps((values - low) / (high - low)),
        _scale(stops, dark),
        bar=_bar(stops, ticks),
        values=values.astype(np.float32),
        hover=hover,
    )


@_marks.register
def _category(layer: Category, places: Places, dark: bool, seen: Seen) -> Marks:
    colors = category_colors(layer, dark)
    key = tuple(
        ("circle", color, text) for color, text in zip(colors, _counted(layer.names, layer.counts, layer.codes, seen))
    )
    names = list(layer.names)
    if places.cells is None:
        return Marks(layer.title, layer.codes[places.drawn], _table(colors, dark), key=key, hover={"names": names})
    # a cell has the colour of its most frequent class; the pointer tells by what majority
    codes, majority = _majority(layer.codes, len(colors), places.cells, seen)
    return Marks(
        layer.title,
        codes,
        _table(colors, dark),
        key=key,
        values=majority,
        hover={"names": names, "before": ": ", "format": "percent"},
    )


@_marks.register
def _selection(layer: Selection, places: Places, dark: bool, seen: Seen) -> Marks:
    tone = palette.shades(dark)
    if places.cells is None:
        return Marks(
            layer.title,
            layer.selected[places.drawn].astype(np.uint8),
            _table([tone.random, tone.accent], dark, (0.35, 1.0)),
            shapes=("circle", "circle"),
            sizes=(0.625, 1.125),
            hover={"names": ["not selected", "selected"]},
            key=(("circle", tone.accent, "selected"), ("circle", tone.muted, "not selected")),
        )
    cells, ratio = places.cells, layer.ratio
    shares = cells.shares(layer.selected)
    ends = seen.ends_for(layer) or ends_of(layer, cells)
    stops = list(palette.share_scale(dark))
    middle = f"{words.percent(ends.middle)} of all rows" if ends.everywhere else words.percent(ends.middle)
    ticks = [[0.0, "0 %"], [0.5, middle], [1.0, f"≥ {words.percent(ends.high)}"]]
    among = layer.selected
    if seen.shown is not None:
        among = layer.selected & seen.shown
        # few are shown in a cell, and as many as everywhere is the colour of the paper: shrunk less, they can be seen
        shares = cells.shares(among, prior=1.0, of=seen.shown, usual=ratio)
    hits = np.bincount(cells.cell[among], minlength=len(shares))
    return Marks(
        layer.title,
        _steps(ends.positions(shares)),
        _scale(stops, dark),
        bar=_bar(stops, ticks),
        values=hits.astype(np.float32),
        hover={"format": "count", "after": " selected"},
    )


@_marks.register
def _change(layer: Change, places: Places, dark: bool, seen: Seen) -> Marks:
    tone = palette.shades(dark)
    if places.cells is None:
        texts = _counted(CHANGE_NAMES, np.bincount(layer.codes, minlength=4).tolist(), layer.codes, seen)
        colors, shapes = [tone.muted, tone.random, tone.best, tone.accent], ("circle", "circle", "cross", "triangle")
        # of equal weight to the eye: a cross covers more than a triangle of its size
        return Marks(
            layer.title,
            layer.codes[places.drawn],
            _table(colors, dark, (0.45, 0.7, 1.0, 1.0)),
            shapes=shapes,
            sizes=(0.9, 1.0, 1.5, 1.9),
            hover={"names": list(CHANGE_NAMES)},
            key=tuple((shapes[k], colors[k], texts[k]) for k in (ADDED, LEFT_OUT, BOTH, NEITHER)),
        )
    cells = places.cells
    ends = seen.ends_for(layer) or ends_of(layer, cells)
    top, net = ends.high, net_counts(layer, cells)
    stops = list(palette.share_scale(dark))
    ticks = [[0.0, f"≤ −{words.percent(top)}"], [0.5, "added minus left out"], [1.0, f"≥ +{words.percent(top)}"]]
    codes = _steps(ends.positions(net_shares(layer, cells)))
    return Marks(
        layer.title,
        codes,
        _scale(stops, dark),
        bar=_bar(stops, ticks),
        values=net.astype(np.float32),
        hover={"format": "signed", "after": " selected"},
    )


@_marks.register
def _classes(layer: Classes, places: Places, dark: bool, seen: Seen) -> Marks:
    tone = palette.shades(dark)
    colors = [tone.muted, *(getattr(tone, role) for role in layer.roles)]
    names = [layer.rest or "none of them", *layer.names]
    texts = _counted(names, np.bincount(layer.codes, minlength=len(names)).tolist(), layer.codes, seen)
    rest, *sets = zip(("circle", *layer.shapes), colors, texts, strict=True)
    key = (*sets, rest) if layer.rest else tuple(sets)
    if places.cells is not None:
        codes, majority = _majority(layer.codes, len(colors), places.cells, seen)
        return Marks(
            layer.title,
            codes,
            _table(colors, dark),
            key=key,
            values=majority,
            hover={"names": names, "before": ": ", "format": "percent"},
        )
    # large enough that the shapes can be told apart, and of equal weight to the eye
    heavier = {"triangle": 2.0, "diamond": 1.9, "cross": 1.8}
    return Marks(
        layer.title,
        layer.codes[places.drawn],
        _table(colors, dark, (0.45, *[1.0] * len(layer.names))),
        shapes=("circle", *layer.shapes),
        sizes=(0.85, *(heavier.get(shape, 1.5) for shape in layer.shapes)),
        key=key,
        hover={"names": names},
    )


def _counted(names: Sequence[str], totals: Sequence[int], codes: np.ndarray, seen: Seen) -> list[str]:
    """Classes with their rows: ``selected 5,400``, or ``selected 235 of 5,400`` where a filter leaves some out."""
    if seen.counted is None:
        return [f"{name} {total:,}" for name, total in zip(names, totals)]
    now = np.bincount(codes[seen.counted], minlength=len(names))
    return [f"{name} {part:,} of {total:,}" for name, part, total in zip(names, now, totals)]


def _majority(codes: np.ndarray, classes: int, cells: Hexagons, seen: Seen) -> tuple[np.ndarray, np.ndarray]:
    pairs = cells.cell * classes + codes
    if seen.shown is not None:
        pairs = pairs[seen.shown]
    table = np.bincount(pairs, minlength=len(cells.counts) * classes).reshape(-1, classes)
    # a cell without any shown row is not coloured
    return table.argmax(axis=1).astype(np.uint8), (table.max(axis=1) / np.maximum(table.sum(axis=1), 1)).astype(
        np.float32
    )


def _steps(position: np.ndarray) -> np.ndarray:
    """Positions from 0 to 1 as bytes, clipped; what is not finite is `MISSING`."""
    known = np.isfinite(position)
    steps = np.clip(np.nan_to_num(position) * (STEPS - 1) + 0.5, 0, STEPS - 1)
    return np.where(known, steps, MISSING).astype(np.uint8)


def _scale(stops: list[tuple[float, str]], dark: bool) -> np.ndarray:
    table = _table([], dark)
    table[:STEPS, :3] = blend(stops, np.linspace(0, 1, STEPS))
    table[:STEPS, 3] = 255
    return table


def _table(colors: list[str], dark: bool, opacities: tuple[float, ...] = ()) -> np.ndarray:
    table = np.empty((256, 4), np.uint8)
    table[:] = [*rgb([palette.shades(dark).muted])[0], 90]
    if colors:
        table[: len(colors), :3] = rgb(colors)
        table[: len(colors), 3] = np.round(255 * np.array(opacities)) if opacities else 240
    return table


def _bar(stops: list[tuple[float, str]], ticks: list[list]) -> dict[str, Any]:
    at = np.linspace(0, 1, 16)
    return {"stops": [[float(p), hexadecimal(color)] for p, color in zip(at, blend(stops, at))], "ticks": ticks}


def _ticks(low: float, high: float, clipped: bool, middle: str = "") -> list[list]:
    marks = [f"{low:,.3g}", middle or f"{(low + high) / 2:,.3g}", f"{high:,.3g}"]
    if clipped:
        marks[0], marks[2] = f"≤ {marks[0]}", f"≥ {marks[2]}"
    return [[position, mark.replace("-", "−")] for position, mark in zip((0.0, 0.5, 1.0), marks)]
