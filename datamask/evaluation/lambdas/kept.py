"""What a search has selected so far, on disk, so that a search that was stopped goes on where it was.

A selection belongs to one question on one corpus, and is named by its lambda or method.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from datamask.evaluation.lambdas.transformer import Training
from datamask.work.cache import Cache
from datamask.work.result_file import Content, Entry, require

VERSION = 2
"""Raise it when a selection of a search would come out differently."""

LESSON_VERSION = 1
"""Raise it when a training would."""

SELECTION, LOSSES, TRAINING = "lambda-selection", "lambda-losses", "lambda-training"
"""What is kept: selections, what trainings gave, and the state of the one under way."""


ABLATION = "ablation-"
"""Before the names of what ablations keep: it goes by what it was made from, and serves more than one question."""


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

    def find(self, name: str, size: int, n: int) -> np.ndarray | None:
        """A selection of `size` of n rows, int64 and rising; None where none is kept that can be believed."""
        if self._cache is None:
            return None
        return self._cache.find(self.entry(name), lambda content: _kept_selection(content, size, n))

    def put(self, name: str, rows: np.ndarray) -> None:
        """Keep a selection."""
        if self._cache is not None:
            # lost in a power cut, it is selected once more
            self._cache.keep(self.entry(name), arrays={"rows": rows.astype(np.int32)}, sync=False)

    def names(self, kind: str = SELECTION) -> list[str]:
        """What is kept of a kind."""
        keys = [] if self._cache is None else self._cache.keys(_entry(self._fingerprint, "*", kind))
        return sorted(key.removeprefix(self._prefix) for key in keys if key.startswith(self._prefix))

    def lessons(self) -> Lessons:
        """What trainings for the same question gave, and what they give from now on."""
        return Lessons(self._cache, self._fingerprint, self._prefix)

    def entry(self, name: str, kind: str = SELECTION) -> Entry:
        """The name of what is kept in the cache."""
        return _entry(self._fingerprint, f"{self._prefix}{name}", kind)


class Lessons:
    """What the trainings of one question on one corpus gave, by name; and where the one under way is.

    Args:
        cache: None: nothing is kept. fingerprint: of the corpus. prefix: goes before every name.
    """

    def __init__(self, cache: Cache | None = None, fingerprint: str = "", prefix: str = "") -> None:
        self._cache, self._fingerprint, self._prefix = cache, fingerprint, prefix

    def find(self, name: str, texts: int) -> np.ndarray | None:
        """The losses of a training on so many texts, float64 ``(texts,)``; None where none are kept."""
        if self._cache is None:
            return None
        return self._cache.find(self.entry(name, LOSSES), lambda content: _kept_losses(content, texts))

    def put(self, name: str, losses: np.ndarray) -> None:
        """Keep what a training gave; its state is no longer needed."""
        if self._cache is not None:
            self._cache.keep(self.entry(name, LOSSES), arrays={"losses": losses}, sync=False)
            self._cache.drop(self.entry(name, TRAINING))

    def training(self, name: str, parameters: int, device: torch.device) -> Training | None:
        """The state of a training of so many parameters; None where none is kept."""
        if self._cache is None:
            return None
        return self._cache.find(self.entry(name, TRAINING), lambda content: _kept_training(content, parameters, device))

    def keep_training(self, name: str, state: Training) -> None:
        """Keep the state of a training, in the place of its last one."""
        if self._cache is not None:
            self._cache.keep(self.entry(name, TRAINING), {"step": state.step}, state.arrays(), sync=False)

    def entry(self, name: str, kind: str) -> Entry:
        """The name of what is kept in the cache."""
        return _entry(self._fingerprint, f"{self._prefix}{name}", kind)


def _entry(fingerprint: str, key: str, kind: str = SELECTION) -> Entry:
    return Entry(fingerprint, kind, VERSION if kind == SELECTION else LESSON_VERSION, key)


def kept_for(cache_dir: str | Path, fingerprint: str, key: str) -> Kept:
    """What is kept for the question of that key."""
    return Kept(cache_dir, fingerprint, f"{key}-")


def forget(cache_dir: str | Path, fingerprint: str, but: str | None = None) -> None:
    """Remove what searches on a corpus have kept, except for the question of the key `but`, and ablations' cells."""
    everything = Kept(cache_dir, fingerprint)
    for kind in (SELECTION, LOSSES, TRAINING):
        for name in everything.names(kind):
            if not name.startswith(ABLATION) and (but is None or not name.startswith(f"{but}-")):
                Cache(cache_dir).drop(everything.entry(name, kind))


def _kept_selection(content: Content, size: int, n: int) -> np.ndarray:
    """The selection that a file holds. Raises Implausible where it is none of `size` of n rows."""
    rows = content.arrays["rows"]
    require(rows.dtype == np.int32 and rows.shape == (size,), "the selection is of another size")
    require((np.diff(rows) > 0).all() and rows.min() >= 0 and rows.max() < n, "the rows are not those of a selection")
    return rows.astype(np.int64)


def _kept_losses(content: Content, texts: int) -> np.ndarray:
    """The losses that a file holds. Raises Implausible where they are none of so many texts."""
    losses = content.arrays["losses"]
    require(losses.dtype == np.float64 and losses.shape == (texts,), "the losses are of other texts")
    require(np.isfinite(losses).all() and (losses >= 0).all(), "a loss is none")
    return losses


def _kept_training(content: Content, parameters: int, device: torch.device) -> Training:
    """The state that a file holds. Raises Implausible where it is none of so many parameters."""
    step, arrays = content.value["step"], content.arrays
    require(type(step) is int and step > 0, "no step was done")
    for name in ("weights", "mean", "square"):
        require(arrays[name].dtype == np.float32 and arrays[name].shape == (parameters,), "another model was trained")
        require(np.isfinite(arrays[name]).all(), "a weight is no number")
    require((arrays["square"] >= 0).all(), "a square is negative")
    return Training.restored(step, arrays, device)


NOTHING_KEPT, NO_LESSONS = Kept(), Lessons()
