"""A problem kept ready for a slider: posed once, answered at any lambda within a fraction of a second.

Two kinds of answers. `Live.solve` is the selection that a run would find, warm-started from the nearest lambda solved
before. `Live.answer` is quicker: an exact repeat where that lambda was solved; else the best of the solved selections
there, or, where it is worth more, what can be made at once: for pair-wise similarity the best selection at the
interpolated dual solution of its neighbours, under rules or a token budget at their interpolated inclusion weights; for
facility location the lazy greedy without its swaps. All are real selections with their own values, and obey the rules.

A bound comes with an answer wherever the objective has one. Bounds at solved lambdas bound what lies between
(`datamask.evaluation.path_bounds`); pair-wise similarity and facility location have their dual besides, whose solution
between two neighbours' is a proof of its own.

Not thread-safe: one caller at a time (`datamask.dashboard.tradeoff.live` sees to it).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.errors import OptionError
from datamask.evaluation.frontier import at_lambda
from datamask.evaluation.lambda_path import Answer, LambdaPath, SolvedLambda
from datamask.evaluation.live_methods import Solution, method_of
from datamask.evaluation.path_bounds import best_line, chord
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem, pose
from datamask.evaluation.resized import resized
from datamask.learning.certificates import certify, provable
from datamask.learning.device import resolve
from datamask.polling import Poll, no_poll
from datamask.work.context import Report, Work, no_report

GRID = (*(round(0.05 * k, 2) for k in range(20)), 0.99, 1.0)
"""Lambdas to solve first: the answers between them then stay within 1e-4 of the best for pair-wise similarity."""

COARSE = tuple(round(0.1 * k, 1) for k in range(11))
"""The same for objectives that take long to solve and whose answers are all from solved lambdas."""

PROOF_STEPS = 300
"""Of facility's dual per lambda, from the prices of the nearest one proved."""

NO_BETTER = 1e-6
"""Of the joint value: float32 rounding, for which no other lambda's selection is taken."""


def fits(config: SelectionConfig) -> bool:
    """Whether these settings can follow a slider: one of these objectives alone, on the calibrated scale."""
    return config.objective in catalogue.LIVE and config.scale == "calibrated"


def open_live(
    corpus: Corpus, config: SelectionConfig, cache_dir: Path, poll: Poll = no_poll, progress: Report | None = None
) -> Live:
    """Bind a corpus and pose the problem; the neighbour graph, where one is needed, reports its progress.

    Raises:
        OptionError, Stopped: as `Live`.
    """
    pool = Pool.under(config, corpus, resolve(config.device), cache_dir, Work(poll, progress or no_report))
    return Live(pool, config, poll)


class Live:
    """One posed problem and the lambdas solved so far.

    Args:
        pool: the corpus. config: what to select; its lambda is not looked at.

    Raises:
        OptionError: the settings cannot follow a slider, or do not fit the pool. Stopped: from `poll`.
    """

    def __init__(self, pool: Pool, config: SelectionConfig, poll: Poll = no_poll) -> None:
        if not fits(config):
            raise OptionError(
                f"a live lambda needs --objective {', '.join(catalogue.LIVE)}, one of them alone, on the calibrated "
                f"scale, got --objective {config.objective} --scale {config.scale}"
            )
        self._config = config
        self.posed: PosedProblem = pose(pool, config, poll)
        self._path = LambdaPath(self.grid)
        term = self.posed.calibrated.terms[0]
        self._term = term
        self._flat = term.scale.slope <= 0
        self._method = method_of(self.posed.problem)(self.posed, config, self._path)

    @property
    def lambdas(self) -> list[float]:
        """The lambdas solved so far, rising."""
        return self._path.lambdas

    def solve(self, lamb: float, poll: Poll = no_poll) -> Answer:
        """The selection that a run would find; remembered.

        Raises:
            Stopped: from `poll`.
        """
        start = time.perf_counter()
        problem = at_lambda(self.posed, lamb).problem
        if not problem.joint.counting:
            solution = self._by_quality(lamb)
        else:
            solution = self._method.solve(problem, lamb, poll)
        answer = self._answer(lamb, solution.mask, solution.upper, True, start)
        bits = np.packbits(answer.mask)
        self._path.add(
            lamb,
            SolvedLambda(
                replace(answer, mask=answer.mask[:0]),
                bits,
                len(answer.mask),
                solution.upper,
                solution.dual,
                logits=solution.logits,
                weights=solution.weights,
            ),
        )
        return answer

    def solved(self) -> list[SolvedLambda]:
        """What `answer` says at every solved lambda of the grid, rising, each with its packed mask."""
        known = []
        for lamb, own in self._path:
            if lamb not in self.grid:
                continue
            answer = self._bounded(lamb, own.answer, time.perf_counter())
            chosen = own if answer.solved_at is None else self._path.get(answer.solved_at)
            assert chosen is not None  # `_bounded` names lambdas of the path
            known.append(SolvedLambda(replace(answer, mask=answer.mask[:0]), chosen.bits, chosen.rows, own.upper))
        return known

    @property
    def grid(self) -> tuple[float, ...]:
        """Lambdas that are worth solving before anyone asks."""
        return GRID if catalogue.objective(self._config.objective).live == "quick" else COARSE

    def provable(self, lamb: float) -> bool:
        """Whether `prove` has something to do at a lambda: it is solved, nothing is proved there, and can be."""
        solved = self._path.get(lamb)
        return (
            solved is not None
            and solved.upper is None
            and provable(at_lambda(self.posed, lamb).problem)
            and self._method.provable
        )

    def prove(self, lamb: float, poll: Poll = no_poll) -> None:
        """Bound the best possible value at a solved lambda, which bounds those beside it too.

        Raises:
            Stopped: from `poll`.
        """
        solved, near = self._path.get(lamb), self._path.nearest(lamb, lambda other: other.prices)
        if solved is None:
            raise ValueError(f"lambda {lamb:g} has to be solved before something is proved there; call solve first")
        mask = torch.from_numpy(solved.mask | self.posed.given).to(self.posed.problem.joint.device)
        certificate = certify(
            at_lambda(self.posed, lamb).problem,
            mask,
            solved.answer.joint,
            poll,
            PROOF_STEPS,
            None if near is None else near[1].astype(np.float64),
        )
        if certificate is not None:
            solved.upper = certificate.upper_bound
            solved.prices = None if certificate.prices is None else certificate.prices.astype(np.float32)
            solved.answer = replace(solved.answer, gap=max(certificate.upper_bound - solved.answer.joint, 0.0))

    def answer(self, lamb: float, poll: Poll = no_poll) -> Answer:
        """The quickest honest answer at a lambda; solves it where nothing near is known.

        Raises:
            Stopped: from `poll`.
        """
        if (solved := self._path.get(lamb)) is not None:
            return self._bounded(lamb, replace(solved.answer, mask=solved.mask), time.perf_counter())
        start = time.perf_counter()
        if self._flat or lamb >= 1:
            return self.solve(lamb, poll)
        if not self._method.quick and self._path.get(1.0) is None:
            self.solve(1.0, poll)  # a sort: from then on there is something to answer with
        quick = self._between(lamb, start, poll)
        if quick is None and self._method.quick:
            return self.solve(lamb, poll)
        return self._bounded(lamb, quick, start)

    def refined(self, lamb: float, poll: Poll = no_poll) -> Answer:
        """As `answer`, once the lambda itself is solved.

        Raises:
            Stopped: from `poll`.
        """
        if self._path.get(lamb) is None:
            self.solve(lamb, poll)
        return self.answer(lamb, poll)

    def row_scores(self, mask: np.ndarray, lamb: float, poll: Poll = no_poll) -> np.ndarray:
        """What each row adds to the joint value of a selection at a lambda, as a run scores its rows.

        Args:
            mask: bool ``(N,)``, without the given rows.

        Returns:
            float64 ``(N,)``, under a token budget per token; NaN where a row may not be selected.

        Raises:
            Stopped: from `poll`.
        """
        problem = at_lambda(self.posed, lamb).problem
        whole = torch.from_numpy(mask | self.posed.given).to(problem.joint.device)
        quality, diversity = problem.joint.final_marginals(whole, poll)
        scores, rows = np.full(len(mask), np.nan), problem.eligible
        scores[rows.cpu().numpy()] = (
            problem.limits.priority((lamb * quality + (1 - lamb) * diversity)[rows]).cpu().numpy()
        )
        scores[self.posed.given] = np.nan
        return scores

    def resized(
        self, mask: np.ndarray, lamb: float, others: Sequence[SelectionConfig], poll: Poll = no_poll
    ) -> list[np.ndarray | None]:
        """What a selection at a lambda would be with other amounts, by `datamask.evaluation.resized`."""
        return resized(self.posed, mask, self.row_scores(mask, lamb, poll), others, poll)

    def _between(self, lamb: float, start: float, poll: Poll) -> Answer | None:
        """What the method makes at once, with its bound."""
        problem = at_lambda(self.posed, lamb).problem
        solution = self._method.between(problem, lamb, poll)
        if solution is None:
            return None
        answer = self._answer(lamb, solution.mask, solution.upper, False, start)
        upper = None
        if solution.upper is None:
            upper = self._method.bound(problem, solution.mask, answer.joint, lamb, poll)
        return answer if upper is None else replace(answer, gap=max(upper - answer.joint, 0.0))

    def _bounded(self, lamb: float, answer: Answer | None, start: float) -> Answer:
        """The better of an answer and the best solved selection at a lambda, with the least bound that is proved."""
        path = list(self._path)
        place, value = best_line([(solved.answer.quality, solved.answer.diversity) for _, solved in path], lamb)
        upper = chord(((other, solved.upper) for other, solved in path if solved.upper is not None), lamb)
        if answer is not None and answer.gap is not None:
            upper = min(answer.joint + answer.gap, np.inf if upper is None else upper)
        if answer is None or value > answer.joint + NO_BETTER:
            other, solved = path[place]
            answer = replace(solved.answer, lamb=lamb, mask=solved.mask, joint=value, solved=False, solved_at=other)
        gap = None if upper is None else max(upper - answer.joint, 0.0)
        return replace(answer, gap=gap, seconds=time.perf_counter() - start)

    # -- parts -------------------------------------------------------------------------------------------------

    def _by_quality(self, lamb: float) -> Solution:
        """The best selection where no diversity term counts, and its joint value, which nothing surpasses."""
        problem, joint = self.posed.problem, self.posed.calibrated
        linear, constant = joint.quality.linear(problem.size)
        gains = linear[problem.eligible].double()
        best = constant + float(gains @ problem.vertex(gains)[problem.eligible])
        return Solution(problem.subset(problem.limits.priority(gains)), lamb * float(joint.quality_scale(best)))

    def _answer(self, lamb: float, mask: Tensor, upper: float | None, solved: bool, start: float) -> Answer:
        joint = self.posed.calibrated
        quality = float(joint.quality_scale(joint.quality.value(mask)))
        raw, exact = self._method.diversity(mask)
        diversity = float(self._term.scale(raw))
        value = lamb * quality + (1 - lamb) * diversity
        return Answer(
            lamb,
            mask.cpu().numpy() & ~self.posed.given,
            quality,
            diversity,
            value,
            None if upper is None else max(upper - value, 0.0),
            exact,
            solved,
            time.perf_counter() - start,
        )
