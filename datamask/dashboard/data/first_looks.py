"""What is shown of a corpus while it is being read: a map and the quality of its first look.

Computed in the background beside the reading, nothing kept on disk. Pure: no streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from datamask.corpus import Corpus, FirstLook, row_hash
from datamask.corpus.beginnings import beginnings
from datamask.corpus.principal import principal_axes, project
from datamask.dashboard.map.parcels import ground_parcel
from datamask.dashboard.map.places import Places, labels, place
from datamask.work.job import Job
from datamask.work.worker import worker

AXES_ROWS = 20_000
"""Rows that the two axes of the map are computed from: a second, where all rows would take ten."""

TEXT = 400
"""Letters of a text that travel with a mark, before its label is cut."""


@dataclass(eq=False)
class FirstPicture:
    """The pictures of one first look, as far as they are there.

    Attributes:
        look: the rows.
        places, parcel: where they lie on the map, by PCA, and what travels to the browser of it.
        job: makes the pictures; `start` gives it before anybody else sees them.
    """

    look: FirstLook
    places: Places | None = None
    parcel: bytes = b""
    job: Job = field(init=False, repr=False)

    @property
    def parts(self) -> int:
        """How many parts are there: another number, another picture."""
        return 1 + (self.places is not None)


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
