"""The bigram model against counting in dictionaries, word by word."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest

from datamask.evaluation.measures.ngrams import DISCOUNT, Bigrams, contexts

START = "<s>"


class Counted:
    """Interpolated Kneser-Ney as Chen and Goodman write it, over word strings or numbers."""

    def __init__(self, texts: list[list[int]], vocabulary: int) -> None:
        self.v = vocabulary
        self.pairs = Counter((u, w) for text in texts for u, w in zip([START, *text[:-1]], text))
        self.following, self.before = defaultdict(set), defaultdict(set)
        for u, w in self.pairs:
            self.following[u].add(w)
            self.before[w].add(u)

    def single(self, w: int) -> float:
        seen = len(self.before[w]) if w in self.before else 0
        return (max(seen - DISCOUNT, 0) + DISCOUNT * len(self.before) / self.v) / len(self.pairs)

    def p(self, w: int, u) -> float:
        total = sum(self.pairs[u, x] for x in self.following.get(u, ()))
        if not total:
            return self.single(w)
        kept = max(self.pairs.get((u, w), 0) - DISCOUNT, 0)
        return (kept + DISCOUNT * len(self.following[u]) * self.single(w)) / total


def flat(texts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(texts), np.repeat(np.arange(len(texts)), [len(text) for text in texts])


@pytest.mark.parametrize("seed", range(5))
def test_every_word_has_the_counted_probability(seed):
    rng = np.random.default_rng(seed)
    v = 15
    texts = [list(rng.zipf(1.6, rng.integers(1, 20)) % (v - 3)) for _ in range(12)]
    asked = [list(rng.integers(0, v, rng.integers(1, 9))) for _ in range(20)]
    truth = Counted(texts, v)
    expected = [-np.log(truth.p(w, u)) for text in asked for u, w in zip([START, *text[:-1]], text)]
    assert Bigrams(*flat(texts), v).nats(*flat(asked)) == pytest.approx(np.array(expected), rel=1e-12)


def test_probabilities_add_to_one_after_every_word(rng):
    v = 11
    model = Bigrams(*flat([list(rng.integers(0, 8, 30)) for _ in range(4)]), v)
    for before in range(v + 1):
        p = model.probabilities(np.arange(v), np.full(v, before))
        assert p.sum() == pytest.approx(1, abs=1e-12) and p.min() > 0


def test_texts_do_not_run_into_each_other():
    tokens, owner = flat([[3, 1], [2], [1, 1]])
    assert contexts(tokens, owner, 9).tolist() == [9, 3, 9, 9, 1]


def test_more_of_the_same_text_predicts_it_better(rng):
    chain = rng.dirichlet(np.full(40, 0.05), 40)

    def walk(length: int) -> list[int]:
        path = [0]
        for _ in range(length):
            path.append(int(rng.choice(40, p=chain[path[-1]])))
        return path

    asked, long = walk(2_000), walk(5_000)
    short = Bigrams(*flat([long[:500]]), 40).nats(*flat([asked])).mean()
    whole = Bigrams(*flat([long]), 40).nats(*flat([asked])).mean()
    rate = -np.mean([np.log(chain[u, w]) for u, w in itertools.pairwise(asked)])
    assert rate < whole < short
