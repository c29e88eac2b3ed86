"""The paper's experiments on any corpus: single terms, learning rate and steps, pruning and batch share, group size.

A study is a sweep with arms: settings that differ in what is studied, each with several seeds where there is chance.
The runs are runs like any other; the study reads them into one table of means and spreads. What the paper says of each
experiment, and what came out here, stands in docs/studies.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from datamask.evaluation.anchors import diversity_anchor, quality_anchor
from datamask.evaluation.pool import Pool
from datamask.evaluation.result import NO_RESULT
from datamask.objectives.joint import Scale
from datamask.runs.store import Run, RunStore
from datamask.runs.study_arms import Arm, points_of
from datamask.runs.sweep import Done, open_pool, sweep
from datamask.runs.varying import Plan

STABLE = 0.02
"""Of the attainable gain: how far a stable run may end below its best, and how far seeds of a stable G may spread."""

CLOSE = 0.01
"""Of the attainable gain: a run has reached the plain one's level when it is this near."""


@dataclass(frozen=True)
class Study:
    """What came out.

    Attributes:
        kind: which study. rows: one per arm: its name and levels, then means, with ``_sd`` over its seeds beside them.
        notes: sentences on how to read the table, and on what it says. curves: arm -> seconds and joint value over
            time, means over seeds (of the study G). done: the runs. facts: corpus, settings, machine.
    """

    kind: str
    rows: list[dict[str, Any]]
    notes: list[str]
    curves: dict[str, tuple[list[float], list[float]]]
    done: list[Done]
    facts: dict[str, Any]


def study(
    kind: str,
    store: RunStore,
    plan: Plan,
    arms: Sequence[Arm],
    *,
    progress: Callable[[float, str], None] = lambda share, what: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Study:
    """Do the runs of a study that are not done yet, and read them all.

    Args:
        plan: of the points of `arms`. A study that was stopped, or one of whose runs failed, has no rows.

    Raises:
        as `datamask.runs.sweep.sweep`.
    """
    done = sweep(store, plan, progress=progress, should_stop=should_stop)
    if len(done) < len(plan.points) or any(point_done.row()["state"] != "done" for point_done in done):
        return Study(kind, [], [], {}, done, {})
    # paths were made absolute in the plan's points, so arms and runs meet by place in the list
    place = {point.selection: i for i, point in enumerate(points_of(arms))}
    runs = {arm.name: [done[place[point.selection]].run for point in arm.points] for arm in arms}
    rows = [
        {
            "arm": arm.name,
            **dict(arm.levels),
            "runs": len(runs[arm.name]),
            **_spread([_measured(run) for run in runs[arm.name]]),
            "upper_bound": _bound(runs[arm.name]),
        }
        for arm in arms
    ]
    seeds = max(map(len, runs.values()))
    spread = f"± is the standard deviation over {seeds} seeds. " if seeds > 1 else ""
    notes = [
        f"Values are shares of the attainable gain: 0 is a random subset of this size, 1 the best that a term "
        f"reaches alone. {spread}Seconds are those of the learning steps."
    ]
    curves: dict[str, tuple[list[float], list[float]]] = {}
    if kind == "single":
        pool = open_pool(store, plan, progress, should_stop)
        notes += _panel(pool, arms, rows, runs)
    else:
        notes += _bound_note(rows[-1], plan.points[-1].selection.scale)
    if kind == "acceleration":
        notes += _times_to_level(rows, runs)
    if kind == "G":
        notes += _stable(rows, runs, arms)
        curves = {arm.name: _mean_curve(runs[arm.name]) for arm in arms[:-1]}
    return Study(kind, rows, notes, curves, done, _facts(plan, done[0].run))


def _measured(run: Run) -> dict[str, float | None]:
    """Calibrated values and the seconds of the learning steps, None where nothing was learned."""
    seconds = run.metrics().get("seconds", np.array([]))
    calibrated = (run.status().result or NO_RESULT).calibrated
    return {**calibrated.to_dict(), "seconds": float(seconds[-1]) if len(seconds) else None}


def _spread(measured: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Mean and standard deviation of each measure over the seeds; None where a seed has no value, or is alone."""
    out: dict[str, float | None] = {}
    for name in measured[0]:
        values = [value for values_of_seed in measured if (value := values_of_seed[name]) is not None]
        whole = len(values) == len(measured)
        out[name] = float(np.mean(values)) if whole else None
        out[f"{name}_sd"] = float(np.std(values, ddof=1)) if whole and len(values) > 1 else None
    return out


def _curve(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and whole-corpus joint value of a run's evaluations."""
    metrics = run.metrics()
    evaluated = np.isfinite(metrics["joint"])
    return metrics["seconds"][evaluated], metrics["joint"][evaluated]


def _mean_curve(runs: Sequence[Run]) -> tuple[list[float], list[float]]:
    """Mean over seeds; a run that ended after fewer evaluations stays where it ended."""
    curves = [_curve(run) for run in runs]
    longest = max(len(seconds) for seconds, _ in curves)
    padded = [np.pad(curve, ((0, 0), (0, longest - len(curve[0]))), mode="edge") for curve in curves]
    seconds, joint = np.mean(padded, axis=0)
    return seconds.tolist(), joint.tolist()


def _bound(runs: Sequence[Run]) -> float | None:
    """The tightest of the runs' bounds on the same problem, on the run's scale; None where there is none."""
    bounds = [(run.status().result or NO_RESULT).certificate.upper_bound for run in runs]
    return min((bound for bound in bounds if bound is not None), default=None)


def _bound_note(row: Mapping[str, Any], scale: str) -> list[str]:
    if row["upper_bound"] is None:
        return ["There is no bound for this objective; the reference is the best selection found."]
    if scale != "calibrated":
        return [f"Upper bounds are on the {scale} scale, on which the runs were made."]
    return [
        f"Upper bound: no selection of this size out of the rows that the arm may take, whatever finds it, has a "
        f"higher joint value. The reference has {row['joint']:.4f} of {row['upper_bound']:.4f} after "
        f"{row['seconds']:.1f} s."
    ]


def _panel(pool: Pool, arms: Sequence[Arm], rows: list[dict[str, Any]], runs: Mapping[str, Sequence[Run]]) -> list[str]:
    """Quality and every objective of every selection, into `rows` in place of the run's own terms."""
    config = arms[0].points[0].selection
    names = list(dict.fromkeys(name for arm in arms for name, _ in arm.points[0].selection.terms))
    # with given rows, values and scales are those of the selection and the given ones together
    size = config.size(len(pool)) + int(runs[rows[0]["arm"]][0].facts().get("given", 0))
    scales = {
        "quality": Scale.calibrated(quality_anchor(pool, size)),
        **{name: Scale.calibrated(diversity_anchor(pool, name, size)) for name in names},
    }
    for row in rows:
        measured = []
        for run in runs[row["arm"]]:
            mask = torch.from_numpy(_counting(run.rows(["selected"], optional=["given"]))).to(pool.device)
            raw = {
                "quality": pool.quality.value(mask),
                **{name: pool.function(name, size).value(mask) for name in names},
            }
            measured.append({name: float(scales[name](value)) for name, value in raw.items()})
        seconds = {name: row.pop(name) for name in ("seconds", "seconds_sd")}
        for name in ("quality", "quality_sd", "diversity", "diversity_sd", "joint", "joint_sd", "upper_bound"):
            row.pop(name)
        row |= {**_spread(measured), **seconds}
    return [
        "Each line is a selection, each column a measure of it: what a term is worth to the others. A value above "
        "1 is better than the best end of its scale, which is then only the best that its reference solver found."
    ]


def _counting(rows: pa.Table) -> np.ndarray:
    """Which rows count in a run's values: the selected and the given ones, bool ``(N,)``; early runs know no given."""
    selected: np.ndarray = rows["selected"].to_numpy()
    return selected | rows["given"].to_numpy() if "given" in rows.column_names else selected.copy()


def _times_to_level(rows: list[dict[str, Any]], runs: Mapping[str, Sequence[Run]]) -> list[str]:
    level = rows[0]["joint"] - CLOSE
    for row in rows[:-1]:
        times = []
        for run in runs[row["arm"]]:
            seconds, joint = _curve(run)
            reached = np.flatnonzero(joint >= level)
            times.append({"seconds_to_level": float(seconds[reached[0]]) if len(reached) else None})
        row |= _spread(times)
    return [
        f"Seconds to level: until the value on the whole corpus first reaches {level:.3f}, which is what the plain "
        f"arm ends with less {CLOSE:g}; blank where a seed never does. All arms take the same number of steps."
    ]


def _stable(rows: list[dict[str, Any]], runs: Mapping[str, Sequence[Run]], arms: Sequence[Arm]) -> list[str]:
    equal = min(row["seconds"] for row in rows[:-1])
    for row in rows[:-1]:
        falls, equals = [], []
        for run in runs[row["arm"]]:
            seconds, joint = _curve(run)
            falls.append(max(joint.max(), joint[0]) - joint[-1] if np.isfinite(joint[-1]) else np.inf)
            equals.append({"joint_at_equal_time": float(joint[max(0, np.searchsorted(seconds, equal, "right") - 1)])})
        row |= _spread(equals)
        row["stable"] = bool(max(falls) <= STABLE and (row["joint_sd"] or 0.0) <= STABLE)
    stable = [dict(arm.levels)["n_rollout"] for arm, row in zip(arms, rows) if row.get("stable")]
    best = max(rows[:-1], key=lambda row: row["joint_at_equal_time"])
    rule = (
        f"A G is stable if no seed ends more than {STABLE:g} below the best value it had on the way, and its seeds "
        f"spread by at most {STABLE:g}. "
    )
    advice = (
        f"The smallest stable G here is {min(stable)}."
        if stable
        else "No G is stable here: lower --max_lr, or take more rows per step."
    )
    return [
        rule + advice,
        f"At equal time ({equal:.1f} s, what the fastest arm takes in all) {best['arm']} is ahead "
        f"with {best['joint_at_equal_time']:.3f}.",
    ]


def _facts(plan: Plan, run: Run) -> dict[str, Any]:
    """Corpus, what all arms but the reference have in common, and what it ran on."""
    facts = run.facts()
    settings = [point.selection.to_dict() for point in plan.points]
    studied = [selection for selection in settings if selection["estimator"] == settings[-2]["estimator"]]
    common = {
        name: value
        for name, value in studied[0].items()
        if value is not None and all(selection[name] == value for selection in studied)
    }
    return {
        "sweep": plan.id,
        **{name: facts[name] for name in ("n", "dim", "selected", "fingerprint", "threads", "device", "versions")},
        "settings": common,
    }
