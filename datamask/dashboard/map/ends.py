"""The ends of a hexagon map's colours, from one map's own values or common to several that are compared. Pure numpy.

Cells are means, shares or differences, so their colours end where these lie, not where single values do. Two maps that
are held against each other need one scale, or an equal colour would mean two things.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import overload

import numpy as np

from datamask.dashboard.map.hexagons import Hexagons
from datamask.dashboard.map.layers import ADDED, LEFT_OUT, Change, Layer, Number, Selection


@dataclass(frozen=True)
class Ends:
    """A scale: ``low`` and ``high`` have the outermost colours, ``middle`` the one in between, each half for itself.

    Attributes:
        everywhere: whether the middle of a selected share is that of the whole corpus, in every map of this scale.
    """

    low: float
    middle: float
    high: float
    everywhere: bool = True

    def positions(self, values: np.ndarray) -> np.ndarray:
        """Where values lie on the scale: 0, 0.5 and 1 at the ends and the middle; beyond, beyond."""
        below = 0.5 * (values - self.low) / max(self.middle - self.low, 1e-12)
        above = 0.5 + 0.5 * (values - self.middle) / max(self.high - self.middle, 1e-12)
        return np.where(values < self.middle, below, above)


@overload
def ends_of(layer: Number | Selection | Change, cells: Hexagons) -> Ends: ...


@overload
def ends_of(layer: Layer, cells: Hexagons) -> Ends | None: ...


def ends_of(layer: Layer, cells: Hexagons) -> Ends | None:
    """The ends that suit one layer; None for classes, which have no scale.

    98 % of the rows lie in cells inside them. The middle of a selected share is that of the whole corpus, so that each
    side of it has its own half of the colours.
    """
    if isinstance(layer, Selection):
        ratio = layer.ratio
        high = float(cells.quantiles(cells.shares(layer.selected), 0.98))
        return Ends(0.0, ratio, min(max(high, ratio + 0.25 * (1 - ratio)), 1.0))
    if isinstance(layer, Change):
        high = max(float(cells.quantiles(np.abs(net_shares(layer, cells)), 0.98)), 0.02)
        return Ends(-high, 0.0, high)
    if isinstance(layer, Number):
        # means spread less than single values: on the values' own scale every cell would look the same
        low, high = map(float, cells.quantiles(cells.means(layer.values), (0.02, 0.98)))
        if not low < high:  # or no cell has a mean
            low, high = layer.low, layer.high
        return Ends(low, (low + high) / 2, high)
    return None


def net_shares(layer: Change, cells: Hexagons) -> np.ndarray:
    """Added less left out per cell, as a share of its rows, shrunk toward no change as shares are toward the ratio."""
    return net_counts(layer, cells) / (cells.counts + 10.0)


def net_counts(layer: Change, cells: Hexagons) -> np.ndarray:
    """Added less left out per cell, float64 ``(C,)``."""
    added, left_out = (
        np.bincount(cells.cell[layer.codes == code], minlength=len(cells.counts)) for code in (ADDED, LEFT_OUT)
    )
    return added.astype(float) - left_out


def common_ends(layers: Iterable[Layer], cells: Hexagons | None) -> dict[type, Ends]:
    """One scale per kind of layer, wide enough for all of that kind; only kinds that have one.

    Args:
        layers: such as what several runs selected; those of one kind measure one thing.
        cells: None where points are seen, whose colours are classes or have given ends.
    """
    if cells is None:
        return {}
    by_kind: dict[type, list[Ends]] = {}
    for layer in layers:
        if (own := ends_of(layer, cells)) is not None:
            by_kind.setdefault(type(layer), []).append(own)
    return {kind: _widest(own) for kind, own in by_kind.items()}


def _widest(ends: list[Ends]) -> Ends:
    middles = [own.middle for own in ends]
    return Ends(
        min(own.low for own in ends),
        float(np.mean(middles)),
        max(own.high for own in ends),
        max(middles) - min(middles) < 0.005,
    )
