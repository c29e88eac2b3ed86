"""The arms of the paper's figures: settings that a sweep puts beside each other, with how many seeds. No torch.

What the paper says of each figure, and what came out here, is in docs/studies.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.options import OPTIONS
from datamask.runs.varying import FIGURES, Point, points

STEPS = 1000
RATES = (1.0, 3.0, 10.0, 30.0)
GROUPS = (32, 64, 128, 256, 512)
PARTIALS, USUAL_PARTIAL = (0.05, 0.1, 0.25, 1.0), 0.1
PRUNES = (0.2, 0.4, 0.5)
SEEDS = 3

PROBLEM = tuple(
    name
    for name, option in OPTIONS.items()
    if not option.owners and name not in ("objective", "lamb", "budget", "estimator", "preset")
)
"""Settings that make the problem, whoever solves it."""


@dataclass(frozen=True)
class Arm:
    """One setting of a figure: its name, the values that it sets, and its runs (one per seed)."""

    name: str
    levels: tuple[tuple[str, Any], ...]
    points: tuple[Point, ...]


def arms(
    figure: str, given: Mapping[str, Any], *, seeds: int = SEEDS, objectives: Sequence[str] | None = None
) -> tuple[Arm, ...]:
    """Return the arms of a figure of the paper.

    Args:
        figure: one of `FIGURES`.
        given: options as for `SelectionConfig.from_options`; what a figure varies overrides them. Left out or auto, the
            estimator is ``reinforce`` (``auto`` in ``single``), the objective ``pairwise`` and the steps
            `STEPS`.
        seeds: runs per arm whose estimator is random.
        objectives: of ``single``; None: the objective given, else all.

    Raises:
        OptionError: settings do not hold, or `figure` is unknown.

    Examples:
        >>> from datamask.runs.paper_figures import arms
        >>> [arm.name for arm in arms("G", {})]
        ['G 32', 'G 64', 'G 128', 'G 256', 'G 512', 'reference: relaxed']
    """
    if figure not in FIGURES:
        raise OptionError(f"--figure must be one of {', '.join(FIGURES)}, got {figure!r}")
    given = {
        name: value
        for name, value in given.items()
        if value is not None and (name, value) != ("estimator", catalogue.AUTO)
    }
    if "budget" in given:
        raise OptionError(
            "--budget: a figure of the paper compares selections of one number of rows; use --select_ratio"
        )
    if figure == "single":
        names = objectives or (
            [given["objective"]] if "objective" in given else [entry.name for entry in catalogue.OBJECTIVES]
        )
        return _single(given, names, seeds)
    if objectives:
        raise OptionError(f"--objectives is for --figure single; give --figure {figure} one --objective")
    base = {"objective": "pairwise", "estimator": "reinforce", "n_epochs": STEPS, **given}
    drawing = [entry.name for entry in catalogue.ESTIMATORS if entry.draws_masks]
    if catalogue.estimator(base["estimator"]).name not in drawing:
        raise OptionError(
            f"--estimator must be {' or '.join(drawing)} for --figure {figure}, which varies how masks "
            f"are drawn and learned from, got {base['estimator']}; its last row is a reference by the "
            "best solver in any case"
        )
    varied = {"ablation": _ablation, "acceleration": _acceleration, "G": _group_size}[figure](base, seeds)
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


def _single(given: Mapping[str, Any], names: Sequence[str], seeds: int) -> tuple[Arm, ...]:
    base = {name: value for name, value in given.items() if name != "objective"}
    lamb = base.pop("lamb", 0.5)
    if not 0 < lamb < 1:
        raise OptionError(
            f"--lamb must be above 0 and below 1 with --figure single, which compares it with both, got {lamb}"
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


def _ablation(base: Mapping[str, Any], seeds: int) -> list[Arm]:
    full = int(base["n_epochs"])
    usual = base.get("max_lr", SelectionConfig.from_options(estimator=base["estimator"]).max_lr or RATES[-1])
    arms = []
    for init in ("same", "quality"):
        for rate in RATES:
            arms.append(
                _arm(
                    f"lr {rate:g}, init {init}",
                    base,
                    {"max_lr": rate, "min_lr": rate / 10, "n_epochs": full, "init": init},
                    seeds,
                )
            )
        for count in (full // 4, full // 2, full, 2 * full):
            if count != full or usual not in RATES:
                arms.append(
                    _arm(
                        f"{count:,} steps, init {init}",
                        base,
                        {"max_lr": usual, "min_lr": usual / 10, "n_epochs": count, "init": init},
                        seeds,
                    )
                )
    return arms


def _acceleration(base: Mapping[str, Any], seeds: int) -> list[Arm]:
    # pruning must leave more rows than are selected
    prunes = [share for share in PRUNES if 1 - share > base.get("select_ratio", 0.3) + 0.01]
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("plain", {}),
        *((f"batch share {share:g}", {"partial": share}) for share in PARTIALS if share != USUAL_PARTIAL),
        *((f"pruned by {share:g}", {"prune": share}) for share in prunes),
        ("start from quality", {"init": "quality"}),
    ]
    if prunes:
        kinds.append((f"pruned by {prunes[-1]:g}, start from quality", {"prune": prunes[-1], "init": "quality"}))
    return [
        _arm(name, base, {"partial": USUAL_PARTIAL, "prune": 0.0, "init": "same", **levels}, seeds)
        for name, levels in kinds
    ]


def _group_size(base: Mapping[str, Any], seeds: int) -> list[Arm]:
    return [_arm(f"G {size}", base, {"n_rollout": size}, seeds) for size in GROUPS]


def _reference(base: Mapping[str, Any]) -> Arm:
    """The same problem by the best solver there is for it."""
    problem = {name: base[name] for name in ("objective", "lamb", *PROBLEM) if name in base}
    solver = catalogue.auto(base["objective"])
    return _arm(f"reference: {solver}", {**problem, "estimator": solver}, {}, 1)
