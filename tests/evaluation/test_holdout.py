"""Held-out text: which rows leave with it, what is asked, and what selections from the rest are worth to it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.analyses.ablation.compute import selecting
from datamask.analyses.ablation.compute.meters import TextMeter
from datamask.analyses.ablation.compute.proxy_models import BigramProxy, cut, hashed
from datamask.analyses.ablation.compute.selecting import DRAWS, random_rows
from datamask.config.target import Target
from datamask.corpus.neighbors import build_neighbors
from datamask.errors import OptionError
from datamask.evaluation.holdout import near_rows, own_texts, subset, target_rows, units_of
from datamask.evaluation.meaning import Meaning
from datamask.evaluation.measures.ngrams import Bigrams
from datamask.evaluation.measures.words import read_words
from datamask.evaluation.pool import Pool
from datamask.learning.newton import QuadraticDual
from datamask.learning.problem import Problem
from tests.making.pools import corpus_of, made_corpus


@pytest.fixture(scope="module")
def corpus():
    return made_corpus()


@pytest.fixture(scope="module")
def words(corpus):
    return read_words(corpus.metadata["text"])


@pytest.fixture(scope="module")
def graph(corpus):
    return build_neighbors(corpus.features, 64)


def test_rows_that_repeat_held_out_rows_are_those_of_all_pairs(corpus, rng):
    """Also where many rows nearly repeat each other: their neighbor lists end before the held-out row."""
    crowd = rng.normal(size=(1, 12)) + 0.01 * rng.normal(size=(300, 12))
    features = corpus_of(np.concatenate([corpus.features, crowd])).features
    held = np.zeros(len(features), bool)
    held[::20] = True
    near = (features[held].astype(float) @ features.T.astype(float)).max(axis=0) >= 0.95 - 1e-6
    assert (near_rows(features, held) == near).all() and near[-300:].all() and near.sum() > held.sum() + 285
    assert not near_rows(features, np.zeros(len(features), bool)).any()


def test_a_missing_column_is_no_target(corpus):
    with pytest.raises(OptionError, match="no column 'dialect'"):
        target_rows(corpus, Target("column", "dialect", "x"))


def test_the_quality_column_is_no_target_by_name(rng):
    """It said that the corpus has no such column."""
    corpus = corpus_of(rng.normal(size=(40, 4)))
    assert corpus.provenance.columns["quality"] == ["q"]
    for target in (Target("score", "q"), Target("column", "q", "1")):
        with pytest.raises(OptionError, match="is the corpus's quality column; use --target quality"):
            target_rows(corpus, target)


def test_a_long_chain_of_near_copies_is_no_unit(rng):
    angle = np.linspace(0, 3, 200)
    texts = [f"word{i % 90} more{i} and{i % 7}" for i in range(200)]
    chain = corpus_of(np.column_stack([np.cos(angle), np.sin(angle)]), text=texts)
    near, words = build_neighbors(chain.features, 64), read_words(chain.metadata["text"])
    assert len(set(units_of(near, words).tolist())) == len(set(words.text_of.tolist()))


def test_own_texts_are_asked_for_once_and_rows_that_repeat_them_leave(rng):
    features = rng.normal(size=(300, 4))
    texts = [f"word{i % 60} other{i % 7} third{i % 11} more{i} " * 3 for i in range(300)]
    own = [texts[5], texts[9], *(f"own{i} word{i % 60} other{i % 7} {'x' * (i % 9)}" for i in range(120))]
    everything = corpus_of(rng.normal(size=(len(own) + 301, 4)), text=[*texts, *own, own[7]]).metadata["text"]
    words = read_words(everything)
    asked, leaving = own_texts(len(features), words, Meaning(words))
    assert sorted(asked.tolist()) == list(range(300, 300 + len(own)))
    assert leaving.shape == (300,) and leaving[[5, 9]].all()


def test_the_quick_pairwise_selection_is_nearly_the_best(corpus, tmp_path):
    pool = Pool(corpus, torch.device("cpu"), tmp_path)
    config = selecting.settings("pairwise", 0.2, 0)
    whole = selecting.scales(pool, config)
    lambdas = (0.0, 0.5, 0.9, 1.0)
    found = selecting.select_all(pool, whole, config, lambdas)
    for lamb, rows in zip(lambdas, found):
        joint = whole.problem.joint
        joint = type(joint)(joint.quality, joint.terms, lamb, joint.quality_scale)
        problem = Problem(joint, 240, torch.arange(len(corpus)), pool.ties(0))
        mask = torch.zeros(len(corpus), dtype=torch.bool)
        mask[torch.from_numpy(rows)] = True
        bound = QuadraticDual(problem).bound()
        assert len(rows) == 240 and bound - joint.evaluate(mask).joint < 0.02


def test_a_lambda_selects_the_same_whatever_else_is_tried(corpus, tmp_path):
    pool = Pool(corpus, torch.device("cpu"), tmp_path)
    config = selecting.settings("pairwise", 0.2, 0)
    whole = selecting.scales(pool, config)
    alone = selecting.select_all(pool, whole, config, (0.5,))[0]
    assert selecting.select_all(pool, whole, config, (0.0, 0.35, 0.5, 0.7))[2].tolist() == alone.tolist()
    assert selecting.select_all(pool, whole, config, (0.0, 0.5))[1].tolist() == alone.tolist()


def test_facility_is_selected_without_the_rows_that_left(corpus, graph, tmp_path):
    pool = Pool(corpus, torch.device("cpu"), tmp_path)
    config = selecting.settings("facility", 0.1, 0)
    rest = np.arange(0, len(corpus), 2)
    here = Pool(subset(corpus, rest), torch.device("cpu"), tmp_path)
    (rows,) = selecting.select_all(here, selecting.scales(pool, config), config, (0.0,))
    x = corpus.features[rest]
    rng = np.random.default_rng(0)

    def covered(members):
        return (x @ x[members].T).max(axis=1).mean()

    drawn = [covered(rng.choice(600, 60, replace=False)) for _ in range(20)]
    assert len(rows) == 60 and covered(rows) > max(drawn)


def test_the_subset_is_a_corpus_of_its_own(corpus):
    rows = np.array([7, 3, 11])
    part = subset(corpus, rows)
    assert part.ids.to_pylist() == [3, 7, 11] and (part.quality == corpus.quality[[3, 7, 11]]).all()
    assert part.metadata["text"].to_pylist() == [corpus.metadata["text"][i].as_py() for i in (3, 7, 11)]
    assert part.fingerprint not in (corpus.fingerprint, subset(corpus, rows[:2]).fingerprint)


def test_losses_are_those_of_models_trained_on_equally_many_words(corpus, words):
    rng = np.random.default_rng(1)
    texts, rest = np.arange(0, len(corpus), 20), np.setdiff1d(np.arange(len(corpus)), np.arange(0, len(corpus), 20))
    selections = [np.sort(rng.choice(rest, 150, replace=False)), rest[:120]]
    meter = TextMeter(BigramProxy(words), words, 10**9)
    budget = meter.budget(selections) - 7
    assert budget + 7 == min(words.lengths[rows].sum() for rows in selections)
    for rows in selections:
        trained = cut(words, rows, budget, 31)
        order = rows[np.argsort(hashed(rows, 31), kind="stable")]
        assert trained.tolist() == order[: len(trained)].tolist()
        tokens, owner = words.of(trained)
        assert len(tokens) >= budget > len(words.of(trained[:-1])[0])
        model, losses = (
            Bigrams(tokens[:budget], owner[:budget], words.vocabulary),
            meter.losses(rows, budget, texts, 31),
        )
        for place in (0, len(texts) - 1):
            tokens, owner = words.of(texts[place : place + 1])
            assert losses[place] == pytest.approx(model.nats(tokens, owner).sum())
    assert (meter.weights(texts) == words.lengths[texts]).all()
    drawn = random_rows(rest, 120, 2, 0, 0)
    assert len(drawn) == DRAWS
    assert all(np.isin(rows, rest).all() and len(set(rows)) == 120 for rows in drawn)
