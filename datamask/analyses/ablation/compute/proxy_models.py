"""Models that learn from a selection's texts and must predict others: which one, and how its losses are had.

| proxy model | what it is | counts in | a training |
|---|---|---|---|
| `BigramProxy` | bigrams, interpolated Kneser-Ney | words | milliseconds |
| `TransformerProxy` | a decoder over bytes (`transformer`) | bytes, and start signs | seconds to minutes |
"""

from __future__ import annotations

import hashlib
import time
from typing import Protocol

import numpy as np
import torch

from datamask.analyses.ablation.compute.kept import NOTHING_KEPT, StudyCache
from datamask.analyses.ablation.compute.transformer import SMALL, ByteTexts, Size, nats, steps_of, train
from datamask.evaluation.holdout import hashed
from datamask.evaluation.measures.ngrams import Bigrams
from datamask.evaluation.measures.words import Words
from datamask.polling import Poll, no_poll

ASKED_BYTES = 60_000
"""Tokens of a half of a split that the transformer must predict at most: a seventh of a training's time."""


TIMED_STEPS = 10


class ProxyModel(Protocol):
    """A model that is trained anew for each selection.

    Attributes:
        judge: its word on the command line. counts: what its texts are counted in. least: fewer of them teach nothing.
        says: what it is, within a sentence.
    """

    judge: str
    counts: str
    least: int
    says: str

    @property
    def lengths(self) -> np.ndarray:
        """What each text counts as training text, int64 ``(N,)``."""

    def weights(self, texts: np.ndarray) -> np.ndarray:
        """How many things are predicted of each of these texts, float64 ``(D,)``."""

    def sums(self, trained: np.ndarray, budget: int, texts: np.ndarray, seed: int, poll: Poll = no_poll) -> np.ndarray:
        """Minus the log probability of each of `texts` after learning from `trained`, float64 ``(D,)``, in nats.

        Args:
            trained: texts in the order in which they are learned from; of the last one only as much as fits.
            budget: how much is learned from, in `counts`. seed: of the training.
        """


class BigramProxy:
    """Counts which word follows which."""

    judge, counts, least, says = "bigram", "words", 1_000, "a small model"

    def __init__(self, words: Words) -> None:
        self._words = words

    @property
    def lengths(self) -> np.ndarray:
        """Words of each text."""
        return self._words.lengths

    def weights(self, texts: np.ndarray) -> np.ndarray:
        weights: np.ndarray = self._words.lengths[texts].astype(float)
        return weights

    def sums(self, trained: np.ndarray, budget: int, texts: np.ndarray, seed: int, poll: Poll = no_poll) -> np.ndarray:
        """One count of all pairs; nothing in it is random."""
        learned, of = self._words.of(trained)
        tokens, owner = self._words.of(texts)
        model = Bigrams(learned[:budget], of[:budget], self._words.vocabulary)
        summed: np.ndarray = np.bincount(owner, model.nats(tokens, owner), len(texts))
        return summed


class TransformerProxy:
    """Trains a small transformer; what a training gave, or where it was stopped, is kept.

    Args:
        texts: as bytes. device: where it is trained. size: of the model. kept: what is stored of earlier trainings.
    """

    judge, counts, least, says = "transformer", "bytes", 5_000, "a small transformer"

    def __init__(
        self, texts: ByteTexts, device: torch.device, size: Size = SMALL, kept: StudyCache = NOTHING_KEPT
    ) -> None:
        self._texts, self._device, self._size, self._kept = texts, device, size, kept

    @property
    def lengths(self) -> np.ndarray:
        """Bytes of each text, and its start sign."""
        return self._texts.lengths

    def weights(self, texts: np.ndarray) -> np.ndarray:
        weights: np.ndarray = (self._texts.lengths[texts] - 1).astype(float)
        return weights

    def sums(self, trained: np.ndarray, budget: int, texts: np.ndarray, seed: int, poll: Poll = no_poll) -> np.ndarray:
        """Trained from random weights by `seed`, which are the same for every selection that has this seed."""
        tokens = self._texts.of(trained)[0][:budget]
        asked = self._texts.of(texts)[0]
        name = hashlib.sha256(
            repr((self._size, seed)).encode() + tokens.astype("<i2").tobytes() + b"|" + asked.astype("<i2").tobytes()
        ).hexdigest()[:24]
        training = self._kept.training(name, self._size.parameters, self._device)

        def trained_sums() -> np.ndarray:
            weights = train(self._size, tokens, seed, self._device, poll, training.find(), training.keep)
            return nats(self._size, weights, self._texts, texts, poll)

        sums = self._kept.losses(name, len(texts)).find_or_compute(trained_sums)
        training.drop()
        return sums


def seconds_of_training(tokens: int, asked: int, device: torch.device, size: Size = SMALL) -> float:
    """About how long the transformer trains on so many bytes and predicts `asked` ones on an idle machine, in seconds.

    From a few timed steps: on the CPU by the time that it works on them, since other processes may have it meanwhile.
    """
    clock = time.thread_time if device.type == "cpu" else time.perf_counter
    few = np.arange(TIMED_STEPS * size.batch * size.context + 1, dtype=np.int64) % 256
    train(size, few[: size.context + 1], 0, device)
    start = clock()
    train(size, few, 0, device)
    # a byte that is predicted has no backward pass
    return (clock() - start) / TIMED_STEPS * (steps_of(size, tokens) + steps_of(size, asked) / 3)


def cut(proxy: ProxyModel, rows: np.ndarray, budget: int, seed: int) -> np.ndarray:
    """The first of a selection's rows, in an order drawn by `seed`, that hold `budget` words or bytes together.

    The order is the same for all selections, so what two of them share is drawn early or late in both.
    """
    rows = rows[np.argsort(hashed(rows, seed), kind="stable")]
    return rows[: int(np.searchsorted(np.cumsum(proxy.lengths[rows]), budget)) + 1]
