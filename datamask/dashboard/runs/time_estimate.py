"""How long a run will take, from runs that were made with its method: on its corpus, else on another one.

Swaps, the bound and the values at the end take as long for any number of steps. The neighbor graph and the ends of the
scales are kept, so that only the first run of a size needs time for them. The time of a step grows with its masks, rows
and dimensions: on large corpora in proportion, on small ones hardly. The square root of that growth is within a factor
of two of both as long as it is at most fourfold, so runs with other steps do not count. Nor do runs on batches of
rows for one on all rows: to cut a batch takes longer than its step.

Without such a run there is no number: a guess about an unknown machine is worse than none. So a run counts only on the
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
from datamask.memo import FileMemo
from datamask.runs.store import Run

MEDIAN_OF = 3
"""Runs that an estimate is the median of: on a busy machine one alone may have taken several times as long."""

ALIKE = 4.0
"""Times the work of a measured step that a step may have, or a fourth of it."""

NEAR = 2.0
"""Times the rows of another corpus that one may have, or half: an exact neighbor graph grows with the square."""

WARM = 5
"""Steps of an unfinished run from which its pace is believed; the first ones still compile and load."""

REMEMBERED = 1000
"""Ended runs whose times are remembered."""


@dataclass(frozen=True)
class Spent:
    """Seconds that one run took.

    Attributes:
        stepping: of its steps. steps: how many. after: of swaps, bound and values.
    """

    stepping: float
    steps: int
    after: float = 0.0


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
    measured = _measured(config, n, dim, here, MEDIAN_OF)
    if measured:
        kept = _preparation(config, selected, here, here)
        times = [_stepping(run, spent, config, n, dim) + spent.after + kept for run, spent in measured]
        return statistics.median(times), "measured on earlier runs of this corpus"
    near = [run for run in runs if 1 / NEAR <= n / run.facts()["n"] <= NEAR]
    for run, spent in _measured(config, n, dim, near, 1):
        there = [other for other in near if other.facts().get("fingerprint") == run.facts().get("fingerprint")]
        rest = (spent.after + _preparation(config, selected, here, there)) * n / run.facts()["n"]
        return _stepping(run, spent, config, n, dim) + rest, "scaled from runs on another corpus"
    return None, "no estimate until a run with the same method finishes on this machine"


def _made_here(run: Run) -> bool:
    """Whether it was made on a platform like this one: a run that was copied from elsewhere took another time."""
    return run.facts().get("versions", {}).get("platform") == platform.platform()


def work(config: SelectionConfig, n: int, dim: int) -> float:
    """Return the work of one step in arbitrary units: masks times rows of a batch times dimensions."""
    return (config.n_rollout or 1) * (config.partial or 1.0) * n * (1 - config.prune) * dim


def _measured(config: SelectionConfig, n: int, dim: int, runs: Sequence[Run], most: int) -> list[tuple[Run, Spent]]:
    """Up to `most` runs with steps alike and what they took, those of the same size first, then the newest."""

    def method(settings: SelectionConfig) -> tuple[object, ...]:
        return settings.estimator, settings.objective, (settings.partial or 1.0) < 1

    alike = [run for run in runs if method(run.config.selection) == method(config)]
    alike = [run for run in alike if 1 / ALIKE <= _growth(run, config, n, dim) <= ALIKE]
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
    preparation = (effort.seconds_graph or 0.0) + (effort.seconds_ends or 0.0)
    after = max(0.0, (effort.seconds_total or 0.0) - stepping - preparation)
    return Spent(stepping, effort.steps or 0, after)


def _stepping(run: Run, spent: Spent, config: SelectionConfig, n: int, dim: int) -> float:
    """Seconds that the steps of `config` take, by those of the run."""
    then, rows = run.config.selection, run.facts()["n"]
    before, planned = then.planned_steps(_left(then, rows)), config.planned_steps(_left(config, n))
    if not before or not planned or not spent.steps:  # an estimator without steps
        return spent.stepping * n / rows
    # a run that was done before its ceiling would have been done as early under a higher one
    early = run.status().state == "done" and spent.steps < before
    steps = min(spent.steps, planned) if early else planned
    return spent.stepping * steps / spent.steps * math.sqrt(_growth(run, config, n, dim))


def _left(config: SelectionConfig, n: int) -> int:
    """The rows that are not skipped for their quality."""
    return round(n * (1 - config.prune))


def _growth(run: Run, config: SelectionConfig, n: int, dim: int) -> float:
    """How many times the work of a step of the run a step of `config` has."""
    return work(config, n, dim) / work(run.config.selection, run.facts()["n"], run.facts()["dim"])


def _preparation(config: SelectionConfig, selected: int, here: Sequence[Run], there: Sequence[Run]) -> float:
    """Seconds until the first step, as runs took `there` that found it themselves; what runs left `here` is kept."""
    graph, ends = _found(config, there)
    done = [(run.config.selection, result) for run in here if (result := run.status().result) is not None]
    # a smaller selection has longer lists of neighbors, and these hold the lists of a larger one
    if any((result.size.selected or selected) <= selected for then, result in done if _by_lists(then)):
        graph = 0.0
    if any(_same_size(then, config) for then, _ in done if then.objective == config.objective):
        ends = 0.0
    return graph + ends


def _found(config: SelectionConfig, runs: Sequence[Run]) -> tuple[float, float]:
    """Seconds that runs on one corpus took to find the neighbor graph, where one is needed, and the ends of a size."""
    done = [(run.config.selection, result.effort) for run in runs if (result := run.status().result) is not None]
    graphs = [effort.seconds_graph or 0.0 for then, effort in done if _by_lists(config) and _by_lists(then)]
    ends = [effort.seconds_ends or 0.0 for then, effort in done if then.objective == config.objective]
    return max(graphs, default=0.0), max(ends, default=0.0)


def _same_size(then: SelectionConfig, config: SelectionConfig) -> bool:
    return (then.select_ratio, then.budget) == (config.select_ratio, config.budget)


def _by_lists(config: SelectionConfig) -> bool:
    return any(catalogue.objective(name).needs_neighbors for name, _ in config.terms)
