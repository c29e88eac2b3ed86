"""Sweeps over something else than lambda, as tables: the select ratio, the group size G, and slices of the corpus."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from datamask import catalogue
from datamask.config import CorpusConfig, SelectionConfig
from datamask.dashboard.analyses.frontier import tables as frontier
from datamask.dashboard.analyses.frontier.tables import FREE, Line, Spot
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import outcome
from datamask.errors import DatamaskError
from datamask.runs.store import Run

GRID_POINTS = 60
"""Moments of time at which the curves of a group size are averaged over seeds."""


@dataclass(frozen=True)
class Series:
    """Runs that differ in one setting (and the seed) alone.

    Attributes:
        key, label: what they share, short and in words. table: what is drawn.
    """

    key: str
    label: str
    table: pd.DataFrame


def _shared(settings: SelectionConfig, free: Sequence[str]) -> str:
    return json.dumps(
        {name: value for name, value in settings.to_dict().items() if name not in free}, sort_keys=True, default=str
    )


# -- the select ratio ----------------------------------------------------------------------------------------------


def ratio_series(runs: Iterable[Run], fingerprint: str) -> list[Series]:
    """Series with at least two ratios, the longest first.

    Tables: ``ratio, term`` (quality or diversity), ``share`` in percent (mean over seeds), ``n`` (seeds), ``raw``,
    ``run_id`` (of the latest).
    """
    groups: dict[str, list[Spot]] = {}
    for spot in filter(None, (frontier.spot_of(run, fingerprint) for run in runs)):
        if catalogue.estimator(spot.settings.estimator).learns:
            groups.setdefault(_shared(spot.settings, ("select_ratio", "seed", "device")), []).append(spot)
    listed = []
    for key, spots in groups.items():
        ratios = sorted({spot.settings.select_ratio for spot in spots})
        if len(ratios) < 2:
            continue
        rows = []
        for ratio in ratios:
            at_ratio = [spot for spot in spots if spot.settings.select_ratio == ratio]
            for term in ("quality", "diversity"):
                raw = [getattr(spot, f"raw_{term}") for spot in at_ratio]
                rows.append(
                    {
                        "ratio": 100 * ratio,
                        "term": term,
                        "n": len(at_ratio),
                        "run_id": at_ratio[0].run_id,
                        "share": 100 * float(np.mean([getattr(spot, term) for spot in at_ratio])),
                        "raw": math.nan if None in raw else float(np.mean(raw)),
                    }
                )
        settings = spots[0].settings
        label = f"{outcome.objective_label(settings.objective)}, λ {settings.lamb:g}, {_how(settings)}"
        listed.append(Series(key, label, pd.DataFrame(rows)))
    return sorted(listed, key=lambda series: -len(series.table))


# -- the group size ------------------------------------------------------------------------------------------------


def group_series(runs: Iterable[Run], fingerprint: str) -> list[Series]:
    """Series with at least two group sizes, the longest first.

    Tables: ``G, seconds`` (of learning), ``mean, low, high`` of the joint value over seeds at that moment, ``seeds``.
    Curves are read at common moments, from when every seed has a value until the first of them ends.
    """
    groups: dict[str, dict[int, list[tuple[np.ndarray, np.ndarray]]]] = {}
    settings_of: dict[str, SelectionConfig] = {}
    for run in runs:
        settings = _settings_on(run, fingerprint)
        if settings is None or settings.n_rollout is None:
            continue
        metrics = run.metrics()
        seconds, joint = (metrics.get(name, np.zeros(0)) for name in ("seconds", "joint"))
        there = np.isfinite(joint) & np.isfinite(seconds) & (seconds > 0) if len(joint) == len(seconds) else []
        if np.count_nonzero(there) < 2:
            continue
        key = _shared(settings, ("n_rollout", "seed", "device"))
        settings_of.setdefault(key, settings)
        groups.setdefault(key, {}).setdefault(settings.n_rollout, []).append((seconds[there], joint[there]))
    listed = []
    for key, sizes in groups.items():
        if len(sizes) < 2:
            continue
        settings = settings_of[key]
        label = (
            f"{outcome.objective_label(settings.objective)}, λ {settings.lamb:g}, "
            f"{frontier.ratio_words(settings.select_ratio)}, {_how(settings)}"
        )
        parts = [band(curves).assign(G=size, seeds=len(curves)) for size, curves in sorted(sizes.items())]
        listed.append(Series(key, label, pd.concat(parts, ignore_index=True)))
    return sorted(listed, key=lambda series: -len(series.table))


def band(curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> pd.DataFrame:
    """Mean, lowest and highest of some curves ``(seconds, value)`` at common, log-spaced moments."""
    first, last = max(seconds[0] for seconds, _ in curves), min(seconds[-1] for seconds, _ in curves)
    if last <= first:  # they never run at the same time: their ends are all that compares
        at = np.array([np.mean([seconds[-1] for seconds, _ in curves])])
        values = np.array([[value[-1]] for _, value in curves])
    else:
        at = np.geomspace(first, last, GRID_POINTS)
        values = np.array([np.interp(np.log(at), np.log(seconds), value) for seconds, value in curves])
    return pd.DataFrame(
        {"seconds": at, "mean": values.mean(axis=0), "low": values.min(axis=0), "high": values.max(axis=0)}
    )


# -- slices of the corpus ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Transfer:
    """The same sweep on slices of a corpus.

    Attributes:
        lines: by the slice's name, smallest first; each curve has the ends of its own scales.
        apart: by slice, the largest distance at one lambda from the whole corpus's curve, in shares, and at which.
    """

    lines: dict[str, Line]
    apart: dict[str, tuple[float, float]]


def transfer(
    runs: Iterable[Run], slices: Mapping[str, CorpusConfig], fingerprint: str, settings: SelectionConfig
) -> Transfer:
    """The curves with these settings on each slice; those with fewer than two points are left out.

    Args:
        slices: name -> corpus, the whole one last; fingerprint: of the whole one, which may have been opened by another
            path.
        settings: what the curve on the whole corpus shares.
    """
    last = list(slices)[-1]
    wanted = _shared(settings, FREE)
    spots: dict[str, list[Spot]] = {name: [] for name in slices}
    for run in runs:
        try:
            config, whole_one = run.config, run.facts().get("fingerprint") == fingerprint
        except DatamaskError:  # listed elsewhere, with its reason
            continue
        name = last if whole_one else next((name for name, corpus in slices.items() if corpus == config.corpus), None)
        if name is not None and _shared(config.selection, FREE) == wanted and (spot := frontier.spot_of(run)):
            spots[name].append(spot)
    lines = {
        name: Line(name, tuple(sorted(of_name, key=lambda spot: spot.lamb)))
        for name, of_name in spots.items()
        if len({spot.lamb for spot in of_name}) > 1
    }
    apart = {}
    whole = lines.get(last)
    if whole is not None:
        there = {lamb: (quality, diversity) for lamb, quality, diversity in whole.means()}
        for name, line in lines.items():
            gaps = [
                (math.dist(there[lamb], (quality, diversity)), lamb)
                for lamb, quality, diversity in line.means()
                if lamb in there
            ]
            if line is not whole and gaps:
                apart[name] = max(gaps)
    return Transfer(lines, apart)


def transfer_words(check: Transfer) -> str:
    """How well slices tell the whole corpus's frontier, in a sentence."""
    if not check.apart:
        return "Two curves with a common λ are needed to compare them."
    distances = [
        f"{name} lies at most {100 * far:.1f} points off, at λ {lamb:g}" for name, (far, lamb) in check.apart.items()
    ]
    worst = max(far for far, _ in check.apart.values())
    verdict = (
        "A λ chosen on a slice may be used on the whole."
        if worst < 0.05
        else "A λ chosen on a slice would not give the same trade-off on the whole."
    )
    return f"Against the whole corpus: {'; '.join(distances)}. {verdict}"


def _settings_on(run: Run, fingerprint: str) -> SelectionConfig | None:
    try:
        done = run.status().state == "done" and run.facts().get("fingerprint") == fingerprint
        return run.config.selection if done else None
    except DatamaskError:  # listed elsewhere, with its reason
        return None


def _how(settings: SelectionConfig) -> str:
    name = catalogue.estimator(settings.estimator).label.partition(" (")[0]
    extras = [] if settings.scale == "calibrated" else ["raw scale"]
    if settings.collapse != "none":
        extras.append("copies collapsed")
    if settings.prune:
        extras.append(f"worst {words.percent(settings.prune)} pruned")
    return ", ".join([name, *extras])
