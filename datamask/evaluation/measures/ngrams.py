"""A bigram model with interpolated Kneser-Ney smoothing, trained and asked in whole arrays.

| symbol | meaning |
|---|---|
| c(u, w), c(u) | how often w follows u; how often anything does |
| N(u .), N(. w), N(. .) | different words after u; before w; different pairs |
| D | discount |

``P(w | u) = (max(c(u, w) - D, 0) + D N(u .) P1(w)) / c(u)``, and P1(w) where u was never seen, with
``P1(w) = (max(N(. w) - D, 0) + D T / V) / N(. .)``, T the words with N(. w) > 0 and V the vocabulary (Kneser and Ney
1995; Chen and Goodman 1998).
"""

from __future__ import annotations

import numpy as np

DISCOUNT = 0.75
"""A usual value. Fixed, so that models trained on different selections differ in their text alone."""


class Bigrams:
    """The model of one training text."""

    def __init__(self, tokens: np.ndarray, owner: np.ndarray, vocabulary: int) -> None:
        """Count.

        Args:
            tokens: int ``(T,)``, T >= 1, word numbers below `vocabulary`, text after text.
            owner: int ``(T,)``, which text each word belongs to; a text's first word follows a start sign.
            vocabulary: V.
        """
        self.vocabulary = vocabulary
        before = contexts(tokens, owner, vocabulary)
        self._pairs, counts = np.unique(before * np.int64(vocabulary) + tokens, return_counts=True)
        left, right = np.divmod(self._pairs, vocabulary)
        self._kept = np.maximum(counts - DISCOUNT, 0.0)
        self._after = np.bincount(left, counts, vocabulary + 1)
        self._different = np.bincount(left, minlength=vocabulary + 1)
        seen_before = np.bincount(right, minlength=vocabulary)
        spare = DISCOUNT * (seen_before > 0).sum() / vocabulary
        self._single = (np.maximum(seen_before - DISCOUNT, 0.0) + spare) / len(self._pairs)

    def probabilities(self, tokens: np.ndarray, before: np.ndarray) -> np.ndarray:
        """P(word | word before it): float64 ``(T,)``; the start sign is V."""
        keys = before * np.int64(self.vocabulary) + tokens
        place = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        discounted = np.where(self._pairs[place] == keys, self._kept[place], 0.0)
        context_counts, single = self._after[before], self._single[tokens]
        mixed = (discounted + DISCOUNT * self._different[before] * single) / np.maximum(context_counts, 1.0)
        probabilities: np.ndarray = np.where(context_counts > 0, mixed, single)
        return probabilities

    def nats(self, tokens: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """Minus log P of each word of other texts, float64 ``(T,)``."""
        nats: np.ndarray = -np.log(self.probabilities(tokens, contexts(tokens, owner, self.vocabulary)))
        return nats


def contexts(tokens: np.ndarray, owner: np.ndarray, vocabulary: int) -> np.ndarray:
    """The word before each word, int64 ``(T,)``; the start sign, V, before a text's first."""
    before = np.full(len(tokens), vocabulary, np.int64)
    before[1:] = np.where(owner[1:] == owner[:-1], tokens[:-1], vocabulary)
    return before
