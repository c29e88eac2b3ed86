"""Corpora whose answer is known: one with a best lambda strictly inside, and one where no lambda matters.

Planted. Three kinds of rows, whose kind is known beside their text:

| kind | share | quality | features | text |
|---|---|---|---|---|
| odd | 60 % | low | all directions but two | a language of its own |
| wanted | 15 % | middling | the same, drawn a little to one side | the target's language |
| templated | 25 % | high | tightly around one direction | a language of its own |

Diversity alone takes odd rows, quality alone takes templated ones; in between the wanted rows come in. The best lambda
is the one whose selection holds most wanted rows, counted by kind, without looking at any text.

Trapped. A hidden good region, and two ways to miss it, each as a selection of its own (`trapped_corpus`): the mass of
near-copies speaks the target's language too, but says the same few things; the trap has the highest scores.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch

from datamask.analyses.ablation.compute.meters import TextMeter
from datamask.analyses.ablation.compute.proxy_models import BigramProxy, ProxyModel, TransformerProxy
from datamask.analyses.ablation.compute.selecting import random_rows
from datamask.analyses.ablation.compute.transformer import SMALL, Size, read_bytes
from datamask.corpus.corpus import Corpus
from datamask.evaluation.measures.words import read_words
from tests.making.pools import corpus_of

ODD, WANTED, TEMPLATED = 0, 1, 2
SHARES = (0.6, 0.15, 0.25)
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


GOOD, COPIES, TRAP = "good", "copies", "trap"
ORIGINALS = 5
"""Texts that the mass of near-copies repeats."""


def trapped_corpus(seed: int, n: int = 1200, dim: int = 16) -> tuple[Corpus, dict[str, np.ndarray], list[str]]:
    """The corpus, the rows of each selection by its name, a tenth of the corpus each, and texts of the target."""
    rng = np.random.default_rng([44, seed])
    size = n // 10
    kinds = np.array([GOOD] * (2 * size) + [COPIES] * (3 * size) + [TRAP] * (2 * size))
    kinds = rng.permutation(np.concatenate([kinds, ["odd"] * (n - len(kinds))]))
    features = rng.normal(size=(n, dim))
    texts = np.empty(n, object)
    for name, prefix in ((GOOD, "good"), (TRAP, "form"), ("odd", "odd")):
        rows = np.flatnonzero(kinds == name)
        texts[rows] = language(rng, len(rows), prefix)
        features[rows] += 2 * rng.normal(size=dim)
    originals = language(rng, ORIGINALS, "good")
    centres = rng.normal(size=(ORIGINALS, dim))
    for row in np.flatnonzero(kinds == COPIES):
        which = rng.integers(ORIGINALS)
        changed = originals[which].split()
        changed[rng.integers(len(changed))] = f"good{rng.integers(VOCABULARY)}"
        texts[row], features[row] = " ".join(changed), centres[which] + 0.02 * rng.normal(size=dim)
    quality = rng.normal(size=n) + 5 * (kinds == TRAP)
    selections = {name: rng.permutation(np.flatnonzero(kinds == name))[:size] for name in (GOOD, COPIES, TRAP)}
    return corpus_of(features, quality, text=texts.tolist()), selections, language(rng, 240, "good")


def mean_losses(
    corpus: Corpus,
    selections: dict[str, np.ndarray],
    texts: list[str],
    judge: str,
    budget: int,
    size: Size = SMALL,
    seeds: int = 3,
) -> dict[str, float]:
    """Return the loss per word, or byte, of a target of texts after learning from each selection, and from random rows.

    Args:
        judge: ``bigram`` or ``transformer``. budget: words, or bytes, that each selection trains it on.
        seeds: trainings of each selection, whose mean it is.
    """
    everything = pa.chunked_array([*corpus.metadata["text"].chunks, pa.array(texts)])
    words = read_words(everything)
    proxy: ProxyModel = BigramProxy(words)
    if judge == "transformer":
        proxy = TransformerProxy(read_bytes(everything, words.cut), torch.device("cpu"), size)
    meter, asked = TextMeter(proxy, words, budget), np.arange(len(corpus), len(words))
    weight = meter.weights(asked).sum()
    drawn = random_rows(np.arange(len(corpus)), len(corpus) // 10, 0, 0, 0)
    losses = {
        name: float(np.mean([meter.losses(rows, budget, asked, seed).sum() / weight for seed in range(seeds)]))
        for name, rows in selections.items()
    }
    return losses | {"random": float(np.mean([meter.losses(rows, budget, asked, 0).sum() / weight for rows in drawn]))}
