"""Who solves what over all rows of a corpus, and the selection by passes over its scratch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from datamask import catalogue
from datamask.config import CorpusConfig, SelectionConfig
from datamask.errors import OptionError
from datamask.measured import is_bound
from datamask.options.components import ALL
from datamask.out_of_core import streamed_dual
from datamask.out_of_core.exact_values import Candidate, exact_values
from datamask.out_of_core.row_rules import RowRules
from datamask.out_of_core.scale_ends import ScaleEnds, Start
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.solution import WholeSolution
from datamask.out_of_core.whole_corpus import WholeCorpus, is_joined
from datamask.polling import Poll
from datamask.recipes.derive import MOST_IDS
from datamask.recipes.recipe import Recipe, Thresholds
from datamask.recipes.stepping import at_weights
from datamask.recipes.weights import Weights, slope_between
from datamask.work.context import Work

Step = Callable[[dict[str, float]], None]
"""Called after every step of the way: numbers by name, among them ``joint`` on the run's scale where it is known.

Steps of a stopped attempt that need not be done again are handed over again.
"""

BLOCK_ROWS = 1_000_000
"""Rows that bound the memory of a pass."""

ENDS_FOUND, ENDS_VALUED, SOLVED = 0.45, 0.5, 0.9
"""Shares of the work of `solve` that are done when every term is solved alone, when the ends are valued where that
takes a reading of its own, and when all is solved."""

NEARLY = 1e-4
"""Slopes of two scales that differ by no more than this part are nearly the same: values by less than its square."""


@dataclass(frozen=True)
class WholeProblem:
    """What is to be solved.

    Attributes:
        config: the settings. scratch: all rows. size: S.
        corpus: the shards that the scratch was made of.
        recipe: the rule of the sample's selection; None: its objective has none.
        starts: what each term alone selects from the sample, by term.
        ends: of the scales of terms, as runs keep them, where memory holds all rows and they were found there.
        rules: pins, bans and the like; None: there are none. S are the rows beside the given ones.
    """

    config: SelectionConfig
    scratch: Scratch
    size: int
    corpus: WholeCorpus
    recipe: Recipe | None
    starts: Mapping[str, Start] = field(default_factory=dict)
    ends: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules: RowRules | None = None

    @property
    def members(self) -> int:
        """S and the given rows: as in memory, these count among the members that are valued, and in the ends."""
        return self.size + (0 if self.rules is None else int(self.rules.given.sum()))


@dataclass(frozen=True)
class WholeSolver:
    """One way to solve over all rows, after a sample.

    Attributes:
        objectives: it solves sums of these, and quality alone. rules: the options of `OBEYED` that it obeys.
    """

    objectives: tuple[str, ...]
    rules: tuple[str, ...]


def solve(problem: WholeProblem, work: Work, step: Step) -> WholeSolution:
    """Pair-wise similarity and the DiSF with fixed scale: the ends of the scales, then the selection, by passes over
    the scratch; each valued on the shards.

    Where the ends on the rows of the scratch are nearly those on the shards, one reading of the shards says what the
    ends and the selection are worth; else it says the ends alone, and the selection is made on these.

    Raises:
        Stopped: from `work`; what is in the scratch's folder by then, a run that goes on finds there.
    """
    scratch, size = problem.scratch, problem.members
    sample = _over_all_rows(problem)
    found = ScaleEnds(
        scratch,
        sample,
        size,
        problem.starts,
        work.part(0.0, ENDS_FOUND),
        known=problem.ends,
        block_rows=BLOCK_ROWS,
    )
    read = partial(exact_values, problem.corpus, scratch, size=size)
    alone = [each.candidate for each in found.alone.values()]
    if found.needs_squares and found.exact is None:
        values, squares = read(alone, work=work.part(ENDS_FOUND, ENDS_VALUED), squares=True)
        found.value(values, squares)
        found.keep()
    while True:
        exactly, ends = found.exact is not None, found.exact or found.rounded
        recipe = _at_ends(sample, ends, size)
        dual, candidate = _selected(problem, recipe, work.part(ENDS_VALUED, SOLVED), step)
        values, _ = read([candidate, *([] if exactly else alone)], work=work.part(SOLVED, 1.0))
        if exactly or _nearly(ends, found.value(values[1:], None)):
            break
        found.keep()
    assert found.exact is not None
    exact, before, weights = values[0], Weights.of(recipe), Weights.of(replace(recipe, anchors=found.exact))
    rule, factor = at_weights(candidate.rule, before, weights, size)
    bound = factor * (exact.bound - before.beside_scores(candidate.rule, size)) + weights.beside_scores(rule, size)
    dual.least, dual.least_tau = rule, factor * dual.least_tau
    value, passes = exact.members.value(weights), len(dual.passes)
    proved = dual.proved and is_bound(bound, value)
    ending = "bound and value met" if dual.gap <= streamed_dual.CLOSE else "passes came no nearer to the bound"
    new = candidate.selected if problem.rules is None else candidate.selected & ~problem.rules.given
    return WholeSolution(
        new,
        value,
        exact.raw,
        max(bound, value) if proved else None,
        streamed_dual.scores_by(scratch, dual, size, problem.config.lamb),
        f"{ending} after {passes} pass{'es' if passes != 1 else ''}",
        found.exact,
        {"passes": passes},
        _rule(problem, replace(recipe, rule=rule, anchors=found.exact), dual.least_tau, work.poll),
    )


def _rule(problem: WholeProblem, recipe: Recipe, tau: float, poll: Poll) -> tuple[Recipe, Thresholds] | None:
    """Recipe and threshold of the selection; None where it names more rows than a recipe may."""
    if (rules := problem.rules) is not None:
        named = [rules.pinned, rules.banned | rules.given]
        if sum(int(mask.sum()) for mask in named) > MOST_IDS:
            return None
        always, never = (_ids(problem, np.flatnonzero(mask), poll) for mask in named)
        recipe = replace(recipe, always=always, never=never)
    return recipe, Thresholds(tau)


def _ids(problem: WholeProblem, rows: np.ndarray, poll: Poll) -> tuple[Any, ...]:
    """The ids of rising rows of the scratch."""
    shards, inside = problem.scratch.place(rows)
    return tuple(problem.corpus.ids_at(problem.corpus.source.starts[shards] + inside, poll).to_pylist())


def _selected(
    problem: WholeProblem,
    recipe: Recipe,
    work: Work,
    step: Step,
) -> tuple[streamed_dual.Dual, Candidate]:
    """The selection by passes over the scratch, given rows among it."""

    def on_pass(dual: streamed_dual.Dual) -> None:
        last = dual.passes[-1]
        step({"joint": last["value"], **{name: last[name] for name in ("upper_bound", "gap", "swaps")}})

    dual = streamed_dual.solve(
        problem.scratch,
        recipe,
        problem.members,
        work,
        block_rows=BLOCK_ROWS,
        rules=problem.rules,
        on_pass=on_pass,
    )
    assert dual.least is not None
    free = None if problem.rules is None else problem.rules.free
    selected = dual.selected(problem.scratch.rows)
    return dual, Candidate(recipe, selected, dual.least, dual.least_tau, dual.spread, free)


def _nearly(ends: Mapping[str, Any], exact: Mapping[str, Any]) -> bool:
    """Whether a selection that is the best on one scale is the best on the other too, to the square of `NEARLY`."""
    for name, each in exact["diversity"].items():
        one, other = (slope_between(found["random"], found["best"]) for found in (ends["diversity"][name], each))
        if abs(one - other) > NEARLY * min(one, other):
            return False
    return True


def _over_all_rows(problem: WholeProblem) -> Recipe:
    """The sample's recipe with the mean and the standardisation of all rows; its rule is where the passes begin."""
    assert problem.recipe is not None
    recipe, starts = problem.recipe, problem.starts
    rule, terms = recipe.rule, dict(recipe.terms)
    if recipe.lamb < 1 and "pairwise" in terms and rule.direction is None:
        rule = replace(rule, direction=starts["pairwise"].direction)
    if recipe.lamb < 1 and "disf_fixed" in terms:
        mean, inverse_sd = problem.scratch.moments.standardisation()
        moment = starts["disf_fixed"].moment if rule.moment is None else rule.moment
        rule = replace(rule, moment=moment, mean=mean, inverse_sd=inverse_sd)
    return replace(recipe, rule=rule, features=replace(recipe.features, center=problem.corpus.center))


def _at_ends(recipe: Recipe, ends: dict[str, Any], size: int) -> Recipe:
    """The recipe on these scales, with a rule that scores as before: what a direction costs carries over from the
    sample to all rows, also where the scale of a term does not."""
    recipe = replace(recipe, anchors=ends)
    rule, weights = recipe.rule, Weights.of(recipe)
    crowding, moment_weight = weights.crowding(size), weights.moment_weight(recipe.features.dim)
    if rule.direction is not None and min(crowding, rule.crowding_weight) > 0:
        rule = replace(rule, direction=rule.direction * (rule.crowding_weight / crowding))
    if rule.moment is not None and min(moment_weight, rule.moment_weight) > 0:
        rule = replace(rule, moment=rule.moment * (rule.moment_weight / moment_weight))
    return replace(recipe, rule=rule)


OBEYED = ("pin", "ban", "given", "quotas", "budget")
"""Rules that solvers over all rows obey."""

BY_PASSES = WholeSolver(catalogue.RULED, ("pin", "ban", "given"))
MAPPED = WholeSolver(("facility",), OBEYED)
"""The solver of memory, on mapped arrays."""

SECONDS = 4e-7, 6e-8
"""That a selection by passes takes for each row, and for each row and dimension, about, on two cores."""


def memory_bytes(config: SelectionConfig, rows: int, dim: int) -> int:
    """The most that a selection by passes takes."""
    return streamed_dual.memory_bytes(rows, dim, BLOCK_ROWS, moments="disf_fixed" in dict(config.terms))


def solver_for(config: SelectionConfig, corpus: CorpusConfig | None = None) -> WholeSolver | None:
    """The solver of these settings that begins with a sample; None: the stages of memory select, on mapped arrays.

    Args:
        corpus: None: one whose rows lie in one shard each.

    Raises:
        OptionError: a sample is asked for beside all rows, where nothing begins with one.
    """
    names = {name for name, _ in config.terms}
    if config.lamb == 1:  # only quality counts: passes solve it for every objective but facility, whose lists they lack
        names = set() if names == {"facility"} else {"pairwise"}
    used = {option for option in OBEYED if getattr(config, option)}
    leaves_out = config.prune or config.collapse != "none" or config.components not in (None, ALL)
    if names and config.estimator == "relaxed" and not leaves_out and not (corpus is not None and is_joined(corpus)):
        for solver in (BY_PASSES, MAPPED):
            if names <= set(solver.objectives) and used <= set(solver.rules):
                return solver
    if config.all_rows and corpus is not None and corpus.rows is not None:
        raise OptionError(
            "--rows takes a sample, and --all selects from all rows; leave one of them out (facility, pairwise and "
            "disf_fixed by relaxed alone begin with a sample)"
        )
    return None
