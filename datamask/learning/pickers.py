"""How greedy picks: lazily on facility's neighbor lists, or with all candidates valued at every pick.

Rules are kept on the way: pinned rows are picked first, among themselves by what they add; after that a pick is made
only if the minima of the other groups can still be met and its own group is not full.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datamask.learning.medoids import LazyGreedy, reverse_lists
from datamask.learning.problem import Problem
from datamask.objectives.facility import Facility
from datamask.polling import Poll


def _quality(problem: Problem) -> Tensor:
    """What quality adds to the joint value per member of a subset of one, ``(m,)``, up to a constant."""
    quality = problem.joint.quality
    weight = problem.joint.lamb * problem.joint.quality_scale.slope
    return (quality.scores - quality.mean)[problem.eligible] * weight


class LazyPicker:
    """Facility location on the lists, with quality as a bonus in the units of the summed similarities.

    Attributes:
        pick_count: number of picks made. picks: int64 ``(pick_count,)``, in their order, positions among the eligible
            rows.
    """

    def __init__(self, problem: Problem, picks: np.ndarray) -> None:
        joint, term = problem.joint, problem.joint.counting[0]
        weight = (1 - joint.lamb) * term.weight * term.scale.slope
        eligible = problem.eligible.cpu().numpy()
        self._place = np.full(joint.n, -1, dtype=np.int64)
        self._place[eligible] = np.arange(len(eligible))
        bonus = np.full(joint.n, -np.inf)
        quality = _quality(problem).cpu().numpy()
        bonus[eligible] = (quality - quality.min()) * (joint.n / (problem.size * weight))
        order = np.empty(joint.n, dtype=np.int64)
        order[np.argsort(problem.ties.cpu().numpy(), kind="stable")] = np.arange(joint.n)
        function = term.function_of(Facility)
        reverse = reverse_lists(function.indices.cpu().numpy(), function.similarities.cpu().numpy())

        def solver(bonus: np.ndarray, picks: np.ndarray) -> LazyGreedy:
            return LazyGreedy(*reverse, bonus, problem.size, order, True, picks, *_grouped(problem))

        pinned = problem.pinned.cpu().numpy()
        self._solver, self._bonus, self._pins = solver, bonus, int(pinned.sum())
        self._greedy = solver(np.where(pinned, bonus, -np.inf) if len(picks) < self._pins else bonus, eligible[picks])

    @property
    def pick_count(self) -> int:
        return self._greedy.done

    @property
    def picks(self) -> np.ndarray:
        return self._place[self._greedy.picks[: self.pick_count]]

    def advance(self, poll: Poll, until: int) -> None:
        """Make one more pick, or several, at most `until`; none where no candidate's gain is a finite number."""
        pinning = self.pick_count < self._pins
        self._greedy.advance(until)
        if pinning and self.pick_count == self._pins:
            self._greedy = self._solver(self._bonus, self._greedy.picks[: self.pick_count])


def _grouped(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray] | tuple[()]:
    """Group of every row ``(n,)`` and members per group, as `LazyGreedy` wants them; empty without rules."""
    if not problem.limits.limited:
        return ()
    groups = problem.limits.groups
    return problem.group.cpu().numpy(), groups.low.astype(np.int64), groups.high.astype(np.int64)


class GainsPicker:
    """Values every candidate anew at each pick, by the objective's own gains; without diversity by quality alone.

    One row has no pair and no correlation, so the first pick is left to quality, or to the hash that breaks ties.

    Attributes:
        pick_count, picks: as of `LazyPicker`.
    """

    def __init__(self, problem: Problem, picks: np.ndarray) -> None:
        joint = problem.joint
        self._problem, self._term = problem, next(iter(joint.counting), None)
        self._quality, self._ties = _quality(problem), problem.ties[problem.eligible]
        self._picks: list[int] = picks.tolist()
        self._mask = torch.zeros(joint.n, dtype=torch.bool, device=joint.device)
        self._mask[problem.eligible[self._picks]] = True

    @property
    def pick_count(self) -> int:
        return len(self._picks)

    @property
    def picks(self) -> np.ndarray:
        return np.array(self._picks, dtype=np.int64)

    def advance(self, poll: Poll, until: int) -> None:
        """Make one more pick; none where no candidate's gain is a finite number."""
        joint, eligible = self._problem.joint, self._problem.eligible
        value = self._quality / (self.pick_count + 1.0)
        if self._term is not None and self.pick_count:
            weight = (1 - joint.lamb) * self._term.weight * self._term.scale.slope
            value = value + weight * self._term.function.gains(self._mask, poll)[eligible]
        value = torch.where(self._allowed() & torch.isfinite(value), value, -torch.inf)
        best = ((value == value.max()) & torch.isfinite(value)).nonzero().squeeze(1)
        if len(best):
            pick = int(best[self._ties[best].argmin()])
            self._mask[eligible[pick]] = True
            self._picks.append(pick)

    def _allowed(self) -> Tensor:
        """Which candidates a pick may take, so that the rest of the picks can still obey the rules, bool ``(m,)``."""
        limits, left = self._problem.limits, ~self._mask[self._problem.eligible]
        if not limits.limited:
            return left
        pinned = torch.from_numpy(limits.pinned).to(left.device) & left
        if bool(pinned.any()):
            return pinned
        group, low, high, _ = limits.groups
        held = np.bincount(group[self._picks], minlength=len(low))
        required = np.maximum(low - held, 0)
        free = held < high if required.sum() < limits.most - self.pick_count else required > 0
        return left & torch.from_numpy(free[group]).to(left.device)
