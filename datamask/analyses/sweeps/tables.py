"""What is drawn of a series: the values its runs ended with, and those on the way, over seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from datamask.analyses.sweeps.series import Series
from datamask.dashboard.tradeoff.spots import Spot, spot_of

GRID_POINTS = 60
"""Moments of time at which the curves of a level are averaged over seeds."""


def ends(series: Series) -> pd.DataFrame:
    """One row per level and term: ``level, value, term, share, low, high, n, raw``.

    ``share`` is the mean over the level's runs in percent of the way from random to the best found, ``low`` and
    ``high`` are the least and the greatest of them, ``n`` is how many there are. Levels without values are left out.
    """
    rows = []
    for level in series.levels:
        spots: list[Spot] = [spot for spot in map(spot_of, level.runs) if spot is not None]
        for term in ("quality", "diversity") if spots else ():
            shares = np.array([100 * getattr(spot, term) for spot in spots])
            raw = [getattr(spot, f"raw_{term}") for spot in spots]
            rows.append(
                {
                    "level": level.name,
                    "value": level.value,
                    "term": term,
                    "share": float(shares.mean()),
                    "low": float(shares.min()),
                    "high": float(shares.max()),
                    "n": len(spots),
                    "raw": math.nan if None in raw else float(np.mean(raw)),
                }
            )
    return pd.DataFrame(rows)


def curves(series: Series) -> pd.DataFrame:
    """Rows ``level, seconds, mean, low, high, n``: the joint value over seconds of learning, and over seeds.

    Curves are read at common moments, from when every seed has a value until the first of them ends. Levels whose runs
    have no curve are left out.
    """
    parts = []
    for level in series.levels:
        read = []
        for run in level.runs:
            metrics = run.metrics()
            seconds, joint = (metrics.get(name, np.zeros(0)) for name in ("seconds", "joint"))
            if len(joint) != len(seconds):
                continue
            there = np.isfinite(joint) & np.isfinite(seconds) & (seconds > 0)
            if np.count_nonzero(there) > 1:
                read.append((seconds[there], joint[there]))
        if read:
            parts.append(band(read).assign(level=level.name, n=len(read)))
    columns = ["level", "seconds", "mean", "low", "high", "n"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def band(read: Sequence[tuple[np.ndarray, np.ndarray]]) -> pd.DataFrame:
    """Mean, lowest and highest of some curves ``(seconds, value)`` at common, log-spaced moments."""
    first, last = max(seconds[0] for seconds, _ in read), min(seconds[-1] for seconds, _ in read)
    if last <= first:  # they never run at the same time: their ends are all that compares
        at = np.array([np.mean([seconds[-1] for seconds, _ in read])])
        values = np.array([[value[-1]] for _, value in read])
    else:
        at = np.geomspace(first, last, GRID_POINTS)
        values = np.array([np.interp(np.log(at), np.log(seconds), value) for seconds, value in read])
    return pd.DataFrame(
        {"seconds": at, "mean": values.mean(axis=0), "low": values.min(axis=0), "high": values.max(axis=0)}
    )
