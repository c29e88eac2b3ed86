"""How long a run will take, from runs that were made with its method: on its corpus, else on another one.

Steps go with masks and rows. Swaps, the bound and the values at the end are the same for any number of steps. The
neighbor graph and the ends of the scales are kept, so that only the first run of a size needs time for them. Without a
measured run there is no number: a guess about an unknown machine is worse than none. So a run counts only on the
platform that its record names (system, kernel and processor); the demo's names none.
"""

from __future__ import annotations

import itertools
import math
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.evaluation.result import NO_RESULT, RunEffort
from datamask.runs.store import Run
from datamask.work.memo import FileMemo

MEDIAN_OF = 3
"""Runs that an estimate is the median of: on a busy machine one alone may have taken several times as long."""

WARM = 5
"""Steps of an unfinished run from which its pace is believed; the first ones still compile and load."""

REMEMBERED = 1000
"""Ended runs whose times are remembered."""


@dataclass(frozen=True)
class Spent:
    """Seconds that one run took.

    Attributes:
        stepping: of its steps. steps: how many.
        after: of swaps, bound and values. graph: of the neighbor graph. ends: of the ends of the scales.
    """

    stepping: float
    steps: int
    after: float = 0.0
    graph: float = 0.0
    ends: float = 0.0


_ENDED: FileMemo[Spent] = FileMemo(REMEMBERED)


def expected(
    config: SelectionConfig, n: int, dim: int, selected: int, fingerprint: str, runs: Sequence[Run]
) -> tuple[float | None, str]:
    """Return the seconds that a run will take, None where no such run was measured; and where the number comes from.

    Args:
        config: its settings. n, dim, fingerprint: of its corpus. selected: S.
        runs: stored runs, newest first.
    """
    runs = [run for run in runs if _made_here(run) and run.facts().get("dim")]
    here = [run for run in runs if run.facts().get("fingerprint") == fingerprint]
    measured = _measured(config, here, MEDIAN_OF)
    if measured:
        kept = _preparation(config, selected, here)
        times = [_stepping(run, spent, config, n, dim) + spent.after + kept for run, spent in measured]
        return statistics.median(times), "measured on earlier runs of this corpus"
    for run, spent in _measured(config, runs, 1):
        rest = (spent.after + spent.graph + spent.ends) * n / run.facts()["n"]
        return _stepping(run, spent, config, n, dim) + rest, "scaled from a run on another corpus"
    return None, "no estimate until a run with this method finishes on this machine"


def _made_here(run: Run) -> bool:
    """Whether it was made on a platform like this one: a run that was copied from elsewhere took another time."""
    return run.facts().get("versions", {}).get("platform") == platform.platform()


def work(config: SelectionConfig, n: int, dim: int) -> float:
    """Return the work of all steps in arbitrary units: masks times rows of a batch times dimensions."""
    rows = round(n * (1 - config.prune))
    if (steps := config.planned_steps(rows)) is None:  # an estimator without steps
        return 0.0
    masks = float(steps) * (config.n_rollout or 1) * (config.partial or 1.0)
    return masks * rows * dim


def _measured(config: SelectionConfig, runs: Sequence[Run], most: int) -> list[tuple[Run, Spent]]:
    """Up to `most` runs of the same method with what they took, those of the same size first, then the newest."""

    def same_method(then: SelectionConfig) -> bool:
        return (then.estimator, then.objective) == (config.estimator, config.objective)

    alike = [run for run in runs if same_method(run.config.selection)]
    alike.sort(key=lambda run: not _same_size(run.config.selection, config))
    known = ((run, spent) for run in alike if (spent := _spent(run)) is not None)
    return list(itertools.islice(known, most))


def _spent(run: Run) -> Spent | None:
    """What a run took; None where it does not tell yet."""
    effort = (run.status().result or NO_RESULT).effort
    if effort.seconds is not None:
        return _ENDED.get(run.path / "status.json", lambda: _ended(run, effort, effort.seconds or 0.0))
    seconds, steps = _recorded(run)
    return Spent(seconds[-1], steps[-1]) if len(seconds) >= WARM else None


def _recorded(run: Run) -> tuple[list[float], list[int]]:
    """Seconds at each recorded step, and which step it is."""
    metrics = run.metrics()
    pairs = zip(metrics.get("seconds", ()), metrics.get("step", ()), strict=True)
    known = [(float(at), int(step)) for at, step in pairs if math.isfinite(at) and math.isfinite(step)]
    return [at for at, _ in known], [step for _, step in known]


def _ended(run: Run, effort: RunEffort, learning: float) -> Spent:
    # what is recorded after the last step belongs to swaps and bound
    stepping = next((at for at, step in zip(*_recorded(run), strict=True) if step == effort.steps), learning)
    graph, ends = effort.seconds_graph or 0.0, effort.seconds_ends or 0.0
    after = max(0.0, (effort.seconds_total or 0.0) - stepping - graph - ends)
    return Spent(stepping, effort.steps or 0, after, graph, ends)


def _stepping(run: Run, spent: Spent, config: SelectionConfig, n: int, dim: int) -> float:
    """Seconds that the steps of `config` take, by those of the run."""
    then, rows = run.config.selection, run.facts()["n"]
    # a run that was done before its ceiling would have been done as early under a higher one
    before, planned = then.planned_steps(rows) or 0, config.planned_steps(n)
    early = run.status().state == "done" and spent.steps < before
    done = work(then, rows, run.facts()["dim"]) * spent.steps / max(before, 1)
    ahead = work(config, n, dim) * (min(1.0, spent.steps / planned) if early and planned else 1.0)
    return spent.stepping * (ahead / done if done > 0 else n / rows)


def _preparation(config: SelectionConfig, selected: int, here: Sequence[Run]) -> float:
    """Seconds until the first step on a corpus that these runs were made on: what one of them left is kept."""
    done = [(run.config.selection, result) for run in here if (result := run.status().result) is not None]
    graph = ends = 0.0
    graphs = [result for then, result in done if _by_lists(then)]
    # a smaller selection has longer lists of neighbors, and these hold the lists of a larger one
    if _by_lists(config) and not any((result.size.selected or selected) <= selected for result in graphs):
        graph = max((result.effort.seconds_graph or 0.0 for result in graphs), default=0.0)
    posed = [(then, result) for then, result in done if then.objective == config.objective]
    if not any(_same_size(then, config) for then, _ in posed):
        ends = max((result.effort.seconds_ends or 0.0 for _, result in posed), default=0.0)
    return graph + ends


def _same_size(then: SelectionConfig, config: SelectionConfig) -> bool:
    return (then.select_ratio, then.budget) == (config.select_ratio, config.budget)


def _by_lists(config: SelectionConfig) -> bool:
    return any(catalogue.objective(name).needs_neighbors for name, _ in config.terms)
