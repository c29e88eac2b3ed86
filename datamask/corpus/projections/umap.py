"""UMAP on the corpus's own neighbour lists: neighbours stay together, islands come apart."""

from __future__ import annotations

import os
import re
import warnings

import numpy as np

from datamask.compiling import keeping_compiled
from datamask.corpus.projections.contract import Projection
from datamask.work.context import Report

SEEDED = 50_000
"""A seed makes UMAP use one core, so larger maps go without."""


class EpochLines:
    """A file for tqdm: turns its bar into progress."""

    def __init__(self, say: Report) -> None:
        self._say = say

    def write(self, text: str) -> None:
        bar = re.search(r"(\d+)/(\d+)", text)
        if bar:
            done, total = int(bar[1]), max(1, int(bar[2]))
            self._say(0.3 + 0.7 * done / total, f"UMAP: epoch {done} of {total}")

    def flush(self) -> None:
        """tqdm calls this; each line is passed on by itself."""


def fit(points: np.ndarray, indices: np.ndarray, similarities: np.ndarray, seed: int, say: Report) -> np.ndarray:
    """How the map is fitted, as `contract.Fit`; the seed is used up to `SEEDED` rows."""
    say(0.0, "Compiling UMAP takes half a minute, the first time on a machine")
    distances = np.sqrt(np.maximum(0.0, 2.0 - 2.0 * similarities)).astype(np.float32)
    distances[:, 0] = 0.0
    seeded = len(points) <= SEEDED
    # UMAP itself keeps little of what it compiles, which takes longer than the map of a small corpus
    with warnings.catch_warnings(), keeping_compiled():
        # no search index, no transform of new rows, one core under a seed: all as intended
        warnings.simplefilter("ignore")
        import umap

        # given as many neighbours as it is told to look at, of all points, UMAP never searches itself
        model = umap.UMAP(
            n_neighbors=indices.shape[1],
            min_dist=0.2,
            init="pca",
            random_state=seed if seeded else None,
            n_jobs=1 if seeded else max(1, (os.cpu_count() or 2) - 1),
            precomputed_knn=(indices, distances),
            tqdm_kwds={
                "file": EpochLines(say),
                "disable": False,
                "bar_format": "{n_fmt}/{total_fmt}",
                "mininterval": 0.3,
            },
        )
        places: np.ndarray = model.fit_transform(points).astype(np.float32)
    return places


UMAP = Projection(
    "UMAP",
    "umap",
    "UMAP places similar rows near each other.",
    "sizes and distances mean nothing",
    fit=fit,
    fit_all=300_000,
    fit_sample=100_000,
)
