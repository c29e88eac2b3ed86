"""TF-IDF and truncated SVD: against numpy's SVD, and on texts that have little to offer."""

import numpy as np
import pytest

from datamask.corpus.text_features import TextFeatures
from datamask.errors import InputError, Stopped
from datamask.work.context import Work


def zipf_texts(n, rng, vocabulary=400, length=40):
    weights = 1 / np.arange(1, vocabulary + 1)
    return [" ".join(f"w{k}" for k in rng.choice(vocabulary, length, p=weights / weights.sum())) for _ in range(n)]


def test_features_span_the_leading_singular_vectors(rng):
    texts = zipf_texts(300, rng)
    model = TextFeatures(20).fit(texts)
    weights = model._words.transform(texts).toarray().astype(np.float64)
    _, s, vt = np.linalg.svd(weights, full_matrices=False)
    # the best 20 dimensions hold the most squared weight any 20 can; a flat spectrum makes this a hard case
    assert model.explained <= (s[:20] ** 2).sum() / (s**2).sum() + 1e-5
    assert model.explained >= 0.97 * (s[:20] ** 2).sum() / (s**2).sum()
    # the leading ones, well apart from the rest, are found one by one, up to sign
    for axis in range(2):
        assert abs(model._axes[:, axis] @ vt[axis]) > 0.999
    np.testing.assert_allclose(model._axes.T @ model._axes, np.eye(20), atol=1e-4)
    assert (model._axes[np.abs(model._axes).argmax(axis=0), np.arange(20)] > 0).all()


def test_rows_have_unit_norm_and_batches_change_nothing(rng):
    texts = zipf_texts(50, rng)
    model = TextFeatures(16).fit(texts)
    whole = model.transform(texts)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(whole, np.concatenate([model.transform(texts[:7]), model.transform(texts[7:])]))
    np.testing.assert_array_equal(whole, TextFeatures(16).fit(texts).transform(texts))
    assert not np.array_equal(whole, TextFeatures(16, seed=1).fit(texts).transform(texts))


def test_neighbours_are_texts_about_the_same_thing():
    texts = [
        "the red fox runs in the forest",
        "a fox and a wolf in the dark forest",
        "wolf and fox hunt in a forest",
        "interest rates of the central bank",
        "the bank raised its interest rates",
        "rates of interest at a bank",
    ]
    features = TextFeatures(3).fit(texts).transform(texts)
    similarity = features @ features.T
    assert similarity[:3, :3].min() > similarity[:3, 3:].max()


def test_few_texts_give_fewer_dimensions():
    model = TextFeatures(256).fit(["alpha beta gamma", "beta gamma delta", "gamma delta epsilon", "unrelated words"])
    assert model.dim == 3
    assert model.transform(["alpha beta"]).shape == (1, 3)


def test_unknown_words_give_a_zero_row_and_scripts_without_spaces_count():
    texts = ["機械学習の手法", "機械学習の応用", "天気がいい", "天気が悪い"]
    model = TextFeatures(3).fit(texts)
    features = model.transform([*texts, "zzz qqq", ""])
    assert (features[4:] == 0).all()
    assert features[0] @ features[1] > features[0] @ features[2]


@pytest.mark.parametrize("texts", [[], ["one text only"], ["!", "?", "..."]])
def test_nothing_to_learn_from_is_said(texts):
    with pytest.raises(InputError, match="texts"):
        TextFeatures(4).fit(texts)


@pytest.mark.parametrize("polls", [0, 1, 3])
def test_stop_ends_fitting(polls, rng):
    answers = iter([False] * polls + [True] * 100)
    with pytest.raises(Stopped):
        TextFeatures(4).fit(zipf_texts(20, rng), work=Work.of(lambda: next(answers)))
