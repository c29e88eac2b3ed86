"""Cross-entropy of held-out text: who may train on what, and the number itself against the slow way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from datamask.corpus import row_hash
from datamask.evaluation.measures import language
from datamask.evaluation.measures.language import SPLITS, splits
from tests.evaluation.test_ngrams import START, Counted
from tests.making.pools import corpus_of, entry, ground_of, made_corpus


def measured(ground, **selections) -> dict:
    return {
        found.name: found.readings
        for found in entry("cross_entropy").measure(ground, selections, entry("cross_entropy"))
    }


@pytest.fixture
def ground(tmp_path):
    return ground_of(made_corpus(), tmp_path)


def test_held_out_rows_and_their_copies_stay_out_of_training(tmp_path, rng):
    """Also where the lists of 64 of a crowd end before the held-out row."""
    base = made_corpus(500)
    crowd = rng.normal(size=(1, base.dim)) + 0.01 * rng.normal(size=(300, base.dim))
    spelled = [*base.metadata["text"].to_pylist(), *(f"one{i} two{i}" for i in range(300))]
    corpus = corpus_of(np.concatenate([base.features, crowd]), text=spelled)
    ground = ground_of(corpus, tmp_path)
    words = ground.words()
    texts = corpus.metadata["text"].to_pylist()
    x = corpus.features.astype(float)
    near = x @ x.T >= 0.95 - 1e-6
    found = splits(corpus, words, ground.graph())
    assert len(found) == SPLITS
    seen: set[int] = set()
    for j, split in enumerate(found):
        held = set(np.flatnonzero(row_hash(corpus.ids, 0) % np.uint64(20) == j).tolist())
        assert set(split.held_out.tolist()) == held and not seen & held
        seen |= held
        spelled = {texts[i] for i in held}
        for i in range(len(corpus)):
            assert split.leaking[i] == (i in held or texts[i] in spelled or bool(near[i, list(held)].any()))


def slow(ground, rows: np.ndarray, budget: int, wanted: np.ndarray) -> list[float]:
    """The mean over held-out words of -log P, one word at a time."""
    words, values = ground.words(), []

    def text(row: int) -> list[int]:
        return words.tokens[words.starts[row] : words.starts[row + 1]].tolist()

    for split in splits(ground.corpus, words, ground.graph()):
        order = sorted((row for row in rows.tolist() if not split.leaking[row]), key=lambda row: int(split.order[row]))
        training, left = [], budget
        for row in order:
            training.append(text(row)[:left])
            left -= len(training[-1])
            if not left:
                break
        model = Counted([part for part in training if part], words.vocabulary)
        values.append(
            np.mean(
                [
                    -np.log(model.p(w, u))
                    for row in split.held_out
                    if wanted[row]
                    for u, w in zip([START, *text(row)[:-1]], text(row))
                ]
            )
        )
    return values


def test_the_number_is_the_one_counted_word_by_word(ground, rng):
    rows = {"a": np.sort(rng.choice(1200, 200, replace=False)), "b": np.sort(rng.choice(1200, 260, replace=False))}
    ground.targets["d1"] = np.array(ground.corpus.metadata["domain"].to_pylist()) == "d1"
    found = measured(ground, **rows)
    lengths = ground.words().lengths
    budget = min(
        int(lengths[part[~split.leaking[part]]].sum())
        for part in rows.values()
        for split in splits(ground.corpus, ground.words(), ground.graph())
    )
    quality = ground.corpus.quality
    wanted = {
        "cross_entropy": np.ones(1200, bool),
        "cross_entropy:quality": quality >= np.quantile(quality, 0.75),
        "cross_entropy:d1": ground.targets["d1"],
    }
    assert set(found) == set(wanted)
    for name, target in wanted.items():
        for part, chosen in rows.items():
            reading = found[name][part]
            assert f"trained on {budget:,} words" in reading.note
            assert reading.draws == pytest.approx(slow(ground, chosen, budget, target), rel=1e-9)
            assert reading.value == pytest.approx(reading.draws.mean())


def test_who_covers_the_held_out_topics_predicts_them_better(ground):
    domain = np.array(ground.corpus.metadata["domain"].to_pylist())
    wide, narrow = np.arange(0, 1200, 4), np.flatnonzero(domain == "d0")[:300]
    ground.targets["d0"] = domain == "d0"
    found = measured(ground, wide=wide, narrow=narrow)
    assert found["cross_entropy"]["wide"].interval[1] < found["cross_entropy"]["narrow"].interval[0]
    assert found["cross_entropy:d0"]["narrow"].interval[1] < found["cross_entropy:d0"]["wide"].interval[0]


def test_what_was_chosen_by_quality_is_circular_on_the_best_by_quality(ground):
    found = entry("cross_entropy").measure(ground, {"it": np.arange(300)}, entry("cross_entropy"))
    assert {one.name: one.circular for one in found} == {"cross_entropy": (), "cross_entropy:quality": ("quality",)}


def test_no_texts_or_too_few_words_say_so(tmp_path, ground, rng):
    bare = ground_of(made_corpus(texts=False), tmp_path)
    reading = measured(bare, it=np.arange(300))["cross_entropy"]["it"]
    assert reading.value is None and reading.interval is None and reading.note == "the corpus has no text column"
    reading = measured(ground, it=np.arange(10), long=np.arange(300))["cross_entropy"]["long"]
    assert reading.value is None and "words of it are left to train on, 1,000 are needed" in reading.note
    texts = pa.array([f"a{i} b c d " * 9 for i in range(200)])
    same = corpus_of(rng.normal(size=(200, 3)), np.ones(200), text=texts)
    assert "cross_entropy:quality" not in measured(ground_of(same, tmp_path), it=np.arange(100))


def test_long_hold_outs_are_cut_to_so_many_words():
    lengths = np.array([5, 7, 9, 3])
    assert language._within(np.array([2, 0, 1]), lengths, 14).tolist() == [2, 0]
    assert language._within(np.array([2, 0, 1]), lengths, 2).tolist() == [2]
