"""The arms of a study: which settings stand beside each other, with how many seeds. Loads no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.options import OPTIONS
from datamask.runs.varying import STUDIES, Point, points

STEPS, QUICK_STEPS = 1000, 12
RATES, QUICK_RATES = (1.0, 3.0, 10.0, 30.0), (3.0, 10.0)
GROUPS, QUICK_GROUPS = (32, 64, 128, 256, 512), (2, 4, 8)
PARTIALS, QUICK_PARTIALS = (0.05, 0.1, 0.25, 1.0), (0.5, 1.0)
PRUNES, QUICK_PRUNES = (0.2, 0.4, 0.5), (0.5,)

PROBLEM = tuple(
    name
    for name, option in OPTIONS.items()
    if not option.owners and name not in ("objective", "lamb", "budget", "estimator", "preset")
)
"""Settings that make the problem, whoever solves it."""


@dataclass(frozen=True)
class Arm:
    """One setting of a study: its name, what is studied in it, and its runs (one per seed)."""

    name: str
    levels: tuple[tuple[str, Any], ...]
    points: tuple[Point, ...]


def arms(
    kind: str, given: Mapping[str, Any], *, seeds: int = 3, quick: bool = False, objectives: Sequence[str] | None = None
) -> tuple[Arm, ...]:
    """The arms of a study.

    Args:
        kind: one of `STUDIES`.
        given: options as for `SelectionConfig.from_options`; what a study varies overrides them. Left out or auto, the
            estimator is ``reinforce`` (``auto`` in ``single``), the objective ``pairwise`` and the steps
            `STEPS`.
        seeds: runs per arm whose estimator is random.
        objectives: of ``single``; None: the objective given, else all.

    Raises:
        OptionError: settings do not hold, or `kind` is unknown.
    """
    if kind not in STUDIES:
        raise OptionError(f"KIND must be one of {', '.join(STUDIES)}, got {kind!r}")
    given = {
        name: value
        for name, value in given.items()
        if value is not None and (name, value) != ("estimator", catalogue.AUTO)
    }
    if "budget" in given:
        raise OptionError("--budget: a study compares selections of one number of rows; use --select_ratio")
    if kind == "single":
        names = objectives or (
            [given["objective"]] if "objective" in given else [entry.name for entry in catalogue.OBJECTIVES]
        )
        return _single(given, names, seeds, quick)
    if objectives:
        raise OptionError(f"--objectives is of the study single; give the study {kind} one --objective")
    base = {"objective": "pairwise", "estimator": "reinforce", "n_epochs": QUICK_STEPS if quick else STEPS, **given}
    drawing = [entry.name for entry in catalogue.ESTIMATORS if "n_rollout" in entry.defaults]
    if catalogue.estimator(base["estimator"]).name not in drawing:
        raise OptionError(
            f"--estimator must be {' or '.join(drawing)} for the study {kind}, which varies how masks "
            f"are drawn and learned from, got {base['estimator']}; its last row is a reference by the "
            "best solver in any case"
        )
    if quick:
        base = {"n_rollout": 4, **base}
    varied = {"ablation": _ablation, "acceleration": _acceleration, "G": _group_size}[kind](base, seeds, quick)
    return (*varied, _reference(base))


def points_of(arms: Sequence[Arm]) -> tuple[Point, ...]:
    """All points of the arms, each once: arms may share a setting."""
    return tuple({point.selection: point for arm in arms for point in arm.points}.values())


def _arm(name: str, base: Mapping[str, Any], levels: Mapping[str, Any], seeds: int) -> Arm:
    return Arm(
        name,
        tuple(levels.items()),
        points({**base, **levels}, [(key, (value,)) for key, value in levels.items()], seeds),
    )


def _single(given: Mapping[str, Any], names: Sequence[str], seeds: int, quick: bool) -> tuple[Arm, ...]:
    base = dict(given)
    if quick:
        base = {"n_epochs": QUICK_STEPS, **base}
    base.pop("objective", None)
    lamb = base.pop("lamb", 0.5)
    if not 0 < lamb < 1:
        raise OptionError(
            f"--lamb must be above 0 and below 1 in the study single, which compares it with both, got {lamb}"
        )
    first = names[0]
    plain = {name: base[name] for name in PROBLEM if name in base}
    arms = [
        _arm("random", {**plain, "objective": first, "estimator": "random"}, {"lamb": lamb}, seeds),
        _arm("quality alone", {**plain, "objective": first, "estimator": "top-quality"}, {"lamb": 1.0}, seeds),
    ]
    for name in names:
        arms += [
            _arm(f"{name} alone", {**base, "objective": name}, {"lamb": 0.0}, seeds),
            _arm(f"{name} with quality", {**base, "objective": name}, {"lamb": lamb}, seeds),
        ]
    return tuple(arms)


def _ablation(base: Mapping[str, Any], seeds: int, quick: bool) -> list[Arm]:
    full = int(base["n_epochs"])
    rates: Sequence[float] = QUICK_RATES if quick else RATES
    steps: Sequence[int] = (6, 12) if quick else (full // 4, full // 2, full, 2 * full)
    usual = base.get("max_lr", SelectionConfig.from_options(estimator=base["estimator"]).max_lr or rates[-1])
    arms = []
    for init in ("same", "quality"):
        for rate in rates:
            arms.append(
                _arm(
                    f"lr {rate:g}, init {init}",
                    base,
                    {"max_lr": rate, "min_lr": rate / 10, "n_epochs": full, "init": init},
                    seeds,
                )
            )
        for count in steps:
            if count != full or usual not in rates:
                arms.append(
                    _arm(
                        f"{count:,} steps, init {init}",
                        base,
                        {"max_lr": usual, "min_lr": usual / 10, "n_epochs": count, "init": init},
                        seeds,
                    )
                )
    return arms


def _acceleration(base: Mapping[str, Any], seeds: int, quick: bool) -> list[Arm]:
    partials: Sequence[float] = QUICK_PARTIALS if quick else PARTIALS
    usual = 0.5 if quick else 0.1
    # pruning must leave more rows than are selected
    prunes = [
        share for share in (QUICK_PRUNES if quick else PRUNES) if 1 - share > base.get("select_ratio", 0.3) + 0.01
    ]
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("plain", {}),
        *((f"batch share {share:g}", {"partial": share}) for share in partials if share != usual),
        *((f"pruned by {share:g}", {"prune": share}) for share in prunes),
        ("start from quality", {"init": "quality"}),
    ]
    if prunes:
        kinds.append((f"pruned by {prunes[-1]:g}, start from quality", {"prune": prunes[-1], "init": "quality"}))
    return [
        _arm(name, base, {"partial": usual, "prune": 0.0, "init": "same", **levels}, seeds) for name, levels in kinds
    ]


def _group_size(base: Mapping[str, Any], seeds: int, quick: bool) -> list[Arm]:
    return [_arm(f"G {size}", base, {"n_rollout": size}, seeds) for size in (QUICK_GROUPS if quick else GROUPS)]


def _reference(base: Mapping[str, Any]) -> Arm:
    """The same problem by the best solver there is for it."""
    problem = {name: base[name] for name in ("objective", "lamb", *PROBLEM) if name in base}
    solver = catalogue.auto(base["objective"])
    return _arm(f"reference: {solver}", {**problem, "estimator": solver}, {}, 1)
