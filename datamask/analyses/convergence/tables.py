"""The learning curve: what sampled masks score in their batch, what the subset scores on the whole corpus, and beside
it the references that say whether either number is any good.

The two curves are never one. Masks are scored on the rows of their batch; only the subset, scored on all rows, may be
compared with a random subset, with top-quality or with a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from datamask.analyses.convergence.phases import phases, started_from
from datamask.dashboard.drawing import words
from datamask.evaluation.result import NO_RESULT, ProvedBound, RunResult
from datamask.runs.health import BESIDE, finite, reach
from datamask.runs.store import Run

MEASURES = ("joint", "quality", "diversity")
BATCH = "sampled masks, in their batch"
SUBSET = "selected subset, whole corpus"
EDGE = "edge"
GAP = "gap"
PLACES = ("step", "seconds", "masks")
"""What a curve can be drawn along."""

MAX_POINTS = 400
"""Points per curve sent to the browser; more than a curve has pixels helps nobody."""

MARGIN = 0.35
"""What lies farther outside than this share of the span of curve, bound and random subset is named at the edge instead
of drawn: it would squeeze what the chart is about."""

LEAST_SPAN = 0.3
"""Share of the attainable gain that the span is taken to have at least, so that a young curve hides nothing near it."""

CLOSED = 1e-9
"""A distance to the bound below this is rounding; a logarithmic axis has no place for 0."""


@dataclass(frozen=True)
class Reference:
    """A horizontal line: ``value`` in the run's scale, ``label`` beside it, ``role`` random, best, bound or final.

    Attributes:
        edge: ``above`` or ``below`` where the value is too far off to be drawn; else empty.
    """

    label: str
    value: float
    role: str
    edge: str = ""


@dataclass(frozen=True)
class Curve:
    """What the convergence chart draws.

    Attributes:
        table: columns ``step, seconds, masks, series, value, low, high, note``; low and high are the batch mean minus
            and plus one standard deviation over the G masks (NaN for the subset). Rows of the series `EDGE` stand for
            what is too far off to be drawn: their note says it, their value is 1 above and -1 below.
        references: horizontal lines, highest first.
        measure: joint, quality, diversity or `GAP`; unit: the axis's words.
        final: where the selection ended after it was polished: ``step, seconds, masks, value``; None: on the curve.
        phases: ``step, seconds, masks, note``, where each stretch of the way begins and what it is (`phases`).
        start: the same with ``value`` of the first point of a run that went on from another; None: it began anew.
        raw: whether values are on the raw scale; else they are shares, and are said in percent.
    """

    table: pd.DataFrame
    references: tuple[Reference, ...]
    measure: str
    unit: str
    final: dict[str, float] | None = None
    phases: pd.DataFrame | None = None
    start: dict[str, float] | None = None
    raw: bool = False

    @property
    def points(self) -> int:
        """Values on the longest of its curves."""
        own = self.table["series"].isin((BATCH, SUBSET))
        return int(self.table[own].groupby("series").size().max()) if own.any() else 0


def curve(run: Run, measure: str = "joint") -> Curve:
    """The learning curve of one measure, in the scale the run was learned in, or how far it is below its bound."""
    metrics, config = of_all_rows(run.metrics()), run.config.selection
    raw = config.scale == "raw"
    if measure == GAP:
        table, final = gap_table(metrics, config.n_rollout, (run.status().result or NO_RESULT).certificate)
        unit = "distance of the joint value to the bound" + (", raw scale" if raw else "")
        return Curve(table, (), GAP, unit, final, _phases(metrics, config.n_rollout), raw=raw)
    table = curve_table(metrics, measure, config.n_rollout)
    lines = references(run, measure)
    end = next((line.value for line in lines if line.role == "final"), None)
    final = None if end is None else _at_end(metrics, config.n_rollout, end)
    least = LEAST_SPAN * reach(config, run.facts()) if measure == "joint" or not raw else 0.0
    table, lines = framed(table, lines, least, raw)
    unit = {"joint": "joint value", "quality": "quality", "diversity": "diversity"}[measure]
    unit += ", raw scale" if raw else f" ({words.ends(measure)})"
    subset = table[table["series"] == SUBSET]
    start = None
    if started_from(run) is not None and len(subset):
        first = subset.iloc[0]
        start = {name: float(first[name]) for name in (*PLACES, "value") if np.isfinite(first[name])}
    return Curve(table, lines, measure, unit, final, _phases(metrics, config.n_rollout), start, raw)


def said(value: float, raw: bool, measure: str = "joint") -> str:
    """Return a value of a curve in few digits: in percent, or as it is on the raw scale."""
    if raw:
        return words.value(value, 3)
    return words.percent(value, 2 if measure == GAP else 1)


def of_all_rows(metrics: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of a run on all rows of a corpus beyond memory its passes alone, once there are some.

    What it learned before from a sample has other values and bounds, and would seem to lie above the proved one.
    """
    passes = metrics.get("pass")
    if passes is None or not np.isfinite(passes).any():
        return metrics
    rows = np.isfinite(passes)
    return {name: values[rows] for name, values in metrics.items()} | {"step": passes[rows]}


def measures(run: Run) -> tuple[str, ...]:
    """What can be drawn of a run: the three values, and the distance to the bound where there is one."""
    known = (run.status().result or NO_RESULT).certificate.upper_bound is not None
    return (*MEASURES, GAP) if known or len(finite(run.metrics(), "upper_bound")) else MEASURES


def across(run: Run) -> tuple[str, ...]:
    """What the curve can be drawn along; masks scored only where the learner samples masks."""
    return ("step", "seconds", "masks") if run.config.selection.n_rollout else ("step", "seconds")


def curve_table(metrics: dict[str, np.ndarray], measure: str, masks: int | None = None) -> pd.DataFrame:
    """Metrics columns to a tidy table; at most `MAX_POINTS` evenly chosen records per curve, the last always kept.

    Args:
        masks: G, masks scored in a step; None: the learner scores none.
    """
    steps = metrics.get("step")
    if steps is None or not len(steps):
        return pd.DataFrame(
            {name: [] for name in ("step", "seconds", "masks", "series", "value", "low", "high", "note")}
        )
    blank = np.full(len(steps), np.nan)
    mean = metrics.get(f"batch_{measure}_mean", blank)
    spread = np.nan_to_num(metrics.get(f"batch_{measure}_std", blank))
    parts = []
    for series, value, low, high in (
        (BATCH, mean, mean - spread, mean + spread),
        (SUBSET, metrics.get(measure, blank), blank, blank),
    ):
        there = thinned(np.flatnonzero(np.isfinite(value)))
        parts.append(
            _places(metrics, masks, there).assign(
                series=series, value=value[there], low=low[there], high=high[there], note=""
            )
        )
    return pd.concat(parts, ignore_index=True)


def gap_table(
    metrics: dict[str, np.ndarray], masks: int | None, certificate: ProvedBound
) -> tuple[pd.DataFrame, dict[str, float] | None]:
    """How far the subset is below the best bound known at each step, and where the final one ended.

    A run that proved nothing on the way is held against the bound of its end, which is as true of every step.
    """
    values, bounds = metrics.get("joint", np.zeros(0)), metrics.get("upper_bound")
    final, proved = None, certificate.upper_bound
    if bounds is None or not np.isfinite(bounds).any():
        bounds = np.full(len(values), np.nan if proved is None else float(proved))
    # every bound holds for all time: the lowest so far is the one that counts
    bounds = np.fmin.accumulate(bounds) if len(bounds) else bounds
    gap = np.maximum(bounds - values, CLOSED)
    there = thinned(np.flatnonzero(np.isfinite(gap)))
    table = _places(metrics, masks, there).assign(series=SUBSET, value=gap[there], low=np.nan, high=np.nan, note="")
    if len(there) and certificate.gap is not None:
        final = _at_end(metrics, masks, max(float(certificate.gap), CLOSED))
    return table, final


def framed(
    table: pd.DataFrame, lines: tuple[Reference, ...], least: float = 0.0, raw: bool = False
) -> tuple[pd.DataFrame, tuple[Reference, ...]]:
    """Take out what lies far from the subset's curve, the bound and a random subset, and name it at the edge.

    Args:
        least: the span is taken to be at least this. raw: whether values are on the raw scale.
    """
    subset = table.loc[table["series"] == SUBSET, "value"]
    core = [*subset, *(line.value for line in lines if line.role in ("random", "final", "bound"))]
    core = [value for value in core if np.isfinite(value)]
    if not len(subset) or not core:
        return table, lines
    room = MARGIN * max(max(core) - min(core), least)
    low, high = min(core) - room, max(core) + room
    lines = tuple(
        replace(line, edge="above" if line.value > high else "below" if line.value < low else "") for line in lines
    )
    batch = table["series"] == BATCH
    outside = batch & ((table["value"] < low) | (table["value"] > high))
    if outside.any():
        last = table[batch].iloc[-1]
        kept = table[~outside].copy()
        if bool(outside[last.name]):
            side = 1.0 if last["value"] > high else -1.0
            note = f"{'▲' if side > 0 else '▼'} {BATCH}  {said(last['value'], raw)}"
            kept = pd.concat(
                [
                    kept,
                    pd.DataFrame(
                        [{**last, "series": EDGE, "value": side, "low": np.nan, "high": np.nan, "note": note}]
                    ),
                ],
                ignore_index=True,
            )
        table = kept
    clipped = table[["low", "high"]].clip(low, high)
    return table.assign(low=clipped["low"], high=clipped["high"]), lines


def _places(metrics: dict[str, np.ndarray], masks: int | None, there: np.ndarray) -> pd.DataFrame:
    """Where records lie along each axis; swaps and steps of a bound after the last step of a learner score no masks."""
    steps = metrics["step"] if "step" in metrics else np.zeros(0)
    blank = np.full(len(steps), np.nan)
    beyond = np.isfinite([metrics.get(name, blank) for name in BESIDE]).any(0)
    learned = np.fmax.accumulate(np.where(beyond, 0.0, steps)) if len(steps) else steps
    return pd.DataFrame(
        {
            "step": steps[there],
            "seconds": metrics.get("seconds", blank)[there],
            "masks": learned[there] * (masks or np.nan),
        }
    )


def _phases(metrics: dict[str, np.ndarray], masks: int | None) -> pd.DataFrame:
    stretches = phases(metrics)
    begins = np.array([stretch.first for stretch in stretches], dtype=int)
    return _places(metrics, masks, begins).assign(note=[stretch.name for stretch in stretches])


def _at_end(metrics: dict[str, np.ndarray], masks: int | None, value: float) -> dict[str, float]:
    place = _places(metrics, masks, np.array([len(metrics["step"]) - 1])).iloc[0].to_dict()
    return {str(name): float(at) for name, at in place.items() if np.isfinite(at)} | {"value": value}


def references(run: Run, measure: str) -> tuple[Reference, ...]:
    """Random, top-quality, the final subset if it was polished, and the proved bound if there is one; run's scale."""
    points, result = run.facts().get("references") or {}, run.status().result or NO_RESULT
    levels = []
    for key, label, role in (("random", "random subset", "random"), ("top_quality", "best-quality rows", "best")):
        value = (points.get(key) or {}).get(measure)
        if value is None and key == "random" and run.config.selection.scale == "calibrated":
            # calibration puts a random subset at 0 by definition, before anything else is known
            value = 0.0
        if value is not None:
            levels.append(Reference(label, float(value), role))
    final = _final(run, measure, result)
    if final is not None:
        levels.append(Reference("final selection, after local search", final, "final"))
    bound = result.certificate.upper_bound
    if bound is not None and measure == "joint":
        label = "bound" if result.certificate.exact else "bound of listed neighbors"
        levels.append(Reference(label, float(bound), "bound"))
    return tuple(sorted(levels, key=lambda reference: -reference.value))


def _final(run: Run, measure: str, result: RunResult) -> float | None:
    """What the final subset reaches where that is not where the curve ends: it was polished after the last step."""
    values = result.raw if run.config.selection.scale == "raw" else result.calibrated
    curve = run.metrics().get(measure, np.empty(0))
    ended = curve[np.isfinite(curve)]
    final = values.of(measure)
    if final is None or not len(ended) or abs(final - ended[-1]) <= 1e-3 * max(abs(final), abs(ended[-1])):
        return None
    return float(final)


def thinned(indices: np.ndarray) -> np.ndarray:
    """At most `MAX_POINTS` of these, evenly spread, both ends among them."""
    if len(indices) <= MAX_POINTS:
        return indices
    return indices[np.unique(np.linspace(0, len(indices) - 1, MAX_POINTS).round().astype(int))]
