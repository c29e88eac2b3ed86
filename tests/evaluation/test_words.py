"""Words, their numbers and their TF-IDF against plain Python."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from datamask.evaluation.measures import words as module
from datamask.evaluation.measures.coverage import agreement, nearest_selected
from datamask.evaluation.measures.words import UNKNOWN, Words, read_words
from tests.making.pools import corpus_of, ground_of, made_corpus, reading


@pytest.fixture
def texts(rng) -> list[str]:
    return [" ".join(f"w{w}" for w in rng.zipf(1.4, rng.integers(0, 30)) % 300) for _ in range(200)]


def split(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def spelled_alike(words: Words, texts: list[str]) -> dict[str, int]:
    """The number of each known spelling; fails where one spelling has two numbers or one number two spellings."""
    numbers: dict[str, int] = {}
    for row, text in enumerate(texts):
        found = words.tokens[words.starts[row] : words.starts[row + 1]]
        assert len(found) == len(split(text))
        for word, number in zip(split(text), found):
            assert numbers.setdefault(word, int(number)) == number
    known = [number for number in numbers.values() if number != UNKNOWN]
    assert len(set(known)) == len(known)
    return numbers


def test_numbers_stand_for_words_and_rare_ones_are_unknown(texts):
    words = read_words(pa.chunked_array([texts[:90], texts[90:]]))
    numbers = spelled_alike(words, texts)
    counts = Counter(word for text in texts for word in split(text))
    assert {word for word, number in numbers.items() if number != UNKNOWN} == {
        word for word, count in counts.items() if count >= module.LEAST_COUNT
    }
    for word, number in numbers.items():
        if number != UNKNOWN:
            assert words.rows_with[number] == sum(word in split(text) for text in texts)
    assert words.vocabulary == len(words.rows_with) == max(numbers.values()) + 1


def test_the_vocabulary_keeps_the_most_frequent(texts, monkeypatch):
    monkeypatch.setattr(module, "VOCABULARY", 6)
    numbers = spelled_alike(read_words(pa.chunked_array([texts])), texts)
    counts = Counter(word for text in texts for word in split(text))
    kept = [counts[word] for word, number in numbers.items() if number != UNKNOWN]
    assert len(kept) == 5 and min(kept) >= max(counts[word] for word, n in numbers.items() if n == UNKNOWN)


def test_scripts_cases_nulls_and_cuts(monkeypatch):
    monkeypatch.setattr(module, "LEAST_COUNT", 1)
    column = pa.chunked_array([["The CAT_sat, 3.5 naïve!", None, "  ", "日本 cat", "the cat_SAT; 3.5 naïve"]])
    words = read_words(column)
    assert words.lengths.tolist() == [6, 0, 0, 3, 6]
    assert np.array_equal(words.of(np.array([0]))[0], words.of(np.array([4]))[0])
    assert words.text_of[1] != words.text_of[0] and words.text_of[0] != words.text_of[4]
    monkeypatch.setattr(module, "CHARACTERS", 1)
    monkeypatch.setattr(module, "SHORTEST", 7)
    cut = read_words(column)
    assert cut.cut == 7 and cut.lengths.tolist() == [2, 0, 0, 3, 2]
    encoded = read_words(column.dictionary_encode())
    assert np.array_equal(encoded.tokens, cut.tokens)


def test_words_of_rows_in_any_order(texts):
    words = read_words(pa.chunked_array([texts]))
    rows = np.array([17, 3, 3, 199, 0])
    tokens, owner = words.of(rows)
    expected = [words.tokens[words.starts[row] : words.starts[row + 1]] for row in rows]
    assert np.array_equal(tokens, np.concatenate(expected))
    assert np.array_equal(owner, np.repeat(np.arange(5), [len(part) for part in expected]))


def truth(texts: list[str], common: float) -> np.ndarray:
    """Dense TF-IDF, rows of unit norm."""
    counts = [Counter(split(text)) for text in texts]
    total = sum(counts, Counter())
    df = {word: sum(word in count for count in counts) for word in total}
    known = [word for word in total if total[word] >= module.LEAST_COUNT and df[word] <= common]
    dense = np.array(
        [
            [(1 + math.log(count[w])) * math.log(len(texts) / df[w]) if count[w] else 0.0 for w in known]
            for count in counts
        ]
    )
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return dense / np.where(norms > 0, norms, 1)


def test_tf_idf_and_its_nearest_neighbours_are_the_dense_ones(texts, rng):
    dense = truth(texts, max(0.05 * len(texts), module.COMMON_ROWS))
    words = read_words(pa.chunked_array([texts]))
    rows = rng.choice(200, 70, replace=False)
    sparse = words.tf_idf(rows)
    assert (sparse @ sparse.T).toarray() == pytest.approx(dense[rows] @ dense[rows].T, abs=1e-5)
    queries = rng.choice(200, 50, replace=False)
    cosines = dense[queries] @ dense[rows].T
    cosines[queries[:, None] == rows] = 0.0  # its own
    assert nearest_selected(words, queries, rows) == pytest.approx(cosines.max(1), abs=1e-5)


def test_coverage_falls_when_a_topic_is_left_out(tmp_path):
    ground = ground_of(made_corpus(), tmp_path)
    domain = np.array(ground.corpus.metadata["domain"].to_pylist())
    wide = np.arange(0, 1200, 4)
    narrow = np.flatnonzero(domain == "d0")[:300]
    assert reading(ground, "tfidf", narrow).interval[1] < reading(ground, "tfidf", wide).interval[0]


def test_agreement_is_high_for_features_made_of_the_words_and_low_for_others(tmp_path, rng):
    texts = [" ".join(f"w{w}" for w in rng.integers(0, 160, 12)) for _ in range(300)]
    dense = truth(texts, module.COMMON_ROWS)
    for features, low, high in ((dense + 1e-6, 0.9, 1.0), (rng.normal(size=(300, 40)), -0.2, 0.2)):
        ground = ground_of(corpus_of(features, text=pa.array(texts)), tmp_path)
        assert low <= agreement(ground, ground.words(), np.arange(300)) <= high
