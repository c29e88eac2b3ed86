"""What is shown of a corpus while it is being read: a map, the quality and a rough frontier of its first look.

Computed in the background beside the reading, each part there as soon as it is done, nothing kept on disk. Pure: no
streamlit; torch is loaded only inside the thread that solves.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from datamask.config import SelectionConfig
from datamask.corpus import Corpus, FirstLook, row_hash
from datamask.corpus.beginnings import beginnings
from datamask.corpus.principal import principal_axes, project
from datamask.dashboard.map.parcels import ground_parcel
from datamask.dashboard.map.places import Places, labels, place
from datamask.work.job import Job
from datamask.work.worker import worker

AXES_ROWS = 20_000
"""Rows that the two axes of the map are computed from: a second, where all rows would take ten."""

FRONTIER_ROWS = 5_000
"""Rows that the rough frontier is of: some seconds."""

RATIO = 0.3
LAMBDAS = (1.0, 0.9, 0.75, 0.5, 0.25, 0.0)
TEXT = 400
"""Letters of a text that travel with a mark, before its label is cut."""


@dataclass(eq=False)
class FirstPicture:
    """The pictures of one first look, as far as they are there.

    Attributes:
        look: the rows.
        places, parcel: where they lie on the map, by PCA, and what travels to the browser of it.
        frontier: columns ``lamb, quality, diversity``: selections of `RATIO` of `frontier_rows` rows by pair-wise
            similarity, in shares of the attainable gain. lambda 1 is top quality; a random subset is at 0, 0.
        job: makes the pictures; `start` gives it before anybody else sees them.
    """

    look: FirstLook
    places: Places | None = None
    parcel: bytes = b""
    frontier: pd.DataFrame | None = None
    job: Job = field(init=False, repr=False)

    @property
    def parts(self) -> int:
        """How many parts are there: another number, another picture."""
        return 1 + (self.places is not None) + (self.frontier is not None)

    @property
    def frontier_rows(self) -> int:
        """Rows that the rough frontier is of."""
        return min(FRONTIER_ROWS, len(self.look.sample))


def start(look: FirstLook, key: str) -> FirstPicture:
    """Make the pictures in the background. key: of the opening, in this process."""
    picture = FirstPicture(look)
    picture.job = worker().start(f"first look {key}", lambda job: _make(picture, job), device="cpu")
    return picture


def _make(picture: FirstPicture, job: Job) -> None:
    sample = picture.look.sample
    job.report(0.0, "placing the rows on the map")
    axes_rows = _fewer(sample, AXES_ROWS)
    mean, axes = principal_axes(sample.features[axes_rows], 2)
    job.poll()
    points = np.zeros((len(sample), 2), np.float32)
    points[:, : axes.shape[1]] = project(sample.features, mean, axes)
    places = place(points)
    picture.parcel = ground_parcel(places, _labels(sample, places.drawn))
    picture.places = places
    job.poll()
    picture.frontier = _frontier(sample, job)


def _fewer(sample: Corpus, count: int) -> np.ndarray:
    """So many of the rows, sorted: those with the smallest hashes, which is a uniform sample of them."""
    if len(sample) <= count:
        return np.arange(len(sample))
    return np.sort(np.argpartition(row_hash(sample.ids, 0), count)[:count])


def _labels(sample: Corpus, drawn: np.ndarray) -> list[str]:
    rows = pa.array(drawn)
    texts = None
    if sample.texts is not None:
        texts = beginnings(sample.texts, drawn, TEXT).to_pylist()
    return labels(sample.ids.take(rows).to_pylist(), sample.quality[drawn], texts)


def _frontier(sample: Corpus, job: Job) -> pd.DataFrame:
    from datamask.evaluation.holdout import subset
    from datamask.evaluation.live import open_live
    from datamask.evaluation.threads import threads

    job.report(0.3, "solving a rough frontier")
    config = SelectionConfig.from_options(objective="pairwise", select_ratio=RATIO, device="cpu")
    # the ends of the scales of a few rows are of no use to anybody later; one thread, since the other cores are reading
    with tempfile.TemporaryDirectory(prefix="datamask-") as folder, threads(1):
        live = open_live(subset(sample, _fewer(sample, FRONTIER_ROWS)), config, Path(folder), job.poll)
        solved = []
        for place_, lamb in enumerate(LAMBDAS):
            job.report(0.6 + 0.4 * place_ / len(LAMBDAS), f"lambda {lamb:g}")
            solved.append(live.solve(lamb, job.poll))
    return pd.DataFrame(
        {
            "lamb": LAMBDAS,
            "quality": [answer.quality for answer in solved],
            "diversity": [answer.diversity for answer in solved],
        }
    )
