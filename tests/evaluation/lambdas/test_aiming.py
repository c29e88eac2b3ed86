"""Examples that steer and judge: the halves, the quality, who leaves, against brute force in float64."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from datamask.config.lambda_question import LambdaQuestion, Target
from datamask.corpus.neighbors import build_neighbors
from datamask.errors import InputError, OptionError, Stopped
from datamask.evaluation.examples import Examples
from datamask.evaluation.lambdas import aiming, which_lambda
from datamask.evaluation.lambdas.aiming import AimedPool, aim, aimed_holdout, deal, families_of, with_quality
from datamask.evaluation.lambdas.judges import FeatureJudge
from datamask.evaluation.lambdas.kept import NO_LESSONS
from datamask.evaluation.lambdas.measuring import random_rows
from datamask.evaluation.lambdas.trial import example_trial
from datamask.evaluation.pool import Pool
from tests.evaluation.lambdas.planted import TARGET_TEXTS, planted_corpus
from tests.evaluation.made import corpus_of, made_corpus

ALL = Target("features")


def unit(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def brute_quality(rows: np.ndarray, steering: np.ndarray) -> np.ndarray:
    """Rank of the mean of the k largest cosines, row by row."""
    cosines = rows.astype(np.float64) @ steering.astype(np.float64).T
    means = np.round(np.sort(cosines, axis=1)[:, -min(8, len(steering)) :].mean(axis=1), 6)
    below = (means[:, None] > means).sum(axis=1)
    equal = (means[:, None] == means).sum(axis=1) - 1
    return (below + equal / 2) / (len(means) - 1)


def brute_aim(rows: np.ndarray, examples: np.ndarray, seed: int):
    """Everything of an `Aim`, by loops over all pairs."""
    order = np.random.default_rng([2507, seed]).permutation(len(examples))
    steering, judging = order[: len(order) // 2], order[len(order) // 2 :]
    wide = examples.astype(np.float64)
    kept = [j for j in judging if max(wide[j] @ wide[s] for s in steering) < 0.95]
    leaving = [any(row @ e >= 0.95 for e in wide) for row in rows.astype(np.float64)]
    return brute_quality(rows, examples[steering]), np.array(leaving), steering, np.array(kept)


@pytest.mark.parametrize(("m", "seed"), [(100, 0), (151, 3), (260, 1)])
def test_an_aim_is_what_all_pairs_say(m, seed):
    rng = np.random.default_rng([5, m])
    rows, examples = rng.normal(size=(400, 5)), rng.normal(size=(m, 5))
    examples[:20] = rows[:20]  # examples that are rows of the corpus
    examples[30:40] = examples[60:70] + 0.02 * rng.normal(size=(10, 5))  # and near-copies among themselves
    rows, examples = unit(rows), unit(examples)
    found = aim(rows, examples, None, np.ones(m, bool), seed)
    quality, leaving, steering, judging = brute_aim(rows, examples, seed)
    assert np.allclose(found.quality, quality, atol=1e-9) and (found.leaving == leaving).all() and leaving[:20].all()
    assert found.steering.tolist() == steering.tolist() and found.judging.tolist() == judging.tolist()
    assert len(steering) == m // 2 and found.near_copies == m - m // 2 - len(judging) > 0
    assert not set(steering) & set(judging)
    near = examples[judging].astype(np.float64) @ examples[judging].astype(np.float64).T >= 0.95
    while (grown := near.astype(int) @ near > 0).sum() > near.sum():
        near = grown
    assert ((found.units[:, None] == found.units) == near).all()


def test_halves_are_dealt_by_the_seed_alone():
    assert [part.tolist() for part in deal(101, 4)] == [part.tolist() for part in deal(101, 4)]
    assert deal(101, 4)[0].tolist() != deal(101, 5)[0].tolist() and list(map(len, deal(101, 4))) == [50, 51]
    assert sorted(np.concatenate(deal(101, 4))) == list(range(101))


def test_what_both_halves_share_judges_nothing():
    rng = np.random.default_rng(1)
    examples = unit(rng.normal(size=(240, 40)))
    texts = [f"text {place // 2}" for place in range(240)]  # each twice, with other features
    steering, judging = deal(240, 0)
    found = aim(examples, examples, texts, np.ones(240, bool), 0)
    shared = {texts[place] for place in steering}
    assert found.judging.tolist() == [place for place in judging if texts[place] not in shared]
    assert not {texts[place] for place in found.judging} & shared and found.near_copies > 0
    # empty texts are no equal ones, and what cannot be asked for does not judge
    bare = aim(examples, examples, [""] * 240, np.arange(240) % 3 > 0, 0)
    assert bare.judging.tolist() == [place for place in judging if place % 3]


def test_halves_that_are_too_alike_are_refused():
    rng = np.random.default_rng(2)
    rows, askable = unit(rng.normal(size=(300, 6))), np.ones(200, bool)
    with pytest.raises(InputError, match=r"100 are duplicates .* 0 different ones are left; at least 40"):
        aim(rows, np.repeat(rows[:1], 200, axis=0), None, askable)
    # the judging half is one family of near-copies, though none is near the steering half
    examples = unit(rng.normal(size=(200, 6)))
    examples[deal(200, 0)[1]] = unit(np.ones((1, 6)))[0]
    with pytest.raises(InputError, match=r"1 different ones are left; at least 40"):
        aim(rows, examples, None, askable)


def test_every_cell_of_a_holdout_has_whole_families():
    rng = np.random.default_rng(3)
    rows = unit(rng.normal(size=(300, 30)))
    examples = unit(np.repeat(rng.normal(size=(200, 30)), 2, axis=0) + 0.001 * rng.normal(size=(400, 30)))
    found = aim(rows, examples, None, np.ones(400, bool), 0)
    holdout = aimed_holdout(found, found.judging, found.leaving)
    family = dict(zip(found.judging.tolist(), found.units.tolist()))
    cells = [half for split in holdout.splits for half in (split.choose, split.report)]
    owners = [{family[place] for place in cell} for cell in cells]
    assert len(cells) == 10 and sorted(np.concatenate(cells)) == sorted(found.judging)
    assert all(owners) and sum(map(len, owners)) == len(set.union(*owners))
    assert max(map(len, owners)) - min(map(len, owners)) <= 1
    assert (np.flatnonzero(~found.leaving) == holdout.remaining).all()


def test_equal_rows_have_equal_quality_and_a_single_value_has_one():
    rows = unit(np.random.default_rng(4).normal(size=(50, 7)))
    twice = np.concatenate([rows, rows[::-1], rows])
    means, _ = aiming.nearness(twice, rows, np.arange(20))
    quality = aiming.ranks(means)
    assert (quality[:50] == quality[100:]).all() and (quality[:50] == quality[50:100][::-1]).all()
    assert quality.min() >= 0 and quality.max() <= 1
    assert (aiming.ranks(np.ones(9)) == 0.5).all() and aiming.ranks(np.ones(1)).tolist() == [0.0]


def test_families_are_connected_near_copies():
    angle = np.deg2rad([0, 15, 30, 90, 180])
    assert families_of(unit(np.column_stack([np.cos(angle), np.sin(angle)]))).tolist() == [0, 0, 0, 1, 2]


def test_an_aimed_pool_has_the_lists_of_the_whole_one(tmp_path):
    corpus = made_corpus(300)
    whole = Pool(corpus, torch.device("cpu"), tmp_path)
    aimed = AimedPool(whole, np.linspace(0, 1, 300))
    assert aimed.graph(20) is whole.graph(20)
    assert (aimed.quality.scores.numpy() == np.linspace(0, 1, 300)).all() and (aimed.features == whole.features).all()
    other = with_quality(corpus, np.linspace(1, 0, 300)).fingerprint
    assert len({corpus.fingerprint, aimed.corpus.fingerprint, other}) == 3


def test_the_feature_judge_measures_the_nearest_selected_row():
    rng = np.random.default_rng(6)
    rows, examples = unit(rng.normal(size=(200, 6))), unit(rng.normal(size=(100, 6)))
    found = aim(rows, examples, None, np.ones(100, bool))
    holdout = aimed_holdout(found, found.judging, found.leaving)
    units = np.zeros(100, np.int64)
    units[found.judging] = found.units
    selections = {"a": holdout.remaining[:20], "b": holdout.remaining[30:50]}
    judge = FeatureJudge(rows, examples, units, 0)
    assert judge.budget(list(selections.values()), 0.1) == 0
    ((choose, report),) = judge.losses(selections, holdout.remaining, 20, 0, holdout.splits[2], 2)
    x, e = rows.astype(np.float64), examples.astype(np.float64)
    for half, losses, asked in ((0, choose, holdout.splits[2].choose), (1, report, holdout.splits[2].report)):
        drawn = random_rows(holdout.remaining, 20, 2, half, 0)
        for place, example in enumerate(asked):
            nearest = [1 - max(e[example] @ x[row] for row in chosen) for chosen in (*selections.values(), *drawn)]
            assert losses.sums[place] == pytest.approx([*nearest[:2], np.mean(nearest[2:])], abs=1e-6)
            assert losses.drawn[place] == pytest.approx(nearest[2:], abs=1e-6)
        assert (losses.weights == 1).all() and (losses.unit_of == units[asked]).all()


def planted_examples(seed: int, n: int = 1500, aside: float = 0.7):
    """A planted corpus, and examples of its wanted kind, or farther `aside` than that: their features, and texts."""
    corpus, kind, texts = planted_corpus(seed, n)
    rng = np.random.default_rng([43, seed])
    features = rng.normal(size=(TARGET_TEXTS, corpus.dim))
    features[:, :2] *= 0.3
    features[:, 0] += aside
    return corpus, kind, unit(features), tuple(texts)


QUESTION = LambdaQuestion(("pairwise",), lambdas=(0.0, 0.5, 1.0), target=Target("features", name="mine"))


def test_examples_with_texts_are_judged_by_texts(tmp_path):
    corpus, _, features, texts = planted_examples(3)
    answer = which_lambda(corpus, QUESTION, tmp_path, examples=Examples("mine", features, texts, 7))
    curve, target = answer["measures"][0]["curves"][0], answer["target"]
    assert [measure["name"] for measure in answer["measures"]] == ["cross_entropy", "coverage"]
    assert (target["examples"], target["steering"], target["repeated"]) == (600, 300, 7)
    assert target["judging"] + target["near_copies_between"] == 300 and target["texts"] == target["judging"]
    notes = " ".join(answer["notes"])
    assert "300 steer" in notes and "7 more repeat them" in notes and "corpus's own quality is not used" in notes
    assert f"{target['near_copies_between']:,} duplicates of the steering half" in notes
    assert curve["words"] > 1000 and "the examples in mine" in answer["headline"]


def test_examples_without_texts_are_judged_by_features(tmp_path):
    # far enough aside for no random selection to be as near by luck
    corpus, _, features, _ = planted_examples(3, aside=2.0)
    answer = which_lambda(corpus, QUESTION, tmp_path, examples=Examples("mine", features, None))
    (measure,) = answer["measures"]
    (curve,) = measure["curves"]
    assert measure["name"] == "nearness" and curve["words"] == 0 and "weaker test" in " ".join(answer["notes"])
    # what is nearest to one half is nearer to the other than rows at random
    assert curve["verdict"] == "helps" and curve["points"][-1]["high"] < 0
    assert "cosine distance" in curve["sentence"]
    # a corpus without texts is no hindrance then
    bare = corpus_of(corpus.features.astype(np.float64), corpus.quality)
    again = which_lambda(bare, QUESTION, tmp_path, examples=Examples("mine", features, None))
    assert again["measures"][0]["curves"][0]["points"] == curve["points"]
    # and examples with texts, where the corpus has none, are judged by features too
    texts = tuple(f"text {place}" for place in range(len(features)))
    assert which_lambda(bare, QUESTION, tmp_path, examples=Examples("mine", features, texts))["measures"][0][
        "curves"
    ] == [curve]


def test_nothing_selected_is_an_example_or_nearly_one(tmp_path):
    corpus = made_corpus()
    pool = Pool(corpus, torch.device("cpu"), tmp_path)
    texts = corpus.metadata["text"].to_pylist()
    rows = np.arange(0, 1200, 7)
    examples = Examples("mine", corpus.features[rows], tuple(texts[row] for row in rows))
    question = LambdaQuestion(("pairwise",), lambdas=(0.0, 1.0), target=ALL)
    graph = build_neighbors(corpus.features, 64)
    trial = example_trial(pool, graph, question, examples, NO_LESSONS, lambda share, what: None, lambda: None)
    (holdout,) = trial.holdouts
    wide = corpus.features.astype(np.float64)
    near = (wide @ wide[rows].T).max(axis=1) >= 0.95 - 1e-6
    repeats = np.isin(texts, [texts[row] for row in rows])
    assert holdout.remaining.tolist() == np.flatnonzero(~(near | repeats)).tolist()
    asked = np.concatenate([half for split in holdout.splits for half in (split.choose, split.report)]) - len(corpus)
    steering, _ = deal(len(rows), question.seed)
    assert not set(asked) & set(steering) and len(asked) == trial.target["judging"]
    assert (wide[rows[asked]] @ wide[rows[steering]].T).max() < 0.95
    assert trial.pool.corpus.quality == pytest.approx(brute_quality(corpus.features, corpus.features[rows[steering]]))


def test_a_corpus_of_nothing_but_examples_and_a_missing_file_are_refused(tmp_path):
    corpus = made_corpus(400, texts=False)
    question = LambdaQuestion(("pairwise",), lambdas=(0.0, 1.0), target=ALL)
    with pytest.raises(InputError, match="too little"):
        which_lambda(corpus, question, tmp_path, examples=Examples("mine", corpus.features, None))
    with pytest.raises(OptionError, match="needs its examples"):
        which_lambda(corpus, question, tmp_path)
    assert isinstance(corpus.ids, pa.Array)

    def poll():
        raise Stopped("enough")

    with pytest.raises(Stopped):
        aim(corpus.features, corpus.features[:200], None, np.ones(200, bool), 0, poll)
