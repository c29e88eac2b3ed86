"""What a selection is worth to held-out texts: the loss of a proxy model that learned from it, or a distance."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from datamask.analyses.ablation.compute import proxy_models
from datamask.analyses.ablation.compute.kept import NOTHING_KEPT, StudyCache
from datamask.analyses.ablation.compute.proxy_models import ProxyModel, cut
from datamask.errors import InputError
from datamask.evaluation.holdout import hashed
from datamask.evaluation.measures.copies import nearest_cosine
from datamask.evaluation.measures.words import Words
from datamask.polling import Poll, no_poll

FULL_TARGETS = 4
"""Targets that share the transformer's usual bytes; each further one brings as many as one of these."""


def asked_bytes(targets: int) -> int:
    """Bytes that the transformer must predict at most, of all targets together: fewer of each where there are many."""
    return proxy_models.ASKED_BYTES * max(1, targets) // min(max(1, targets), FULL_TARGETS)


class Meter(Protocol):
    """Measures selections on held-out texts.

    Attributes:
        judge: ``bigram``, ``transformer`` or ``features``. unit: of a loss. counts: what `budget` counts.
    """

    judge: str
    unit: str
    counts: str

    def limit(self, texts: np.ndarray, targets: int) -> np.ndarray:
        """Those of a target's texts that are asked for, where all would take too long."""

    def budget(self, selections: Sequence[np.ndarray]) -> int:
        """How much of each selection is used, equally much for all; 0: all of its rows.

        Raises:
            InputError: too little to learn from.
        """

    def weights(self, texts: np.ndarray) -> np.ndarray:
        """float64 ``(D,)``: how many things are predicted of each text; losses of a target are per thing."""

    def losses(self, rows: np.ndarray, budget: int, texts: np.ndarray, seed: int, poll: Poll = no_poll) -> np.ndarray:
        """float64 ``(D,)``: the summed loss of each text.

        Args:
            rows: selected rows of the corpus. seed: of the order in which they are used.
        """


class TextMeter:
    """The cross-entropy of a proxy model.

    Args:
        proxy: of the corpus's texts, and of own texts after them. words: of the same texts. most: words or bytes that a
            selection trains on at most. kept: what is stored of trainings.
    """

    def __init__(self, proxy: ProxyModel, words: Words, most: int, kept: StudyCache = NOTHING_KEPT) -> None:
        self._proxy, self._words, self._most, self._kept = proxy, words, most, kept
        self.judge, self.counts = proxy.judge, proxy.counts
        self.unit = f"nats per {proxy.counts.removesuffix('s')}"

    def limit(self, texts: np.ndarray, targets: int) -> np.ndarray:
        if self.judge == "bigram":
            return texts
        bound = asked_bytes(targets) / targets
        most = int(np.searchsorted(np.cumsum(self._proxy.lengths[texts]), bound, side="right"))
        return texts[: max(1, most)]

    def budget(self, selections: Sequence[np.ndarray]) -> int:
        available = min(int(self._proxy.lengths[rows].sum()) for rows in selections)
        if available < self._proxy.least:
            raise InputError(
                f"A selection of one seed has only {available:,} {self.counts} to train on, {self._proxy.least:,} are "
                "needed; choose fewer --seeds (at least 6), a larger --select_ratio or a larger corpus"
            )
        return min(self._most, available)

    def weights(self, texts: np.ndarray) -> np.ndarray:
        return self._proxy.weights(texts)

    def losses(self, rows: np.ndarray, budget: int, texts: np.ndarray, seed: int, poll: Poll = no_poll) -> np.ndarray:
        """Losses of bigrams are kept here; the transformer keeps its own, and its state."""
        poll()
        trained = cut(self._proxy, rows, budget, seed)
        if self.judge != "bigram":
            return self._proxy.sums(trained, budget, texts, seed, poll)
        learned, asked = self._words.of(trained), self._words.of(texts)
        digest = hashlib.sha256(repr((self._words.vocabulary, budget)).encode())
        for tokens in (*learned, *asked):
            digest.update(tokens.astype("<i4").tobytes() + b"|")
        name = f"bigram{digest.hexdigest()[:20]}"
        return self._kept.losses(name, len(texts)).find_or_compute(
            lambda: self._proxy.sums(trained, budget, texts, seed, poll)
        )


class FeatureMeter:
    """How far held-out features are from the nearest selected row; nothing is trained.

    Args:
        features: float32 ``(N + m, d)`` of unit length: of the corpus, and of examples after it. lengths: float64
            ``(N,)``, tokens of the corpus's rows; None: selections are compared at equally many rows.
    """

    judge, unit = "features", "cosine distance"

    def __init__(self, features: np.ndarray, lengths: np.ndarray | None) -> None:
        self._features, self._lengths = features, lengths
        self.counts = "rows" if lengths is None else "tokens"

    def limit(self, texts: np.ndarray, targets: int) -> np.ndarray:
        return texts

    def budget(self, selections: Sequence[np.ndarray]) -> int:
        if self._lengths is None:
            return 0
        return int(min(self._lengths[rows].sum() for rows in selections))

    def weights(self, texts: np.ndarray) -> np.ndarray:
        return np.ones(len(texts))

    def losses(self, rows: np.ndarray, budget: int, texts: np.ndarray, seed: int, poll: Poll = no_poll) -> np.ndarray:
        if self._lengths is not None:
            rows = rows[np.argsort(hashed(rows, seed), kind="stable")]
            rows = rows[: int(np.searchsorted(np.cumsum(self._lengths[rows]), budget)) + 1]
        # a cosine may exceed 1 by rounding
        return np.maximum(1.0 - nearest_cosine(self._features[texts], self._features[rows], poll), 0.0)
