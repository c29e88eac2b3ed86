"""The selection at one lambda, as pages hold it: packed, with its values. No torch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datamask.dashboard.tradeoff.spots import Spot

if TYPE_CHECKING:
    from datamask.evaluation.lambda_path import Answer, SolvedLambda


def key_of_rows(bits: np.ndarray) -> str:
    """Name some rows of a corpus by their packed mask, for what is kept of them: equal rows have equal names."""
    return hashlib.blake2b(bits.tobytes(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class LambdaPoint:
    """The selection at one lambda.

    Attributes:
        lamb: lambda. quality, diversity, joint: as shares of the attainable gain.
        gap: no selection has a joint value more than this above; None where nothing is proved.
        exact: whether diversity is the objective's value; else it is measured on lists and at least that.
        solved_at: the lambda whose selection this is, where it is another one's.
        quick: whether it was made at once between two solved lambdas, and a run may be worth a little more.
        bits: the mask, packed; rows: how many it has.
        run: whether it is the shown run's own selection.
        stored: the name of the stored run that it is, where it is another run's than the shown one's.
        run_id: of the stored run that it is, the shown one or another; empty: it is none.
    """

    lamb: float
    quality: float
    diversity: float
    joint: float
    gap: float | None
    exact: bool
    solved_at: float | None
    bits: np.ndarray
    rows: int
    run: bool = False
    quick: bool = False
    stored: str = ""
    run_id: str = ""

    @property
    def mask(self) -> np.ndarray:
        """Bool ``(rows,)``."""
        return np.unpackbits(self.bits, count=self.rows).astype(bool)

    def holds(self, row: int) -> bool:
        """Whether a row is selected."""
        return bool(self.bits[row // 8] >> (7 - row % 8) & 1)


def of_answer(answer: Answer) -> LambdaPoint:
    """The point of an answer that carries its mask."""
    return _point(answer, np.packbits(answer.mask), len(answer.mask))


def of_solved(solved: SolvedLambda) -> LambdaPoint:
    """The point of a solved lambda."""
    return _point(solved.answer, solved.bits, solved.rows)


def of_run(spot: Spot, selected: np.ndarray, *, exact: bool = True, shown: bool = True) -> LambdaPoint:
    """The point of a stored run, with the values that it reports.

    Args:
        selected: bool ``(N,)``. exact: whether its diversity is exact. shown: whether it is the run that is shown.
    """
    joint = spot.lamb * spot.quality + (1 - spot.lamb) * spot.diversity
    bits = np.packbits(selected)
    return LambdaPoint(
        spot.lamb,
        spot.quality,
        spot.diversity,
        joint,
        spot.gap,
        exact,
        None,
        bits,
        len(selected),
        run=shown,
        stored="" if shown else spot.name,
        run_id=spot.run_id,
    )


def _point(answer: Answer, bits: np.ndarray, rows: int) -> LambdaPoint:
    return LambdaPoint(
        answer.lamb,
        answer.quality,
        answer.diversity,
        answer.joint,
        answer.gap,
        answer.exact,
        answer.solved_at,
        bits,
        rows,
        quick=not answer.solved and answer.solved_at is None,
    )
