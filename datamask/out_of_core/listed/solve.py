"""Facility location over all rows of a corpus, by the solver for memory on lists that are mapped from disk.

Lazy greedy, swaps and the dual bound are those of `datamask.learning`, and so are the rules; rows stand in the order of
their cells, and ties go by the hash of the id, so what is selected does not depend on that order. Where the search is,
is kept in a file beside the lists: a run that was killed goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from datamask.config import SelectionConfig
from datamask.corpus.sampling import DRAWS, hash_under
from datamask.errors import OptionError
from datamask.learning.bounds import Certificate, Effort, dual_bound
from datamask.learning.budget import Budget
from datamask.learning.facility_solver import medoids
from datamask.learning.masks import tie_order
from datamask.learning.problem import Problem
from datamask.learning.rules import Rules
from datamask.learning.trace import no_trace
from datamask.measured import FOUND, PROVED, Anchor, Anchors, Estimate, random_draws
from datamask.objectives.budgeted import BudgetedQuality
from datamask.objectives.estimate import ESTIMATE_ROWS, estimated
from datamask.objectives.facility import ROUNDING, Coverage
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from datamask.out_of_core.cells import CellBlocks
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.facility_values import check_weighable, graph_facts, recall
from datamask.out_of_core.listed.mapped_facility import MappedFacility, RowsOfCells
from datamask.out_of_core.listed.whole_lists import Facts, WholeLists
from datamask.out_of_core.row_rules import RowRules
from datamask.out_of_core.solution import WholeSolution
from datamask.out_of_core.tasks import VERSION, do
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Parts, Progress, piece
from datamask.work.result_file import Content

KEPT_SECONDS = 20.0
"""Between two notes of where the search is."""

PREPARED, LISTS, BEST, SOLVED, BOUNDED = 0.58, 0.62, 0.76, 0.86, 0.96
"""Shares of the work that are done, about, when these are."""


@dataclass(frozen=True)
class ListedRows:
    """All rows, by position.

    Attributes:
        cells: their blocks. rows: features. function: the objective, on their lists.
        quality: float64 ``(N,)``. id_hash: uint64 ``(N,)``. row: int32 ``(N,)``, in the scratch.
    """

    cells: CellBlocks
    rows: RowsOfCells
    function: MappedFacility
    quality: Tensor
    id_hash: np.ndarray
    row: np.ndarray

    @classmethod
    def opened(cls, whole: WholeLists, make: Callable[[], Facts], work: Work) -> tuple[ListedRows, Facts]:
        """The rows and their lists, which are made where they are not there, and facts."""
        lists, facts = whole.assembled(make, work)
        rows = RowsOfCells(whole.cells)
        function = MappedFacility(rows, lists, whole.cells.scratch.dim, whole.cells.exact)
        quality = torch.from_numpy(rows.column("quality").astype(np.float64, copy=False))
        return cls(
            whole.cells, rows, function, quality, rows.column("id_hash"), rows.column("rows").astype(np.int32)
        ), facts

    def ties(self, seed: int) -> Tensor:
        """What decides ties, int64 ``(N,)``."""
        return tie_order(hash_under(self.id_hash, seed))

    def joint(self, limits: Limits, lamb: float, scales: tuple[Scale, Scale] = (Scale(), Scale())) -> Joint:
        """Facility location at some lambda. scales: of quality and of diversity."""
        return Joint(limits.quality, (Term("facility", 1.0, self.function, scales[1]),), lamb, scales[0])

    def phase(self, settings: Mapping[str, Any]) -> Parts:
        """The phase of the file that holds a solution by its settings."""
        return self.cells.phase("listed:member", 1, lists=self.cells.lists.word, **settings)

    def solved(self, problem: Problem, settings: Mapping[str, Any], work: Work, swapping: bool = True) -> Tensor:
        """The members of the direct solution, bool ``(N,)``; from a file where an earlier attempt left them."""
        parts = self.phase(settings)
        progress = Progress(piece(parts.folder, f"{parts.word}-at", VERSION, 0), KEPT_SECONDS)

        def solve() -> Content:
            mask = medoids(problem, work.poll, no_trace, self.function.lists, progress, swapping)
            return Content({}, {"member": mask.numpy()})

        found = parts.at(0).find_or_compute(solve)
        progress.clear()
        return torch.from_numpy(np.array(found["member"]))

    def ends(self, size: int, limits: Limits, work: Work) -> tuple[Anchor, Anchor, Mapping[str, Any]]:
        """The ends of the scales of quality and of diversity, free of any rules, and what the latter is solved by."""
        problem = replace(limits.free(self, size), joint=self.joint(limits, 0.0))
        quality = limits.quality_ends(problem)
        tokens = None if problem.budget is None else problem.budget.most
        random, draws = 0.0, random_draws(len(self.row))
        for draw in range(draws):
            work.report(0.3 * draw / draws, "Random selections, for the scale")
            drawn = replace(problem, ties=self.ties(DRAWS + draw)).subset(torch.zeros(len(problem.eligible)))
            coverage = self.function.close_coverage(drawn, work.poll, needed=1)
            random += float(coverage.best.double().mean()) / draws
        work.report(0.3, "What diversity alone would select")
        settings = {"size": size, "lamb": 0.0, "seed": 0, "tokens": tokens}
        mask = self.solved(problem, settings, work.part(0.3, 1.0))
        best = max(random, self.function.value(mask, work.poll))
        return quality, Anchor(random, best, FOUND), settings

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """Values by position as values by row of the scratch."""
        out = np.empty_like(values)
        out[self.row] = values
        return out


@dataclass(frozen=True)
class Limits:
    """What may be selected, by position.

    Attributes:
        quality: the term, which under a budget is of the tokens. eligible: int64 ``(m,)``; rules, budget: over these.
        given: bool ``(N,)``. lengths: float64 ``(N,)``, tokens, under a budget.
    """

    quality: Quality
    eligible: Tensor
    rules: Rules | None
    budget: Budget | None
    given: np.ndarray
    lengths: np.ndarray | None = None

    @classmethod
    def of(cls, rows: ListedRows, size: int, rules: RowRules | None) -> Limits:
        """The rules of a selection of S rows, the given ones among them.

        Raises:
            OptionError: nothing can obey them.
        """
        n = len(rows.row)
        if rules is None:
            return cls(Quality(rows.quality), torch.arange(n), None, None, np.zeros(n, bool))
        given, pinned = rules.given[rows.row], (rules.pinned | rules.given)[rows.row]
        eligible = np.flatnonzero(~rules.banned[rows.row])
        if rules.budget is None:
            obeyed = Rules(
                pinned[eligible],
                rules.group[rows.row][eligible].astype(np.int64),
                rules.low,
                rules.high,
                rules.names,
                given[eligible],
            )
            obeyed.check(size)
            return cls(Quality(rows.quality), torch.from_numpy(eligible), obeyed, None, given)
        assert rules.lengths is not None
        lengths = rules.lengths[rows.row]
        if empty := int((lengths[eligible] <= 0).sum()):
            raise OptionError(f"--budget: {empty:,} rows have no tokens; --ban them, or use --select_ratio")
        group = rules.group[rows.row].astype(np.int64)
        groups = (group, rules.low, rules.high, rules.names) if len(rules.names) > 1 else None
        eligible, budget = Budget.within(rules.budget, lengths, eligible, pinned, given, groups)
        quality = BudgetedQuality(rows.quality, torch.from_numpy(lengths), budget.most)
        return cls(quality, torch.from_numpy(eligible), None, budget, given, lengths)

    def free(self, rows: ListedRows, size: int) -> Problem:
        """The problem of so many rows or tokens without any rule, at lambda 0 and on no scale."""
        ties, joint = rows.ties(0), rows.joint(self, 0.0)
        if self.lengths is None or self.budget is None:
            return Problem(joint, size, torch.arange(len(rows.row)), ties)
        fits = np.flatnonzero((self.lengths > 0) & (self.lengths <= self.budget.most))
        budget = Budget(self.lengths[fits], self.budget.most, np.zeros(len(fits), bool))
        return Problem(joint, size, torch.from_numpy(fits), ties, budget=budget)

    def quality_ends(self, problem: Problem) -> Anchor:
        """The ends of the scale of quality. problem: without rules."""
        scores = self.quality.scores
        if problem.budget is None:
            return Anchor(float(scores.mean()), float(scores.topk(problem.size).values.mean()), PROVED)
        gains, random = self.quality.linear(problem.size)
        gains = gains[problem.eligible]
        best = self.quality.value(problem.subset(scores[problem.eligible]))
        bound = random + float(gains @ problem.vertex(gains)[problem.eligible])
        return Anchor.found(random, best, bound)


def solve_listed(
    cells: CellBlocks,
    config: SelectionConfig,
    size: int,
    engine: Engine,
    work: Work = UNWATCHED,
    step: Callable[[dict[str, float]], None] = lambda numbers: None,
    row_rules: RowRules | None = None,
) -> WholeSolution:
    """As `datamask.out_of_core.facility.solve_facility`, on whole lists."""
    whole = WholeLists(cells)

    def make() -> Facts:
        facts = cells.prepare(engine, work.part(0.0, PREPARED))
        return facts | {"recall": recall(cells, engine, work)}

    all_rows, facts = ListedRows.opened(whole, make, work.part(PREPARED, LISTS))
    function, limits = all_rows.function, Limits.of(all_rows, size, row_rules)
    of_quality, of_diversity, alone = all_rows.ends(size, limits, work.part(LISTS, BEST))
    check_weighable(config, of_diversity)
    scales = Scale(), Scale()
    if config.scale == "calibrated":
        scales = Scale.calibrated(of_quality), Scale.calibrated(of_diversity)
    work.report(BEST, "Greedy and swaps")
    joint = all_rows.joint(limits, config.lamb, scales)
    problem = Problem(
        joint, size, limits.eligible, all_rows.ties(config.seed), rules=limits.rules, budget=limits.budget
    )
    aim, swapping = alone, config.polish != "none"
    digest = "" if row_rules is None else row_rules.digest
    if config.lamb > 0 or config.seed != 0 or digest or not swapping:
        slopes = [scales[0].slope, scales[1].slope]
        aim = {"size": size, "lamb": config.lamb, "seed": config.seed, "slopes": slopes, "rules": digest}
        aim = aim if swapping else aim | {"swaps": False}
    # at lambda 0 a scale changes no selection; where all are worth the same it has no slope, and no term would count
    searched = problem if config.lamb > 0 else replace(problem, joint=all_rows.joint(limits, 0.0))
    mask = all_rows.solved(searched, aim, work.part(BEST, SOLVED), swapping)
    values = joint.evaluate(mask, work.poll)
    covered = values.raw_diversity["facility"]
    numbers = {"joint": values.joint, "quality": values.quality, "diversity": values.diversity}
    step(numbers | {"raw_quality": values.raw_quality, "raw_diversity": covered})
    work.report(SOLVED, "Bound")
    proof = _proof(problem, mask, values.joint, function, work.part(SOLVED, BOUNDED))
    work.report(BOUNDED, "What the selected rows cover")
    coverage = function.close_coverage(mask, work.poll, needed=1)
    estimate = _estimate(all_rows, engine, work, all_rows.phase(aim), coverage, covered)
    lost = int((coverage.member_count == 0).sum())
    del coverage
    quality, diversity = (all_rows.by_row(part.numpy()) for part in joint.final_marginals(mask, work.poll))
    swaps = f", then swaps until {'none' if function.true_neighbors else 'few'} helped"
    graph = graph_facts(cells, facts.pop("listed"), facts.pop("recall"))
    return WholeSolution(
        all_rows.by_row(mask.numpy() & ~limits.given),
        values.joint,
        {"quality": values.raw_quality, "facility": covered},
        None if proof is None else proof.upper_bound,
        lambda rows: (quality[rows], diversity[rows]),
        f"greedy{swaps if swapping else ''}, on lists of {graph.k:,} of all rows",
        Anchors(of_quality, {"facility": of_diversity}).to_dict(),
        facts | {"lost": lost},
        estimate=estimate,
        graph=graph,
        bounded=None if proof is None else (proof.holds_for, proof.value),
    )


def _proof(problem: Problem, mask: Tensor, value: float, function: MappedFacility, work: Work) -> Certificate | None:
    """The bound of the listed objective; None where there is nothing to prove."""
    if not problem.joint.counting:
        return None
    proof = dual_bound(problem, mask, value, work.poll, Effort(), function.lists)
    return replace(proof, upper_bound=max(proof.upper_bound, proof.value))


def _estimate(
    rows: ListedRows, engine: Engine, work: Work, members: Parts, coverage: Coverage, covered: float
) -> Estimate:
    """What the members cover, from rows that are compared with all of them."""
    cells = rows.cells
    sample = cells.sample(DRAWS - 2, ESTIMATE_ROWS)
    placed = {"block": cells.block.word, "atlas": cells.atlas.word}
    nearest = cells.phase("sampled_rows:nearest", cells.blocks, members=members.word, sample=sample.word, **placed)
    for phase in (sample, nearest):
        do(phase, engine, work)
    positions = np.asarray(sample[0]["positions"])
    best = np.max([nearest[number]["best"] for number in range(cells.blocks)], axis=0)
    owner, listed = coverage.owner.numpy()[positions], coverage.best.numpy()[positions].astype(np.float64)
    inside = owner >= 0
    listed[inside] = np.maximum(rows.rows.products(positions[inside], owner[inside]), 0.0)
    short = best - listed
    short[short < ROUNDING] = 0.0
    return estimated(covered, short, 1.0)
