"""Who solves what over all rows of a corpus: the table, and what a solver is given and gives back.

To add one: a function from a `WholeProblem`, the `Work` and a `Step` to a `WholeSolution`, its entry in `SOLVERS`. It
may raise `Stopped` at any time; what it kept in the scratch's folder until then it finds there when the run goes on.
"""

from __future__ import annotations

import contextlib
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
from datamask.out_of_core import facility, streamed_dual
from datamask.out_of_core.engines import Engine, open_engine
from datamask.out_of_core.engines.contract import usable_cores
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
"""Shares of the work of `_by_passes` that are done when every term is solved alone, when the ends are valued where that
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
    """One way to solve over all rows.

    Attributes:
        objectives: it solves sums of these, and quality alone. estimators: by which it may be asked for.
        memory: bytes that it takes at most, by settings, rows, d and S. disk: bytes of files beside the scratch, by
            rows, d and S. seconds: that it takes for each row, and for each row and dimension, about, on two cores.
        solve: does it.
        check_size: refuses, by settings, rows and S, what it cannot select.
        rules: the options of `OBEYED` that it obeys.
    """

    objectives: tuple[str, ...]
    estimators: tuple[str, ...]
    memory: Callable[[SelectionConfig, int, int, int], int]
    disk: Callable[[int, int, int], int]
    seconds: tuple[float, float]
    solve: Callable[[WholeProblem, Work, Step], WholeSolution]
    check_size: Callable[[SelectionConfig, int, int], None] = lambda config, rows, size: None
    rules: tuple[str, ...] = ()


def _by_passes(problem: WholeProblem, work: Work, step: Step) -> WholeSolution:
    """Pair-wise similarity and the DiSF with fixed scale: the ends of the scales, then the selection, by passes over
    the scratch; each valued on the shards."""
    with contextlib.ExitStack() as stack:
        # threads of this process need no files and no start of their own
        own = problem.config.engine == "local"
        engine = None if own else stack.enter_context(engine_of(problem.config))
        return _solved_by_passes(problem, engine, work, step)


def _solved_by_passes(problem: WholeProblem, engine: Engine | None, work: Work, step: Step) -> WholeSolution:
    """Where the ends on the rows of the scratch are nearly those on the shards, one reading of the shards says what the
    ends and the selection are worth; else it says the ends alone, and the selection is made on these."""
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
        engine=engine,
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
        dual, candidate = _selected(problem, recipe, engine, work.part(ENDS_VALUED, SOLVED), step)
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
    engine: Engine | None,
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
        engine=engine,
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


def engine_of(config: SelectionConfig) -> Engine:
    """The engine that the settings name; nothing of it is started yet.

    Raises:
        OptionError: a library that it needs is not installed.
    """
    return open_engine(config.engine, workers=config.workers, address=config.address)


def _by_cells(problem: WholeProblem, work: Work, step: Step) -> WholeSolution:
    """Facility location, on lists of all rows."""
    with engine_of(problem.config) as engine:
        return facility.solve_facility(
            problem.scratch,
            problem.config,
            problem.members,
            engine,
            work,
            step,
            rules=problem.rules,
        )


def _facility_memory(config: SelectionConfig, rows: int, dim: int, size: int) -> int:
    return facility.memory_bytes(rows, dim, size, config.workers or usable_cores())


OBEYED = ("pin", "ban", "given", "quotas", "budget")
"""Rules that some solvers over all rows obey."""

SOLVERS: tuple[WholeSolver, ...] = (
    WholeSolver(
        catalogue.RULED,
        ("relaxed",),
        lambda config, rows, dim, size: streamed_dual.memory_bytes(
            rows, dim, BLOCK_ROWS, moments="disf_fixed" in dict(config.terms)
        ),
        lambda rows, dim, size: 0,
        (4e-7, 6e-8),
        _by_passes,
        check_size=lambda config, rows, size: streamed_dual.check_size(rows, size),
        rules=("pin", "ban", "given"),
    ),
    WholeSolver(
        ("facility",),
        ("relaxed",),
        _facility_memory,
        facility.disk_bytes,
        (1e-4, 8e-7),
        _by_cells,
        check_size=lambda config, rows, size: facility.check_rows(rows),
        rules=OBEYED,
    ),
)
"""The first that fits is taken."""


def solver_for(config: SelectionConfig, corpus: CorpusConfig | None = None) -> WholeSolver | None:
    """The solver for these settings; None: they are solved by the stages of memory, on mapped arrays.

    Args:
        corpus: None: one whose rows lie in one shard each.

    Raises:
        OptionError: an engine is named that has nothing to do, or lacks its library; or a sample is asked for beside
            all rows, where nothing begins with one.
    """
    names = [name for name, _ in config.terms]
    if config.lamb == 1:  # only quality counts: passes solve it for every objective but facility, whose lists they lack
        names = [] if names == ["facility"] else ["pairwise"]
    used = {option for option in OBEYED if getattr(config, option)}
    leaves_out = config.prune or config.collapse != "none"
    if not (leaves_out or config.components not in (None, ALL) or (corpus is not None and is_joined(corpus))):
        for solver in SOLVERS:
            if (
                names
                and set(names) <= set(solver.objectives)
                and config.estimator in solver.estimators
                and used <= set(solver.rules)
            ):
                engine_of(config)  # before anything is read: a library may be missing
                return solver
    if config.all_rows and corpus is not None and corpus.rows is not None:
        raise OptionError(
            "--rows takes a sample, and --all selects from all rows; leave one of them out (facility, pairwise and "
            "disf_fixed by relaxed alone begin with a sample)"
        )
    if config.engine != "local":
        raise OptionError(
            f"--engine {config.engine} does the tasks of facility, pairwise and disf_fixed by relaxed, and these "
            "settings have none; leave --engine out"
        )
    return None
