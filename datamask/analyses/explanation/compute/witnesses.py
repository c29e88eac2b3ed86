"""The samples or dimensions behind a diversity term: one function per objective that has such.

Each is given the bound objective and the final mask ``(n,)``, and returns what finds the witnesses of one row: with
amounts on the objective's own raw scale, largest effect first, and how many there are. The amounts of all witnesses add
up to the row's `final_marginals` (for DiSF to its first-order form; see there); for facility location what the row does
for itself comes on top, which makes no witness.

Pair-wise similarity has none on purpose: it looks at the sum of all members, and no single neighbour is a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from datamask.analyses.explanation.compute.explanation import Witness
from datamask.objectives.contract import SetFunction
from datamask.objectives.disf import DiSF
from datamask.objectives.facility import Coverage, Facility
from datamask.objectives.pairwise import Pairwise
from datamask.polling import Poll

SHOWN = 12
"""Witnesses returned per row."""

NO_NEARER = 5e-7
"""Difference of two cosines in float32 that is rounding: some four units in the last place of a cosine near 1."""

Found = tuple[tuple[Witness, ...], int]
Finder = Callable[[int], Found]


def facility(function: Facility, mask: Tensor, poll: Poll) -> Finder:
    """By the coverage of the mask, which is measured once."""
    return partial(covered, function, mask, function.close_coverage(mask, poll))


def covered(function: Facility, mask: Tensor, coverage: Coverage, row: int) -> Found:
    """Members: the other rows whose nearest member they are, and what those would fall back to. Others: the other rows
    that they would serve better.

    Every sample is nearest to itself, which says nothing about it, so it is none of its own witnesses. Similarities
    come from products in different orders: what differs by their rounding alone is no better.

    Args:
        coverage: exact, of the mask.
    """
    feature = function.features[row]
    another = torch.ones_like(mask)
    another[row] = False
    if mask[row]:
        rows = ((coverage.owner == row) & another).nonzero().squeeze(1)
        other = coverage.second[rows].double()
        kind, gain = "covers", coverage.best[rows].double() - other
        near = (function.features[rows] @ feature).double().clamp_min(0.0)
    else:
        near = (function.features @ feature).double().clamp_min(0.0)
        rows = ((near > coverage.best + NO_NEARER) & another).nonzero().squeeze(1)
        other = coverage.best[rows].double()
        near = near[rows]
        kind, gain = "would cover", near - other
    order = gain.argsort(descending=True, stable=True)[:SHOWN]
    witnesses = tuple(
        Witness(kind, int(rows[i]), float(near[i]), float(other[i]), float(gain[i]) / function.n) for i in order
    )
    return witnesses, len(rows)


def disf(function: DiSF, mask: Tensor, poll: Poll) -> Finder:
    """Row by row."""
    return partial(dimensions, function, mask)


def dimensions(function: DiSF, mask: Tensor, row: int) -> Found:
    """The quadratic form of the first-order marginal, dimension by dimension.

    At few samples per dimension the exact difference also has a second order, which no dimension owns.
    """
    amount = function.by_dimension(mask, row)
    order = amount.abs().argsort(descending=True, stable=True)[:SHOWN]
    witnesses = tuple(Witness("dimension", int(a), None, None, float(amount[a])) for a in order)
    return witnesses, int((amount != 0).sum())


BY_OBJECTIVE: dict[type[SetFunction], Callable[..., Finder]] = {Facility: facility, DiSF: disf}
"""Objective -> what finds the witnesses of a row, made once per selection from function, mask and poll."""


def mean_cosine(function: Pairwise, mask: Tensor) -> Callable[[int], dict[str, float]]:
    """``mean_cosine`` of a row: to the members beside itself."""
    members, total = float(mask.sum()), function.features[mask].double().sum(0)

    def fact(row: int) -> dict[str, float]:
        own = float(mask[row])
        crowding = float(function.features[row].double() @ total) - own
        return {"mean_cosine": crowding / max(members - own, 1.0)}

    return fact


FACTS: dict[type[SetFunction], Callable[..., Callable[[int], dict[str, float]]]] = {Pairwise: mean_cosine}
"""Objective -> what else it says of a row, made once per selection from function and mask."""
