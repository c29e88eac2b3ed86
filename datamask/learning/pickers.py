"""How greedy picks: by sorting, lazily on facility's neighbour lists, or with all candidates valued at every pick.

Rules are kept on the way: pinned rows are picked first, among themselves by what they add; after that a pick is made
only if the minima of the other groups can still be met and its own group is not full.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from datamask.learning.marginal_gains import marginal_gains
from datamask.learning.medoids import LazyGreedy, reverse_lists
from datamask.learning.problem import Problem
from datamask.objectives.facility import Facility
from datamask.polling import Poll


class Picker(Protocol):
    """Makes picks, positions among the eligible rows.

    Attributes:
        pick_count: how many. picks: int64 ``(pick_count,)``, in their order.
    """

    @property
    def pick_count(self) -> int: ...

    @property
    def picks(self) -> np.ndarray: ...

    def advance(self, poll: Poll, until: int) -> None:
        """One more pick, or several, at most `until`; none where what any candidate would add is no finite number."""


def _quality(problem: Problem) -> Tensor:
    """What quality adds to the joint value per member of a subset of one, ``(m,)``, up to a constant."""
    quality = problem.joint.quality
    weight = problem.joint.lamb * problem.joint.quality_scale.slope
    return (quality.scores - quality.mean)[problem.eligible] * weight


class SortedPicker:
    """No diversity term counts: greedy is a sort."""

    def __init__(self, problem: Problem, picks: np.ndarray) -> None:
        quality = _quality(problem).cpu().numpy()
        pinned = np.zeros(len(quality), dtype=bool) if problem.rules is None else problem.rules.pinned
        order = np.lexsort((problem.ties[problem.eligible].cpu().numpy(), -quality, ~pinned))
        allowed = problem.cut(_quality(problem)).cpu().numpy()
        self._all, self.picks = order[allowed[order]], picks

    @property
    def pick_count(self) -> int:
        return len(self.picks)

    def advance(self, poll: Poll, until: int) -> None:
        self.picks = self._all[:until]


class LazyPicker:
    """Facility location on the lists, with quality as a bonus in the units of the summed similarities."""

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

        pinned = np.zeros(joint.n, dtype=bool)
        if problem.rules is not None:
            pinned[eligible] = problem.rules.pinned
        self._solver, self._bonus, self._pins = solver, bonus, int(pinned.sum())
        self._greedy = solver(np.where(pinned, bonus, -np.inf) if len(picks) < self._pins else bonus, eligible[picks])

    @property
    def pick_count(self) -> int:
        return self._greedy.done

    @property
    def picks(self) -> np.ndarray:
        return self._place[self._greedy.picks[: self.pick_count]]

    def advance(self, poll: Poll, until: int) -> None:
        pinning = self.pick_count < self._pins
        self._greedy.advance(until)
        if pinning and self.pick_count == self._pins:
            self._greedy = self._solver(self._bonus, self._greedy.picks[: self.pick_count])


def _grouped(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray] | tuple[()]:
    """Group of every row ``(n,)`` and members per group, as `LazyGreedy` wants them; empty without rules."""
    if problem.rules is None:
        return ()
    group = np.zeros(problem.joint.n, dtype=np.int64)
    group[problem.eligible.cpu().numpy()] = problem.rules.group
    return group, problem.rules.low.astype(np.int64), problem.rules.high.astype(np.int64)


class NaivePicker:
    """Values every candidate anew at each pick."""

    def __init__(self, problem: Problem, picks: np.ndarray) -> None:
        self._quality = _quality(problem)
        self._ties = problem.ties[problem.eligible]
        joint = problem.joint
        self._terms = [
            ((1 - joint.lamb) * term.weight * term.scale.slope, marginal_gains(term.function, problem.eligible))
            for term in joint.counting
        ]
        self._open = torch.ones(len(problem.eligible), dtype=torch.bool, device=joint.device)
        self._picks: list[int] = []
        self._rules, self._size = problem.rules, problem.size
        for place in picks.tolist():
            self._take(place)

    @property
    def pick_count(self) -> int:
        return len(self._picks)

    @property
    def picks(self) -> np.ndarray:
        return np.array(self._picks, dtype=np.int64)

    def _take(self, place: int) -> None:
        self._open[place] = False
        for _, term in self._terms:
            term.add(place)
        self._picks.append(place)

    def advance(self, poll: Poll, until: int) -> None:
        value = self._quality / (self.pick_count + 1.0)
        for weight, term in self._terms:
            value = value + weight * term.values(poll)
        value = torch.where(self._allowed() & torch.isfinite(value), value, -torch.inf)
        best = ((value == value.max()) & torch.isfinite(value)).nonzero().squeeze(1)
        if not len(best):
            return
        self._take(int(best[self._ties[best].argmin()]))

    def _allowed(self) -> Tensor:
        """Which candidates a pick may take, so that the rest of the picks can still obey the rules, bool ``(m,)``."""
        rules = self._rules
        if rules is None:
            return self._open
        pinned = torch.from_numpy(rules.pinned).to(self._open.device) & self._open
        if bool(pinned.any()):
            return pinned
        held = np.bincount(rules.group[self._picks], minlength=len(rules.low))
        required = np.maximum(rules.low - held, 0)
        free = held < rules.high if required.sum() < self._size - self.pick_count else required > 0
        return self._open & torch.from_numpy(free[rules.group]).to(self._open.device)
