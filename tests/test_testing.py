"""The checks for one's own objective find what they are there to find, and say it in a sentence."""

from __future__ import annotations

import pytest
import torch

from datamask.objectives.pairwise import Pairwise
from datamask.objectives.vendi import Vendi
from datamask.testing import CHECKS, check_objective


class ForgetsTheScale(Pairwise):
    def values(self, masks, poll=lambda: None):
        return super().values(masks, poll) / 2


class RanksBackwards(Pairwise):
    def marginals(self, masks, poll=lambda: None):
        return -super().marginals(masks, poll)


class LooksAtPositions(Pairwise):
    def value(self, mask, poll=lambda: None):
        return super().value(mask, poll) + float(mask.nonzero().double().mean())


class TakesTheWrongRows(Pairwise):
    def batch(self, rows, size):
        return type(self)(self.features)


class RoughGains(Pairwise):
    def gains(self, mask, poll=lambda: None):
        return super().gains(mask, poll) + 0.01 * mask


class NoChance(Pairwise):
    def random_value(self, size, generator, poll=lambda: None):
        return 0.0


class Optimistic(Pairwise):
    def concave(self, weights, size, poll=lambda: None, wide=True):
        value, gradient = super().concave(weights, size, poll, wide)
        return value, -gradient


class ConcaveOnMasksAlone(Pairwise):
    def concave(self, weights, size, poll=lambda: None, wide=True):
        whole = bool(((weights == 0) | (weights == 1)).all())
        return super().concave(weights, size, poll, wide) if whole else None


class CurvedUnsaid(Vendi):
    quadratic = True


class HalfASwap(Pairwise):
    def interaction(self, inside, outside, size):
        return 2 * super().interaction(inside, outside, size)


class NeverStops(Pairwise):
    def gains(self, mask, poll=lambda: None):
        return super().gains(mask)


class Tampers(Pairwise):
    def value(self, mask, poll=lambda: None):
        found = super().value(mask, poll)
        mask[:] = False
        return found


class Breaks(Pairwise):
    def values(self, masks, poll=lambda: None):
        raise ZeroDivisionError("no members")


@pytest.mark.parametrize(
    "objective, check, told",
    [
        (ForgetsTheScale, "values", "expected"),
        (RanksBackwards, "swaps", "correlation of at least 0.98"),
        (LooksAtPositions, "order", "shuffling"),
        (TakesTheWrongRows, "batch", "must have n = 30, got 60"),
        (RoughGains, "gains", "expected"),
        (NoChance, "random_value", "got 0"),
        (Optimistic, "concave", "expected"),
        (ConcaveOnMasksAlone, "concave", "at all inclusion weights, got None"),
        (CurvedUnsaid, "concave", "must be quadratic in the weights"),
        (HalfASwap, "interaction", "of a swap"),
        (NeverStops, "polls", "gains must call poll"),
        (Tampers, "value", "work on copies"),
        (Breaks, "values", "raised ZeroDivisionError: no members"),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_a_broken_objective_fails_its_check(objective, check, told):
    found = {one.name: one for one in check_objective(objective)}
    assert set(found) == {one.__name__ for one in CHECKS}
    assert not found[check].passed and told in found[check].failure
    assert str(found[check]).startswith("FAILED") and "\n" not in str(found[check])


def test_a_sound_one_passes_by_class_and_by_name():
    for one in (*check_objective(Pairwise), *check_objective("datamask.objectives.pairwise:Pairwise", seed=3)):
        assert one.passed, str(one)
        assert str(one).startswith("ok") and one.says


def test_chance_has_a_seed():
    torch.manual_seed(0)
    first = check_objective(RanksBackwards, seed=1)
    assert check_objective(RanksBackwards, seed=1) == first
