"""Which groups are under- and over-represented in a selection: selected share against the pool's, with its interval.

Groups are regions, classes of any column, or bands of length. Pure numpy and pandas.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

Z = 1.959963984540054
"""Of a 95 % interval."""

UNDER, OVER, EVEN = "under-represented", "over-represented", "in proportion"

BANDS = 6
"""Bands of length, of about equal numbers of samples."""


def wilson(hits: np.ndarray, n: np.ndarray, z: float = Z) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of a share (Wilson 1927): honest for few samples and for shares near 0 and 1.

    Args:
        hits: of n; n >= 1.
        z: normal quantile of the confidence.

    Returns:
        Its lower and upper ends, float64.
    """
    hits, n = np.asarray(hits, float), np.asarray(n, float)
    share = hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # rounding must not put a share outside of its own interval
    return np.minimum(np.maximum(middle - reach, 0), share), np.maximum(np.minimum(middle + reach, 1), share)


def off(hits: np.ndarray, n: np.ndarray, ratio: float) -> np.ndarray:
    """How far the interval of each share lies from the share of all rows, float64; below 0: under-represented.

    Args:
        hits: of n; n >= 1. ratio: share of all rows.
    """
    low, high = wilson(hits, n)
    return np.where(low > ratio, low - ratio, np.where(high < ratio, high - ratio, 0.0))


def shares(
    codes: np.ndarray,
    names: tuple[str, ...],
    selected: np.ndarray,
    weights: np.ndarray | None = None,
    shown: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row per group: ``group, n, selected, share, low, high, verdict, lift``, and ``tokens`` if weights are given.

    Groups whose interval lies farthest from the share of all rows come first. ``lift`` is
    the share over that of all rows. Empty groups are left out.

    Args:
        codes: ``(N,)`` indices into names; -1: in no group.
        selected: bool ``(N,)``.
        weights: tokens ``(N,)``.
        shown: bool ``(N,)``, the rows that are counted; None: all. The share that they are compared with is always
            that of all rows.
    """
    inside = codes >= 0 if shown is None else (codes >= 0) & shown
    n = np.bincount(codes[inside], minlength=len(names))
    hits = np.bincount(codes[inside & selected], minlength=len(names))
    there = np.flatnonzero(n)
    ratio = float(selected.mean())
    low, high = wilson(hits[there], n[there])
    away = off(hits[there], n[there], ratio)
    table = pd.DataFrame(
        {
            "group": np.array(names, object)[there],
            "n": n[there],
            "selected": hits[there],
            "share": hits[there] / n[there],
            "low": low,
            "high": high,
            "verdict": np.where(away < 0, UNDER, np.where(away > 0, OVER, EVEN)),
            "lift": hits[there] / n[there] / ratio if ratio else np.nan,
        }
    )
    if weights is not None:
        table["tokens"] = np.bincount(codes[inside], weights[inside], minlength=len(names))[there]
    order = np.lexsort((table["group"].astype(str), -table["n"], -np.abs(away)))
    return table.iloc[order].reset_index(drop=True)


def bands(values: np.ndarray, unit: str = "", count: int = BANDS) -> tuple[np.ndarray, tuple[str, ...]]:
    """Bands of a number with about equal numbers of rows: codes int32 ``(N,)``, -1 without a value, and their names."""
    values = np.asarray(values, float)
    known = np.isfinite(values)
    if not known.any():
        return np.full(len(values), -1, np.int32), ()
    edges = np.unique(np.quantile(values[known], np.arange(1, count) / count, method="lower"))
    # an edge at the very top would leave the band above it empty
    edges = edges[edges < values[known].max()]
    codes = np.searchsorted(edges, values, side="left").astype(np.int32)
    ends = [f"{edge:,.4g}" for edge in edges]
    unit = f" {unit}" if unit else ""
    if not ends:
        return np.where(known, 0, -1).astype(np.int32), (f"all{unit}",)
    names = [f"up to {ends[0]}{unit}", *(f"over {a} to {b}{unit}" for a, b in pairwise(ends)), f"over {ends[-1]}{unit}"]
    return np.where(known, codes, -1).astype(np.int32), tuple(names)


@dataclass(frozen=True)
class Heat:
    """Regions by quality and crowding.

    Attributes:
        table: one row per occupied cell: ``quality, crowding`` (0 .. steps - 1, rising), ``regions, n, selected,
            share, low, high`` and ``members``, the names of the regions in it.
        quality, crowding: what the steps stand for, a label each.
        ratio: share of all rows.
    """

    table: pd.DataFrame
    quality: tuple[str, ...]
    crowding: tuple[str, ...]
    ratio: float


def heat(
    codes: np.ndarray,
    names: tuple[str, ...],
    quality: np.ndarray,
    crowding: np.ndarray,
    selected: np.ndarray,
    shown: np.ndarray | None = None,
) -> Heat:
    """The selected share over regions, in steps of their mean quality and mean crowding.

    The steps hold about equal numbers of rows, so that no part of the picture stands for a handful of samples.

    Args:
        codes: int ``(N,)``, the region of each row, indices into names; -1: none.
        shown: bool ``(N,)``, the rows that are counted; None: all. A region keeps its place whatever is shown.
    """
    counted = codes >= 0
    n = np.bincount(codes[counted], minlength=len(names))
    there = np.flatnonzero(n)
    steps = int(np.clip(round(np.sqrt(len(there) / 3)), 2, 6))
    places, labels = [], []
    for values in (quality, crowding):
        means = np.bincount(codes[counted], values[counted], minlength=len(names))[there] / n[there]
        order = np.argsort(means, kind="stable")
        # the middle of each region's rows in the order of the means decides
        middle = np.cumsum(n[there][order]) - n[there][order] / 2
        step = np.empty(len(there), int)
        step[order] = np.minimum((middle / n.sum() * steps).astype(int), steps - 1)
        places.append(step)
        labels.append(
            tuple(
                f"{means[step == k].min():.3g} to {means[step == k].max():.3g}" if (step == k).any() else "none"
                for k in range(steps)
            )
        )
    if shown is not None:
        counted = counted & shown
        n = np.bincount(codes[counted], minlength=len(names))
    hits = np.bincount(codes[counted & selected], minlength=len(names))
    rows = []
    for a in range(steps):
        for b in range(steps):
            members = there[(places[0] == a) & (places[1] == b)]
            if n[members].sum():
                rows.append(
                    (
                        a,
                        b,
                        len(members),
                        int(n[members].sum()),
                        int(hits[members].sum()),
                        tuple(names[k] for k in members),
                    )
                )
    table = pd.DataFrame(rows, columns=["quality", "crowding", "regions", "n", "selected", "members"])
    table["share"] = table["selected"] / table["n"]
    table["low"], table["high"] = wilson(table["selected"].to_numpy(), table["n"].to_numpy())
    return Heat(table, labels[0], labels[1], float(selected.mean()))
