"""What each objective sees: the planted toy as tables for a picture. Pure: no streamlit; torch only in the thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from datamask.work.cache import Cache
from datamask.work.job import Job
from datamask.work.result_file import Content, Entry, require
from datamask.work.worker import worker

ENTRY = Entry("toy", "toy", 1, old="../toy-1.npz")
"""Its name in the cache; the number rises when the toy changes."""

GROUPS = ("crowd", "near-copies", "good niche", "outliers")
FAMILY = 7
"""Members of each family of near-copies, one after the other."""

TITLES = {"facility": "Facility location", "pairwise": "Pair-wise similarity", "disf": "DiSF", "graphcut": "Graph cut"}
SEES = {
    "facility": "Covers every place: one of each family of copies, few from the crowd.",
    "pairwise": "Looks at overall directions only: copies far from the crowd all look welcome.",
    "disf": "Looks at how feature dimensions vary together: blind to copies too.",
    "graphcut": "Avoids near neighbours that are both selected: less of the crowd, here about two of each family.",
}
KEY = "toy"


@dataclass(frozen=True)
class Toy:
    """The toy as it was stored: points ``(n, 2)``, group ``(n,)``, quality ``(n,)``, one mask per objective."""

    points: np.ndarray
    group: np.ndarray
    quality: np.ndarray
    masks: dict[str, np.ndarray]

    @property
    def ratio(self) -> float:
        """The share that every objective selected."""
        return float(next(iter(self.masks.values())).mean())


def load(cache_dir: Path) -> Toy | None:
    """The solved toy; None where it is not there yet."""
    return Cache(cache_dir).find(ENTRY, _kept_toy)


def _kept_toy(content: Content) -> Toy:
    """The toy that a file holds. Raises Implausible where it is none."""
    arrays = content.arrays
    toy = Toy(arrays["points"], arrays["group"], arrays["quality"], {name: arrays[f"mask_{name}"] for name in TITLES})
    n = len(toy.points)
    require(toy.points.shape == (n, 2) and np.isfinite(toy.points).all(), "the points are none of the plane")
    require(toy.group.shape == (n,) and toy.group.dtype.kind == "i", "the groups are of other points")
    require(toy.group.min() >= 0 and toy.group.max() == len(GROUPS) - 1, "a group has no name")
    require(toy.quality.shape == (n,) and np.isfinite(toy.quality).all(), "the quality is of other points")
    require(
        all(mask.shape == (n,) and mask.dtype == bool for mask in toy.masks.values()), "a selection is of other points"
    )
    require(
        len({int(mask.sum()) for mask in toy.masks.values()}) == 1 and toy.ratio > 0,
        "the selections are not of one size",
    )
    return toy


def start(cache_dir: Path) -> Job:
    """Solve the toy in the background, or join the solving under way."""

    def work(job: Job) -> None:
        from datamask.runs import toy

        Cache(cache_dir).once(
            ENTRY,
            lambda: load(cache_dir),
            lambda: toy.write(cache_dir, ENTRY, should_stop=job.should_stop),
            job.should_stop,
        )

    return worker().start(KEY, work, device="cpu")


def table(toy: Toy) -> pd.DataFrame:
    """Selected share of each planted group under each objective, beside its size: columns ``group``, ``n``, titles."""
    rows = []
    for place, name in enumerate(GROUPS):
        of_group = toy.group == place
        rows.append(
            {
                "group": name,
                "n": int(of_group.sum()),
                **{TITLES[key]: float(mask[of_group].mean()) for key, mask in toy.masks.items()},
            }
        )
    return pd.DataFrame(rows)
