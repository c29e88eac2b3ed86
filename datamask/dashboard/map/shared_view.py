"""Conditions and regions as short texts for the view and its address, and back. Pure; what they say is not trusted.

    where=[["quality",5.5,9.25],["source",["web","code"]]]     search=any words     region=UMAP.lasso,0,0,9,8,000999...

A region is rounded once, when it is drawn: its text holds exactly what is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np

from datamask.dashboard.map.filters import Among, Between, Filters, Holding
from datamask.dashboard.map.regions import Region
from datamask.runs.formats import parse_json

GRID = 999
"""Steps across a region's own box to which its corners are rounded: finer than the pixels it was drawn with."""

NEAR = 1e-4
"""A box whose side is this share of its distance from nought needs all digits: seven are half a step of `GRID` off."""


def where_text(filters: Filters) -> str:
    """The ranges and classes; empty where there are none."""
    entries = [
        [condition.name, condition.low, condition.high]
        if isinstance(condition, Between)
        else [condition.name, list(condition.names)]
        for condition in filters.conditions
        if isinstance(condition, Between | Among)
    ]
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":")) if entries else ""


def where_of(text: str) -> Filters:
    """The way back from `where_text`.

    Raises:
        ValueError: it is no list of ranges and classes.
    """
    filters, entries = Filters(), parse_json(text)
    if not isinstance(entries, list):
        raise ValueError(f"conditions must be a list, got {type(entries).__name__}")
    for entry in entries:
        match entry:
            case [str(name), int() | float() as low, int() | float() as high]:
                filters = filters.taking(Between(name, float(low), float(high)))
            case [str(name), list(names)] if names and all(isinstance(value, str) for value in names):
                filters = filters.taking(Among(name, tuple(map(str, names))))
            case _:
                raise ValueError(f"a condition must be [name, low, high] or [name, [class, ...]], got {entry}")
    return filters


def search_text(filters: Filters) -> str:
    """The words that are searched for; empty where there are none."""
    return next((condition.text for condition in filters.conditions if isinstance(condition, Holding)), "")


def region_text(kind: str, regions: Iterable[Region]) -> str:
    """Regions on a projection; empty where there are none.

    Args:
        kind: name of the projection, without a dot.
    """
    texts = []
    for region in regions:
        low, high = region.corners.min(axis=0), region.corners.max(axis=0)
        # seven digits of both ends are too few where a box is small beside its distance from nought: they may be equal
        far = np.tile(high - low < NEAR * np.maximum(abs(low), abs(high)), 2)
        ends = [f"{end:.15g}" if distant else f"{end:.7g}" for end, distant in zip((*low, *high), far)]
        steps = np.round((region.corners - low) / (high - low) * GRID).astype(int)
        texts.append(",".join([region.kind, *ends, "".join(f"{step:03d}" for step in steps.ravel())]))
    return f"{kind}.{';'.join(texts)}" if texts else ""


def regions_of(text: str) -> tuple[str, tuple[Region, ...]]:
    """The way back from `region_text`: the projection's kind and the regions.

    Raises:
        ValueError: it is none.
    """
    kind, _, shapes = text.partition(".")
    regions = []
    for shape_text in shapes.split(";"):
        shape, *ends, digits = shape_text.split(",")
        if (
            shape not in ("lasso", "box")
            or len(ends) != 4
            or len(digits) % 6
            or len(digits) < 18
            or not (digits.isascii() and digits.isdigit())
        ):
            raise ValueError(f"a region must be a shape, four ends and corners of six digits, got {shape_text[:80]!r}")
        steps = np.array([int(digits[k : k + 3]) for k in range(0, len(digits), 3)]).reshape(-1, 2)
        low, high = np.array([float(end) for end in ends]).reshape(2, 2)
        corners = low + steps / GRID * (high - low)
        if not np.isfinite(corners).all() or not np.ptp(corners, axis=0).all():
            raise ValueError(f"a region must enclose something, got {shape_text[:80]!r}")
        regions.append(Region(shape, corners))
    return kind, tuple(regions)
