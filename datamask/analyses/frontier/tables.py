"""The stored runs of a corpus as series: runs that differ in one setting alone. One along lambda is a curve.

Pure: run records in, small tables out. A curve joins runs that share the ends of their scales too, so that equal places
mean equal things; runs of another objective, ratio, rule or scale are another curve. Baselines and imported lists are
points with a name, on no curve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from datamask import catalogue
from datamask.analyses.comparison.tables import SETTINGS
from datamask.analyses.curves.tables import COLUMNS, CURVE, END, FINAL, MASKS, Curves
from datamask.analyses.frontier import kinds
from datamask.config import LEARNER_OPTIONS, SelectionConfig
from datamask.dashboard.runs import outcome
from datamask.dashboard.tradeoff import amounts
from datamask.dashboard.tradeoff.geometry import HalfPlane, price
from datamask.dashboard.tradeoff.spots import Spot, shared, spot_of
from datamask.options import OPTIONS
from datamask.runs.store import Run
from datamask.runs.varying import Point, Value

SEED = ("seed", "device")
"""Settings in which runs of one series may differ besides what varies."""

AUTO = "automatic method"
TERMS = ("quality", "diversity")

GRID_POINTS = 60
"""Moments of time at which the curves of a level are averaged over seeds."""

COLUMNS_OF_POINTS = ["run_id", "curve", "λ", "quality", "diversity", "gap", "mean quality", "seconds"]


@dataclass(frozen=True)
class Series:
    """Runs that differ in one setting, in seed and in device alone.

    Attributes:
        key: short name of what they share, the same in every session.
        free: settings in which they may differ, first the option that varies; empty for the arms of a preset.
        levels: the points of each value, or of each arm, by seed; in the order of the values, or of the arms.
    """

    key: str
    free: tuple[str, ...]
    levels: Mapping[Value, tuple[Spot, ...]]

    @property
    def spots(self) -> tuple[Spot, ...]:
        """All points, level by level."""
        return tuple(spot for spots in self.levels.values() for spot in spots)

    @property
    def settings(self) -> SelectionConfig:
        """What all of them share; of what varies the first one's."""
        return self.spots[0].settings

    @property
    def scale(self) -> str:
        """Objective, size and ends of the scales of the first point; a curve has one scale."""
        return self.spots[0].scale

    def named(self, value: Value) -> str:
        """What one of its levels is called."""
        return kinds.named(self.free[0], value) if self.free else str(value)

    def means(self) -> list[tuple[float, float, float]]:
        """(value, quality, diversity) at each value of a number, the mean over its seeds."""
        return [
            (
                float(value),
                float(np.mean([spot.quality for spot in spots])),
                float(np.mean([spot.diversity for spot in spots])),
            )
            for value, spots in self.levels.items()
        ]


@dataclass(frozen=True)
class Survey:
    """All finished runs of a corpus, newest first, as points; of them the curves, longest first, and named points."""

    spots: tuple[Spot, ...]
    lines: tuple[Series, ...]
    named: tuple[Spot, ...]

    def planes(self, line: Series) -> list[HalfPlane]:
        """What is proved for the problem of a curve, by runs of whichever method."""
        problem = line.spots[0].problem
        return [spot.plane for spot in self.spots if spot.plane is not None and spot.problem == problem]


def survey(runs: Iterable[Run], fingerprint: str | None) -> Survey:
    """The finished runs on the corpus of that fingerprint (None: all those given), newest first as given."""
    spots = [spot for run in runs if (spot := spot_of(run, fingerprint)) is not None]
    named: dict[tuple[str, str], Spot] = {}
    for spot in spots:
        if not catalogue.estimator(spot.settings.estimator).learns:
            named.setdefault((spot.scale, spot.label), spot)
    return Survey(tuple(spots), tuple(series(spots, kinds.LAMBDA)), tuple(named.values()))


def series(spots: Iterable[Spot], option: str) -> list[Series]:
    """The series along an option, the longest first; of others than λ those with at least two values."""
    groups: dict[tuple[str, tuple[str, ...]], dict[Value, list[Spot]]] = {}
    for spot in spots:
        value = getattr(spot.settings, option)
        if value is not None and spot.settings.estimator != catalogue.IMPORTED.name:
            for group in _keys(spot, option):
                groups.setdefault(group, {}).setdefault(value, []).append(spot)
    found = []
    for (key, free), levels in groups.items():
        if len(levels) > 1 or option == kinds.LAMBDA:
            values = sorted(levels, key=lambda value: (isinstance(value, str), value))
            name = hashlib.sha256(f"{free}{key}".encode()).hexdigest()[:10]
            found.append(Series(name, free, {value: _by_seed(levels[value]) for value in values}))
    order = [entry.name for entry in catalogue.OBJECTIVES]

    def place(one: Series) -> tuple:
        objective = one.settings.objective
        known = order.index(objective) if objective in order else len(order)
        return -len(one.levels), known, objective, one.settings.select_ratio

    return sorted(found, key=place)


def _by_seed(spots: Iterable[Spot]) -> tuple[Spot, ...]:
    return tuple(sorted(spots, key=lambda spot: spot.settings.seed))


def _keys(spot: Spot, option: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a run has in common with the others of each series it belongs to, and what is free there.

    Another method has other options, and another objective may have another solver: there a run counts that has its
    method's defaults.
    """
    settings, free = spot.settings, (option, *SEED)
    method = catalogue.estimator(settings.estimator)
    plain = all(getattr(settings, name) == value for name, value in method.defaults.items())
    solved = (*free, "estimator", *LEARNER_OPTIONS)
    if option == kinds.LAMBDA:
        if method.learns:
            yield shared(settings, free) + spot.scale, free
    elif option == "estimator":
        if plain and settings.preset is None:
            yield shared(settings, solved), solved
    else:
        yield shared(settings, free), free
        if option == "objective" and plain and settings.estimator == catalogue.auto(settings.objective):
            yield shared(settings, solved), solved


def of_arms(spots: Iterable[Spot], arms: Mapping[str, Sequence[Point]]) -> list[Series]:
    """The one series of given arms, with those that have a finished run; none where no two arms have one."""
    by_settings: dict[str, list[Spot]] = {}
    for spot in spots:
        by_settings.setdefault(shared(spot.settings, ("device",)), []).append(spot)
    levels: dict[Value, tuple[Spot, ...]] = {}
    for name, points in arms.items():
        keys = dict.fromkeys(shared(point.selection, ("device",)) for point in points)
        if found := [spot for key in keys for spot in by_settings.get(key, [])]:
            levels[name] = _by_seed(found)
    return [Series("arms", (), levels)] if len(levels) > 1 else []


# -- words -------------------------------------------------------------------------------------------------------------


def names(found: Sequence[Series]) -> dict[str, str]:
    """What each series is called: objective and ratio, and what else differs where two have both in common."""
    bases = {one.key: _base(one) for one in found}
    named = {}
    for one in found:
        mine, name = one.settings.to_dict(), bases[one.key]
        alike = [other.settings.to_dict() for other in found if bases[other.key] == name]
        for field, setting in SETTINGS.items():
            # options of the learner tell apart only what the same learner made; its name says the rest
            held = [other for other in alike if field not in LEARNER_OPTIONS or other["estimator"] == mine["estimator"]]
            if field in one.free or not mine.get(field) or len({str(other.get(field)) for other in held}) < 2:
                continue
            if field == "estimator":
                name += f", {catalogue.estimator(mine[field]).label.partition(' (')[0]}"
            else:
                name += f", {OPTIONS[field].varied or setting.lower()} {mine[field]}"
        named[one.key] = name
    given = list(named.values())
    return {key: name if given.count(name) == 1 else f"{name} ({key[:4]})" for key, name in named.items()}


def _base(one: Series) -> str:
    settings, said = one.settings, []
    if "objective" not in one.free:
        said.append(outcome.objective_label(settings.objective))
    elif "estimator" in one.free:  # each objective has the solver that automatic takes for it
        said.append(AUTO)
    return ", ".join(said if "select_ratio" in one.free else [*said, amounts.words_of(settings)])


def named_for(stored: Survey, lines: Sequence[Series]) -> list[Spot]:
    """The named points that share objective, size and scales with one of the curves; all where there is no curve."""
    scales = {line.scale for line in lines}
    return [spot for spot in stored.named if spot.scale in scales or not lines]


def on_one_axis(lines: Sequence[Series]) -> list[Series]:
    """The curves without those whose ends of the scale another version of datamask found than an earlier one's."""
    kept: list[Series] = []
    for line in lines:
        if not any(other.spots[0].ends.clash(line.spots[0].ends) for other in kept):
            kept.append(line)
    return kept


def price_words(spot: Spot) -> str:
    """The slope at a point as a sentence."""
    if not spot.priced:
        return ""
    if spot.lamb >= 1:
        return "At λ 1 only quality counts, at any price in diversity."
    if spot.lamb <= 0:
        return "At λ 0 only diversity counts; the first percent of quality is almost free."
    amount = f"{price(spot.lamb):.2g}" if price(spot.lamb) < 9.95 else f"{price(spot.lamb):.0f}"
    return f"+1 % quality costs {amount} % diversity here."


def hull_only(objective: str) -> bool:
    """Whether a better trade-off may lie in a dent that no lambda reaches: nothing proves the curve to be concave."""
    return not all(
        catalogue.objective(name).proof for name, _ in SelectionConfig.from_options(objective=objective).terms
    )


# -- what is drawn -----------------------------------------------------------------------------------------------------


def table(lines: Sequence[Series], named: Sequence[Spot] = ()) -> pd.DataFrame:
    """All points as rows: ``run_id, curve, λ``, ``quality, diversity, gap`` in percent, ``mean quality, seconds``."""
    called = names(lines)
    rows = [(called[line.key], spot) for line in lines for spot in line.spots]
    rows += [(spot.label, spot) for spot in named]

    made = [
        (
            spot.run_id,
            curve,
            spot.lamb if catalogue.estimator(spot.settings.estimator).guided else None,
            100 * spot.quality,
            100 * spot.diversity,
            None if spot.gap is None else 100 * spot.gap,
            spot.raw_quality,
            spot.seconds,
        )
        for curve, spot in rows
    ]
    return pd.DataFrame(made, columns=COLUMNS_OF_POINTS).astype(dict.fromkeys(COLUMNS_OF_POINTS[2:], float))


def ends(one: Series) -> pd.DataFrame:
    """One row per level and term: ``level, value, term, run_id, share, low, high, n, raw``.

    ``share`` is the mean over the level's runs in percent of the way from random to the best found, ``low`` and
    ``high`` are the least and the greatest of them, ``n`` is how many there are; ``run_id`` is the first of them.
    """
    rows = [
        (one.named(value), value, term, spot.run_id, 100 * getattr(spot, term), getattr(spot, f"raw_{term}"))
        for value, spots in one.levels.items()
        for term in TERMS
        for spot in spots
    ]
    points = pd.DataFrame(rows, columns=["level", "value", "term", "run_id", "share", "raw"]).astype({"raw": float})
    return (
        points.groupby(["level", "value", "term"], sort=False)
        .agg(
            run_id=("run_id", "first"),
            share=("share", "mean"),
            low=("share", "min"),
            high=("share", "max"),
            n=("share", "size"),
            raw=("raw", "mean"),
        )
        .reset_index()
    )


def curves(one: Series, varied: str) -> Curves:
    """The joint value over seconds of learning, a line for each level: the mean over its seeds.

    Curves are read at common moments, from when every seed has a value until the first of them ends. Levels whose runs
    have no curve are left out.

    Args:
        varied: what the levels differ in, for the legend.
    """
    parts = [pd.DataFrame(columns=list(COLUMNS))]
    for value, spots in one.levels.items():
        read = []
        for spot in spots:
            metrics = spot.run.metrics()
            seconds, joint = (metrics.get(name, np.zeros(0)) for name in ("seconds", "joint"))
            if len(joint) != len(seconds):
                continue
            there = np.isfinite(joint) & np.isfinite(seconds) & (seconds > 0)
            if np.count_nonzero(there) > 1:
                read.append((seconds[there], joint[there]))
        if read:
            line = band(read).assign(series=one.named(value), note=str(len(read)))
            parts += [line.assign(kind=MASKS), line.assign(kind=CURVE)]
            # one moment is no line
            parts += [line.assign(kind=END, note=FINAL)] if len(line) == 1 else []
    drawn = pd.concat(parts, ignore_index=True)
    return Curves(drawn, tuple(drawn["series"].unique()), "joint", "joint value, whole corpus", True, key=varied)


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
