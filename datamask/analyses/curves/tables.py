"""Learning curves of one run or several as one table: the way of each, where it turns and ends, and what it is held
against.

Masks are scored on the rows of their batch, the subset on all rows. The two are never one line, and only the subset may
be compared with a random subset, with top-quality or with a bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from datamask import catalogue
from datamask.analyses.curves.phases import phases, started_from
from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing
from datamask.dashboard.tradeoff.ends import Ends, ends_of, other_version
from datamask.errors import DatamaskError
from datamask.evaluation.result import NO_RESULT, ProvedBound
from datamask.measured import Anchor, Anchors
from datamask.runs.health import BESIDE, finite, reach
from datamask.runs.store import Run

MEASURES = ("joint", "quality", "diversity")
GAP = "gap"
PLACES = ("step", "seconds", "masks")
"""What a curve can be drawn along."""

CURVE, MASKS, RULE, TURN, END = "curve", "masks", "rule", "turn", "end"
"""Kinds of rows: the value of the subset, the mean of a step's masks, a reference, the begin of another phase, and the
value that the run ended with."""

COLUMNS = ("kind", "series", *PLACES, "value", "low", "high", "note")
BATCH = "sampled masks"
SUBSET = "selected rows"
GOES_ON = "continues from another run"

MOST = 8
"""Runs drawn in one chart: no more have colors of their own."""

FEWEST = 4
"""Points of a curve: fewer are said in words, since three dots show no way."""

MAX_POINTS = 400
"""Points per curve sent to the browser; more than a curve has pixels helps nobody."""

MARGIN = 0.35
"""What lies farther outside than this share of the span of curve, bound and random subset is said instead of drawn: it
would squeeze what the chart is about."""

LEAST_SPAN, LEAST_OF_SEVERAL = 0.3, 0.1
"""Shares of the attainable gain that the span has at least, so that a young curve hides nothing near it."""

CLOSED = 1e-9
"""A distance to the bound below this is rounding; a logarithmic axis has no place for 0."""


@dataclass(frozen=True)
class Curves:
    """What a chart of curves draws.

    Attributes:
        table: of `COLUMNS`, a row for each point or line; low and high are the mean minus and plus one standard
            deviation over the masks of a step. note: the phase, or what a reference, a turn or an end is.
        series: names of the lines, in their order.
        measure: joint, quality, diversity or `GAP`; unit: the axis's words.
        raw: whether values are on the raw scale; else they are shares, and are said in percent.
        without: run -> why there is no curve of it, in words.
        far: what lies too far off to be drawn, in words.
        key: what the lines differ in, where each is the mean over seeds, between the worst and the best; "": each is a
            run.
    """

    table: pd.DataFrame
    series: tuple[str, ...]
    measure: str
    unit: str
    raw: bool = False
    without: Mapping[str, str] | None = None
    far: tuple[str, ...] = ()
    key: str = ""

    @property
    def points(self) -> int:
        """Values on the longest of its lines."""
        return max(len(self.of(CURVE)), len(self.of(MASKS)))

    def of(self, kind: str) -> pd.DataFrame:
        """The rows of one kind."""
        return self.table[self.table["kind"] == kind]


def curve(run: Run, measure: str = "joint") -> Curves:
    """The learning curve of one measure, in the scale the run was learned in, or how far it is below its bound."""
    metrics, config, result = run.metrics(), run.config.selection, run.status().result or NO_RESULT
    raw, masks = config.scale == "raw", config.n_rollout
    if measure == GAP:
        certificate = result.certificate
        values = gaps(metrics, certificate)
        end = None if certificate.gap is None else max(float(certificate.gap), CLOSED)
        unit = "distance of the joint value to the bound" + (", raw scale" if raw else "")
        return Curves(_way(run, metrics, SUBSET, values, end), (SUBSET,), GAP, unit, raw)
    blank = np.full(len(metrics.get("step", ())), np.nan)
    end = (result.raw if raw else result.calibrated).of(measure)
    mean = metrics.get(f"batch_{measure}_mean", blank)
    spread = np.nan_to_num(metrics.get(f"batch_{measure}_std", blank))
    there = thinned(np.flatnonzero(np.isfinite(mean)))
    batch = _places(metrics, masks, there).assign(kind=MASKS, series=BATCH, value=mean[there], note="mean of the masks")
    batch = _clipped(batch.assign(low=(mean - spread)[there], high=(mean + spread)[there]))
    table = _joined([_way(run, metrics, SUBSET, metrics.get(measure, blank), end), batch, references(run, measure)])
    least = LEAST_SPAN * reach(config, run.facts()) if measure == "joint" or not raw else 0.0
    table, far = _near(table, least, raw)
    unit = f"{measure} value" if measure == "joint" else measure
    unit += ", raw scale" if raw else f" ({words.ends(measure)})"
    series = (SUBSET, BATCH) if (table["kind"] == MASKS).any() else (SUBSET,)
    return Curves(table, series, measure, unit, raw, None, far)


def _clipped(batch: pd.DataFrame) -> pd.DataFrame:
    """Sampled masks without the first steps below the 2nd percentile; the band ends at its 2nd and 98th.

    Of fewer than fifty steps a fiftieth is less than one: all are drawn.
    """
    if batch.empty:
        return batch
    least, low = (np.percentile(batch[name], 2, method="lower") for name in ("value", "low"))
    high = np.percentile(batch["high"], 98, method="higher")
    batch = batch[batch["value"] >= least]
    return batch.assign(
        low=np.minimum(batch["low"].clip(low), batch["value"]),
        high=np.maximum(batch["high"].clip(None, high), batch["value"]),
    )


def curves(runs: Sequence[Run], measure: str = "joint", lamb: float | None = None) -> Curves:
    """The curves of at most `MOST` runs as shares of the attainable gain, whatever scale a run was learned in.

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
    tables, without = [], {}
    drawn_ends: dict[str, Ends] = {}
    labels = listing.unlike({run.id: listing.label_of(run) for run in runs[:MOST]})
    for run in runs[:MOST]:
        label = labels[run.id]
        try:
            way = _shared_way(run, label, measure, lamb)
        except DatamaskError as error:
            without[label] = str(error)
            continue
        own_ends = ends_of(run.config.selection, run.status().result or NO_RESULT, run.facts())
        other = next((name for name, shown in drawn_ends.items() if shown.clash(own_ends)), None)
        if other is not None and measure != "quality":
            without[label] = other_version(other)
        elif (way["kind"] == CURVE).sum() < FEWEST:
            without[label] = few(*(way.loc[way["kind"] == kind, "value"].tolist() for kind in (CURVE, END)))
        else:
            drawn_ends[label] = own_ends
            tables.append(way)
    random = pd.DataFrame([{"kind": RULE, "value": 0.0, "note": "random subset"}])
    table, far = _near(_joined([*tables, random]), LEAST_OF_SEVERAL, False)
    named = measure if lamb is None else f"{measure} at λ {lamb:g}"
    return Curves(table, tuple(drawn_ends), measure, f"{named} ({words.ends(measure)})", False, without, far)


def lambdas(runs: Sequence[Run]) -> list[float]:
    """The different lambdas of at most `MOST` runs, rising; runs whose method has none are left out."""
    settings = [run.config.selection for run in runs[:MOST]]
    return sorted({config.lamb for config in settings if catalogue.estimator(config.estimator).guided})


def few(values: Sequence[float], ends: Sequence[float]) -> str:
    """What there is to say of a curve of less than `FEWEST` points.

    Args:
        values: as shares, in order. ends: the final one, or none.
    """
    counted = {0: "no value was", 1: "one value was"}.get(len(values), f"only {len(values)} values were")
    sentence, every = f"{counted} measured on the way", [*values, *ends]
    if not every:
        return sentence
    return f"{sentence}, {'it ended at' if len(ends) else 'the last'} {words.percent(float(every[-1]), 1)}"


def said(value: float, raw: bool, measure: str = "joint") -> str:
    """Return a value of a curve in few digits: in percent, or as it is on the raw scale."""
    if raw:
        return words.value(value, 3)
    return words.percent(value, 2 if measure == GAP else 1)


def measures(run: Run) -> tuple[str, ...]:
    """What can be drawn of a run: the three values, and the distance to the bound where there is one."""
    known = (run.status().result or NO_RESULT).certificate.upper_bound is not None
    return (*MEASURES, GAP) if known or len(finite(run.metrics(), "upper_bound")) else MEASURES


def across(run: Run) -> tuple[str, ...]:
    """What the curve can be drawn along; masks scored only where the learner samples masks."""
    return PLACES if run.config.selection.n_rollout else PLACES[:2]


def references(run: Run, measure: str) -> pd.DataFrame:
    """Rows of what a random subset and top-quality have, and of the bound where one is proved; in the run's scale."""
    points, result = run.facts().get("references") or {}, run.status().result or NO_RESULT
    levels = {name: (points.get(key) or {}).get(measure) for key, name in REFERENCES.items()}
    if levels["random subset"] is None and run.config.selection.scale == "calibrated":
        # calibration puts a random subset at 0 by definition, before anything else is known
        levels["random subset"] = 0.0
    if measure == "joint":
        label = "bound" if result.certificate.exact else "bound of listed neighbors"
        levels[label] = result.certificate.upper_bound
    known = [{"kind": RULE, "value": float(value), "note": name} for name, value in levels.items() if value is not None]
    return pd.DataFrame(known, columns=["kind", "value", "note"])


REFERENCES = {"random": "random subset", "top_quality": "best-quality rows"}
"""What a run measures beside its selection, with its name on the chart."""


def gaps(metrics: dict[str, np.ndarray], certificate: ProvedBound) -> np.ndarray:
    """How far the subset is below the best bound known at each record.

    A run that proved nothing on the way is held against the bound of its end, which is as true of every step.
    """
    values, bounds = metrics.get("joint", np.zeros(0)), metrics.get("upper_bound")
    if bounds is None or not np.isfinite(bounds).any():
        proved = certificate.upper_bound
        bounds = np.full(len(values), np.nan if proved is None else float(proved))
    # every bound holds for all time: the lowest so far is the one that counts
    bounds = np.fmin.accumulate(bounds) if len(bounds) else bounds
    return np.maximum(bounds - values, CLOSED)


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


def weighed(quality: float | None, diversity: float | None, lamb: float) -> float | None:
    """The joint value at a lambda of the shares of both terms; None where one is missing."""
    if quality is None or diversity is None:
        return None
    return lamb * quality + (1 - lamb) * diversity


def thinned(indices: np.ndarray) -> np.ndarray:
    """At most `MAX_POINTS` of these, evenly spread, both ends among them."""
    if len(indices) <= MAX_POINTS:
        return indices
    return indices[np.unique(np.linspace(0, len(indices) - 1, MAX_POINTS).round().astype(int))]


def _shared_way(run: Run, label: str, measure: str, lamb: float | None) -> pd.DataFrame:
    metrics, config, result = run.metrics(), run.config.selection, run.status().result or NO_RESULT
    anchors, end = run.anchors() or Anchors(), result.calibrated.of(measure)
    if measure == "joint" and lamb is not None and lamb != config.lamb:
        quality, diversity = (shares(metrics, config, anchors, term) for term in ("quality", "diversity"))
        values = lamb * quality + (1 - lamb) * diversity
        end = weighed(result.calibrated.quality, result.calibrated.diversity, lamb)
    else:
        values = shares(metrics, config, anchors, measure)
    return _way(run, metrics, label, values, end)


def _way(run: Run, metrics: dict[str, np.ndarray], series: str, values: np.ndarray, end: float | None) -> pd.DataFrame:
    """A run's curve, its turns and its end.

    Args:
        values: at each record. end: the final value; None: the run has not ended, or it is not known.
    """
    masks, names, turns = run.config.selection.n_rollout, np.full(len(values), "", dtype=object), {}
    for place, phase in enumerate(phases(metrics)):
        names[phase.first : phase.last + 1] = phase.name
        measured = phase.first + np.flatnonzero(np.isfinite(values[phase.first : phase.last + 1]))
        if len(measured) and (place or started_from(run)):
            turns[int(measured[0])] = f"{phase.name} begins" if place else GOES_ON
    parts = []
    for kind, there, notes in (
        (CURVE, thinned(np.flatnonzero(np.isfinite(values))), names),
        (TURN, np.array(list(turns), int), None),
    ):
        rows = _places(metrics, masks, there).assign(kind=kind, series=series, value=values[there])
        parts.append(rows.assign(note=list(turns.values()) if notes is None else notes[there]))
    if end is not None and math.isfinite(end):
        last = np.array([len(values) - 1] if len(values) else [], int)
        at = _places(metrics, masks, last) if len(last) else pd.DataFrame({name: [0.0] for name in PLACES})
        parts.append(at.assign(kind=END, series=series, value=end, note=FINAL))
    return _joined(parts)


FINAL = "final selection"


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [part for part in parts if len(part)]
    table = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()
    return table.reindex(columns=list(COLUMNS))


def _near(table: pd.DataFrame, least: float, raw: bool) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Leave out what lies far from the ends of the curves, the bound and a random subset; gives that in words, too.

    Args:
        least: the span is taken to be at least this.
    """
    way, kind = table["kind"] == CURVE, table["kind"]
    # of several runs the ends: greedy picks begin so low that nothing else would be seen of the others
    several = table.loc[way, "series"].nunique() > 1
    core = way & ~table["series"].duplicated(keep="last") if several else way
    core = core | (kind == END) | ((kind == RULE) & (table["note"] != REFERENCES["top_quality"]))
    values = table.loc[core, "value"].dropna()
    if values.empty or not way.any():
        return table, ()
    room = MARGIN * max(values.max() - values.min(), least)
    low, high = values.min() - room, (math.inf if several else values.max() + room)
    outside = (table["value"] < low) | (table["value"] > high)
    far = [
        f"{'▲' if row.value > high else '▼'} {row.note} {said(row.value, raw)}"
        for row in table[outside & (kind == RULE)].itertuples()
    ]
    batch = table[kind == MASKS]
    if len(batch) and outside[batch.index[-1]]:
        last = float(batch["value"].iloc[-1])
        far.append(f"{'▲' if last > high else '▼'} {BATCH} {said(last, raw)}")
    if (outside & way).any():
        far.append("values far below all ends")
    kept = table[~outside].copy()
    kept[["low", "high"]] = kept[["low", "high"]].clip(low, high)
    return kept, tuple(far)


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


def _share(raw: np.ndarray, anchor: Anchor | None) -> np.ndarray:
    if anchor is None or not anchor.best > anchor.random:
        return np.full(len(raw), np.nan)
    return (raw - anchor.random) / (anchor.best - anchor.random)
