"""One selection taken apart: scores, thresholds, parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from datamask.analyses.explanation.compute import explanation as states
from datamask.analyses.explanation.compute.explanation import Explanation, Part, Witness
from datamask.analyses.explanation.compute.sentences import sentence
from datamask.analyses.explanation.compute.witnesses import BY_OBJECTIVE, FACTS
from datamask.config import SelectionConfig
from datamask.evaluation.id_lists import read_rows
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.learning.problem import Problem
from datamask.objectives.contract import chunks
from datamask.polling import Poll, no_poll
from datamask.quotas import binding

SIMILARITIES_AT_ONCE = 16_000_000

MANY, FEW = 1 / 6, 4
"""For so few rows, products with all rows are quicker than with members alone, once these are such a share: they would
have to be copied first."""

AVERAGE, QUALITY = "average row", "quality"


class Explainer:
    """Explains the samples of one selection.

    A sample's score is its frozen-size marginal: ``lambda * quality part + (1 - lambda) * diversity part``. The
    threshold is half-way between the S-th and the next best score of the samples that could be selected; with quotas,
    samples of a group whose quota binds have a threshold of their own; under a token budget scores are per token, as
    rows of average length. Parts are differences to the average sample, so they add up: average + quality + each
    objective = score - threshold.

    Scores are taken at the final subset. At an optimum of pair-wise similarity all but about d samples lie on their
    side of the threshold; where a learner stopped early, or polished by swaps, more may not. `exceptions` counts them.

    Attributes:
        score, threshold: float64 ``(N,)``, on the run's scale.
        parts: by name, float64 ``(N,)``: what quality and each objective add to the score.
        exceptions: samples that could be selected and are on the other side of the threshold than they should.
        sd: standard deviation of the scores of the samples that could be selected.
    """

    def __init__(self, pool: Pool, config: SelectionConfig, mask: np.ndarray, poll: Poll = no_poll) -> None:
        """
        Args:
            config: the settings the selection was made with.
            mask: bool ``(N,)``, the selection.

        Raises:
            OptionError, InputError: as `pose`. Stopped: from `poll`.
        """
        self.pool, self.config, self.mask = pool, config, np.asarray(mask, dtype=bool)
        self._posed = pose(pool, config, poll)
        problem, joint = self._posed.problem, self._posed.problem.joint
        self._mask = torch.from_numpy(self.mask).to(pool.device)
        self.eligible = np.zeros(len(pool), dtype=bool)
        self.eligible[problem.eligible.cpu().numpy()] = True
        self.given = self._posed.given
        self.pinned = problem.pinned.cpu().numpy()
        self.parts = {
            QUALITY: config.lamb * joint.quality_scale.slope * _plain(joint.quality.final_marginals(self._mask))
        }
        self._weights = {}
        for term in joint.terms:
            weight = (1 - joint.lamb) * term.weight * term.scale.slope
            self._weights[term.name] = weight
            self.parts[term.name] = weight * _plain(term.function.final_marginals(self._mask, poll))
        self._scale = np.ones(len(pool))
        if problem.limits.by_tokens:
            # tokens are what is scarce, so rows compete by what they add per token, shown for a row of average length
            lengths = pool.token_lengths
            self._scale = lengths[self.eligible].mean() / np.where(lengths > 0, lengths, np.inf)
            self.parts = {name: part * self._scale for name, part in self.parts.items()}
        self.score = np.sum(list(self.parts.values()), axis=0)
        self.threshold = _thresholds(self.score, self.mask, self.eligible & ~self.pinned, problem)
        self.average = {name: float(part[self.eligible].mean()) for name, part in self.parts.items()}
        self.sd = float(self.score[self.eligible].std())
        free = self.eligible & ~self.pinned
        self._expected = ~free | np.where(self.mask, self.score >= self.threshold, self.score <= self.threshold)
        self.exceptions = int((~self._expected).sum())
        kinds = [(type(term.function), term) for term in joint.terms]
        self._witnesses = {
            term.name: BY_OBJECTIVE[kind](term.function, self._mask, poll)
            for kind, term in kinds
            if kind in BY_OBJECTIVE
        }
        self._facts = [FACTS[kind](term.function, self._mask) for kind, term in kinds if kind in FACTS]
        self._banned = np.zeros(len(pool), dtype=bool)
        if config.ban is not None:
            self._banned[read_rows(config.ban, pool.corpus).rows] = True
        self._winner = self._posed.duplicates.winner

    def explain(self, rows: Sequence[int] | np.ndarray, poll: Poll = no_poll) -> list[Explanation]:
        """Explain these rows of the corpus.

        Raises:
            ValueError: a row is outside the corpus. Stopped: from `poll`.
        """
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self.mask)):
            raise ValueError(f"rows must be from 0 to {len(self.mask) - 1:,}, got {rows.min():,} to {rows.max():,}")
        nearest, similarity = self._nearest_selected(rows, poll)
        return [
            self._of_row(int(row), int(near), float(cosine), poll)
            for row, near, cosine in zip(rows, nearest, similarity)
        ]

    def copies_of(self, row: int) -> np.ndarray:
        """The rows that were left out as near-copies of this one, int64, rising."""
        return np.flatnonzero((self._winner == row) & (np.arange(len(self._winner)) != row))

    def _of_row(self, row: int, nearest: int, similarity: float, poll: Poll) -> Explanation:
        poll()
        threshold = float(self.threshold[row])
        start = sum(self.average.values()) - threshold
        parts = [Part(AVERAGE, start)]
        parts += [Part(name, float(part[row]) - self.average[name]) for name, part in self.parts.items()]
        facts = {f"{name}_above": _share_below(part[self.eligible], part[row]) for name, part in self.parts.items()}
        quality = self.pool.corpus.quality
        facts["quality_above"] = _share_below(quality, quality[row])
        facts["quality_below"] = _share_below(-quality, -quality[row])
        for fact in self._facts:
            facts |= fact(row)
        witnesses: dict[str, tuple[Witness, ...]] = {}
        counts: dict[str, int] = {}
        for name, find in self._witnesses.items():
            listed, counts[name] = find(row)
            witnesses[name] = tuple(
                Witness(w.kind, w.row, w.similarity, w.otherwise, w.amount * self._weights[name] * self._scale[row])
                for w in listed
            )
        state = self._state(row)
        winner = int(self._winner[row]) if state == states.COPY else -1
        score = float(self.score[row])
        explanation = Explanation(
            row,
            self.pool.corpus.ids[row].as_py(),
            bool(self.mask[row]),
            state,
            score,
            threshold,
            (score - threshold) / self.sd if self.sd > 0 else 0.0,
            tuple(parts),
            bool(self._expected[row]),
            facts,
            witnesses,
            counts,
            nearest,
            similarity,
            winner,
        )
        return sentence(explanation, None if winner < 0 else self.pool.corpus.ids[winner].as_py())

    def _state(self, row: int) -> str:
        if self.eligible[row]:
            if self.pinned[row]:
                return states.GIVEN if self.given[row] else states.PINNED
            return states.SELECTED if self.mask[row] else states.LEFT
        if self._banned[row]:
            return states.BANNED
        return states.COPY if self._winner[row] != row else states.PRUNED

    def _nearest_selected(self, rows: np.ndarray, poll: Poll) -> tuple[np.ndarray, np.ndarray]:
        """The most similar other member of each row and its cosine, exact; -1 and 0 where there is no other."""
        members = self._mask.nonzero().squeeze(1)
        nearest, similarity = np.full(len(rows), -1), np.zeros(len(rows))
        if len(members) == 1 and self.mask[rows].all():
            return nearest, similarity
        if len(rows) <= FEW and len(members) > MANY * len(self.mask):
            candidates, others = self.pool.features, torch.arange(len(self.mask), device=self.pool.device)
        else:
            candidates, others = self.pool.features[members], members
        is_no_member = ~self._mask[others]
        row_index = torch.from_numpy(rows).to(self.pool.device)
        for part in chunks(len(rows), SIMILARITIES_AT_ONCE // len(others)):
            poll()
            near = self.pool.features[row_index[part]] @ candidates.T
            near.masked_fill_(is_no_member, -torch.inf)
            near[others[None, :] == row_index[part, None]] = -torch.inf
            best = near.max(1)
            similarity[part], nearest[part] = best.values.cpu().numpy(), others[best.indices].cpu().numpy()
        return nearest, similarity


def _plain(values: Tensor) -> np.ndarray:
    return values.double().cpu().numpy()


def _share_below(values: np.ndarray, value: float) -> float:
    """The share of values below this one."""
    return float((values < value).mean())


def _thresholds(score: np.ndarray, mask: np.ndarray, free: np.ndarray, problem: Problem) -> np.ndarray:
    """The threshold of every row, float64 ``(N,)``; rows that cannot be selected are held against the common one.

    Args:
        mask: bool ``(N,)``, the selection. free: bool ``(N,)``, rows that may be in or out.
    """
    out = np.full(len(score), _cut(score[free], int((mask & free).sum())))
    limits, rows, group = problem.limits, problem.eligible.cpu().numpy(), np.full(len(score), -1)
    group[rows] = limits.groups.group
    bound = binding(limits.groups, mask[rows], free[rows], limits.lengths)
    loose = free & ~np.isin(group, bound.nonzero()[0])
    if loose.any():
        out[:] = _cut(score[loose], int((mask & loose).sum()))
    for number in bound.nonzero()[0]:
        free_of_group = free & (group == number)
        if free_of_group.any():
            out[group == number] = _cut(score[free_of_group], int((mask & free_of_group).sum()))
    return out


def _cut(scores: np.ndarray, count: int) -> float:
    """Half-way between the `count`-th best score and the next; the nearest score where one of them is missing."""
    if len(scores) == 0:
        return 0.0
    falling = np.sort(scores)[::-1]
    if count == 0 or count == len(falling):
        return float(falling[0] if count == 0 else falling[-1])
    return float((falling[count - 1] + falling[count]) / 2)
