"""The learning curve: what sampled masks score in their batch, what the subset scores on the whole corpus, and beside
it the references that say whether either number is any good.

The two curves are never one. Masks are scored on the rows of their batch; only the subset, scored on all rows, may be
compared with a random subset, with top-quality or with a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from datamask.dashboard import words
from datamask.runs.store import Run

MEASURES = ("joint", "quality", "diversity")
BATCH = "sampled masks, in their batch"
SUBSET = "selected subset, whole corpus"
MAX_POINTS = 400
"""Points per curve sent to the browser; more than a curve has pixels helps nobody."""


@dataclass(frozen=True)
class Reference:
    """A horizontal line: ``value`` in the run's scale, ``label`` beside it, ``role`` random, best, bound or final."""

    label: str
    value: float
    role: str


@dataclass(frozen=True)
class Curve:
    """What the convergence chart draws.

    Attributes:
        table: columns ``step, seconds, series, value, low, high``; low and high are the batch mean minus and plus one
            standard deviation over the G masks (NaN for the subset).
        references: horizontal lines, highest first.
        measure: joint, quality or diversity; unit: the axis's words.
    """

    table: pd.DataFrame
    references: tuple[Reference, ...]
    measure: str
    unit: str


def curve(run: Run, measure: str = "joint") -> Curve:
    """The learning curve of one measure, in the scale the run was learned in."""
    metrics = run.metrics()
    table = curve_table(metrics, measure)
    config = run.config.selection
    unit = {"joint": "joint value", "quality": "quality", "diversity": "diversity"}[measure]
    calibrated = ": 0 random, 1 both at their best" if measure == "joint" else ": 0 random, 1 best alone"
    unit += ", raw scale" if config.scale == "raw" else calibrated
    return Curve(table, references(run, measure), measure, unit)


def curve_table(metrics: dict[str, np.ndarray], measure: str) -> pd.DataFrame:
    """Metrics columns to a tidy table; at most `MAX_POINTS` evenly chosen records per curve, the last always kept."""
    steps = metrics.get("step")
    if steps is None or not len(steps):
        return pd.DataFrame({"step": [], "seconds": [], "series": [], "value": [], "low": [], "high": []})
    blank = np.full(len(steps), np.nan)
    seconds = metrics.get("seconds", blank)
    mean = metrics.get(f"batch_{measure}_mean", blank)
    spread = np.nan_to_num(metrics.get(f"batch_{measure}_std", blank))
    parts = []
    for series, value, low, high in ((BATCH, mean, mean - spread, mean + spread),
                                     (SUBSET, metrics.get(measure, blank), blank, blank)):
        there = _thinned(np.flatnonzero(np.isfinite(value)))
        parts.append(pd.DataFrame({"step": steps[there], "seconds": seconds[there], "series": series,
                                   "value": value[there], "low": low[there], "high": high[there]}))
    return pd.concat(parts, ignore_index=True)


def references(run: Run, measure: str) -> tuple[Reference, ...]:
    """Random, top-quality, the final subset if it was polished, and the proved bound if there is one; run's scale."""
    points, summary = run.facts().get("references") or {}, run.status().summary or {}
    found = []
    for key, label, role in (("random", "random subset", "random"), ("top_quality", "best-quality rows", "best")):
        value = (points.get(key) or {}).get(measure)
        if value is None and key == "random" and run.config.selection.scale == "calibrated":
            # calibration puts a random subset at 0 by definition, before anything else is known
            value = 0.0
        if value is not None:
            found.append(Reference(label, float(value), role))
    final = _final(run, measure, summary)
    if final is not None:
        found.append(Reference("final selection, polished", final, "final"))
    bound = summary.get("upper_bound")
    if bound is not None and measure == "joint":
        found.append(Reference("proved bound", float(bound), "bound"))
    return tuple(sorted(found, key=lambda reference: -reference.value))


def _final(run: Run, measure: str, summary: dict) -> float | None:
    """What the final subset reaches where that is not where the curve ends: it was polished after the last step."""
    values = summary if run.config.selection.scale == "raw" else summary.get("calibrated") or {}
    curve = run.metrics().get(measure, np.empty(0))
    ended = curve[np.isfinite(curve)]
    final = values.get(measure)
    if final is None or not len(ended) or abs(final - ended[-1]) <= 1e-3 * max(abs(final), abs(ended[-1])):
        return None
    return float(final)


def _thinned(indices: np.ndarray) -> np.ndarray:
    if len(indices) <= MAX_POINTS:
        return indices
    return indices[np.unique(np.linspace(0, len(indices) - 1, MAX_POINTS).round().astype(int))]


@dataclass(frozen=True)
class Gauge:
    """A small number beside the curve, with what it means and what to do about it."""

    label: str
    value: str
    help: str


def gauges(metrics: dict[str, np.ndarray]) -> tuple[Gauge, ...]:
    """The latest of the learner's own vital signs; those it does not have are left out."""
    said = (
        ("changed", "Changed", words.percent, "Share of the selection replaced since it was last looked at. Falling "
         "towards 0: the learner has made up its mind."),
        ("decided", "Decided", words.percent, "Share of rows that sampling now takes, or leaves, at least 95 times in "
         "100. Near 100 % early on means the steps are too large."),
        ("snr", "Signal to noise", lambda number: "under 0.01" if number < 0.01 else f"{number:.2g}",
         "How far a step's direction stands out from the scatter between its masks. Below about 1, single steps are "
         "mostly chance; many steps, or more masks (G), average it out."),
        ("missed", "Uncovered", words.percent, "Share of rows with no selected row among their listed neighbours. The "
         "learner treats them as uncovered; the values on this page use their true nearest selected row."),
    )
    found = []
    for name, label, write, meaning in said:
        values = metrics.get(name)
        finite = values[np.isfinite(values)] if values is not None else ()
        if len(finite):
            found.append(Gauge(label, write(float(finite[-1])), meaning))
    return tuple(found)
