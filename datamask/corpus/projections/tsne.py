"""t-SNE (van der Maaten and Hinton 2008, by Barnes-Hut trees), as the paper draws its corpora."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np

from datamask.corpus.projections.contract import Projection
from datamask.work.context import Report

PERPLEXITY = 30.0
STEPS = 1_000

MOST = 10_000
"""Rows fitted: two to three minutes on one core; the time grows a little faster than they do."""


class StepLines(io.TextIOBase):
    """A file for what scikit-learn prints: turns it into progress."""

    def __init__(self, say: Report) -> None:
        self._say = say

    def write(self, text: str) -> int:
        step = re.search(r"Iteration (\d+)", text)
        if step:
            self._say(min(1.0, int(step[1]) / STEPS), f"t-SNE: step {step[1]} of {STEPS:,}")
        return len(text)


def fit(points: np.ndarray, indices: np.ndarray, similarities: np.ndarray, seed: int, say: Report) -> np.ndarray:
    """How the map is fitted, as `contract.Fit`.

    A perplexity of 30 looks at 91 neighbours, more than the lists hold, so they are found again among the components:
    an instant beside the steps. One thread: sums over several come out in another order each time, and the map with
    them.
    """
    say(0.0, "Starting t-SNE")
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    model = TSNE(
        perplexity=min(PERPLEXITY, (len(points) - 1) / 3),
        init="pca",
        max_iter=STEPS,
        random_state=seed,
        n_jobs=1,
        verbose=2,
    )
    with contextlib.redirect_stdout(StepLines(say)), threadpool_limits(1):
        places: np.ndarray = model.fit_transform(points).astype(np.float32)
    return places


TSNE = Projection(
    "t-SNE",
    "tsne",
    "t-SNE does too, as in the paper's figures, and takes minutes on large corpora.",
    "sizes and distances mean nothing",
    fit=fit,
    fit_all=MOST,
    fit_sample=MOST,
)
