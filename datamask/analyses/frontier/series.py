"""Stored runs that differ in one setting alone, and what is drawn of them: values at the end, and over seconds.

Pure: run records in, small tables out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from datamask import catalogue
from datamask.analyses.curves.tables import COLUMNS, CURVE, END, FINAL, MASKS, Curves
from datamask.config import LEARNER_OPTIONS, SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import outcome
from datamask.dashboard.tradeoff import amounts
from datamask.dashboard.tradeoff.spots import Spot, shared, spot_of
from datamask.options import OPTIONS
from datamask.runs.store import Run
from datamask.runs.varying import Point, Value

FREE = ("seed", "device")
"""Settings in which runs of one series may differ besides what varies."""

GRID_POINTS = 60
"""Moments of time at which the curves of a level are averaged over seeds."""

AUTO = "automatic method"
"""Instead of a method, where each objective has the solver that automatic takes for it."""


@dataclass(frozen=True)
class Level:
    """One value of what varies.

    Attributes:
        name: of the value, in words. value: itself; None: an arm of a preset.
        runs: those with it, newest first, each with its values.
    """

    name: str
    value: Value | None
    runs: tuple[tuple[Run, Spot], ...]


@dataclass(frozen=True)
class Series:
    """Levels that differ in nothing else.

    Attributes:
        key, label: what they share, as a name and in words. levels: in the order of their values, or of the arms.
    """

    key: str
    label: str
    levels: tuple[Level, ...]


def stored(runs: Iterable[Run], fingerprint: str, option: str) -> list[Series]:
    """The series along an option with at least two of its values, the longest first.

    Args:
        runs: newest first. fingerprint: of the corpus they must be on.
    """
    groups: dict[str, dict[Value, list[tuple[Run, Spot]]]] = {}
    labels: dict[str, str] = {}
    for run in runs:
        spot = _finished_on(run, fingerprint)
        if spot is None or (value := getattr(spot.settings, option)) is None:
            continue
        for key, method in _keys(spot.settings, option):
            labels.setdefault(key, _label(spot.settings, option, method))
            groups.setdefault(key, {}).setdefault(value, []).append((run, spot))
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
    by_settings: dict[str, list[tuple[Run, Spot]]] = {}
    for run in runs:
        if (spot := _finished_on(run, fingerprint)) is not None:
            by_settings.setdefault(shared(spot.settings, ("device",)), []).append((run, spot))
    levels = []
    for name, points in arms.items():
        keys = dict.fromkeys(shared(point.selection, ("device",)) for point in points)
        of_arm = [run for key in keys for run in by_settings.get(key, [])]
        if of_arm:
            levels.append(Level(name, None, tuple(of_arm)))
    return [Series(label, label, tuple(levels))] if len(levels) > 1 else []


def _finished_on(run: Run, fingerprint: str) -> Spot | None:
    spot = spot_of(run, fingerprint)
    return None if spot is None or spot.settings.estimator == catalogue.IMPORTED.name else spot


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
        "select_ratio": amounts.share_words(settings.select_ratio),
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
    return amounts.share_words(float(value)) if option == "select_ratio" else OPTIONS[option].shown(value)


def _place(option: str, value: Value) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, (int, float)) else (0.0, _named(option, value))


# -- what is drawn ----------------------------------------------------------------------------------------------------


def ends(series: Series) -> pd.DataFrame:
    """One row per level and term: ``level, value, term, share, low, high, n, raw``.

    ``share`` is the mean over the level's runs in percent of the way from random to the best found, ``low`` and
    ``high`` are the least and the greatest of them, ``n`` is how many there are.
    """
    rows = []
    for level in series.levels:
        for term in ("quality", "diversity"):
            shares = np.array([100 * getattr(spot, term) for _, spot in level.runs])
            raw = [getattr(spot, f"raw_{term}") for _, spot in level.runs]
            rows.append(
                {
                    "level": level.name,
                    "value": level.value,
                    "term": term,
                    "share": float(shares.mean()),
                    "low": float(shares.min()),
                    "high": float(shares.max()),
                    "n": len(level.runs),
                    "raw": math.nan if None in raw else float(np.mean(raw)),
                }
            )
    return pd.DataFrame(rows)


def curves(series: Series, varied: str) -> Curves:
    """The joint value over seconds of learning, a line for each level: the mean over its seeds.

    Curves are read at common moments, from when every seed has a value until the first of them ends. Levels whose runs
    have no curve are left out.

    Args:
        varied: what the levels differ in, for the legend.
    """
    parts = [pd.DataFrame(columns=list(COLUMNS))]
    for level in series.levels:
        read = []
        for run, _ in level.runs:
            metrics = run.metrics()
            seconds, joint = (metrics.get(name, np.zeros(0)) for name in ("seconds", "joint"))
            if len(joint) != len(seconds):
                continue
            there = np.isfinite(joint) & np.isfinite(seconds) & (seconds > 0)
            if np.count_nonzero(there) > 1:
                read.append((seconds[there], joint[there]))
        if read:
            line = band(read).assign(series=level.name, note=str(len(read)))
            parts += [line.assign(kind=MASKS), line.assign(kind=CURVE)]
            # one moment is no line
            parts += [line.assign(kind=END, note=FINAL)] if len(line) == 1 else []
    table = pd.concat(parts, ignore_index=True)
    return Curves(table, tuple(table["series"].unique()), "joint", "joint value, whole corpus", True, key=varied)


def band(read: Sequence[tuple[np.ndarray, np.ndarray]]) -> pd.DataFrame:
    """Mean, ``value``, lowest and highest of some curves ``(seconds, value)`` at common, log-spaced moments."""
    first, last = max(seconds[0] for seconds, _ in read), min(seconds[-1] for seconds, _ in read)
    if last <= first:  # they never run at the same time: their ends are all that compares
        at = np.array([np.mean([seconds[-1] for seconds, _ in read])])
        values = np.array([[value[-1]] for _, value in read])
    else:
        at = np.geomspace(first, last, GRID_POINTS)
        values = np.array([np.interp(np.log(at), np.log(seconds), value) for seconds, value in read])
    return pd.DataFrame(
        {"seconds": at, "value": values.mean(axis=0), "low": values.min(axis=0), "high": values.max(axis=0)}
    )
