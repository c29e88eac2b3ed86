"""Facility location over all rows of a corpus, by the solver for memory on lists that are mapped from disk.

Lazy greedy, swaps and the dual bound are those of `datamask.learning`, and so are the rules; rows stand in the order of
their cells, and ties go by the hash of the id, so what is selected does not depend on that order. Where the search is,
is kept in a file beside the lists: a run that was killed goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from datamask.config import SelectionConfig
from datamask.corpus.sampling import hash_under
from datamask.errors import InputError
from datamask.learning.bounds import Certificate, Effort, dual_bound
from datamask.learning.facility_solver import State, medoids
from datamask.learning.masks import tie_order
from datamask.learning.problem import Problem
from datamask.learning.trace import no_trace
from datamask.measured import Anchor
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from datamask.out_of_core.array_file import ArrayFile, write_arrays
from datamask.out_of_core.cells import CellBlocks
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.facility_values import DRAWS, ESTIMATE_ROWS, Facility, FacilitySolution
from datamask.out_of_core.facility_values import Estimate as Estimated
from datamask.out_of_core.listed.mapped_facility import MappedFacility, RowsOfCells
from datamask.out_of_core.listed.whole_lists import Facts, WholeLists
from datamask.out_of_core.tasks import Phase
from datamask.work.context import UNWATCHED, Work

RANDOM_DRAWS = 32
"""Random selections whose mean value is the random end of the scale."""

KEPT_SECONDS = 20.0
"""Between two notes of where the search is."""

ROUNDING = 1e-6
"""Cosines of the same pair may differ by so much, where they were computed by different products."""

PREPARED, LISTS, RANDOM, BEST, SOLVED, BOUNDED = 0.58, 0.62, 0.66, 0.76, 0.86, 0.96
"""Shares of the work that are done, about, when these are."""


@dataclass
class KeptSearch:
    """Where a search is, in a file."""

    path: Path
    _written: float = field(default_factory=time.monotonic)

    def found(self) -> State:
        if not self.path.is_file():
            return {}
        file = ArrayFile(self.path)
        return {name: np.array(file[name]) for name in file.facts["names"]}

    def keep(self, state: Callable[[], State]) -> None:
        if time.monotonic() - self._written >= KEPT_SECONDS:
            arrays = state()
            write_arrays(self.path, arrays, {"names": list(arrays)})
            self._written = time.monotonic()


@dataclass(frozen=True)
class ListedRows:
    """All rows, by position.

    Attributes:
        cells: their blocks. rows: features. lists: of them. function: the objective.
        quality: float64 ``(N,)``. id_hash: uint64 ``(N,)``. row: int64 ``(N,)``, in the scratch.
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
        function = MappedFacility(rows, lists, whole.cells.scratch.dim)
        quality = torch.from_numpy(rows.column("quality").astype(np.float64, copy=False))
        return cls(whole.cells, rows, function, quality, rows.column("id_hash"), rows.column("rows")), facts

    def ties(self, seed: int) -> Tensor:
        """What decides ties, int64 ``(N,)``."""
        return tie_order(hash_under(self.id_hash, seed))

    def problem(self, size: int, lamb: float, seed: int, scales: tuple[Scale, Scale] = (Scale(), Scale())) -> Problem:
        """Facility location at some lambda. scales: of quality and of diversity."""
        term = Term("facility", 1.0, self.function, scales[1])
        joint = Joint(Quality(self.quality), (term,), lamb, scales[0])
        return Problem(joint, size, torch.arange(len(self.row)), self.ties(seed))

    def phase(self, settings: Mapping[str, Any]) -> Phase:
        """The phase of the file that holds a solution by its settings."""
        return self.cells.phase("listed:member", 1, lists=self.cells.lists.name, **settings)

    def solved(self, problem: Problem, settings: Mapping[str, Any], work: Work) -> Tensor:
        """The members of the direct solution, bool ``(N,)``; from a file where an earlier attempt left them."""
        phase = self.phase(settings)
        if phase.whole:
            return torch.from_numpy(np.array(ArrayFile(phase.path(0))["member"]).view(bool))
        path = phase.path(0)
        kept = KeptSearch(path.with_name(f"{path.name}-at"))
        mask = medoids(problem, work.poll, no_trace, self.function.lists, kept)
        write_arrays(path, {"member": mask.numpy().view(np.uint8)}, {"members": int(mask.sum())})
        kept.path.unlink(missing_ok=True)
        return mask

    def random_end(self, size: int, work: Work) -> float:
        """The mean value of random selections; rows without a listed member count as 0 where these are many."""
        total = 0.0
        for draw in range(RANDOM_DRAWS):
            work.report(draw / RANDOM_DRAWS, "Random selections, for the scale")
            mask = torch.zeros(len(self.row), dtype=torch.bool)
            mask[np.argpartition(hash_under(self.id_hash, DRAWS + draw), size)[:size]] = True
            coverage = self.function.close_coverage(mask, work.poll, needed=1)
            total += float(coverage.best.double().mean())
        return total / RANDOM_DRAWS

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """Values by position as values by row of the scratch."""
        out = np.empty_like(values)
        out[self.row] = values
        return out


def solve_listed(
    cells: CellBlocks,
    config: SelectionConfig,
    size: int,
    engine: Engine,
    work: Work = UNWATCHED,
    step: Callable[[dict[str, float]], None] = lambda numbers: None,
) -> FacilitySolution:
    """As `datamask.out_of_core.facility.solve_facility`, on whole lists."""
    facility, whole = Facility(cells, engine, work), WholeLists(cells)

    def make() -> Facts:
        facts = cells.prepare(engine, work.part(0.0, PREPARED), reverse=False)
        return facts | {"recall": facility.recall()}

    all_rows, facts = ListedRows.opened(whole, make, work.part(PREPARED, LISTS))
    function = all_rows.function
    work.report(RANDOM, "Ends of the scale")
    random = all_rows.random_end(size, work.part(LISTS, RANDOM))
    work.report(RANDOM, "What diversity alone would select")
    alone: Mapping[str, Any] = {"size": size, "lamb": 0.0, "seed": 0}
    best_mask = all_rows.solved(all_rows.problem(size, 0.0, 0), alone, work.part(RANDOM, BEST))
    best = max(random, function.value(best_mask, work.poll))
    of_quality = Anchor(float(all_rows.quality.mean()), float(all_rows.quality.topk(size).values.mean()), "proved")
    of_diversity = Anchor(random, best, "best found")
    scales = Scale(), Scale()
    if config.scale == "calibrated":
        scales = Scale.calibrated(of_quality), Scale.calibrated(of_diversity)
        if config.lamb > 0 and of_diversity.constant:
            raise InputError(
                "no selection covers the rows better than a random one, so there is no scale on which to weigh it "
                "against quality; take --lamb 0, --scale raw, or another objective"
            )
    work.report(BEST, "Greedy and swaps")
    problem = all_rows.problem(size, config.lamb, config.seed, scales)
    aim = alone
    if config.lamb > 0 or config.seed != 0:
        aim = {"size": size, "lamb": config.lamb, "seed": config.seed, "scale": [random, best, config.scale]}
    mask = all_rows.solved(problem, aim, work.part(BEST, SOLVED))
    values = problem.joint.evaluate(mask, work.poll)
    covered = values.raw_diversity["facility"]
    numbers = {"joint": values.joint, "quality": values.quality, "diversity": values.diversity}
    step(numbers | {"raw_quality": values.raw_quality, "raw_diversity": covered})
    work.report(SOLVED, "Bound")
    proof = _proof(problem, mask, values.joint, function, work.part(SOLVED, BOUNDED))
    work.report(BOUNDED, "What the members cover")
    estimate = _estimate(facility, all_rows, all_rows.phase(aim), mask, covered)
    lost = int((function.coverage(mask, work.poll).member_count == 0).sum())
    quality, diversity = (all_rows.by_row(part.numpy()) for part in problem.joint.final_marginals(mask, work.poll))
    listed = facts["listed"]
    return FacilitySolution(
        all_rows.by_row(mask.numpy()),
        values.raw_quality,
        estimate,
        covered,
        values.joint,
        {"quality": of_quality.to_dict(), "diversity": {"facility": of_diversity.to_dict()}},
        lambda rows: (quality[rows], diversity[rows]),
        f"greedy, then swaps until few helped, on lists of {listed:,} of all rows",
        facts | {"lost": lost},
        proof,
    )


def _proof(problem: Problem, mask: Tensor, value: float, function: MappedFacility, work: Work) -> Certificate | None:
    """The bound of the listed objective; None where there is nothing to prove."""
    if not problem.joint.counting:
        return None

    proof = dual_bound(problem, mask, value, work.poll, Effort(), function.lists)
    return replace(proof, upper_bound=max(proof.upper_bound, proof.value))


def _estimate(facility: Facility, rows: ListedRows, members: Phase, mask: Tensor, covered: float) -> Estimated:
    """What the members cover, from rows that are compared with all of them."""
    from datamask.objectives.estimate import estimated

    cells = facility.cells
    sample = cells.sample(DRAWS - 2, ESTIMATE_ROWS)
    placed = {"block": cells.block.name, "atlas": cells.atlas.name}
    nearest = cells.phase("sampled_rows:nearest", cells.blocks, members=members.name, sample=sample.name, **placed)
    for phase in (sample, nearest):
        phase.done(facility.engine, facility.work)
    positions = np.asarray(ArrayFile(sample.path(0))["positions"])
    best = np.max([ArrayFile(nearest.path(number))["best"] for number in range(cells.blocks)], axis=0)
    coverage = rows.function.close_coverage(mask, facility.work.poll, needed=1)
    owner, listed = coverage.owner.numpy()[positions], coverage.best.numpy()[positions].astype(np.float64)
    inside = owner >= 0
    listed[inside] = np.maximum(rows.rows.products(positions[inside], owner[inside]), 0.0)
    short = best - listed
    short[short < ROUNDING] = 0.0
    outcome = estimated(covered, short, 1.0)
    return Estimated(covered, outcome.value, outcome.low, outcome.high, outcome.rows)
