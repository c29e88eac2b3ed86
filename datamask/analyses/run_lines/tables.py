"""Learning curves of several runs on one scale, the whole way to the final value, and what happens along each of them.

All values are shares of the attainable gain, 0 at a random subset, whatever scale a run was learned in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from datamask import catalogue
from datamask.analyses.convergence.phases import phases, started_from
from datamask.analyses.convergence.tables import MEASURES, of_all_rows, thinned
from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing
from datamask.dashboard.tradeoff.ends import Ends, ends_of, other_version
from datamask.errors import DatamaskError
from datamask.evaluation.result import NO_RESULT
from datamask.measured import Anchor, Anchors
from datamask.runs.store import Run

MOST = 8
"""Runs drawn in one chart: no more have colours of their own."""

FEWEST = 4
"""Points of a curve: fewer are said in words, since three dots show no way."""

FINAL = "final"
"""In the place of a phase, of the selection that the run ended with."""


@dataclass(frozen=True)
class Lines:
    """What the chart of several runs draws.

    Attributes:
        table: ``run, step, seconds, value, phase``, at most some hundred points of each run; the last one is the final
            value where there is one.
        turns: the same of the points where a phase begins that is not the first, and where a run went on from another
            (``phase`` is then that run in words).
        ends: the same of the last point of each run.
        runs: labels of those that are drawn, in the order given.
        without: label -> why there is no curve of it, in words.
    """

    table: pd.DataFrame
    turns: pd.DataFrame
    ends: pd.DataFrame
    runs: tuple[str, ...]
    without: dict[str, str]


def shares(metrics: Mapping[str, np.ndarray], config: SelectionConfig, anchors: Anchors, measure: str) -> np.ndarray:
    """One measure at each record as share of the attainable gain, float64; NaN where there is none.

    Args:
        anchors: the ends of the run's scales.
        measure: joint, quality or diversity.
    """
    blank = np.full(len(metrics.get("step", ())), np.nan)
    if config.scale == "calibrated":
        return metrics.get(measure, blank)
    quality = _share(metrics.get("raw_quality", blank), anchors.quality)
    # a weighted sum of raw objectives cannot be taken apart again; its anchors have no common scale
    diversity = _share(metrics.get("raw_diversity", blank), anchors.diversity.get(config.objective))
    if measure == "joint":
        return config.lamb * quality + (1 - config.lamb) * diversity
    return quality if measure == "quality" else diversity


def lambdas(runs: Sequence[Run]) -> list[float]:
    """The different lambdas of at most `MOST` runs, rising; runs whose method has none are left out."""
    settings = [run.config.selection for run in runs[:MOST]]
    return sorted({config.lamb for config in settings if catalogue.estimator(config.estimator).guided})


def lines(runs: Sequence[Run], measure: str = "joint", lamb: float | None = None) -> Lines:
    """Return the curves of at most `MOST` runs.

    Args:
        measure: of `MEASURES`.
        lamb: the lambda that the joint values of all runs are weighed at; None: that of the runs, if they have one.

    Raises:
        ValueError: joint values of several lambdas, which have no common axis, or a measure that is none.
    """
    if measure == "joint" and lamb is None and len(lambdas(runs)) > 1:
        raise ValueError("joint values of several lambdas have no common axis; give the lamb to weigh all of them at")
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {measure!r}")
    tables, turns, without = [], [], {}
    drawn_ends: dict[str, Ends] = {}
    labels = listing.unlike({run.id: listing.label_of(run) for run in runs[:MOST]})
    for run in runs[:MOST]:
        label = labels[run.id]
        try:
            points, own_turns = _of_run(run, measure, lamb)
        except DatamaskError as error:
            without[label] = str(error)
            continue
        own_ends = ends_of(run.config.selection, run.status().result or NO_RESULT, run.facts())
        other = next((name for name, shown in drawn_ends.items() if shown.clash(own_ends)), None)
        if other is not None and measure != "quality":
            without[label] = other_version(other)
            continue
        if (points["phase"] != FINAL).sum() < FEWEST:
            without[label] = few(points["value"].to_numpy(), bool((points["phase"] == FINAL).any()))
            continue
        drawn_ends[label] = own_ends
        tables.append(points.assign(run=label))
        turns.append(own_turns.assign(run=label))
    blank = pd.DataFrame(columns=["step", "seconds", "value", "phase", "run"])
    table = pd.concat(tables, ignore_index=True) if tables else blank
    turning = pd.concat(turns, ignore_index=True) if turns else blank
    drawn = tuple(label for label in labels.values() if label not in without)
    ends = table.groupby("run", sort=False).tail(1).reset_index(drop=True)
    return Lines(table, turning, ends, drawn, without)


def few(values: np.ndarray, ended: bool) -> str:
    """What there is to say of a curve of less than `FEWEST` points.

    Args:
        values: as shares, in order. ended: whether the last of them is the final one.
    """
    on_the_way = len(values) - ended
    counted = {0: "no value was", 1: "one value was"}.get(on_the_way, f"only {on_the_way} values were")
    sentence = f"{counted} measured on the way"
    if not len(values):
        return sentence
    where = "it ended at" if ended else "the last"
    return f"{sentence}, {where} {words.percent(float(values[-1]), 1)}"


def _of_run(run: Run, measure: str, lamb: float | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points of one run, and its turns: ``step, seconds, value, phase`` each."""
    metrics, config, result = of_all_rows(run.metrics()), run.config.selection, run.status().result or NO_RESULT
    anchors, end = run.anchors() or Anchors(), result.calibrated.of(measure)
    if measure == "joint" and lamb is not None and lamb != config.lamb:
        quality, diversity = (shares(metrics, config, anchors, term) for term in ("quality", "diversity"))
        values = lamb * quality + (1 - lamb) * diversity
        end = weighed(result.calibrated.quality, result.calibrated.diversity, lamb)
    else:
        values = shares(metrics, config, anchors, measure)
    seconds = metrics.get("seconds", np.full(len(values), np.nan))
    names = np.full(len(values), "", dtype=object)
    turns = []
    for place, phase in enumerate(phases(metrics)):
        names[phase.first : phase.last + 1] = phase.name
        measured = phase.first + np.flatnonzero(np.isfinite(values[phase.first : phase.last + 1]))
        if len(measured) and (place or started_from(run)):
            begins = f"{phase.name} begins" if place else f"continues from run {started_from(run)}"
            turns.append((int(measured[0]), begins))
    there = thinned(np.flatnonzero(np.isfinite(values)))
    steps = metrics.get("step", np.zeros(0))
    points = pd.DataFrame(
        {"step": steps[there], "seconds": seconds[there], "value": values[there], "phase": names[there]}
    )
    if end is not None and math.isfinite(end):
        step, second = (points["step"].iloc[-1], points["seconds"].iloc[-1]) if len(points) else (0.0, 0.0)
        points.loc[len(points)] = [step, second, float(end), FINAL]
    rows = [{"step": steps[at], "seconds": seconds[at], "value": values[at], "phase": begins} for at, begins in turns]
    return points, pd.DataFrame(rows, columns=["step", "seconds", "value", "phase"])


def weighed(quality: float | None, diversity: float | None, lamb: float) -> float | None:
    """The joint value at a lambda of the shares of both terms; None where one is missing."""
    if quality is None or diversity is None:
        return None
    return lamb * quality + (1 - lamb) * diversity


def _share(raw: np.ndarray, anchor: Anchor | None) -> np.ndarray:
    if anchor is None or not anchor.best > anchor.random:
        return np.full(len(raw), np.nan)
    return (raw - anchor.random) / (anchor.best - anchor.random)
