"""Conditions and regions as short texts for a page's address, and back. Pure; what an address says is not trusted.

    where=[["quality",5.5,9.25],["source",["web","code"]]]     search=any words     region=UMAP.lasso,0,0,9,8,000999...
    at=UMAP.3.25,-1.5,4

A region is rounded where it is drawn (`rounded`), so that the address holds exactly what was looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from datamask.corpus.projections import PROJECTIONS
from datamask.dashboard.map.filters import Among, Between, Filters, Holding
from datamask.dashboard.map.regions import Region
from datamask.runs.formats import parse_json

LONGEST = 1_800
"""Letters of one text; addresses of more than some thousands are cut by programs they are sent through."""

LEAST_ZOOM, MOST_ZOOM = 0.2, 400.0
"""As the map in the browser lets itself be zoomed."""

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
    filters = Filters()
    for entry in _read_list(text):
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


def rounded(region: Region) -> Region:
    """The region that its text stands for; rounding twice changes nothing."""
    return _region(*_parts(region))


def region_text(kind: str, regions: Iterable[Region]) -> str:
    """Regions on a projection; empty where there are none, or more corners than an address holds.

    Args:
        kind: name of the projection, without a dot.
    """
    texts = []
    for region in regions:
        shape, ends, steps = _parts(region)
        texts.append(",".join([shape, *ends, "".join(f"{step:03d}" for step in steps.ravel())]))
    return _short(f"{kind}.{';'.join(texts)}" if texts else "")


def regions_of(text: str) -> tuple[str, tuple[Region, ...]]:
    """The way back from `region_text`: the projection's kind and the regions.

    Raises:
        ValueError: it is none.
    """
    kind, _, shapes = text[:LONGEST].partition(".")
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
        region = _region(shape, ends, steps)
        if not np.isfinite(region.corners).all() or not np.ptp(region.corners, axis=0).all():
            raise ValueError(f"a region must enclose something, got {shape_text[:80]!r}")
        regions.append(region)
    return kind, tuple(regions)


@dataclass(frozen=True)
class Sight:
    """Where a map was moved and zoomed to.

    Attributes:
        kind: name of the projection. x, y: what lies in the middle, in its coordinates.
        zoom: 1 shows all of it, 2 half of its width.
    """

    kind: str
    x: float
    y: float
    zoom: float


def sight_of(text: str) -> Sight:
    """What the browser writes of a map that was moved (`sightText` in browser/sight.js), read.

    Raises:
        ValueError: it is none.
    """
    kind, _, numbers = text[:LONGEST].partition(".")
    x, y, zoom = map(float, numbers.split(","))
    if kind not in PROJECTIONS or not np.isfinite([x, y, zoom]).all() or not LEAST_ZOOM <= zoom <= MOST_ZOOM:
        raise ValueError(
            f"a projection, a place and a zoom of {LEAST_ZOOM:g} to {MOST_ZOOM:g} say where a map stands, "
            f"got {text[:80]!r}"
        )
    return Sight(kind, x, y, zoom)


def too_long(filters: Filters, regions: Iterable[Region]) -> bool:
    """Whether something of what is shown does not fit into the address."""
    return bool(
        max(len(where_text(filters)), len(search_text(filters))) > LONGEST
        or (regions and not region_text(max(PROJECTIONS, key=len), regions))
    )


def _parts(region: Region) -> tuple[str, list[str], np.ndarray]:
    """Shape, ends of its box as texts (least x, least y, greatest x, greatest y), and corners in steps of `GRID`."""
    low, high = region.corners.min(axis=0), region.corners.max(axis=0)
    # seven digits of both ends are too few where a box is small beside its distance from nought: they may be the same
    far = np.tile(high - low < NEAR * np.maximum(abs(low), abs(high)), 2)
    ends = [f"{end:.15g}" if distant else f"{end:.7g}" for end, distant in zip((*low, *high), far)]
    steps = np.round((region.corners - low) / (high - low) * GRID).astype(int)
    return region.kind, ends, steps


def _region(shape: str, ends: list[str], steps: np.ndarray) -> Region:
    left, bottom, right, top = map(float, ends)
    low, high = np.array([left, bottom]), np.array([right, top])
    return Region(shape, low + steps / GRID * (high - low))


def _read_list(text: str) -> list:
    entries = parse_json(text)
    if not isinstance(entries, list):
        raise ValueError(f"conditions must be a list, got {type(entries).__name__}")
    return entries


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else ""
