"""Corpora whose answer is known: one with a best lambda strictly inside, and one where no lambda matters.

Planted. Three kinds of rows, whose kind is known beside their text:

| kind | share | quality | features | text |
|---|---|---|---|---|
| odd | 60 % | low | all directions but two | a language of its own |
| wanted | 15 % | middling | the same, drawn a little to one side | the target's language |
| templated | 25 % | high | tightly around one direction | a language of its own |

Diversity alone takes odd rows, quality alone takes templated ones; in between the wanted rows come in. The best lambda
is the one whose selection holds most wanted rows, counted by kind, without looking at any text.
"""

from __future__ import annotations

import numpy as np

from datamask.corpus.corpus import Corpus
from tests.evaluation.made import corpus_of

ODD, WANTED, TEMPLATED = 0, 1, 2
SHARES = (0.6, 0.15, 0.25)
TRIED = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
VOCABULARY = 900
TARGET_TEXTS = 600


def language(rng: np.random.Generator, count: int, prefix: str, words: int = 40) -> list[str]:
    """Texts of words drawn by Zipf's law from a vocabulary of their own, each following on the one before it."""
    rank = np.minimum(rng.zipf(1.3, (count, words)), VOCABULARY)
    follows = (rank + np.roll(rank, 1, axis=1) * (np.arange(words) % 3 == 2)) % VOCABULARY
    return [" ".join(f"{prefix}{word}" for word in line) for line in follows]


def planted_corpus(seed: int, n: int = 3000, dim: int = 16) -> tuple[Corpus, np.ndarray, list[str]]:
    """The corpus, the kind of each row, and texts of the target's language."""
    rng = np.random.default_rng([41, seed])
    kind = rng.choice(3, n, p=SHARES)
    features = rng.normal(size=(n, dim))
    features[:, :2] *= 0.3
    features[kind == WANTED, 0] += 0.7
    features[kind == TEMPLATED] *= 0.2
    features[kind == TEMPLATED, 1] += 3.5
    quality = np.array([0.0, 1.0, 1.6])[kind] + 0.3 * rng.normal(size=n)
    texts = np.empty(n, object)
    for number, prefix in enumerate(("odd", "good", "form")):
        rows = np.flatnonzero(kind == number)
        texts[rows] = language(rng, len(rows), prefix)
    return corpus_of(features, quality, text=texts.tolist()), kind, language(rng, TARGET_TEXTS, "good")


def noise_corpus(seed: int, n: int = 3000, dim: int = 16) -> Corpus:
    """Quality and features drawn without a look at the texts, which are all of one language."""
    rng = np.random.default_rng([42, seed])
    return corpus_of(rng.normal(size=(n, dim)), rng.normal(size=n), text=language(rng, n, "word"))
