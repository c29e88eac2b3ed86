"""The lambdas at which a sample comes in or goes out.

    again = Again(pool, config, mask)                     # a run's settings and its selection
    found = find_flip(again, row)                         # selects again at a few lambdas

A selection at another lambda is found by the run's own estimator, from nothing. What makes it quick is where one
looks. The run's own marginals foretell the lambda at which the sample crosses the threshold, had the rest of the
selection stayed as it is; each selection that is made corrects this, and is kept for all other samples.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch

from datamask import learning
from datamask.config import SelectionConfig
from datamask.evaluation.frontier import at_lambda
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.learning.loop import ShareWatch, learn
from datamask.polling import Poll, no_poll
from datamask.work.context import UNWATCHED, Work

TOLERANCE = 1e-3
"""How closely the lambda of a change is found."""

KEPT = 64
"""Selections that are kept for other samples, a bit a row."""

GRID = 65
"""Lambdas between two ends at which the frozen marginals are looked at."""

MISSED = 2
"""Forecasts that may fail to halve the gap in a row before it is halved whatever they say."""


def intervals(lambdas: Sequence[float], inside: Sequence[bool]) -> list[tuple[float, float]]:
    """The runs of lambdas at which a sample is in: ``(first, last)`` of each, in rising order.

    Args:
        lambdas: of a sweep, in any order; inside: whether the sample is in the selection at each.
    """
    order = np.argsort(lambdas, kind="stable")
    runs: list[tuple[float, float]] = []
    before = False
    for place in order:
        lamb = float(lambdas[place])
        if inside[place]:
            runs = [*runs[:-1], (runs[-1][0], lamb)] if before else [*runs, (lamb, lamb)]
        before = bool(inside[place])
    return runs


@dataclass(frozen=True)
class Flip:
    """Where a sample changes sides.

    Attributes:
        around: the two lambdas at which it was selected on different sides, at most `TOLERANCE` apart; None where no
            change was found. below: whether the sample is in at the smaller one.
        between: the lambdas that were searched between.
        solved: how many selections had to be made.
    """

    around: tuple[float, float] | None
    below: bool
    between: tuple[float, float]
    solved: int

    @property
    def lamb(self) -> float | None:
        """The lambda in the middle of the two."""
        return None if self.around is None else sum(self.around) / 2


class Again:
    """The selections of one run's settings at other lambdas, each made when it is asked for; the latest are kept.

    Attributes:
        made: how many were made so far.
    """

    def __init__(self, pool: Pool, config: SelectionConfig, mask: np.ndarray, poll: Poll = no_poll) -> None:
        """
        Args:
            config: the run's settings. mask: bool ``(N,)``, what it selected.

        Raises:
            OptionError, InputError: as `pose`. Stopped: from `poll`.
        """
        self.config = config
        self._posed = pose(pool, config, poll)
        self._bits: OrderedDict[float, np.ndarray] = OrderedDict()
        self.made = 0
        self._keep(config.lamb, np.asarray(mask, bool))
        problem = self._posed.problem
        self._free = torch.zeros(len(pool), dtype=torch.bool, device=pool.device)
        self._free[problem.eligible] = True
        self._free &= ~problem.pinned

    def known(self, row: int) -> dict[float, bool]:
        """Whether a row is in, at every lambda that was selected at."""
        return {lamb: bool(bits[row // 8] >> (7 - row % 8) & 1) for lamb, bits in self._bits.items()}

    def select(self, lamb: float, work: Work = UNWATCHED) -> None:
        """Select at a lambda, as the run would have.

        Raises:
            Stopped: from `work`.
        """
        if lamb in self._bits:
            return
        config = replace(self.config, lamb=lamb)
        estimator = learning.load(config.estimator)(at_lambda(self._posed, lamb).problem, config)
        what = f"selecting again at λ {lamb:.4g}"
        work.report(0.0, what)
        watch = ShareWatch(estimator, lambda share, steps: work.report(share, what))
        self._keep(lamb, learn(estimator, poll=work.poll, watch=watch).mask.cpu().numpy())
        self.made += 1

    def forecast(self, row: int, lamb: float, low: float, high: float, poll: Poll = no_poll) -> float | None:
        """The lambda between two at which the row would cross the threshold, had the rest stayed as at `lamb`.

        None where it would not. Quotas and budgets are not looked at: this is where to look, not an answer.

        Args:
            lamb: one that was selected at.
        """
        mask = torch.from_numpy(np.unpackbits(self._bits[lamb], count=len(self._free)).astype(bool))
        mask = mask.to(self._free.device)
        joint = at_lambda(self._posed, lamb).problem.joint
        quality, diversity = (part[self._free] for part in joint.final_marginals(mask, poll))
        own = int(self._free[:row].sum())
        members = int((mask & self._free).sum())
        if not bool(self._free[row]) or not 0 < members < len(quality):
            return None
        lambdas = np.linspace(low, high, GRID)
        margins = []
        for trial in lambdas:
            poll()
            score = trial * quality + (1 - trial) * diversity
            margins.append(float(score[own] - torch.kthvalue(score, len(score) - members + 1).values))
        above = np.asarray(margins) >= 0
        turns = np.flatnonzero(above[1:] != above[:-1])
        if not len(turns):
            return None
        k = turns[np.argmin(np.abs(lambdas[turns] - lamb))]
        part = margins[k] / (margins[k] - margins[k + 1])
        return float(lambdas[k] + part * (lambdas[k + 1] - lambdas[k]))

    def _keep(self, lamb: float, mask: np.ndarray) -> None:
        self._bits[lamb] = np.packbits(mask)
        while len(self._bits) > KEPT:
            # the run's own selection stays
            del self._bits[next(stored for stored in self._bits if stored != self.config.lamb)]


def find_flip(
    again: Again,
    row: int,
    stored: Mapping[float, bool] | None = None,
    tolerance: float = TOLERANCE,
    work: Work = UNWATCHED,
) -> Flip:
    """The lambda nearest the run's at which a sample is known to change sides, by selecting again in between.

    Args:
        stored: whether it is in at the lambdas of stored runs with these settings. tolerance: the sample is on
            different sides at some two lambdas at most this far apart, around the result.

    Raises:
        Stopped: from `work`.
    """
    run_lambda, before, reported = again.config.lamb, again.made, 0.0

    def report(share: float, what: str) -> None:
        nonlocal reported
        reported = max(reported, share)
        work.report(reported, what)

    rising = replace(work, report=report)
    sides = {**(stored or {}), **again.known(row)}
    if nearest_change(sides, run_lambda) is None:
        # first towards where it is foretold to change, then the other way
        ends = sorted(
            (0.0, 1.0),
            key=lambda end: (
                again.forecast(row, run_lambda, min(end, run_lambda), max(end, run_lambda), work.poll) is None,
                abs(end - run_lambda),
            ),
        )
        for place, end in enumerate(ends):
            if nearest_change(sides, run_lambda) is None and end not in sides:
                again.select(end, rising.part(0.1 * place, 0.1 * place + 0.1))
                sides |= again.known(row)
    first = nearest_change(sides, run_lambda)
    if first is None:
        return Flip(None, sides[run_lambda], (min(sides), max(sides)), again.made - before)
    bracket = first
    last = min(again.known(row), key=lambda lamb: min(abs(end - lamb) for end in first))
    missed, most = 0, math.log2((first[1] - first[0]) / tolerance)
    while (width := bracket[1] - bracket[0]) > tolerance:
        lamb = sum(bracket) / 2
        guess = again.forecast(row, last, *bracket, work.poll) if missed < MISSED else None
        if guess is not None:
            # somewhat beyond it, and further each time the sample has not changed sides: the gap is to close
            beyond = max(0.5 * tolerance, 0.15 * abs(guess - last)) * 2**missed
            lamb = min(
                max(guess + math.copysign(beyond, guess - last), bracket[0] + 0.5 * tolerance),
                bracket[1] - 0.5 * tolerance,
            )
        left = max(1.0, math.log2(width / tolerance))
        share = 0.2 + 0.8 * (1 - left / (1 + most))
        again.select(lamb, rising.part(share, share + (1 - share) / (1 + left)))
        sides[lamb], last = again.known(row)[lamb], lamb
        bracket = (lamb, bracket[1]) if sides[lamb] == sides[bracket[0]] else (bracket[0], lamb)
        missed = 0 if bracket[1] - bracket[0] <= width / 2 else missed + 1
    return Flip(bracket, sides[bracket[0]], first, again.made - before)


def nearest_change(sides: Mapping[float, bool], lamb: float) -> tuple[float, float] | None:
    """Of neighbouring lambdas with the sample on different sides the two nearest to `lamb`; None: there are none."""
    lambdas = sorted(sides)
    changes = [pair for pair in pairwise(lambdas) if sides[pair[0]] != sides[pair[1]]]
    return min(changes, key=lambda pair: min(abs(end - lamb) for end in pair), default=None)
