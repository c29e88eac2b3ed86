"""The ground that all measures stand on: the corpus, its graph and objectives, and one shared bootstrap of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
import torch

from datamask import endings
from datamask.corpus.neighbors import NeighborGraph
from datamask.evaluation.anchors import diversity_anchor, quality_anchor
from datamask.evaluation.measures.reading import RESAMPLES
from datamask.evaluation.measures.words import Words, read_words
from datamask.evaluation.pool import Pool
from datamask.measured import Anchor
from datamask.objectives.joint import Scale
from datamask.polling import Poll, no_poll

Result = TypeVar("Result")

GRAPH_NEIGHBORS = 64
BLOCK = 16_384
"""Rows whose weights are drawn or used together: well under 0.3 s."""


class Ground:
    """A pool, with what several measures need computed once.

    The bootstrap is Poisson's: in each resample every row of the corpus counts w times, w ~ Poisson(1) (Chamandy et al.
    2012, "Estimating uncertainty for massive data streams"). A row has the same weight in every selection that holds
    it, which is what pairs their differences, and the weights depend on nothing but the row's place and a fixed seed.

    Attributes:
        pool, corpus: what is measured on. poll: called between chunks of work.
        resampling: whether draws are wanted; without them values have no intervals and cost less.
        calibrating: whether shares of the attainable gain are wanted (true until a caller whose selections differ in
            size, where they mean nothing, says otherwise).
        targets: name -> bool ``(n,)``, more kinds of held-out text to predict.
    """

    def __init__(
        self,
        pool: Pool,
        poll: Poll = no_poll,
        *,
        resampling: bool = True,
        targets: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.pool, self.corpus, self.poll = pool, pool.corpus, poll
        self.resampling, self.calibrating, self.targets = resampling, True, dict(targets or {})
        self._weights: np.ndarray | None = None
        self._anchors: dict[tuple[str, int], Anchor] = {}
        self._words: Words | None = None

    def __len__(self) -> int:
        return len(self.corpus)

    def graph(self) -> NeighborGraph:
        """The neighbour graph, at least 64 per row where the corpus has them."""
        return self.pool.graph(GRAPH_NEIGHBORS)

    def mask(self, rows: np.ndarray) -> torch.Tensor:
        """bool ``(n,)`` on the pool's device."""
        mask = torch.zeros(len(self), dtype=torch.bool)
        mask[torch.from_numpy(rows)] = True
        return mask.to(self.pool.device)

    def anchor(self, name: str, size: int) -> Anchor:
        """The ends of the calibrated scale of quality or of an objective."""
        if (name, size) not in self._anchors:
            self._anchors[name, size] = (
                quality_anchor(self.pool, size)
                if name == "quality"
                else diversity_anchor(self.pool, name, size, self.poll)
            )
        return self._anchors[name, size]

    def words(self) -> Words | None:
        """The words of the corpus's text column; None where it has none."""
        column = self.corpus.provenance.columns.get("text")
        if self._words is None and column in self.corpus.metadata.column_names:
            self._words = read_words(self.corpus.metadata[column], self.poll)
        return self._words

    def everyone(self) -> np.ndarray:
        """All rows, int64 ``(n,)``."""
        return np.arange(len(self))

    def share(self, name: str, size: int, value: float) -> dict[str, float]:
        """``{"calibrated": share of the attainable gain}``, or nothing where shares are not wanted."""
        return {"calibrated": Scale.calibrated(self.anchor(name, size))(value)} if self.calibrating else {}

    # -- the bootstrap ------------------------------------------------------------------------------------------------

    def weights(self) -> np.ndarray:
        """uint8 ``(n, R)``: how often each row counts in each of the R resamples."""
        if self._weights is None:
            weights = np.empty((len(self), RESAMPLES), np.uint8)
            for block, low in enumerate(range(0, len(self), BLOCK)):
                self.poll()
                part = weights[low : low + BLOCK]
                part[:] = np.random.default_rng([20251224, block]).poisson(1.0, part.shape)
            self._weights = weights
        return self._weights

    def sums(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Weighted sums of each row's values in every resample: float ``(m, k)`` of `rows` ``(m,)`` to ``(R, k)``."""
        weights, total = self.weights(), np.zeros((RESAMPLES, values.shape[1]))
        for low in range(0, len(rows), BLOCK):
            self.poll()
            part = slice(low, low + BLOCK)
            total += weights[rows[part]].astype(np.float64).T @ values[part]
        return total

    def mean_draws(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """The mean of one value per row in every resample, float64 ``(R,)``; None for fewer than two rows or without
        resampling.

        Args:
            values: ``(m,)``; rows: int64 ``(m,)``, which rows of the corpus they belong to.
        """
        if len(rows) < 2 or not self.resampling:
            return None
        centre = float(values.mean())
        centred = np.asarray(values, np.float64) - centre
        both = self.sums(np.column_stack([centred, np.ones(len(rows))]), rows)
        # a resample in which none of the rows counts says nothing: it happens for a handful of rows only
        draws: np.ndarray = centre + both[:, 0] / np.maximum(both[:, 1], 1.0)
        return draws

    def count_draws(self, labels: np.ndarray, count: int, rows: np.ndarray) -> np.ndarray:
        """How often each label 0 .. count - 1 occurs in every resample: labels ``(m,)`` of `rows` to ``(R, count)``."""
        weights, total = self.weights(), np.zeros((RESAMPLES, count))
        for low in range(0, len(rows), BLOCK):
            self.poll()
            part = slice(low, low + BLOCK)
            total += weights[rows[part]].astype(np.float32).T @ np.eye(count, dtype=np.float32)[labels[part]]
        return total


def polled(task: Callable[[], Result], poll: Poll, every: float = 0.1) -> Result:
    """The result of one call into a library that cannot be cut, polling while it runs in a thread of its own.

    When `poll` raises, the call is left behind: it touches nothing but its own arrays, and its thread ends with it.
    """
    done: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(task())
        except BaseException as error:  # carried to the caller, whoever it is
            failed.append(error)

    worker = endings.start(run, name="datamask-measure")
    while worker.is_alive():
        worker.join(every)
        poll()
    if failed:
        raise failed[0]
    return done[0]
