"""How the learning itself goes: a small table for each of the learner's vital signs.

Whether it converged is `datamask.runs.health`'s to say; here are numbers that it is said by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from datamask import catalogue
from datamask.analyses.curves.tables import COLUMNS, CURVE, RULE, Curves, thinned
from datamask.config import SelectionConfig
from datamask.runs.health import finite

SMOOTHED = 20
"""A single step's signal is told badly: the ratio shown is over so many steps."""


@dataclass(frozen=True)
class Vital:
    """One small chart: its `title`, what it means, and the values, ``step, series, value``.

    Attributes:
        shares: whether the values are shares, 0 to 1.
        chance: what two random selections would have, a dashed line; None: no such line.
    """

    name: str
    title: str
    help: str
    table: pd.DataFrame
    shares: bool = False
    chance: float | None = None

    @property
    def curves(self) -> Curves:
        """What its chart draws."""
        rows = [self.table.assign(kind=CURVE)]
        if self.chance is not None:
            rows.append(pd.DataFrame([{"kind": RULE, "value": self.chance, "note": "by chance"}]))
        table = pd.concat(rows, ignore_index=True).reindex(columns=list(COLUMNS))
        return Curves(table, tuple(dict.fromkeys(self.table["series"])), self.title, "", not self.shares)


def vitals(metrics: Mapping[str, np.ndarray], config: SelectionConfig, facts: Mapping) -> tuple[Vital, ...]:
    """The small tables; those the learner does not have are left out."""
    selected, n = facts.get("selected") or 0, facts.get("n") or 0
    exact = config.estimator == "counterfactual"
    candidates = [
        Vital(
            "decided",
            "Rows converged",
            "Share of rows that at least 95 % of the masks include or exclude. If it is near 100 % after a few "
            "steps, the step size is too large.",
            _tidy(metrics, {"decided": "decided"}),
            True,
        ),
        Vital(
            "changed",
            "Rows changed per step",
            "Selected rows that each step replaces. It falls toward 0 as the learner converges.",
            _per_step(metrics, selected),
        ),
        Vital(
            "signal",
            "Signal over noise",
            "Size of an update divided by its scatter across masks. Below 1, updates are mostly noise.",
            _signal(metrics),
        ),
        Vital(
            "spread",
            "Spread across masks",
            "Spread of the joint value over the masks of a step. Near 0, REINFORCE learns nothing.",
            _tidy(metrics, {"batch_joint_std": "spread"}),
        ),
        Vital(
            "shares",
            "Sources of variance",
            "How much of the variance of "
            + ("the rows' credit" if exact else "the masks' reward")
            + " comes from quality, and how much from diversity. If one is near 100 %, the other has no effect.",
            _tidy(metrics, _terms(metrics, "share_")),
            True,
        ),
        Vital(
            "overlap",
            "Overlap with quality or diversity alone",
            "Rows in both selections, divided by the rows in either. Dashed: two random selections.",
            _tidy(metrics, _terms(metrics, "overlap_")),
            True,
            _chance(selected, n),
        ),
        Vital(
            "missed",
            "Rows not covered",
            "Share of rows with no selected row in their stored list of nearest rows. The learner counts them as not "
            "similar to any selected row.",
            _tidy(metrics, {"missed": "uncovered"}) if finite(metrics, "missed").any() else _tidy(metrics, {}),
            True,
        ),
    ]
    return tuple(vital for vital in candidates if len(vital.table) > 1)


def _terms(metrics: Mapping[str, np.ndarray], prefix: str) -> dict[str, str]:
    """Column -> the term's name for people, quality first."""
    names = sorted((name for name in metrics if name.startswith(prefix)), key=lambda name: name != f"{prefix}quality")
    return {name: _label(name.removeprefix(prefix)) for name in names}


def _label(term: str) -> str:
    return "quality" if term == "quality" else catalogue.objective(term).label


def _tidy(metrics: Mapping[str, np.ndarray], columns: Mapping[str, str]) -> pd.DataFrame:
    parts = []
    for name, series in columns.items():
        values = metrics.get(name, np.zeros(0))
        there = thinned(np.flatnonzero(np.isfinite(values)))
        parts.append(
            pd.DataFrame(
                {"step": metrics["step"][there] if len(there) else [], "series": series, "value": values[there]}
            )
        )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"step": [], "series": [], "value": []})


def _signal(metrics: Mapping[str, np.ndarray]) -> pd.DataFrame:
    signal = metrics.get("signal")
    if signal is None:
        return _tidy(metrics, {})
    known = np.flatnonzero(np.isfinite(signal))
    smooth = pd.Series(signal[known]).rolling(SMOOTHED, min_periods=1).mean().clip(lower=0.0) ** 0.5
    return _tidy({"step": metrics["step"][known], "snr": smooth.to_numpy()}, {"snr": "signal over noise"})


def _per_step(metrics: Mapping[str, np.ndarray], selected: int) -> pd.DataFrame:
    changed = metrics.get("changed")
    if changed is None or not selected:
        return _tidy(metrics, {})
    looked = np.flatnonzero(np.isfinite(metrics.get("joint", changed)))
    steps = metrics["step"][looked]
    rows = changed[looked] * selected / np.diff(steps, prepend=np.nan)
    return _tidy({"step": steps, "rows": rows}, {"rows": "rows changed"})


def _chance(selected: int, n: int) -> float | None:
    """Overlap of two random selections of this size: r / (2 - r)."""
    if not (selected and n):
        return None
    ratio = selected / n
    return ratio / (2 - ratio)
