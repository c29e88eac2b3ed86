"""What becomes of rows that `row_reader.RowReader` refuses: they go and are counted, or a sentence names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from datamask.errors import InputError

Place = Callable[[int], str]
"""Row -> ``FILE row K``, for messages."""


def valid_rows(
    refused: dict[str, np.ndarray], n: int, sentence: Callable[[], str] | None = None
) -> tuple[np.ndarray, dict[str, int]]:
    """Return which of n rows are left, bool ``(n,)``, and how many go by reason: a row counts for its first one.

    Args:
        sentence: says what is wrong where no row may go; None: rows may.

    Raises:
        InputError: a row is refused, and none may go.
    """
    if refused and sentence is not None:
        raise InputError(sentence())
    valid, dropped = np.ones(n, bool), {}
    for reason, mask in refused.items():
        if counted := int((valid & mask).sum()):  # none where each of them had an earlier reason too
            dropped[reason] = counted
        valid &= ~mask
    return valid, dropped


def complaint(refused: dict[str, np.ndarray], ids: pa.Array, place: Place) -> str:
    """Return a sentence about refused rows of a corpus: how many, their first ids, where, and the way out."""
    parts = []
    for reason, mask in refused.items():
        rows = np.flatnonzero(mask)
        verb = "rows have" if len(rows) > 1 else "row has"
        parts.append(f"{len(rows):,} {verb} {reason} (ids {first_ids(ids, rows)}; the first is {place(int(rows[0]))})")
    return "; ".join(parts) + "; repair them, or leave them out with --drop_invalid"


def first_complaint(refused: dict[str, np.ndarray], rows: Sequence[int], place: Place) -> str:
    """Return a sentence about the first refused row of a batch, behind which others may be: where, and the way out.

    Args:
        rows: where the rows of the batch stand. place: what that is called.
    """
    reason, mask = next(iter(refused.items()))
    return f"{place(rows[int(mask.argmax())])} has {reason}; repair it, or leave such rows out with --drop_invalid"


def first_ids(ids: pa.Array, rows: np.ndarray) -> str:
    """Return the first three ids of `rows`, for a message."""
    first = ", ".join(repr(value) for value in ids.take(pa.array(rows[:3])).to_pylist())
    return first + (", ..." if len(rows) > 3 else "")
