"""Why a row is refused: the one list of reasons, for opening a corpus, writing scratch and applying a recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

Place = Callable[[int], str]
"""Row -> ``FILE row K``, for messages."""


@dataclass(frozen=True)
class RowReasons:
    """The reasons for which rows are refused, in words.

    Attributes:
        feature, quality, length: names of the columns that rows are judged by; None: of no such column.
    """

    feature: str | None
    quality: Sequence[str]
    length: str | None

    def refused(
        self,
        no_features: np.ndarray,
        quality: np.ndarray,
        no_quality: np.ndarray,
        lengths: np.ndarray | None,
        norms: np.ndarray | float = 1.0,
    ) -> dict[str, np.ndarray]:
        """Return the rows that cannot be used, by reason; a row may have several reasons.

        Args:
            no_features, no_quality: bool ``(n,)``, where the stored value is null.
            quality: float64 ``(Q, n)``, all of which must be finite.
            lengths: float64 ``(n,)``, tokens; None: rows are not judged by them.
            norms: float64 ``(n,)``, of the features: NaN where a value is NaN or infinite, 0 where all are zero, -1
                where they equal the mean that is subtracted. 1: rows are not judged by them yet.

        Returns:
            Reason -> bool ``(n,)``, of those reasons that some row has.
        """
        features = f"features in column {self.feature!r}"
        columns = ", ".join(map(repr, self.quality))
        masks = {
            f"null {features}": no_features,
            f"NaN or infinite {features}": np.isnan(norms) & ~no_features,
            f"all-zero {features}": np.equal(norms, 0),
            f"{features} that equal the mean that is subtracted from them": np.less(norms, 0),
            f"null quality in column {columns}": no_quality,
            f"NaN or infinite quality in column {columns}": ~np.isfinite(quality).all(axis=0) & ~no_quality,
        }
        if lengths is not None:
            counts = np.isfinite(lengths) & (np.nan_to_num(lengths) >= 0)
            masks[f"null, infinite or negative length in column {self.length!r}"] = ~counts
        return {reason: mask for reason, mask in masks.items() if mask.any()}


def valid_rows(refused: dict[str, np.ndarray], n: int) -> tuple[np.ndarray, dict[str, int]]:
    """Return which of n rows are left, bool ``(n,)``, and how many go by reason: a row counts for its first one."""
    valid, dropped = np.ones(n, bool), {}
    for reason, mask in refused.items():
        dropped[reason] = int((valid & mask).sum())
        valid &= ~mask
    return valid, dropped


def complaint(refused: dict[str, np.ndarray], ids: pa.Array, place: Place) -> str:
    """Return a sentence about refused rows of a corpus: how many, their first ids, where, and the way out."""
    parts = []
    for reason, mask in refused.items():
        rows = np.flatnonzero(mask)
        verb = "rows have" if len(rows) > 1 else "row has"
        parts.append(f"{len(rows):,} {verb} {reason} (ids {first_ids(ids, rows)}; the first is {place(int(rows[0]))})")
    return "; ".join(parts) + "; repair them, or leave them out with --drop-invalid"


def first_complaint(refused: dict[str, np.ndarray], place: Place) -> str:
    """Return a sentence about the first refused row of a batch, behind which others may be: where, and the way out."""
    reason, mask = next(iter(refused.items()))
    return f"{place(int(mask.argmax()))} has {reason}; repair it, or leave such rows out with --drop-invalid"


def first_ids(ids: pa.Array, rows: np.ndarray, at_most: int = 3) -> str:
    """Return the first few ids of `rows`, for a message."""
    first = ", ".join(repr(value) for value in ids.take(pa.array(rows[:at_most])).to_pylist())
    return first + (", ..." if len(rows) > at_most else "")
