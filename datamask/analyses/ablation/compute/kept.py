"""What a search has selected so far, on disk, so that a search that was stopped goes on where it was.

A selection belongs to one question on one corpus, and is named by its lambda or method.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from datamask.ablation.question import MEANING
from datamask.analyses.ablation.compute.transformer import Training
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry, require

T = TypeVar("T")

SELECTION, LOSSES, TRAINING = "lambda-selection", "lambda-losses", "lambda-training"
"""What is kept: selections, what trainings gave, and the state of the one under way."""

VERSIONS = {SELECTION: 2, LOSSES: 1, TRAINING: 1}
"""Raise one when a selection of a search, or a training, would come out differently."""

ABLATION = f"ablation{MEANING}-"
"""Before the names of what ablations keep: it goes by what it was made from, and serves more than one question."""


class StudyCache:
    """What is kept of one question on one corpus, by name.

    Args:
        cache_dir: None: nothing is kept.
        fingerprint: of the corpus. prefix: goes before every name: the question's key, and a dash.
    """

    def __init__(self, cache_dir: str | Path | None = None, fingerprint: str = "", prefix: str = "") -> None:
        self._cache_dir, self._fingerprint, self._prefix = cache_dir, fingerprint, prefix

    def under(self, name: str) -> StudyCache:
        """Return the same, with a name before every name."""
        return StudyCache(self._cache_dir, self._fingerprint, f"{self._prefix}{name}-")

    def selection(self, name: str, size: int, n: int) -> Kept[np.ndarray]:
        """Describe a selection of `size` of n rows, int64 and rising."""
        return self._stored(
            SELECTION,
            name,
            lambda content: _kept_selection(content, size, n),
            lambda rows: Content(arrays={"rows": rows.astype(np.int32)}),
        )

    def losses(self, name: str, texts: int) -> Kept[np.ndarray]:
        """Describe the losses of a training on so many texts, float64 ``(texts,)``."""
        return self._stored(
            LOSSES,
            name,
            lambda content: _kept_losses(content, texts),
            lambda losses: Content(arrays={"losses": losses}),
        )

    def training(self, name: str, parameters: int, device: torch.device) -> Kept[Training]:
        """Describe the state of a training of so many parameters, where the one under way is."""
        return self._stored(
            TRAINING,
            name,
            lambda content: _kept_training(content, parameters, device),
            lambda state: Content({"step": state.step}, state.arrays()),
        )

    def any(self, name: str, kind: str = SELECTION) -> Kept[Content]:
        """Describe what is kept of a kind under a name, whatever it holds."""
        return self._stored(kind, name, lambda content: content, lambda content: content)

    def names(self, kind: str = SELECTION) -> list[str]:
        """Return the names under which a kind is kept."""
        keys = self.any("*", kind).keys()
        return sorted(key.removeprefix(self._prefix) for key in keys if key.startswith(self._prefix))

    def _stored(self, kind: str, name: str, read: Callable[[Content], T], write: Callable[[T], Content]) -> Kept[T]:
        entry = Entry(self._fingerprint, kind, VERSIONS[kind], f"{self._prefix}{name}")
        # lost in a power cut, it is made once more; the ablation that it is a part of is locked
        return Kept(self._cache_dir, entry, read, write, sync=False, locked=False)


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


NOTHING_KEPT = StudyCache()
