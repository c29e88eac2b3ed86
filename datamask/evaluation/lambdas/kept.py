"""What a search has selected so far, on disk, so that a search that was stopped goes on where it was.

The folder belongs to one question on one corpus, so a selection is named by its place in it. With each one goes the
point where its solver ended, from which the next world's search starts: what is found after a stop is what would have
been found without it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datamask.files import DAMAGED, replacing


class Kept:
    """Selections by name, a file each.

    Args:
        folder: where they are; None: nothing is kept.
        prefix: goes before every name.
    """

    def __init__(self, folder: Path | None = None, prefix: str = "") -> None:
        self._folder, self._prefix = folder, prefix

    def under(self, name: str) -> Kept:
        """The same folder, with a name before every name."""
        return Kept(self._folder, f"{self._prefix}{name}-")

    def find(self, name: str, size: int) -> tuple[np.ndarray, np.ndarray | None] | None:
        """A selection of `size` rows and where its solver ended; None where there is none, or a damaged one."""
        if self._folder is None:
            return None
        try:
            with np.load(self._path(name), allow_pickle=False) as stored:
                rows, end = stored["rows"].astype(np.int64), stored["end"]
        except DAMAGED:
            return None
        return (rows, end if end.size else None) if rows.shape == (size,) else None

    def put(self, name: str, rows: np.ndarray, end: np.ndarray | None) -> None:
        """Keep a selection.

        Raises:
            StoreError: the folder cannot be written.
        """
        if self._folder is None:
            return
        # lost in a power cut, it is selected once more
        with replacing(self._path(name), ".npz", sync=False) as part:
            np.savez(part, rows=rows.astype(np.int32), end=np.empty(0) if end is None else end)

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._prefix}{name}.npz"


NOTHING_KEPT = Kept()
