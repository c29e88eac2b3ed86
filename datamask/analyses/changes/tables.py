"""What one selection keeps, gains and loses against another, over all rows and by group. Pure numpy and pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd

from datamask.dashboard.linked.groups import Z

KINDS = ("kept", "gained", "lost")

MORE, LESS, SAME = "takes more", "takes less", "no clear change"


def masks(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Bool ``(N,)`` of each of `KINDS`: in both, only in the second, only in the first."""
    first, second = np.asarray(first, bool), np.asarray(second, bool)
    return {"kept": first & second, "gained": second & ~first, "lost": first & ~second}


def paired(gained: np.ndarray, lost: np.ndarray, n: np.ndarray, z: float = Z) -> tuple[np.ndarray, np.ndarray]:
    """Interval of the change of a share, ``(gained - lost) / n``, when both shares are of the same n samples.

    The adjusted Wald interval of Bonett and Price (2012), which adds one pair of each kind: samples that both
    selections treat alike say nothing about a change, so the two shares may not be compared as if they were strangers.

    Args:
        z: normal quantile of the confidence.

    Returns:
        Its lower and upper ends, float64.
    """
    gained, lost, n = (np.asarray(part, float) for part in (gained, lost, n))
    more, less = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    reach = z * np.sqrt((more + less - (more - less) ** 2) / (n + 2))
    change = (gained - lost) / n
    # the adjustment pulls towards 0 and must not leave the change itself outside
    return (
        np.clip(np.minimum(more - less - reach, change), -1, 1),
        np.clip(np.maximum(more - less + reach, change), -1, 1),
    )


def by_group(
    codes: np.ndarray, names: tuple[str, ...], first: np.ndarray, second: np.ndarray, weights: np.ndarray | None = None
) -> pd.DataFrame:
    """One row per group that is not empty, the largest sure change first.

    Columns: ``group, n, kept, gained, lost, before, after`` (selected shares), ``change, low, high`` (their difference
    and its interval), ``verdict``, and with weights ``tokens_kept, tokens_gained, tokens_lost``. Sure is how far the
    interval stays away from the change over all rows, which is 0 for selections of one size.

    Args:
        codes: ``(N,)`` indices into names; -1: in no group.
        first, second: bool ``(N,)``.
        weights: tokens ``(N,)``.
    """
    inside = codes >= 0
    n = np.bincount(codes[inside], minlength=len(names))
    there = np.flatnonzero(n)
    parts = masks(first, second)
    counts = {kind: np.bincount(codes[inside & mask], minlength=len(names))[there] for kind, mask in parts.items()}
    total = n[there]
    low, high = paired(counts["gained"], counts["lost"], total)
    overall = float(np.mean(second)) - float(np.mean(first))
    off = np.where(low > overall, low - overall, np.where(high < overall, high - overall, 0.0))
    change = (counts["gained"] - counts["lost"]) / total
    table = pd.DataFrame(
        {
            "group": np.array(names, object)[there],
            "n": total,
            **counts,
            "before": (counts["kept"] + counts["lost"]) / total,
            "after": (counts["kept"] + counts["gained"]) / total,
            "change": change,
            "low": low,
            "high": high,
            "verdict": np.where(off > 0, MORE, np.where(off < 0, LESS, SAME)),
        }
    )
    if weights is not None:
        for kind, mask in parts.items():
            chosen = inside & mask
            table[f"tokens_{kind}"] = np.bincount(codes[chosen], weights[chosen], minlength=len(names))[there]
    order = np.lexsort((table["group"].astype(str), -np.abs(change - overall), -np.abs(off)))
    return table.iloc[order].reset_index(drop=True)
