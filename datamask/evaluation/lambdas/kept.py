"""What a search has selected so far, on disk, so that a search that was stopped goes on where it was.

A selection belongs to one question on one corpus, and is named by its place in it. With each one goes the point where
its solver ended, from which the next holdout's search starts: what is found after a stop is what would have been found
without it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datamask.work.cache import Cache
from datamask.work.result_file import Content, Entry, require

VERSION = 1
"""Raise it when a selection of a search would come out differently."""


class Kept:
    """The selections of one question on one corpus, by name.

    Args:
        cache_dir: None: nothing is kept.
        fingerprint: of the corpus. prefix: goes before every name: the question's key, and a dash.
    """

    def __init__(self, cache_dir: str | Path | None = None, fingerprint: str = "", prefix: str = "") -> None:
        self._cache = None if cache_dir is None else Cache(cache_dir)
        self._cache_dir, self._fingerprint, self._prefix = cache_dir, fingerprint, prefix

    def under(self, name: str) -> Kept:
        """The same, with a name before every name."""
        return Kept(self._cache_dir, self._fingerprint, f"{self._prefix}{name}-")

    def find(self, name: str, size: int, n: int) -> tuple[np.ndarray, np.ndarray | None] | None:
        """A selection of `size` of n rows and where its solver ended; None where none is kept that can be believed."""
        if self._cache is None:
            return None
        return self._cache.find(self.entry(name), lambda content: _kept_selection(content, size, n))

    def put(self, name: str, rows: np.ndarray, end: np.ndarray | None) -> None:
        """Keep a selection."""
        if self._cache is not None:
            # lost in a power cut, it is selected once more
            self._cache.keep(
                self.entry(name),
                arrays={"rows": rows.astype(np.int32), "end": np.empty(0) if end is None else end},
                sync=False,
            )

    def names(self) -> list[str]:
        """What is kept."""
        keys = [] if self._cache is None else self._cache.keys(_entry(self._fingerprint, "*"))
        return sorted(key.removeprefix(self._prefix) for key in keys if key.startswith(self._prefix))

    def entry(self, name: str) -> Entry:
        """The name of a selection in the cache."""
        return _entry(self._fingerprint, f"{self._prefix}{name}")


def _entry(fingerprint: str, key: str) -> Entry:
    return Entry(fingerprint, "lambda-selection", VERSION, key, stale=("which-lambda/*.unfinished",))


def kept_for(cache_dir: str | Path, fingerprint: str, key: str) -> Kept:
    """What is kept for the question of that key."""
    return Kept(cache_dir, fingerprint, f"{key}-")


def forget(cache_dir: str | Path, fingerprint: str, but: str | None = None) -> None:
    """Remove what searches on a corpus have kept, except for the question of the key `but`."""
    everything = Kept(cache_dir, fingerprint)
    for name in everything.names():
        if but is None or not name.startswith(f"{but}-"):
            Cache(cache_dir).drop(everything.entry(name))


def _kept_selection(content: Content, size: int, n: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The selection that a file holds. Raises Implausible where it is none of `size` of n rows."""
    rows, end = content.arrays["rows"], content.arrays["end"]
    require(rows.dtype == np.int32 and rows.shape == (size,), "the selection is of another size")
    require((np.diff(rows) > 0).all() and rows.min() >= 0 and rows.max() < n, "the rows are not those of a selection")
    require(end.dtype == np.float64 and end.ndim == 1 and np.isfinite(end).all(), "no solver ends there")
    return rows.astype(np.int64), end if end.size else None


NOTHING_KEPT = Kept()
