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
import torch

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.evaluation.anchors import diversity_anchor, quality_anchor
from datamask.evaluation.pool import Pool
from datamask.objectives.joint import Scale
from datamask.runs.store import Run, RunStore
from datamask.runs.study_report import markdown, write
from datamask.runs.sweep import Done, open_pool, sweep
from datamask.runs.varying import STUDIES, Plan, Point, points

__all__ = ["Arm", "Study", "arms", "markdown", "points_of", "study", "write"]

STEPS, QUICK_STEPS = 1000, 12
RATES, QUICK_RATES = (1.0, 3.0, 10.0, 30.0), (3.0, 10.0)
GROUPS, QUICK_GROUPS = (32, 64, 128, 256, 512), (2, 4, 8)
PARTIALS, QUICK_PARTIALS = (0.05, 0.1, 0.25, 1.0), (0.5, 1.0)
PRUNES, QUICK_PRUNES = (0.2, 0.4, 0.5), (0.5,)

STABLE = 0.02
"""Of the attainable gain: how far a stable run may end below its best, and how far seeds of a stable G may spread."""

CLOSE = 0.01
"""Of the attainable gain: a run has reached the plain one's level when it is this near."""


@dataclass(frozen=True)
class Arm:
    """One setting of a study: its name, what is studied in it, and its runs (one per seed)."""

    name: str
    levels: tuple[tuple[str, Any], ...]
    points: tuple[Point, ...]


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


# -- arms --------------------------------------------------------------------------------------------------------------


def arms(kind: str, given: Mapping[str, Any], *, seeds: int = 3, quick: bool = False,
         objectives: Sequence[str] | None = None) -> tuple[Arm, ...]:
    """The arms of a study.

    Args:
        kind: one of `STUDIES`.
        given: options as for `SelectionConfig.from_options`; what a study varies overrides them. Left out, the
            estimator is ``reinforce`` (``counterfactual`` in ``single``), the objective ``pairwise`` and the steps
            `STEPS`.
        seeds: runs per arm whose estimator is random.
        objectives: of ``single``; None: the objective given, else all.

    Raises:
        OptionError: settings do not hold, or `kind` is unknown.
    """
    if kind not in STUDIES:
        raise OptionError(f"KIND must be one of {', '.join(STUDIES)}, got {kind!r}")
    given = {name: value for name, value in given.items() if value is not None}
    if kind == "single":
        names = objectives or ([given["objective"]] if "objective" in given else
                               [entry.name for entry in catalogue.OBJECTIVES])
        return _single(given, names, seeds, quick)
    if objectives:
        raise OptionError(f"--objectives is of the study single; give the study {kind} one --objective")
    base = {"objective": "pairwise", "estimator": "reinforce", "n_epochs": QUICK_STEPS if quick else STEPS, **given}
    if quick:
        base = {"n_rollout": 4, **base}
    found = {"ablation": _ablation, "acceleration": _acceleration, "G": _group_size}[kind](base, seeds, quick)
    return (*found, _reference(base))


def points_of(found: Sequence[Arm]) -> tuple[Point, ...]:
    """All points of the arms, each once: arms may share a setting."""
    return tuple({point.selection: point for arm in found for point in arm.points}.values())


def _arm(name: str, base: Mapping[str, Any], levels: Mapping[str, Any], seeds: int) -> Arm:
    return Arm(name, tuple(levels.items()),
               points({**base, **levels}, [(key, (value,)) for key, value in levels.items()], seeds))


def _single(given: Mapping[str, Any], names: Sequence[str], seeds: int, quick: bool) -> tuple[Arm, ...]:
    base = dict(given)
    if quick:
        base = {"n_epochs": QUICK_STEPS, **base}
    base.pop("objective", None)
    lamb = base.pop("lamb", 0.5)
    if not 0 < lamb < 1:
        raise OptionError(f"--lamb must be above 0 and below 1 in the study single, which compares it with both, got "
                          f"{lamb}")
    first = catalogue.objective(names[0]).name if ":" not in names[0] else names[0]
    plain = {name: base[name] for name in ("select_ratio", "prune", "collapse", "seed", "device", "scale")
             if name in base}
    found = [_arm("random", {**plain, "objective": first, "estimator": "random"}, {"lamb": lamb}, seeds),
             _arm("quality alone", {**plain, "objective": first, "estimator": "top-quality"}, {"lamb": 1.0}, seeds)]
    for name in names:
        found += [_arm(f"{name} alone", {**base, "objective": name}, {"lamb": 0.0}, seeds),
                  _arm(f"{name} with quality", {**base, "objective": name}, {"lamb": lamb}, seeds)]
    return tuple(found)


def _ablation(base: Mapping[str, Any], seeds: int, quick: bool) -> list[Arm]:
    rates, steps = (QUICK_RATES, (6, 12)) if quick else (RATES, None)
    full = int(base["n_epochs"])
    steps = steps or (full // 4, full // 2, full, 2 * full)
    usual = base.get("max_lr", SelectionConfig.from_options(estimator=base["estimator"]).max_lr or rates[-1])
    found = []
    for init in ("same", "quality"):
        for rate in rates:
            found.append(_arm(f"lr {rate:g}, init {init}", base,
                              {"max_lr": rate, "min_lr": rate / 10, "n_epochs": full, "init": init}, seeds))
        for count in steps:
            if count != full or usual not in rates:
                found.append(_arm(f"{count:,} steps, init {init}", base,
                                  {"max_lr": usual, "min_lr": usual / 10, "n_epochs": count, "init": init}, seeds))
    return found


def _acceleration(base: Mapping[str, Any], seeds: int, quick: bool) -> list[Arm]:
    partials, prunes = (QUICK_PARTIALS, QUICK_PRUNES) if quick else (PARTIALS, PRUNES)
    usual = 0.5 if quick else 0.1
    # pruning must leave more rows than are selected
    prunes = [share for share in prunes if 1 - share > base.get("select_ratio", 0.3) + 0.01]
    kinds = [("plain", {}), *((f"batch share {share:g}", {"partial": share}) for share in partials if share != usual),
             *((f"pruned by {share:g}", {"prune": share}) for share in prunes), ("start from quality",
                                                                                {"init": "quality"})]
    if prunes:
        kinds.append((f"pruned by {prunes[-1]:g}, start from quality", {"prune": prunes[-1], "init": "quality"}))
    return [_arm(name, base, {"partial": usual, "prune": 0.0, "init": "same", **levels}, seeds)
            for name, levels in kinds]


def _group_size(base: Mapping[str, Any], seeds: int, quick: bool) -> list[Arm]:
    return [_arm(f"G {size}", base, {"n_rollout": size}, seeds) for size in (QUICK_GROUPS if quick else GROUPS)]


def _reference(base: Mapping[str, Any]) -> Arm:
    """The same problem by the best solver there is for it."""
    kept = {name: base[name] for name in ("objective", "lamb", "select_ratio", "collapse", "seed", "device", "scale",
                                          "preset") if name in base and name != "preset"}
    proofs = {catalogue.objective(part.partition(":")[0]).proof for part in str(base["objective"]).split(",")}
    solver = "relaxed" if proofs == {"relaxation"} else "counterfactual"
    return _arm(f"reference: {solver}", {**kept, "estimator": solver}, {}, 1)


# -- what came out -----------------------------------------------------------------------------------------------------


def study(kind: str, store: RunStore, plan: Plan, found: Sequence[Arm], *,
          progress: Callable[[float, str], None] = lambda share, what: None,
          should_stop: Callable[[], bool] = lambda: False) -> Study:
    """Do the runs of a study that are not done yet, and read them all.

    Args:
        plan: of the points of `found`. A study that was stopped, or one of whose runs failed, has no rows.

    Raises:
        as `datamask.runs.sweep.sweep`.
    """
    done = sweep(store, plan, progress=progress, should_stop=should_stop)
    if len(done) < len(plan.points) or any(one.row()["state"] != "done" for one in done):
        return Study(kind, [], [], {}, done, {})
    # paths were made absolute in the plan's points, so arms and runs meet by place in the list
    place = {point.selection: i for i, point in enumerate(points_of(found))}
    runs = {arm.name: [done[place[point.selection]].run for point in arm.points] for arm in found}
    rows = [{"arm": arm.name, **dict(arm.levels), "runs": len(runs[arm.name]),
             **_spread([_measured(run) for run in runs[arm.name]])} for arm in found]
    notes = [f"Values are shares of the attainable gain: 0 is a random subset of this size, 1 the best that a term "
             f"reaches alone. ± is the standard deviation over {max(map(len, runs.values()))} seeds. Seconds are those "
             "of the learning steps."]
    curves: dict[str, tuple[list[float], list[float]]] = {}
    if kind == "single":
        pool = open_pool(store, plan, progress, should_stop)
        notes += _panel(pool, found, rows, runs)
    else:
        notes += _bound_note(rows[-1], runs[found[-1].name][0])
    if kind == "acceleration":
        notes += _times_to_level(rows, runs)
    if kind == "G":
        notes += _stable(rows, runs, found)
        curves = {arm.name: _mean_curve(runs[arm.name]) for arm in found[:-1]}
    return Study(kind, rows, notes, curves, done, _facts(plan, done[0].run))


def _measured(run: Run) -> dict[str, float]:
    summary, metrics = run.status().summary or {}, run.metrics()
    seconds = metrics.get("seconds", np.array([]))
    return {**summary["calibrated"], "seconds": float(seconds[-1]) if len(seconds) else float(summary["seconds"])}


def _spread(found: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Mean and standard deviation of each measure over the seeds; None where a seed has no value, or is alone."""
    out: dict[str, float | None] = {}
    for name in found[0]:
        values = [one[name] for one in found]
        whole = all(value is not None for value in values)
        out[name] = float(np.mean(values)) if whole else None
        out[f"{name}_sd"] = float(np.std(values, ddof=1)) if whole and len(values) > 1 else None
    return out


def _curve(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and whole-corpus joint value of a run's evaluations."""
    metrics = run.metrics()
    known = np.isfinite(metrics["joint"])
    return metrics["seconds"][known], metrics["joint"][known]


def _mean_curve(runs: Sequence[Run]) -> tuple[list[float], list[float]]:
    seconds, joint = np.mean([_curve(run) for run in runs], axis=0)
    return seconds.tolist(), joint.tolist()


def _bound_note(row: Mapping[str, Any], run: Run) -> list[str]:
    bound = (run.status().summary or {}).get("upper_bound")
    if bound is None:
        return ["There is no bound for this objective; the reference is the best selection found."]
    return [f"No selection of this size, whatever finds it, has a joint value above {bound:.4f}; the reference has "
            f"{row['joint']:.4f} after {row['seconds']:.1f} s."]


def _panel(pool: Pool, found: Sequence[Arm], rows: list[dict[str, Any]], runs: Mapping[str, Sequence[Run]]
           ) -> list[str]:
    """Quality and every objective of every selection, into `rows` in place of the run's own terms."""
    config = found[0].points[0].selection
    names = list(dict.fromkeys(name for arm in found for name, _ in arm.points[0].selection.terms))
    size = config.size(len(pool))
    scales = {"quality": Scale.calibrated(quality_anchor(pool, size)),
              **{name: Scale.calibrated(diversity_anchor(pool, name, size)) for name in names}}
    for row in rows:
        measured = []
        for run in runs[row["arm"]]:
            mask = torch.from_numpy(run.rows()["selected"].to_numpy().copy()).to(pool.device)
            raw = {"quality": pool.quality.value(mask),
                   **{name: pool.function(name, size).value(mask) for name in names}}
            measured.append({name: float(scales[name](value)) for name, value in raw.items()})
        seconds = {name: row.pop(name) for name in ("seconds", "seconds_sd")}
        for name in ("quality", "diversity", "joint"):
            row.pop(name), row.pop(f"{name}_sd")
        row |= {**_spread(measured), **seconds}
    return ["Each line is a selection, each column a measure of it: what a term is worth to the others. 1 may be "
            "passed by a hair where the best end is only the best found."]


def _times_to_level(rows: list[dict[str, Any]], runs: Mapping[str, Sequence[Run]]) -> list[str]:
    level = rows[0]["joint"] - CLOSE
    for row in rows[:-1]:
        times = []
        for run in runs[row["arm"]]:
            seconds, joint = _curve(run)
            reached = np.flatnonzero(joint >= level)
            times.append({"seconds_to_level": float(seconds[reached[0]]) if len(reached) else None})
        row |= _spread(times)
    return [f"Seconds to level: until the value on the whole corpus first reaches {level:.3f}, which is what the plain "
            f"arm ends with less {CLOSE:g}; blank where a seed never does. All arms take the same number of steps."]


def _stable(rows: list[dict[str, Any]], runs: Mapping[str, Sequence[Run]], found: Sequence[Arm]) -> list[str]:
    equal = min(row["seconds"] for row in rows[:-1])
    for row in rows[:-1]:
        falls, equals = [], []
        for run in runs[row["arm"]]:
            seconds, joint = _curve(run)
            falls.append(max(joint.max(), joint[0]) - joint[-1] if np.isfinite(joint[-1]) else np.inf)
            equals.append({"joint_at_equal_time": float(joint[max(0, np.searchsorted(seconds, equal, "right") - 1)])})
        row |= _spread(equals)
        row["stable"] = bool(max(falls) <= STABLE and (row["joint_sd"] or 0.0) <= STABLE)
    stable = [dict(arm.levels)["n_rollout"] for arm, row in zip(found, rows) if row.get("stable")]
    best = max(rows[:-1], key=lambda row: row["joint_at_equal_time"])
    rule = (f"A G is stable if no seed ends more than {STABLE:g} below the best value it had on the way, and its seeds "
            f"spread by at most {STABLE:g}. ")
    advice = (f"The smallest stable G here is {min(stable)}." if stable else
              "No G is stable here: lower --max_lr, or take more rows per step.")
    return [rule + advice, f"At equal time ({equal:.1f} s, what the fastest arm takes in all) {best['arm']} is ahead "
                           f"with {best['joint_at_equal_time']:.3f}."]


def _facts(plan: Plan, run: Run) -> dict[str, Any]:
    """Corpus, what all arms but the reference have in common, and what it ran on."""
    facts = run.facts()
    settings = [point.selection.to_dict() for point in plan.points]
    studied = [one for one in settings if one["estimator"] == settings[-2]["estimator"]]
    common = {name: value for name, value in studied[0].items()
              if value is not None and all(one[name] == value for one in studied)}
    return {"sweep": plan.id, **{name: facts[name] for name in ("n", "dim", "selected", "fingerprint", "threads",
                                                                "device", "versions")}, "settings": common}
