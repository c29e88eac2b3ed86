"""Passes of the dual over a scratch, in threads of this process."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from datamask.out_of_core.scratch import ROWS_READ, Scratch
from datamask.polling import Poll
from datamask.recipes.batches import Judged
from datamask.recipes.passes import Aim, Batch, Batches, Pass, pass_of
from datamask.recipes.recipe import ScoreRule
from datamask.recipes.scoring import Scorer
from datamask.work.context import UNWATCHED, Work

FEWEST_ROWS, ROWS_SHARE = 256, 64
"""Rows widened to float64 at a time in a thread: `block_rows` over the second, at least the first, at most `ROWS_READ`.

As much for one thread as for many: which rows are added up together decides the last bits of a sum.
"""

PARTS, MOST_PART_ROWS = 32, 1 << 16
"""A pass is done in so many parts at least, of so many rows at most, whoever does them."""


class ScratchFeed:
    """The rows of a scratch, for a pass; their scores are written down. See `datamask.recipes.passes.Feed`."""

    def __init__(self, scratch: Scratch, block_rows: int, scores: np.ndarray, free: np.ndarray | None = None) -> None:
        """
        Args:
            block_rows: bounds the rows in memory. scores: float64 ``(N,)``, filled by every pass from its start.
            free: bool ``(N,)``, the rows that are summed up; None: all.
        """
        self._scratch, self._scores = scratch, scores
        self.rows, self.dim = scratch.rows, scratch.dim
        self._rows_at_once = int(np.clip(block_rows // ROWS_SHARE, FEWEST_ROWS, ROWS_READ))
        wanted = min(max(scratch.rows // PARTS, self._rows_at_once), MOST_PART_ROWS)
        self.part_rows = wanted - wanted % self._rows_at_once
        self.tasks = -(-scratch.rows // self.part_rows)
        self._free, self._all = free, np.ones(self._rows_at_once, bool)

    def under(self, rule: ScoreRule) -> Batches:
        """See `Feed`."""
        scorer, scratch, step = Scorer(rule), self._scratch, self._rows_at_once

        def batches(task: int, poll: Poll) -> Iterator[Batch]:
            end = min((task + 1) * self.part_rows, self.rows)
            for low in range(task * self.part_rows, end, step):
                poll()
                high = min(low + step, end)
                quality = scratch.quality_of(low, high)
                units = scratch.features(low, high).astype(np.float64) if rule.needs_features else None
                score = scorer(quality, units)
                self._scores[low:high] = score
                valid = self._all[: high - low] if self._free is None else self._free[low:high]
                judged = Judged(valid, valid, score, quality, None, None, units, {})
                yield low // step, low, judged, 2 * self.dim * (high - low)

        return batches


class Passes:
    """Passes over all rows of a scratch.

    Attributes:
        scores: float64 ``(N,)``, of all rows, as the last pass found them.
    """

    def __init__(self, scratch: Scratch, block_rows: int, free: np.ndarray | None = None) -> None:
        """
        Args:
            free: bool ``(N,)``, the rows that are summed up; None: all. Each has a score.
        """
        self._scratch, self.scores = scratch, np.empty(scratch.rows)
        self._feed = ScratchFeed(scratch, block_rows, self.scores, free)

    def __call__(self, rule: ScoreRule, expected: float, sd: float, what: str, work: Work = UNWATCHED) -> Pass:
        """Score all rows by a rule, and sum them up around the expected threshold.

        Raises:
            StoreError: a file of the scratch is damaged. Stopped: on request.
        """
        return pass_of(self._feed, Aim(rule, expected, sd, self._scratch.dim, self._scratch.rows), what, work)
