"""The raw values that a finished selection is reported with: exact, or a lower bound beside an estimate of the exact.

Only facility location on an approximate neighbour graph has values that are not exact. Comparing every row with every
member takes longer than everything else there, so it is done where it costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from datamask.measured import Estimate
from datamask.objectives.joint import Joint, Values
from datamask.polling import Poll, no_poll

CHEAP_SIMILARITIES = 100_000_000
"""Rows times members up to which all rows are compared with all members: a fraction of a second on two cores."""

EXACT, ESTIMATE = "exact", "estimate"


@dataclass(frozen=True)
class Reported:
    """Raw values of a selection.

    Attributes:
        raw_diversity: value of each diversity term; on approximate lists the listed lower bound, unless all rows were
            compared with all members.
        diversity: their weighted sum.
        estimate: of the exact weighted sum; None where `diversity` is exact.
    """

    raw_diversity: dict[str, float]
    diversity: float
    estimate: Estimate | None

    @property
    def kind(self) -> str:
        """``exact``, or ``estimate`` where the diversity is a lower bound beside an estimate."""
        return EXACT if self.estimate is None else ESTIMATE


def reported(
    joint: Joint,
    weights: Sequence[tuple[str, float]],
    mask: Tensor,
    values: Values,
    *,
    seed: int = 0,
    poll: Poll = no_poll,
) -> Reported:
    """The raw values of a mask.

    Args:
        weights: (name, weight) of each diversity term.
        mask: bool ``(n,)``; values: what `Joint.evaluate` says of it.
        seed: of the rows that an estimate is made from.
    """
    raw, functions = dict(values.raw_diversity), {term.name: term.function for term in joint.terms}
    exact = joint.n * int(mask.sum()) <= CHEAP_SIMILARITIES
    estimates: dict[str, Estimate] = {}
    for name, function in functions.items():
        if not function.lower_bound:
            continue
        if exact:
            raw[name] = function.exact_value(mask, poll)
        elif (estimate := function.estimate(mask, seed, poll)) is not None:
            estimates[name] = estimate
    diversity = sum(weight * raw[name] for name, weight in weights)
    if not estimates:
        return Reported(raw, diversity, None)
    # one objective is read off lists and no other, so the interval of the sum is that of its one uncertain term
    ((name, estimate),) = estimates.items()
    weight = dict(weights)[name]
    return Reported(raw, diversity, estimate.scaled(weight, diversity - weight * raw[name]))
