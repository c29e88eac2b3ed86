"""The joint objective: ``lambda * quality + (1 - lambda) * diversity``, each term on a scale people can read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from datamask.errors import InputError
from datamask.measured import Anchor
from datamask.objectives.contract import Poll, SetFunction, no_poll
from datamask.objectives.quality import Quality

Raw = TypeVar("Raw", float, Tensor)
Objective = TypeVar("Objective", bound=SetFunction)


@dataclass(frozen=True)
class Scale:
    """The affine map of one term: ``(raw - zero) * slope``."""

    zero: float = 0.0
    slope: float = 1.0

    @classmethod
    def calibrated(cls, anchor: Anchor) -> Scale:
        """0 at the random end, 1 at the best end; a constant term is switched off."""
        return cls(anchor.random, 0.0 if anchor.constant else 1.0 / (anchor.best - anchor.random))

    def __call__(self, raw: Raw) -> Raw:
        return (raw - self.zero) * self.slope


@dataclass(frozen=True)
class Term:
    """One diversity objective of the sum: its name, weight (weights add to 1), function and scale."""

    name: str
    weight: float
    function: SetFunction
    scale: Scale = Scale()

    def function_of(self, objective: type[Objective]) -> Objective:
        """The function, for a solver that looks into one objective.

        Raises:
            TypeError: it is another objective.
        """
        if not isinstance(self.function, objective):
            raise TypeError(
                f"term {self.name} must be {objective.__name__} here, got {type(self.function).__name__}; ask "
                "datamask.learning.solvers which solver fits"
            )
        return self.function


@dataclass(frozen=True)
class Values:
    """One subset's values: ``joint``, ``quality``, ``diversity`` on the run's scale, and what they are made of, raw."""

    joint: float
    quality: float
    diversity: float
    raw_quality: float
    raw_diversity: dict[str, float]


class MaskValues(NamedTuple):
    """Values of G masks, float32 ``(G,)`` each, on the run's scale.

    Attributes:
        joint, quality, diversity: a term whose weight in the sum is 0 is not computed; it comes back as NaN.
        parts: what each term that counts adds to the joint value, by its name; together the joint value.
    """

    joint: Tensor
    quality: Tensor
    diversity: Tensor
    parts: dict[str, Tensor]


class Joint:
    """``f(U) = lambda * f_qua(U) + (1 - lambda) * sum over terms of weight * f_div(U)``, on the given scales."""

    def __init__(self, quality: Quality, terms: tuple[Term, ...], lamb: float, quality_scale: Scale = Scale()) -> None:
        """Args: lamb: lambda in [0, 1]; 1 is quality alone."""
        self.quality, self.terms, self.lamb, self.quality_scale = quality, terms, lamb, quality_scale
        self.n = quality.n
        self.device = quality.scores.device

    def values(self, masks: Tensor, poll: Poll = no_poll) -> MaskValues:
        """Values of each mask, bool ``(G, n)``, for the steps."""
        return self._assembled(masks, [term.function.values(masks, poll) for term in self._stepped])

    def values_and_marginals(self, masks: Tensor, poll: Poll = no_poll) -> tuple[MaskValues, dict[str, Tensor]]:
        """`values`, and each counting term's part of the frozen-size marginals of f, averaged over the masks.

        Returns:
            The values; by term, float32 ``(n,)``, which add up to the marginals of the joint value.
        """
        credits = {}
        if self.lamb > 0:
            weight = self.lamb * self.quality_scale.slope * self.quality.unit
            credits["quality"] = weight * self.quality.marginals(masks)
        raw = []
        for term in self._stepped:
            values, marginals = term.function.values_and_marginals(masks, poll)
            credits[term.name] = (1 - self.lamb) * term.weight * term.scale.slope * marginals
            raw.append(values)
        for name, credit in credits.items():
            _check_finite(name, "marginals", credit)
        return self._assembled(masks, raw), credits

    @property
    def _stepped(self) -> tuple[Term, ...]:
        return self.terms if self.lamb < 1 else ()

    def _assembled(self, masks: Tensor, raw: list[Tensor]) -> MaskValues:
        joint = torch.zeros(len(masks), device=self.device)
        quality = torch.full_like(joint, torch.nan)
        diversity = torch.full_like(joint, torch.nan)
        parts = {}
        if self.lamb > 0:
            # centred sums keep their digits in float32: the offset enters as one exact number
            offset = (self.quality.offset - self.quality_scale.zero) * self.quality_scale.slope
            quality = self.quality.values(masks) * (self.quality_scale.slope * self.quality.unit) + offset
            _check_finite("quality", "values", quality)
            parts["quality"] = self.lamb * quality
            joint = joint + parts["quality"]
        if raw:
            diversity = torch.zeros_like(joint)
            for term, values in zip(self._stepped, raw):
                _check_finite(term.name, "values", values)
                value = term.weight * term.scale(values)
                parts[term.name] = (1 - self.lamb) * value
                diversity = diversity + value
            joint = joint + (1 - self.lamb) * diversity
        return MaskValues(joint, quality, diversity, parts)

    def evaluate(self, mask: Tensor, poll: Poll = no_poll, sampled: bool = False) -> Values:
        """Values of one mask ``(n,)``: every term, at any lambda.

        Args:
            sampled: by `SetFunction.sampled_value` in place of `value`.

        Raises:
            InputError: a term's value is no finite number.
        """
        raw_quality = self.quality.value(mask)
        raw = {
            term.name: term.function.sampled_value(mask, poll=poll) if sampled else term.function.value(mask, poll)
            for term in self.terms
        }
        for name, value in (("quality", raw_quality), *raw.items()):
            if not math.isfinite(value):
                came = f"{float(value):g} for a selection of {int(mask.sum()):,} rows"
                raise InputError(_not_finite(name, "value", came))
        quality = self.quality_scale(raw_quality)
        diversity = sum(term.weight * term.scale(raw[term.name]) for term in self.terms)
        return Values(self.lamb * quality + (1 - self.lamb) * diversity, quality, diversity, raw_quality, raw)

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> tuple[Tensor, Tensor]:
        """Frozen-size marginals of the quality and of the diversity term on the run's scale, float64 ``(n,)`` each."""
        quality = self.quality.final_marginals(mask) * self.quality_scale.slope
        diversity = torch.zeros_like(quality)
        for term in self.terms:
            marginals = term.function.final_marginals(mask, poll)
            _check_finite(term.name, "marginals", marginals)
            diversity += term.weight * term.scale.slope * marginals
        return quality, diversity

    def concave(
        self, weights: Tensor, size: int, poll: Poll = no_poll, wide: bool = True, without: Sequence[str] = ()
    ) -> tuple[float, Tensor] | None:
        """Value and gradient float64 ``(n,)`` at inclusion weights of a concave function that equals f on masks.

        Args:
            without: names of terms to leave out (a caller that bounds them otherwise).

        Returns:
            None if a term that counts has no such function.
        """
        linear, base = self.quality.linear(size)
        weight = self.lamb * self.quality_scale.slope
        linear = linear.double() * weight
        value = float(linear @ weights.double()) + weight * (base - self.quality_scale.zero)
        gradient = linear
        for term in self.counting:
            if term.name in without:
                continue
            given = term.function.concave(weights, size, poll, wide)
            if given is None:
                return None
            weight = (1 - self.lamb) * term.weight * term.scale.slope
            value += weight * (given[0] - term.scale.zero)
            gradient = gradient + weight * given[1].double()
        return value, gradient

    def bend(self, rows: Tensor, change: Tensor, size: int, poll: Poll = no_poll) -> Tensor | None:
        """How the gradient of `concave` changes with the weights of few rows; see `SetFunction.bend`."""
        total = torch.zeros(self.n, dtype=torch.float64, device=self.device)
        for term in self.counting:
            bent = term.function.bend(rows, change, size, poll)
            if bent is None:
                return None
            total += (1 - self.lamb) * term.weight * term.scale.slope * bent.double()
        return total

    @property
    def quadratic(self) -> bool:
        """Whether the function of `concave` is at most quadratic in the weights."""
        return all(term.function.quadratic for term in self.counting)

    @property
    def counting(self) -> tuple[Term, ...]:
        """The diversity terms whose weight in the sum is not 0."""
        return tuple(term for term in self.terms if (1 - self.lamb) * term.weight * term.scale.slope > 0)

    def missed(self, mask: Tensor) -> float:
        """The largest share of the pool that a term's steps cannot see at this mask."""
        return max((term.function.missed(mask) for term in self.terms), default=0.0)

    def batch(self, rows: Tensor, size: int) -> Joint:
        """The same objective on the pool of `rows` alone, on the same scales."""
        terms = self.terms
        if self.lamb < 1:
            terms = tuple(Term(t.name, t.weight, t.function.batch(rows, size), t.scale) for t in terms)
        return Joint(self.quality.batch(rows), terms, self.lamb, self.quality_scale)


def _check_finite(name: str, what: str, numbers: Tensor) -> None:
    """Raise where a term's numbers are not all finite.

    A learner would go on without learning anything, and a record could not hold them.
    """
    if not bool(torch.isfinite(numbers).all()):
        example = float(numbers[~torch.isfinite(numbers)][0])
        raise InputError(_not_finite(name, what, f"{example:g} among them"))


def _not_finite(name: str, what: str, came: str) -> str:
    if name == "quality":
        return (
            f"quality {what} must be finite numbers, got {came}; qualities this large cannot be added up: rescale "
            "the column (--quality_column NAME:1:z), or use --scale calibrated"
        )
    return (
        f"objective {name}: its {what} must be finite numbers, got {came}; for an objective of your own, `python "
        "-m datamask check-objective` tells more"
    )
