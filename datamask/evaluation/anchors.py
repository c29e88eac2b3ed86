"""Anchors: the two ends of every term's calibrated scale, computed once per corpus, objective and size.

0 is a random subset of size S, 1 the best that the term reaches alone; both on the whole pool, before pruning and
without constraints, by frozen reference solvers, so that runs on the same corpus and size share them. Under a token
budget of W the subsets are those that fill it, and W takes the place of S. Changing a solver below means raising
`ANCHOR_VERSION`; runs of two versions then have other ends, and are compared only where their ends are equal.

Pair-wise similarity of S rows has a dual in d unknowns, which mostly proves its subset the best to a millionth, and so
has the DiSF with fixed scale of many rows, in d^2. Under a budget, and for few rows, Frank-Wolfe and swaps search.

Every selection stands on these numbers, so a kept anchor is not believed: its random end is computed once more, its
best end is the value of the subset that is kept with it, and ``proved`` is proved again by the bound at the y of the
dual or the weights that are kept (any y gives one, and any weights). What is not computed again is the search for that
subset, which takes the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.corpus.sampling import DRAWS, hash_under
from datamask.evaluation.pool import Pool
from datamask.learning.counterfactual import Counterfactual
from datamask.learning.limits import Limits
from datamask.learning.loop import ShareWatch, learn
from datamask.learning.masks import tie_order
from datamask.learning.moments import moments_of
from datamask.learning.newton import QuadraticDual
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.learning.relaxation import advance, begin, further_starts, relaxable, rounded, upper_bound
from datamask.learning.solvers import solver_of
from datamask.learning.trace import no_trace
from datamask.measured import ANCHOR_VERSION, FOUND, PROVED, PROVED_GAP, Anchor, best_end, random_draws
from datamask.objectives import cache_name
from datamask.objectives.contract import SetFunction
from datamask.objectives.disf_fixed import DiSFFixed
from datamask.objectives.joint import Joint, Scale, Term
from datamask.options.amounts import tokens_text
from datamask.polling import Poll, no_poll
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry, require

FOUND_GAPS = 10
"""A subset of the dual is the best end where its bound is within so many of the gaps to which steps lead
(`Moments.closes`): no search can find one that makes a difference."""

SAME_SCALE = 0.5
"""Where the best is worth more than this share of the most there can be, steps on either scale are as precise."""

NOTHING = 1e-5
"""Weighted rows that come within this share of the most there can be add up to nothing."""

SIGN = np.uint64(1 << 63)

FAR = 0.05
"""A relaxation whose rounding stays further than this share below its bound is no reference; then masks are learned
too, and the better of the two counts. Not for the DiSF with fixed scale, which has too many fractional weights to round
well: there swaps by blocks end higher than learned masks, in a tenth of the time."""

CLOSED = PROVED_GAP / 10
"""Gap, as a share of the scale, at which these steps end: what others would find shows in no value."""

HOPELESS = 20 * PROVED_GAP
"""Where swaps by blocks stay further below the bound of the first `FIRST_LOOK` steps, `RELAXED_STEPS` prove nothing
either: the gap falls as one over the steps at best."""

SAME = 1e-6
"""Relative difference of a value that was computed elsewhere: on another device, or with sums in another order."""

RELAXED_STEPS = 30
FIRST_LOOK = 8
LEARNED_STEPS = 60


def quality_anchor(pool: Pool, size: int, budget: float | None = None) -> Anchor:
    """Mean quality of a random subset, and of the best `size` samples: both exact.

    Under a budget, of a random token, and of the best samples that fill it.
    """
    if budget is None:
        scores = pool.quality.scores
        return Anchor(float(scores.mean()), float(scores.topk(size).values.mean()), PROVED)
    quality = pool.quality_under(budget)
    gains, random = quality.linear(size)
    best = quality.value(quality_best(pool, size, budget))
    problem = _alone(pool, None, size, budget)
    bound = random + float(gains @ problem.vertex(gains[problem.eligible]).to(gains))
    return Anchor.found(random, best, bound)


def quality_best(pool: Pool, size: int, budget: float | None = None, seed: int = 0) -> Tensor:
    """The `size` samples of highest quality, or those that fill the budget, bool ``(n,)``; ties by the seeded hash."""
    free = np.zeros(len(pool), dtype=bool)
    limits = Limits(size, free) if budget is None else Limits(budget, free, pool.token_lengths)
    return limits.top(pool.quality.scores, pool.ties(seed))


def diversity_anchor(pool: Pool, name: str, size: int, poll: Poll = no_poll, budget: float | None = None) -> Anchor:
    """The anchor of a diversity objective, from the cache where it has been computed before."""
    return _ends(pool, name, size, poll, budget)[0]


def diversity_best(pool: Pool, name: str, size: int, poll: Poll = no_poll, budget: float | None = None) -> Tensor:
    """The subset behind the anchor's best end, bool ``(n,)``: what this objective alone would select."""
    return _ends(pool, name, size, poll, budget)[1]


class Ends(NamedTuple):
    """An anchor, the subset behind its best end, bool ``(n,)``, and the arrays that prove the end, if they do."""

    anchor: Anchor
    mask: Tensor
    proof: Mapping[str, np.ndarray]


def stored_ends(pool: Pool, name: str, size: int, poll: Poll = no_poll, budget: float | None = None) -> Kept[Ends]:
    """Describe an anchor in the cache; both ends of one on approximate lists are values of listed pairs."""
    function = pool.function(name, size, budget)
    problem = _alone(pool, function, size, budget)
    amount = size if budget is None else f"{tokens_text(budget)}-tokens"
    kept = f"-{pool.leading.axes.shape[1]}-components" if pool.on_components(name) else ""
    key = f"{cache_name(name)}-{amount}{kept}"
    return Kept(
        pool.cache_dir,
        Entry(pool.space.fingerprint, "anchor", ANCHOR_VERSION, f"{key}-listed" if function.lower_bound else key),
        read=lambda content: _believed(content, pool, problem, poll),
        write=lambda ends: Content(ends.anchor.to_dict(), {"mask": np.packbits(ends.mask.cpu().numpy()), **ends.proof}),
    )


def _ends(pool: Pool, name: str, size: int, poll: Poll, budget: float | None) -> tuple[Anchor, Tensor]:
    """The anchor and the subset behind its best end: what this pool knows, what is kept, or solved now."""
    key = (cache_name(name), size, budget)
    if key not in pool.ends:
        stored = stored_ends(pool, name, size, poll, budget)
        pool.ends[key] = stored.find_or_compute(lambda: _solved(pool, name, size, poll, budget), poll)[:2]
    return pool.ends[key]


def _solved(pool: Pool, name: str, size: int, poll: Poll, budget: float | None) -> Ends:
    """The anchor by its reference solver, and that solver's subset."""
    function = pool.function(name, size, budget)
    problem = _alone(pool, function, size, budget)
    alone = f"finding what {catalogue.objective(name).label} alone would select"
    pool.tell(0.0, alone)
    random = _random_end(problem, poll)
    end = _best_end(problem, function, random, poll, lambda share: pool.tell(share, alone))
    anchor = Anchor.found(random, function.value(end.mask, poll), end.bound)
    proved = anchor.best_kind == PROVED
    proof = {name: array.double().cpu().numpy() for name, array in end.proof.items()} if proved else {}
    return Ends(anchor, end.mask, proof)


def _random_end(problem: Problem, poll: Poll) -> float:
    """The value of a random subset: always the same for a problem."""
    function, generator = problem.joint.terms[0].function, torch.Generator().manual_seed(0)
    draws = random_draws(len(problem.ties))
    if function.drawn:
        # by hashes of the ids: the same ones in any order of the rows
        hashes = problem.ties.cpu().numpy().view(np.uint64) ^ SIGN
        device = problem.ties.device
        nothing = torch.zeros(len(problem.eligible), device=device)
        drawn = (tie_order(hash_under(hashes, DRAWS + draw), device) for draw in range(draws))
        return float(np.mean([function.value(replace(problem, ties=ties).subset(nothing), poll) for ties in drawn]))
    if not problem.limits.by_tokens:
        return function.random_value(problem.size, generator, poll)
    keys = torch.rand(draws, len(problem.eligible), generator=generator).to(problem.eligible.device)
    return float(np.mean([function.value(problem.subset(row), poll) for row in keys]))


def _believed(content: Content, pool: Pool, problem: Problem, poll: Poll) -> Ends:
    """The anchor and the subset that a file holds. Raises Implausible where they are not those of the problem."""
    value, function = content.value, problem.joint.terms[0].function
    anchor = Anchor(float(value["random"]), float(value["best"]), str(value["best_kind"]))
    require(math.isfinite(anchor.random) and math.isfinite(anchor.best), "an end of the scale is no number")
    require(anchor.random <= anchor.best, "the random end is above the best one")
    require(anchor.best_kind in (PROVED, FOUND), f"a best end is never {anchor.best_kind!r}")
    mask = _subset(content.arrays["mask"], problem)
    same = SAME * max(abs(anchor.random), abs(anchor.best))
    require(abs(_random_end(problem, poll) - anchor.random) <= same, "the random end is another one")
    short = anchor.best - best_end(anchor.random, function.value(mask, poll))
    require(-same <= short <= same, "the best end is not the value of the subset that is kept with it")
    if anchor.best_kind == PROVED:
        above = _proved_bound(content.arrays, pool, problem, poll) - anchor.best
        require(-same <= above <= PROVED_GAP * (anchor.best - anchor.random) + same, "the best end is not proved")
    return Ends(anchor, mask, {name: array for name, array in content.arrays.items() if name != "mask"})


def _proved_bound(arrays: Mapping[str, np.ndarray], pool: Pool, problem: Problem, poll: Poll) -> float:
    """The upper bound by what is kept as a proof. Raises Implausible where that is of another problem."""
    search = solver_of(problem).dual
    if search is not None:
        y = arrays["y"]
        dual = search(problem)
        require(y.shape == (dual.phi.length,) and y.dtype == np.float64, "y is of another corpus")
        return dual.upper_bound(torch.from_numpy(y).to(pool.device), poll)
    weights = arrays["weights"]
    require(weights.shape == (len(pool),) and weights.dtype == np.float64, "the weights are of another corpus")
    require(weights.min() >= -SAME and weights.max() <= 1 + SAME, "the weights are not between 0 and 1")
    return upper_bound(problem, torch.from_numpy(weights).to(pool.device), poll)


def _subset(packed: np.ndarray, problem: Problem) -> Tensor:
    """The subset, bool ``(n,)``, as it is kept. Raises Implausible where the problem does not allow it."""
    n = problem.joint.n
    require(packed.dtype == np.uint8 and packed.shape == (-(-n // 8),), "the subset is of another corpus")
    mask = torch.from_numpy(np.unpackbits(packed, count=n).astype(bool)).to(problem.eligible.device)
    chosen = mask[problem.eligible]
    require(bool(chosen.any()) and int(chosen.sum()) == int(mask.sum()), "the subset holds rows that it cannot")
    limits = problem.limits
    total = limits.total(chosen.cpu().numpy())
    if limits.by_tokens:
        require(total <= limits.most * (1 + 1e-9), "the subset is above the budget")
    else:
        require(total == limits.most, "the subset is of another size")
    return mask


def _alone(pool: Pool, function: SetFunction | None, size: int, budget: float | None) -> Problem:
    """One term alone, on all rows that can be selected at all: under a budget, those that have tokens and fit."""
    terms = () if function is None else (Term("reference", 1.0, function),)
    joint = Joint(pool.quality_under(budget), terms, 0.0)
    keep, ordered = np.ones(len(pool), dtype=bool), function is not None and function.ordered
    if budget is None:
        return Problem(joint, size, pool.rows(keep, ordered), pool.ties(0))
    lengths = pool.token_lengths
    rows = pool.rows((lengths > 0) & (lengths <= budget), ordered)
    limits = Limits(budget, np.zeros(len(rows), dtype=bool), lengths[rows.cpu().numpy()])
    return Problem(joint, size, rows, pool.ties(0), limits=limits)


@dataclass(frozen=True)
class _BestEnd:
    """A reference solver's subset, bool ``(n,)``; no subset is worth more than `bound`, by the arrays in `proof`."""

    mask: Tensor
    bound: float = math.inf
    proof: Mapping[str, Tensor] = field(default_factory=dict)


def _best_end(
    problem: Problem, function: SetFunction, random: float, poll: Poll, tell: Callable[[float], None]
) -> _BestEnd:
    """What the reference solver finds; `tell` is given the share of the work that is done."""
    solver = solver_of(problem)
    if solver.direct is not None:
        return _BestEnd(solver.direct(problem, poll, no_trace))
    if not relaxable(problem):
        return _BestEnd(_learned(problem, poll, tell))
    if solver.dual is None:
        return _by_weights(problem, function, random, poll, tell)
    end, short = _by_dual(problem, solver.dual, function, random, poll)
    if short:
        other = _by_weights(problem, function, random, poll, tell).mask
        if function.value(other, poll) > function.value(end.mask, poll):
            end = replace(end, mask=other)
    return end


def _by_dual(
    problem: Problem, search: Callable[[Problem], QuadraticDual], function: SetFunction, random: float, poll: Poll
) -> tuple[_BestEnd, bool]:
    """The subset behind the solution of the dual, and whether it may be short of the best by more than `FOUND_GAPS`.

    Steps of Frank-Wolfe lead to where Newton's are quick, or to weighted rows that add up to nothing. In that case the
    solution is y = 0, where the dual has no slope to follow. Of many rows a sample is the quicker start.
    """
    dual = search(problem)
    best = most = moments_of(function).most(problem.size)
    scaled = _rescaled(problem, random, best)
    start = None
    if not dual.many or Anchor(random, most, FOUND).constant:
        point = begin(scaled, poll=poll)
        for _ in range(RELAXED_STEPS):
            after, gap = advance(scaled, point, poll)
            if 1.0 - point.value <= NOTHING or point.value + gap < 1.0 - NOTHING:
                break
            point = after
        start = dual.sum_of(point.weights, poll)
    if start is not None and 1.0 - point.value <= NOTHING:
        y = torch.zeros(dual.phi.length, dtype=torch.float64, device=problem.joint.device)
        mask = search(scaled).rounded(point.weights[problem.eligible], poll)
        best = function.value(mask, poll)
    else:
        for _ in range(2):  # on a scale where 1 is the most there can be, then on the one that this finds
            scaled = _rescaled(problem, random, best)
            solution = search(scaled).solve(start, dual.phi.closes, poll, prove=False)
            start = y = solution.y
            mask = solution.mask
            best = function.value(mask, poll)
            if Anchor(random, best, FOUND).constant or best - random > SAME_SCALE * (most - random):
                break
    bound = dual.upper_bound(y, poll, rounding=0.0)
    if bound > most:
        y, bound = torch.zeros_like(y), most
    found_gap = FOUND_GAPS * dual.phi.closes
    if short := bound - best > found_gap * (best - random):
        mask = polish(scaled, mask, poll)
        best = function.value(mask, poll)
        short = bound - best > found_gap * (best - random)
    return _BestEnd(mask, dual.upper_bound(y, poll) if dual.phi.rounding else bound, {"y": y}), short


def _rescaled(problem: Problem, random: float, best: float) -> Problem:
    """A problem of one term on the scale of these ends."""
    term = replace(problem.joint.terms[0], scale=Scale.calibrated(Anchor(random, best, FOUND)))
    return replace(problem, joint=Joint(problem.joint.quality, (term,), 0.0))


def _by_weights(
    problem: Problem, function: SetFunction, random: float, poll: Poll, tell: Callable[[float], None]
) -> _BestEnd:
    """The best of Frank-Wolfe's roundings, swaps from there, and, where both stay `FAR`, masks or more swaps."""
    outdoes_masks = solver_of(problem).outdoes_masks
    point, steps, lowest = begin(problem, poll=poll), 0, math.inf
    while steps < RELAXED_STEPS:
        before = point.value
        point, gap = advance(problem, point, poll)
        lowest = min(lowest, before + max(gap, 0.0))
        steps += 1
        tell(0.5 * steps / RELAXED_STEPS)
        if gap <= CLOSED * abs(point.value - random):
            break
        if steps == FIRST_LOOK and outdoes_masks:
            mask, values = rounded(problem, point, poll)
            if lowest - values.joint <= HOPELESS * abs(values.joint - random):
                continue
            mask = polish(problem, mask, poll)
            bound, value = upper_bound(problem, point.weights, poll), function.value(mask, poll)
            if bound - value > HOPELESS * abs(value - random):
                return _BestEnd(_of_more_starts(problem, function, mask, poll), bound, {"weights": point.weights})
    bound = upper_bound(problem, point.weights, poll)
    mask, values = rounded(problem, point, poll)
    if bound - values.joint > PROVED_GAP * abs(values.joint - random):
        mask = polish(problem, mask, poll)
        value = function.value(mask, poll)
        if outdoes_masks:
            mask = _of_more_starts(problem, function, mask, poll)
        elif bound - value > FAR * abs(value - random):
            learned = _learned(problem, poll, lambda share: tell(0.5 + 0.5 * share))
            mask = max(mask, learned, key=lambda candidate: function.value(candidate, poll))
    return _BestEnd(mask, bound, {"weights": point.weights})


def _of_more_starts(problem: Problem, function: SetFunction, mask: Tensor, poll: Poll) -> Tensor:
    """This subset, or a better one that swaps from random subsets lead to; bool ``(n,)``.

    Where few rows are selected, the rounding of a relaxation is a start like any other.
    """
    rows = problem.joint.terms[0].function_of(DiSFFixed).y
    starts = further_starts(*rows.shape)
    if not starts:  # as with many rows, where valuing takes seconds
        return mask
    best, generator = function.value(mask, poll), torch.Generator().manual_seed(0)
    for _ in range(starts):
        draw = torch.rand(len(problem.eligible), generator=generator).to(problem.eligible.device)
        other = polish(problem, problem.subset(draw), poll)
        if (value := function.value(other, poll)) > best:
            mask, best = other, value
    return mask


def _learned(problem: Problem, poll: Poll, tell: Callable[[float], None]) -> Tensor:
    """Masks learned by exact credit, then swaps, bool ``(n,)``."""
    config = SelectionConfig.from_options(
        estimator="counterfactual",
        lamb=0.0,
        n_rollout=1,
        n_epochs=LEARNED_STEPS,
        max_lr=1.0,
        min_lr=0.05,
        partial=1.0,
        init="same",
        polish="swaps",
    )
    estimator = Counterfactual(problem, config)
    return learn(estimator, poll=poll, watch=ShareWatch(estimator, lambda share, steps: tell(0.6 * share))).mask
