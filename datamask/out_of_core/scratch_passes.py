"""Passes of the dual over a scratch: in threads of this process, or as tasks of an engine, one a part of the rows.

Either way a part is summed up by the same code, and parts are joined in their order: what comes out is the same to the
last bit. A task reads its rows and the rule, and leaves one file with the scores of the rows and their sums; it is
removed as soon as it is joined, so the disk holds those alone that came before their turn.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.threads import one_blas_thread
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.scratch import ROWS_READ, Scratch, Shuffled, scratch_of
from datamask.out_of_core.tasks import Argument, Made, do, opened, parts_of, task
from datamask.polling import Poll
from datamask.recipes.batches import Judged
from datamask.recipes.passes import Aim, Batch, Batches, Pass, pass_of, summed
from datamask.recipes.recipe import ScoreRule
from datamask.recipes.scoring import Scorer
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Parts
from datamask.work.result_file import Content

FOLDER = "passes"
"""Of the tasks' files, in the scratch."""

FEWEST_ROWS, ROWS_SHARE = 256, 64
"""Rows widened to float64 at a time in a thread: `block_rows` over the second, at least the first, at most `ROWS_READ`.

As much for one thread as for many: which rows are added up together decides the last bits of a sum.
"""

PARTS, MOST_PART_ROWS = 32, 1 << 16
"""A pass is done in so many parts at least, of so many rows at most, whoever does them."""


class ScratchFeed:
    """The rows of a scratch, for a pass; their scores are written down. See `datamask.recipes.passes.Feed`."""

    def __init__(
        self,
        scratch: Scratch,
        block_rows: int,
        scores: np.ndarray | None = None,
        first: int = 0,
        free: np.ndarray | None = None,
    ) -> None:
        """
        Args:
            block_rows: bounds the rows in memory. scores: float64, filled by every pass from its start for the rows
                from `first` on. free: bool ``(N,)``, the rows that are summed up; None: all.
        """
        self._scratch, self._first = scratch, first
        self._scores = np.empty(scratch.rows) if scores is None else scores
        self.rows, self.dim = scratch.rows, scratch.dim
        self._rows_at_once = int(np.clip(block_rows // ROWS_SHARE, FEWEST_ROWS, ROWS_READ))
        wanted = min(max(scratch.rows // PARTS, self._rows_at_once), MOST_PART_ROWS)
        self.part_rows = wanted - wanted % self._rows_at_once
        self.tasks = -(-scratch.rows // self.part_rows)
        self._free, self._all = free, np.ones(self._rows_at_once, bool)

    def range_of(self, task: int) -> tuple[int, int]:
        """The first row of a task, and the one behind the last."""
        return task * self.part_rows, min((task + 1) * self.part_rows, self.rows)

    def under(self, rule: ScoreRule) -> Batches:
        """See `Feed`."""
        scorer, scratch, step = Scorer(rule), self._scratch, self._rows_at_once

        def batches(task: int, poll: Poll) -> Iterator[Batch]:
            start, end = self.range_of(task)
            for low in range(start, end, step):
                poll()
                high = min(low + step, end)
                quality = scratch.quality_of(low, high)
                units = scratch.features(low, high).astype(np.float64) if rule.needs_features else None
                score = scorer(quality, units)
                self._scores[low - self._first : high - self._first] = score
                valid = self._all[: high - low] if self._free is None else self._free[low:high]
                judged = Judged(valid, valid, score, quality, None, None, units, {})
                yield low // step, low, judged, 2 * self.dim * (high - low)

        return batches


class Passes:
    """Passes over all rows of a scratch.

    Attributes:
        scores: float64 ``(N,)``, of all rows, as the last pass found them.
    """

    def __init__(
        self, scratch: Scratch, block_rows: int, engine: Engine | None = None, free: np.ndarray | None = None
    ) -> None:
        """
        Args:
            engine: does the parts; None: threads of this process do.
            free: bool ``(N,)``, the rows that are summed up; None: all. Each has a score.
        """
        self._scratch, self._block_rows, self._engine, self._free = scratch, block_rows, engine, free
        self.scores = np.empty(scratch.rows)
        self._feed = ScratchFeed(scratch, block_rows, self.scores, free=free)

    def __call__(self, rule: ScoreRule, expected: float, sd: float, what: str, work: Work = UNWATCHED) -> Pass:
        """Score all rows by a rule, and sum them up around the expected threshold.

        Raises:
            StoreError: a file of the scratch or of a task is damaged. Stopped: on request. Also what `Engine.run`
                raises.
        """
        aim = Aim(rule, expected, sd, self._scratch.dim, self._scratch.rows)
        if self._engine is None:
            return pass_of(self._feed, aim, what, work)
        total, folder = Pass.none(aim), self._scratch.folder / FOLDER
        parts = self._parts(folder, aim)

        def take(number: int) -> None:
            file = parts[number]
            low, high = self._feed.range_of(number)
            self.scores[low:high] = file["scores_of_rows"]
            total.join(_read(aim, file))
            parts.at(number).drop()

        do(parts, self._engine, work, f"{what} {aim.rows:,} rows in parts", take)
        # calls that were lost and done twice may have left a file
        shutil.rmtree(folder, ignore_errors=True)
        return total

    def _parts(self, folder: Path, aim: Aim) -> Parts:
        """The calls of a pass; the rule is written for them."""
        numbers, arrays = aim.rule.parts()
        if self._free is not None:
            arrays["free"] = np.packbits(self._free)
        digests = {name: hashlib.blake2b(array.tobytes()).hexdigest() for name, array in arrays.items()}
        rule = parts_of("rule", 1, folder, {"numbers": numbers, "arrays": digests})
        rule.at(0).keep(Content(numbers, arrays))
        settings = {
            "scratch": self._scratch.digest,
            "shuffled": isinstance(self._scratch, Shuffled),
            "block_rows": self._block_rows,
            "rule": rule.word,
            "expected": aim.expected,
            "sd": aim.sd,
        }
        return parts_of("scratch_passes:part", self._feed.tasks, folder, settings)


@task
def part(argument: Argument) -> Made:
    """The scores of a part of the rows, and the sums of a pass over it."""
    scratch = scratch_of(argument)
    if argument["shuffled"]:
        scratch = Shuffled(scratch)
    file, number = opened(argument, "rule", 0), argument["number"]
    arrays: dict[str, Any] = {name: np.array(array) for name, array in file.arrays.items()}
    free = arrays.pop("free", None)
    if free is not None:
        free = np.unpackbits(free, count=scratch.rows).view(bool)
    rule = ScoreRule(**file.value, **arrays)
    aim = Aim(rule, argument["expected"], argument["sd"], scratch.dim, scratch.rows)
    low, high = ScratchFeed(scratch, argument["block_rows"], np.empty(0)).range_of(number)
    scores = np.empty(high - low)
    feed = ScratchFeed(scratch, argument["block_rows"], scores, low, free)
    with one_blas_thread():
        one_pass = summed(feed.under(rule), number, aim)
    return {"scores_of_rows": scores, **one_pass.arrays()}, {"rows": one_pass.rows, "in_band": one_pass.in_band}


def _read(aim: Aim, file: Content) -> Pass:
    """The sums that a task left."""
    arrays: dict[str, Any] = dict(file.arrays)
    del arrays["scores_of_rows"]
    arrays["near"] = [arrays["near"]] if "near" in arrays else []
    return replace(Pass.none(aim), **arrays, **file.value)
