"""Anchors: the two ends of every term's calibrated scale, computed once per corpus, objective and size.

0 is a random subset of size S, 1 the best that the term reaches alone; both on the whole pool, before pruning and
without constraints, by frozen reference solvers, so that runs on the same corpus and size share them. Under a token
budget of W the subsets are those that fill it, and W takes the place of S. Changing a solver below means raising
`ANCHOR_VERSION`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.config.amounts import tokens_text
from datamask.errors import StoreError
from datamask.evaluation.pool import Pool
from datamask.files import replacing, write_text
from datamask.learning import block_swaps
from datamask.learning.budget import Budget
from datamask.learning.counterfactual import Counterfactual
from datamask.learning.masks import top
from datamask.learning.polish import medoids, polish
from datamask.learning.problem import Problem
from datamask.learning.relaxation import advance, begin, relaxable, rounded, upper_bound
from datamask.objectives import cache_name
from datamask.objectives.contract import Poll, SetFunction, no_poll
from datamask.objectives.facility import Facility
from datamask.objectives.joint import Anchor, Joint, Term

ANCHOR_VERSION = 3
PROVED_GAP = 1e-4
"""A best end is called proved when its bound is within this share of the distance from random to best."""

RANDOM_DRAWS = 32
"""Random subsets that fill a budget, whose mean value is its random end."""

FAR = 0.05
"""A relaxation whose rounding stays further than this share below its bound is no reference; then masks are learned
too, and the better of the two counts. Not for the DiSF with fixed scale, which has too many fractional weights to round
well: there swaps by blocks end higher than learned masks, in a tenth of the time."""

HOPELESS = 20 * PROVED_GAP
"""Where swaps by blocks stay further below the bound of the first `FIRST_LOOK` steps, `RELAXED_STEPS` prove nothing
either: the gap falls as one over the steps at best."""

ROUNDING = 1e-7
"""Relative gain that is none: features are float32, so where all are the same, sizes differ by so much all the same."""

RELAXED_STEPS = 30
FIRST_LOOK = 8
LEARNED_STEPS = 60


def quality_anchor(pool: Pool, size: int, budget: float | None = None) -> Anchor:
    """Mean quality of a random subset, and of the best `size` samples: both exact.

    Under a budget, of a random token, and of the best samples that fill it.
    """
    if budget is None:
        scores = pool.quality.scores
        return Anchor(float(scores.mean()), float(scores.topk(size).values.mean()), "proved")
    quality = pool.quality_under(budget)
    gains, random = quality.linear(size)
    best = quality.value(quality_best(pool, size, budget))
    problem = _alone(pool, None, size, budget)
    bound = random + float(gains @ problem.vertex(gains[problem.eligible]).to(gains))
    return Anchor(random, best, "proved" if bound - best <= PROVED_GAP * abs(best - random) else "best found")


def quality_best(pool: Pool, size: int, budget: float | None = None, seed: int = 0) -> Tensor:
    """The `size` samples of highest quality, or those that fill the budget, bool ``(n,)``; ties by the seeded hash."""
    scores = pool.quality.scores
    if budget is None:
        return top(scores, size, pool.ties(seed))
    return Budget(pool.corpus.lengths, budget, np.zeros(len(pool), dtype=bool)).fill(scores, pool.ties(seed))


def diversity_anchor(pool: Pool, name: str, size: int, poll: Poll = no_poll, budget: float | None = None) -> Anchor:
    """The anchor of a diversity objective, from the cache where it has been computed before."""
    path = _best_path(pool, name, size, budget).with_suffix(".json")
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # not computed yet, or a damaged file
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Anchor(float(stored["random"]), float(stored["best"]), str(stored["best_kind"]))
    return _solved(pool, name, size, poll, budget)[0]


def diversity_best(pool: Pool, name: str, size: int, poll: Poll = no_poll, budget: float | None = None) -> Tensor:
    """The subset behind the anchor's best end, bool ``(n,)``: what this objective alone would select.

    Kept beside the anchor; an anchor from before it was kept is computed once more.
    """
    path = _best_path(pool, name, size, budget)
    with contextlib.suppress(OSError, ValueError, EOFError):
        packed = np.load(path, allow_pickle=False)
        mask = np.unpackbits(packed, count=len(pool)).astype(bool)
        if int(mask.sum()) == size or budget is not None:
            return torch.from_numpy(mask).to(pool.device)
    return _solved(pool, name, size, poll, budget)[1]


def _best_path(pool: Pool, name: str, size: int, budget: float | None) -> Path:
    much = str(size) if budget is None else f"{tokens_text(budget)}-tokens"
    return pool.cache_dir / pool.space.fingerprint / f"anchor-v{ANCHOR_VERSION}-{cache_name(name)}-{much}.npy"


def _solved(pool: Pool, name: str, size: int, poll: Poll, budget: float | None) -> tuple[Anchor, Tensor]:
    """The anchor by its reference solver, and that solver's subset; both go into the cache."""
    function = pool.function(name, size, budget)
    problem = _alone(pool, function, size, budget)
    generator = torch.Generator().manual_seed(0)
    alone = f"finding what {catalogue.objective(name).label} alone would select"
    pool.tell(0.0, alone)
    if budget is None:
        random = function.random_value(size, generator, poll)
    else:
        keys = torch.rand(RANDOM_DRAWS, len(problem.eligible), generator=generator).to(pool.device)
        random = float(np.mean([function.value(problem.subset(row), poll) for row in keys]))
    mask, bound = _best_end(problem, function, random, poll, lambda share: pool.tell(share, alone))
    best = max(function.exact_value(mask, poll), random)
    if best - random <= ROUNDING * max(abs(best), abs(random)):
        best = random
    proved = bound is not None and bound - best <= PROVED_GAP * abs(best - random)
    anchor = Anchor(random, best, "proved" if proved else "best found")
    path = _best_path(pool, name, size, budget)
    with contextlib.suppress(StoreError):  # a cache that cannot be written costs time, not the run
        with replacing(path, ".npy") as part:
            np.save(part, np.packbits(mask.cpu().numpy()), allow_pickle=False)
        write_text(path.with_suffix(".json"), json.dumps(anchor.to_dict()))
    return anchor, mask


def _alone(pool: Pool, function: SetFunction | None, size: int, budget: float | None) -> Problem:
    """One term alone, on all rows that can be selected at all: under a budget, those that have tokens and fit."""
    terms = () if function is None else (Term("reference", 1.0, function),)
    joint = Joint(pool.quality_under(budget), terms, 0.0)
    rows = np.arange(len(pool))
    spent = None
    if budget is not None:
        lengths = pool.corpus.lengths
        rows = rows[(lengths > 0) & (lengths <= budget)]
        spent = Budget(lengths[rows], budget, np.zeros(len(rows), dtype=bool))
    return Problem(joint, size, torch.from_numpy(rows).to(pool.device), pool.ties(0), budget=spent)


def _best_end(problem: Problem, function: SetFunction, random: float, poll: Poll, tell: Callable[[float], None]
              ) -> tuple[Tensor, float | None]:
    """The reference solver's subset, bool ``(n,)``, and its upper bound where it comes with one.

    `tell` is given the share of the work that is done.
    """
    if isinstance(function, Facility):
        return medoids(problem, poll), None
    if not relaxable(problem):
        return _learned(problem, poll, tell), None
    here, steps = begin(problem, poll=poll), 0
    while steps < RELAXED_STEPS:
        here, gap = advance(problem, here, poll)
        steps += 1
        tell(0.5 * steps / RELAXED_STEPS)
        if gap <= 0:
            break
        if steps == FIRST_LOOK and block_swaps.fits(problem):
            mask = polish(problem, rounded(problem, here, poll)[0], poll)
            bound, value = upper_bound(problem, here.weights, poll), function.value(mask, poll)
            if bound - value > HOPELESS * abs(value - random):
                return mask, bound
    bound = upper_bound(problem, here.weights, poll)
    mask, values = rounded(problem, here, poll)
    if bound - values.joint > PROVED_GAP * abs(values.joint - random):
        mask = polish(problem, mask, poll)
        value = function.value(mask, poll)
        if bound - value > FAR * abs(value - random) and not block_swaps.fits(problem):
            learned = _learned(problem, poll, lambda share: tell(0.5 + 0.5 * share))
            mask = max(mask, learned, key=lambda one: function.value(one, poll))
    return mask, bound


def _learned(problem: Problem, poll: Poll, tell: Callable[[float], None]) -> Tensor:
    """Masks learned by exact credit, then swaps, bool ``(n,)``."""
    config = SelectionConfig.from_options(estimator="counterfactual", lamb=0.0, n_rollout=1, n_epochs=LEARNED_STEPS,
                                          max_lr=1.0, min_lr=0.05, partial=1.0, init="same", polish="none")
    learner = Counterfactual(problem, config)
    state = learner.init()
    while learner.finished(state) is None:
        state, _ = learner.step(state, poll)
        tell(0.6 * state.step / LEARNED_STEPS)
    return polish(problem, learner.result(state, poll), poll)
