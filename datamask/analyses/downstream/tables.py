"""Results measured elsewhere on models trained on the selections, gathered from the runs they were attached to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from datamask import catalogue
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import outcome
from datamask.runs.store import Run

COLUMNS = ("task", "curve", "lamb", "mean", "low", "high", "seeds", "runs")


def collected(runs: Iterable[Run]) -> pd.DataFrame:
    """Every attached result: ``run_id, curve, lamb, task, score, seed``; runs without results have no row.

    What was not made at a lambda, a baseline or an imported list, has none: NaN.
    """
    rows = []
    for run in runs:
        results = run.results()
        if results:
            lamb = run.config.selection.lamb if _learned(run) else math.nan
            rows += [
                {
                    "run_id": run.id,
                    "curve": curve_of(run),
                    "lamb": lamb,
                    "task": result.task,
                    "score": result.score,
                    "seed": result.seed,
                }
                for result in results
            ]
    return pd.DataFrame(rows, columns=["run_id", "curve", "lamb", "task", "score", "seed"])


def curve_of(run: Run) -> str:
    """What joins results to a curve: objective and ratio; of a baseline or an imported list its own name and ratio."""
    settings = run.config.selection
    known = catalogue.estimator(settings.estimator)
    head = outcome.objective_label(settings.objective) if _learned(run) else known.label
    size = f"{settings.budget} tokens" if settings.budget is not None else words.percent(settings.select_ratio)
    return f"{head}, {size}"


def _learned(run: Run) -> bool:
    return catalogue.estimator(run.config.selection.estimator).learns


def points(results: pd.DataFrame) -> pd.DataFrame:
    """One row per task, curve and lambda: `COLUMNS`; low and high are the mean less and plus one standard deviation.

    The spread is over everything of that task and lambda: training seeds, and runs that differ in nothing else. NaN
    where there is one number only.
    """
    rows = []
    for (task, curve, _), part in results.groupby(["task", "curve", "lamb"], sort=True, dropna=False):
        mean, spread = float(part["score"].mean()), float(part["score"].std(ddof=1))
        lamb = float(part["lamb"].iloc[0])
        rows.append((task, curve, lamb, mean, mean - spread, mean + spread, len(part), part["run_id"].nunique()))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def tally(results: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """``run, lambda, curve, tasks, numbers`` of each run that has results, newest first as in `names`."""
    rows = []
    for run_id, name in names.items():
        part = results[results["run_id"] == run_id]
        if len(part):
            rows.append((name, float(part["lamb"].iloc[0]), part["curve"].iloc[0], part["task"].nunique(), len(part)))
    return pd.DataFrame(rows, columns=["run", "lambda", "curve", "tasks", "numbers"])
