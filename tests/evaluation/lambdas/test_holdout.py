"""The corpus without the held-out text: who leaves, what the lists still hold, who is asked where."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.config.lambda_question import Target
from datamask.corpus import row_hash
from datamask.corpus.neighbors import build_neighbors
from datamask.errors import InputError, OptionError
from datamask.evaluation.lambdas import selecting
from datamask.evaluation.lambdas.holdout import (
    RestrictedPool,
    held_out_own_texts,
    held_out_rows,
    restricted_graph,
    subset,
    target_rows,
    units_of,
)
from datamask.evaluation.lambdas.meaning import Meaning
from datamask.evaluation.lambdas.measuring import DRAWS, available, measure, random_rows
from datamask.evaluation.lambdas.proxy_models import BigramProxy, cut, hashed
from datamask.evaluation.lambdas.statistics import share_of_sets
from datamask.evaluation.measures.ngrams import Bigrams
from datamask.evaluation.measures.words import read_words
from datamask.evaluation.pool import Pool
from datamask.learning.newton import PairwiseDual
from datamask.learning.problem import Problem
from tests.evaluation.made import corpus_of, made_corpus


@pytest.fixture(scope="module")
def corpus():
    return made_corpus()


@pytest.fixture(scope="module")
def words(corpus):
    return read_words(corpus.metadata["text"])


@pytest.fixture(scope="module")
def graph(corpus):
    return build_neighbors(corpus.features, 64)


@pytest.mark.parametrize("target", [Target(), Target("column", "domain", "d0"), Target("quality")])
def test_nothing_like_the_held_out_text_is_left(corpus, words, graph, target):
    texts = corpus.metadata["text"].to_pylist()
    fold, family = row_hash(corpus.ids, 0) % np.uint64(20), units_of(graph, words)
    wanted, asked_before = target_rows(corpus, target), set()
    for holdout in held_out_rows(corpus, words, graph, target):
        (split,) = holdout.splits
        asked = [*split.choose, *split.report]
        assert wanted[asked].all() and not asked_before & set(asked)
        asked_before |= set(asked)
        held = set(fold[asked].tolist())
        gone = np.setdiff1d(np.arange(len(corpus)), holdout.remaining)
        assert not np.isin(fold[holdout.remaining], list(held)).any()
        assert not {texts[i] for i in asked} & {texts[i] for i in holdout.remaining}
        near = (corpus.features[np.isin(fold, list(held))] @ corpus.features.T).max(axis=0) >= 0.95 - 1e-6
        repeats = np.isin(texts, [texts[i] for i in np.flatnonzero(np.isin(fold, list(held)))])
        # lists of 64 hold every near-copy here, so the graph sees what all pairs see
        assert set(gone) == set(np.flatnonzero(near | repeats))
        assert len(gone) == np.isin(fold, list(held)).sum() + holdout.near_copies
        assert not set(family[split.choose]) & set(family[split.report])
    assert len(asked_before) >= 60


def test_a_target_that_is_too_small_is_refused(corpus, words, graph):
    with pytest.raises(OptionError, match="at least 60"):
        held_out_rows(corpus, words, graph, Target("column", "domain", "nowhere"))
    with pytest.raises(OptionError, match="no column 'dialect'"):
        held_out_rows(corpus, words, graph, Target("column", "dialect", "x"))


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
    with pytest.raises(InputError, match="nearly repeat the held-out text"):
        held_out_rows(chain, words, near, Target())


def test_lists_of_a_world_are_the_true_ones_as_far_as_they_go(corpus, graph, rng):
    rows = np.sort(rng.choice(len(corpus), 900, replace=False))
    found, true = restricted_graph(graph, rows), build_neighbors(corpus.features[rows], 64)
    own = np.arange(len(rows))[:, None]
    real = (found.indices != own) | (np.arange(64) == 0)
    assert (real.sum(axis=1) >= 30).all() and (np.diff(real.astype(int), axis=1) <= 0).all()
    assert np.allclose(found.similarities[real], true.similarities[real], atol=1e-6)
    assert (found.similarities[~real] == 0).all()


def test_a_world_of_own_texts(rng):
    features = rng.normal(size=(300, 4))
    texts = [f"word{i % 60} other{i % 7} third{i % 11} more{i} " * 3 for i in range(300)]
    corpus = corpus_of(features, text=texts)
    own = [texts[5], texts[9], *(f"own{i} word{i % 60} other{i % 7} {'x' * (i % 9)}" for i in range(120))]
    words = read_words(corpus_of(rng.normal(size=(len(own) + 300, 4)), text=[*texts, *own]).metadata["text"])
    holdout = held_out_own_texts(corpus, words, Meaning(words))
    assert 5 not in holdout.remaining and 9 not in holdout.remaining
    assert len(holdout.remaining) + holdout.near_copies == 300
    asked = np.concatenate([half for split in holdout.splits for half in (split.choose, split.report)])
    assert len(holdout.splits) == 5 and sorted(asked.tolist()) == list(range(300, 300 + len(own)))


def test_the_quick_pairwise_selection_is_nearly_the_best(corpus, tmp_path):
    pool = Pool(corpus, torch.device("cpu"), tmp_path)
    config = selecting.settings("pairwise", 0.2, 0)
    whole = selecting.scales(pool, config)
    here = RestrictedPool(pool, np.arange(len(corpus)))
    lambdas = (0.0, 0.5, 0.9, 1.0)
    found = selecting.select_all(here, whole, config, lambdas)
    for lamb, rows in zip(lambdas, found):
        joint = whole.problem.joint
        joint = type(joint)(joint.quality, joint.terms, lamb, joint.quality_scale)
        problem = Problem(joint, 240, torch.arange(len(corpus)), pool.ties(0))
        mask = torch.zeros(len(corpus), dtype=torch.bool)
        mask[torch.from_numpy(rows)] = True
        bound = PairwiseDual(problem).bound()
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
    here = RestrictedPool(pool, rest)
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


def test_losses_are_those_of_models_trained_on_equally_many_words(corpus, words, graph):
    meaning = Meaning(words)
    holdout = held_out_rows(corpus, words, graph, Target())[2]
    (asked,) = holdout.splits
    rng = np.random.default_rng(1)
    selections = {"a": np.sort(rng.choice(holdout.remaining, 150, replace=False)), "b": holdout.remaining[:120]}
    budget = available(words, list(selections.values())) - 7
    units = units_of(graph, words)
    entropy, coverage = measure(
        BigramProxy(words), meaning, selections, holdout.remaining, 120, budget, asked, units, 2, 0
    )
    for half, texts, one, two in zip((0, 1), (asked.choose, asked.report), entropy, coverage):
        seed = 2 * 2 + half + 100
        trained = cut(words, selections["a"], budget, seed)
        order = selections["a"][np.argsort(hashed(selections["a"], seed), kind="stable")]
        assert trained.tolist() == order[: len(trained)].tolist()
        tokens, owner = words.of(trained)
        assert len(tokens) >= budget > len(words.of(trained[:-1])[0])
        model = Bigrams(tokens[:budget], owner[:budget], words.vocabulary)
        for place in (0, len(texts) - 1):
            tokens, owner = words.of(texts[place : place + 1])
            assert one.sums[place, 0] == pytest.approx(model.nats(tokens, owner).sum())
            nearest = (meaning.directions[trained] @ meaning.directions[texts[place]]).max()
            assert two.sums[place, 0] == pytest.approx(1 - nearest, abs=1e-5)
        assert one.sums.shape == (len(texts), 3) and (one.weights == words.lengths[texts]).all()
        assert (one.unit_of == units[texts]).all()
    drawn = random_rows(holdout.remaining, 120, 2, 1, 0)
    assert len(drawn) == DRAWS
    assert all(np.isin(rows, holdout.remaining).all() and len(set(rows)) == 120 for rows in drawn)
    for measured in (entropy[1], coverage[1]):
        assert measured.drawn.shape == (len(asked.report), DRAWS)
        assert measured.sums[:, 2] == pytest.approx(measured.drawn.mean(axis=1))
        trained = budget / np.mean([words.lengths[rows].sum() for rows in drawn])
        assert measured.of_sets == pytest.approx(share_of_sets(120 / len(holdout.remaining), min(trained, 1)))
    tokens, owner = words.of(asked.report[:1])
    cut_of_first = words.of(cut(words, drawn[0], budget, 2 * 2 + 1 + 100))
    model = Bigrams(cut_of_first[0][:budget], cut_of_first[1][:budget], words.vocabulary)
    assert entropy[1].drawn[0, 0] == pytest.approx(model.nats(tokens, owner).sum())
