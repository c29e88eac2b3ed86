"""Stored runs that differ in one setting alone: found among all runs of a corpus, or those of given arms.

Pure: run records in, groups of them out. What is drawn of a group is made in `tables`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from datamask import catalogue
from datamask.analyses.frontier.tables import ratio_words
from datamask.config import LEARNER_OPTIONS, SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import outcome
from datamask.errors import DatamaskError
from datamask.options import OPTIONS
from datamask.runs.store import Run
from datamask.runs.varying import Point, Value

FREE = ("seed", "device")
"""Settings in which runs of one series may differ besides what varies."""

AUTO = "automatic method"
"""Instead of a method, where each objective has the solver that automatic takes for it."""


@dataclass(frozen=True)
class Level:
    """One value of what varies.

    Attributes:
        name: of the value, in words. value: itself; None: an arm of a preset. runs: those with it, newest first.
    """

    name: str
    value: Value | None
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Series:
    """Levels that differ in nothing else.

    Attributes:
        key, label: what they share, as a name and in words. levels: in the order of their values, or of the arms.
    """

    key: str
    label: str
    levels: tuple[Level, ...]


def shared(settings: SelectionConfig, free: Sequence[str]) -> str:
    """Names all settings but some."""
    return json.dumps(
        {name: value for name, value in settings.to_dict().items() if name not in free}, sort_keys=True, default=str
    )


def stored(runs: Iterable[Run], fingerprint: str, option: str) -> list[Series]:
    """The series along an option with at least two of its values, the longest first.

    Args:
        runs: newest first. fingerprint: of the corpus they must be on.
    """
    groups: dict[str, dict[Value, list[Run]]] = {}
    labels: dict[str, str] = {}
    for run in runs:
        settings = _finished_on(run, fingerprint)
        if settings is None or (value := getattr(settings, option)) is None:
            continue
        for key, method in _keys(settings, option):
            labels.setdefault(key, _label(settings, option, method))
            groups.setdefault(key, {}).setdefault(value, []).append(run)
    found = [
        Series(
            key,
            labels[key],
            tuple(
                Level(_named(option, value), value, tuple(levels[value]))
                for value in sorted(levels, key=lambda value: _place(option, value))
            ),
        )
        for key, levels in groups.items()
        if len(levels) > 1
    ]
    return sorted(found, key=lambda series: -len(series.levels))


def of_arms(runs: Iterable[Run], fingerprint: str, label: str, arms: Mapping[str, Sequence[Point]]) -> list[Series]:
    """The one series of given arms, with those that have a finished run; none where no two arms have one."""
    by_settings: dict[str, list[Run]] = {}
    for run in runs:
        settings = _finished_on(run, fingerprint)
        if settings is not None:
            by_settings.setdefault(shared(settings, ("device",)), []).append(run)
    levels = []
    for name, points in arms.items():
        keys = dict.fromkeys(shared(point.selection, ("device",)) for point in points)
        of_arm = [run for key in keys for run in by_settings.get(key, [])]
        if of_arm:
            levels.append(Level(name, None, tuple(of_arm)))
    return [Series(label, label, tuple(levels))] if len(levels) > 1 else []


def _finished_on(run: Run, fingerprint: str) -> SelectionConfig | None:
    try:
        done = run.status().state == "done" and run.facts().get("fingerprint") == fingerprint
        settings = run.config.selection if done else None
    except DatamaskError:  # listed elsewhere, with its reason
        return None
    return None if settings is None or settings.estimator == catalogue.IMPORTED.name else settings


def _keys(settings: SelectionConfig, option: str) -> Iterator[tuple[str, str]]:
    """The series a run belongs to, each with its method in words.

    Another method has other options, and another objective may have another solver: there a run counts that has its
    method's defaults.
    """
    free = (option, *FREE)
    method = catalogue.estimator(settings.estimator)
    plain = all(getattr(settings, name) == value for name, value in method.defaults.items())
    if option == "estimator":
        if plain and settings.preset is None:
            yield shared(settings, (*free, *LEARNER_OPTIONS)), ""
        return
    if option == "lamb" and not method.guided:
        return
    yield shared(settings, free), method.label.partition(" (")[0]
    if option == "objective" and plain and settings.estimator == catalogue.auto(settings.objective):
        yield AUTO + shared(settings, (*free, "estimator", *LEARNER_OPTIONS)), AUTO


def _label(settings: SelectionConfig, option: str, method: str) -> str:
    parts = {
        "objective": outcome.objective_label(settings.objective),
        "lamb": f"λ {settings.lamb:g}",
        "select_ratio": ratio_words(settings.select_ratio),
        "estimator": method,
        "scale": "" if settings.scale == "calibrated" else "raw scale",
        "collapse": "" if settings.collapse == "none" else "duplicates removed",
        "prune": f"worst {words.percent(settings.prune)} skipped" if settings.prune else "",
    }
    return ", ".join(text for name, text in parts.items() if text and name != option)


def _named(option: str, value: Value) -> str:
    if option == "objective":
        return outcome.objective_label(str(value))
    if option == "estimator":
        return catalogue.estimator(str(value)).label.partition(" (")[0]
    return ratio_words(float(value)) if option == "select_ratio" else OPTIONS[option].shown(value)


def _place(option: str, value: Value) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, (int, float)) else (0.0, _named(option, value))
