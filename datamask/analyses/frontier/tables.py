"""The stored runs of a corpus as points of the plane of quality and diversity: curves over lambda, and named points.

Pure: run records in, small records out. A curve joins runs that differ in lambda, seed and device alone and share the
ends of their scales, so that equal places mean equal things; runs of another objective, ratio, rule or scale are
another curve. Baselines and imported lists are points with a name, on no curve.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from datamask import catalogue
from datamask.analyses.comparison.tables import SETTINGS
from datamask.config import LEARNER_OPTIONS, SelectionConfig
from datamask.dashboard.runs import outcome
from datamask.dashboard.tradeoff import amounts
from datamask.dashboard.tradeoff.geometry import HalfPlane, price
from datamask.dashboard.tradeoff.spots import FREE, Spot, shared, spot_of
from datamask.runs.store import Run


@dataclass(frozen=True)
class Line:
    """Runs that one curve joins.

    Attributes:
        key: short name of what they share, the same in every session.
        spots: by rising lambda; several seeds of one lambda stand beside each other.
        others: runs of other curves on the same problem, whose bounds hold here too.
    """

    key: str
    spots: tuple[Spot, ...]
    others: tuple[Spot, ...] = ()

    @property
    def settings(self) -> SelectionConfig:
        """What all of them share; lambda and seed are the first one's."""
        return self.spots[0].settings

    @property
    def scale(self) -> str:
        """Objective, size and ends of the scales."""
        return self.spots[0].scale

    @property
    def lambdas(self) -> list[float]:
        """Each lambda once, rising."""
        return sorted({spot.lamb for spot in self.spots})

    @property
    def planes(self) -> list[HalfPlane]:
        """What is proved for selections under these settings, by runs of whichever estimator."""
        problem = self.spots[0].problem
        return [
            spot.plane for spot in (*self.spots, *self.others) if spot.plane is not None and spot.problem == problem
        ]

    @property
    def joined(self) -> bool:
        """Whether it has points enough for a curve: two would only be joined by a chord."""
        return len(self.lambdas) > 2

    def means(self) -> list[tuple[float, float, float]]:
        """(lambda, quality, diversity) at each lambda, the mean over its seeds."""
        points = []
        for lamb in self.lambdas:
            at_lambda = [spot for spot in self.spots if spot.lamb == lamb]
            points.append(
                (
                    lamb,
                    sum(s.quality for s in at_lambda) / len(at_lambda),
                    sum(s.diversity for s in at_lambda) / len(at_lambda),
                )
            )
        return points


@dataclass(frozen=True)
class Survey:
    """All that can be drawn: curves, the most points first, and named points, newest first."""

    lines: tuple[Line, ...]
    named: tuple[Spot, ...]


def survey(runs: Iterable[Run], fingerprint: str | None) -> Survey:
    """The finished runs on the corpus of that fingerprint (None: all those given), newest first as given."""
    groups: dict[str, list[Spot]] = {}
    named: dict[tuple[str, str], Spot] = {}
    for run in runs:
        spot = spot_of(run, fingerprint)
        if spot is None:
            continue
        if catalogue.estimator(spot.settings.estimator).learns:
            groups.setdefault(_key(spot), []).append(spot)
        else:
            named.setdefault((spot.scale, spot.label), spot)
    alike: dict[str, list[tuple[str, Spot]]] = {}
    for key, spots in groups.items():
        for spot in spots:
            alike.setdefault(spot.problem, []).append((key, spot))
    lines = [
        Line(
            key,
            tuple(sorted(spots, key=lambda spot: (spot.lamb, spot.settings.seed))),
            tuple(spot for other, spot in alike[spots[0].problem] if other != key),
        )
        for key, spots in groups.items()
    ]
    order = [entry.name for entry in catalogue.OBJECTIVES]

    def place(line: Line) -> tuple:
        objective = line.settings.objective
        return (
            -len(line.lambdas),
            order.index(objective) if objective in order else len(order),
            objective,
            line.settings.select_ratio,
        )

    return Survey(tuple(sorted(lines, key=place)), tuple(named.values()))


def _key(spot: Spot) -> str:
    return hashlib.sha256((shared(spot.settings, FREE) + spot.scale).encode()).hexdigest()[:10]


def line_names(lines: Sequence[Line]) -> dict[str, str]:
    """What each curve is called: objective and ratio, and whatever else sets it apart from one that has both."""
    names = {}
    for line in lines:
        mine = line.settings.to_dict()
        alike = [
            other.settings.to_dict()
            for other in lines
            if other.settings.objective == line.settings.objective
            and amounts.words_of(other.settings) == amounts.words_of(line.settings)
        ]
        name = f"{outcome.objective_label(line.settings.objective)}, {amounts.words_of(line.settings)}"
        for field, setting in SETTINGS.items():
            # options of the learner tell apart only what the same learner made; its name says the rest
            held = [other for other in alike if field not in LEARNER_OPTIONS or other["estimator"] == mine["estimator"]]
            if field not in FREE and len({str(other.get(field)) for other in held}) > 1 and mine.get(field):
                value = (
                    catalogue.estimator(mine[field]).label.partition(" (")[0] if field == "estimator" else mine[field]
                )
                name += f", {value}" if field == "estimator" else f", {setting.lower()} {value}"
        names[line.key] = name
    given = list(names.values())
    return {key: name if given.count(name) == 1 else f"{name} ({key[:4]})" for key, name in names.items()}


def named_for(stored: Survey, lines: Sequence[Line]) -> list[Spot]:
    """The named points that share objective, size and scales with one of the curves."""
    scales = {line.scale for line in lines}
    return [spot for spot in stored.named if spot.scale in scales]


def on_one_axis(lines: Sequence[Line]) -> list[Line]:
    """The curves without those whose ends of the scale another version of datamask found than an earlier one's."""
    kept: list[Line] = []
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


def table(lines: Sequence[Line], named: Sequence[Spot]) -> pd.DataFrame:
    """All points as rows: ``run_id, curve, λ``, ``quality, diversity, gap`` in percent, ``mean quality, seconds``."""
    names = line_names(lines)
    rows = [(names[line.key], spot) for line in lines for spot in line.spots]
    rows += [(spot.label, spot) for spot in named]
    blank = math.nan
    return pd.DataFrame(
        {
            "run_id": [spot.run_id for _, spot in rows],
            "curve": [name for name, _ in rows],
            "λ": [spot.lamb if catalogue.estimator(spot.settings.estimator).guided else blank for _, spot in rows],
            "quality": [100 * spot.quality for _, spot in rows],
            "diversity": [100 * spot.diversity for _, spot in rows],
            "mean quality": [blank if spot.raw_quality is None else spot.raw_quality for _, spot in rows],
            "gap": [blank if spot.gap is None else 100 * spot.gap for _, spot in rows],
            "seconds": [blank if spot.seconds is None else spot.seconds for _, spot in rows],
        }
    )
