"""Some texts of a corpus, or their beginnings, without a copy of all: pyarrow's `take` would join every chunk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def beginnings(texts: pa.ChunkedArray, rows: np.ndarray, letters: int | None = None) -> pa.Array:
    """Return the first letters of the texts of some rows, chunk by chunk: one takes a few MiB as it was read.

    Args:
        texts: strings ``(N,)``. rows: int ``(m,)``, in any order. letters: of each text at most; None: all.

    Returns:
        Strings ``(m,)``, null where a text is.
    """
    order = np.argsort(rows, kind="stable")
    sorted_rows, cut, first = rows[order], [], 0
    for chunk in texts.chunks:
        low, high = np.searchsorted(sorted_rows, [first, first + len(chunk)])
        if low < high:
            own = chunk.take(pa.array(sorted_rows[low:high] - first))
            # whole texts of all chunks may be more than the offsets of one plain array can count
            cut.append(own.cast(pa.large_string()) if letters is None else pc.utf8_slice_codeunits(own, 0, letters))
        first += len(chunk)
    if not cut:
        return pa.array([], texts.type)
    back = np.empty(len(rows), np.int64)
    back[order] = np.arange(len(rows))
    return pa.concat_arrays(cut).take(pa.array(back))
