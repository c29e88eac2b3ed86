"""What a run was doing at each record of its curve: learning masks, swapping, looking for a bound; where it began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from datamask.runs.store import Run

LEARNING, SOLVING, PICKING, SWAPS, BOUND = "mask learning", "solver", "picks", "swaps", "bound"

SIGNS = (
    ("dual_steps", BOUND),
    ("swaps", SWAPS),
    ("anneals", SWAPS),
    ("refills", SWAPS),
    ("picks", PICKING),
    ("batch_joint_mean", LEARNING),
)
"""By which number of a record one sees what it is of; the first that it has decides."""


@dataclass(frozen=True)
class Phase:
    """A stretch of a curve: its name, its first record and its last, from 0."""

    name: str
    first: int
    last: int


def phases(metrics: Mapping[str, np.ndarray]) -> list[Phase]:
    """The stretches of a curve in order. One phase may come several times: blocks swap after each round."""
    steps = metrics.get("step", np.zeros(0))
    names = np.full(len(steps), SOLVING, dtype=object)
    joint = metrics.get("joint", np.full(len(steps), np.nan))
    if np.isfinite(joint).any():
        # the step that swaps or picks were part of ends with their last value, and is no stretch of its own
        names[~np.isfinite(joint) | (joint == pd.Series(joint).ffill().shift().to_numpy())] = ""
    for column, name in reversed(SIGNS):
        if column in metrics:
            names[np.isfinite(metrics[column])] = name
    place = np.maximum.accumulate(np.where(names != "", np.arange(len(names)), 0))
    names = names[place]
    if len(names) and not names[0]:
        names[names == ""] = next((name for name in names if name), SOLVING)
    starts = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1)] if len(names) else []
    ends = [*(int(start) - 1 for start in starts[1:]), len(names) - 1]
    return [Phase(str(names[start]), int(start), end) for start, end in zip(starts, ends)]


def started_from(run: Run) -> str | None:
    """The id of the run that this one went on from; None: it began anew."""
    return run.facts().get("warm_from")
