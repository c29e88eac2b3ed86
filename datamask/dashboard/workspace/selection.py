"""The rows that are selected, what they are worth and where they come from. A value; no streamlit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.runs import listing
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint, key_of_rows
from datamask.evaluation.result import NO_RESULT
from datamask.runs.store import Run


@dataclass(frozen=True)
class Selection:
    """One selection of an open corpus.

    Attributes:
        settings: the problem that it solves, at its own lambda.
        bits: the mask over the corpus's rows, packed; rows: how many the corpus has.
        quality, diversity: as shares of the attainable gain; None where they were not measured on that scale.
        gap: no selection under these settings has a joint value more than this above; None where nothing is proved.
        exact: whether diversity is the objective's value; else it is measured on lists and at least that.
        preview: whether it was made at once between two solved lambdas, and solving may find a better one.
        run: the stored run that it is; None: it is in no run folder.
    """

    settings: SelectionConfig
    bits: np.ndarray
    rows: int
    quality: float | None
    diversity: float | None
    gap: float | None
    exact: bool
    preview: bool
    run: Run | None

    @cached_property
    def mask(self) -> np.ndarray:
        """Bool ``(rows,)``, read-only."""
        mask = np.unpackbits(self.bits, count=self.rows).astype(bool)
        mask.flags.writeable = False
        return mask

    @cached_property
    def count(self) -> int:
        """How many rows are selected."""
        return int(self.mask.sum())

    @property
    def stored(self) -> int:
        """How many ids its file holds: of a run on mapped arrays those too that are not open."""
        known = None if self.run is None else (self.run.status().result or NO_RESULT).size.selected
        return self.count if known is None else known

    @property
    def lamb(self) -> float:
        """Lambda of the problem."""
        return self.settings.lamb

    @cached_property
    def key(self) -> str:
        """Names the rows, for what is kept of them: equal rows of one corpus have equal names."""
        return key_of_rows(self.bits)

    @property
    def name(self) -> str:
        """What it is called: its run's name, or its lambda."""
        if self.run is not None:
            return listing.name_of(self.run)
        return f"λ {self.lamb:g}{' (preview)' if self.preview else ''}"

    @property
    def title(self) -> str:
        """What stands over a map of it."""
        return f"Selected {'by' if self.run is not None else 'at'} {self.name}"

    def tokens(self, corpus: Corpus) -> float | None:
        """How many tokens the selected rows have; None where the corpus has no lengths."""
        return None if corpus.lengths is None else float(corpus.lengths[self.mask].sum())


def of_point(settings: SelectionConfig, point: LambdaPoint, run: Run | None) -> Selection:
    """The selection of a point along lambda.

    Args:
        settings: of the problem, at whatever lambda. run: the stored run that the point is, or None.
    """
    # a point that is another lambda's selection is still what stands at this one
    return Selection(
        replace(settings, lamb=point.lamb),
        point.bits,
        point.rows,
        point.quality,
        point.diversity,
        point.gap,
        point.exact,
        point.quick,
        run,
    )


def of_run(run: Run, selected: np.ndarray, point: LambdaPoint | None) -> Selection:
    """The selection of a stored run.

    Args:
        selected: bool ``(N,)``. point: the run's values; None: it has none on the calibrated scale.
    """
    if point is not None:
        return of_point(run.config.selection, point, run)
    return Selection(run.config.selection, np.packbits(selected), len(selected), None, None, None, True, False, run)
