"""Examples that steer and judge: the halves, the quality, who leaves, against brute force in float64."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.ablation.question import AblationQuestion
from datamask.analyses.ablation.compute import ablate, aiming
from datamask.analyses.ablation.compute import study as studying
from datamask.analyses.ablation.compute.aiming import aim, deal, families_of
from datamask.analyses.ablation.compute.meters import FeatureMeter
from datamask.config.target import Target
from datamask.errors import InputError, Stopped
from datamask.evaluation.examples import Examples
from tests.making.pools import made_corpus


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


def test_the_features_of_a_target_are_measured_to_the_nearest_selected_row():
    rng = np.random.default_rng(6)
    rows, examples = unit(rng.normal(size=(200, 6))), unit(rng.normal(size=(100, 6)))
    everything = np.concatenate([rows, examples]).astype(np.float32)
    meter, asked = FeatureMeter(everything, None), 200 + np.arange(100)
    assert meter.budget([np.arange(20)]) == 0 and (meter.weights(asked) == 1).all()
    found = meter.losses(np.arange(30, 50), 0, asked, 0)
    assert found == pytest.approx(1 - (examples @ rows[30:50].T).max(axis=1), abs=1e-6)


def test_nothing_selected_is_an_example_or_nearly_one(tmp_path, monkeypatch):
    corpus, plans, planned = made_corpus(), [], studying.plan
    monkeypatch.setattr(studying, "plan", lambda *given: plans.append(planned(*given)) or plans[0])
    texts, rows = corpus.metadata["text"].to_pylist(), np.arange(0, 1200, 7)
    examples = Examples("mine", corpus.features[rows], tuple(texts[row] for row in rows))
    question = AblationQuestion(
        methods=("top-quality",), objectives=("pairwise",), lambdas=(0.5,), seeds=6, target=Target("ids", name="mine")
    )
    ablate(corpus, question, tmp_path, examples=examples, device="cpu", seeds=1)
    (plan,) = plans
    wide = corpus.features.astype(np.float64)
    near = (wide @ wide[rows].T).max(axis=1) >= 0.95 - 1e-6
    repeats = np.isin(texts, [texts[row] for row in rows])
    remaining, asked = np.concatenate(plan.remaining), np.concatenate(plan.texts) - len(corpus)
    assert len(remaining) and not (near | repeats)[remaining].any()
    steering, _ = deal(len(rows), question.seed)
    assert len(asked) and not set(asked) & set(steering)
    assert (wide[rows[asked]] @ wide[rows[steering]].T).max() < 0.95
    assert plan.corpus.quality == pytest.approx(brute_quality(corpus.features, corpus.features[rows[steering]]))


def test_an_aim_stops_when_it_is_told_to():
    features = made_corpus(400, texts=False).features

    def poll():
        raise Stopped("enough")

    with pytest.raises(Stopped):
        aim(features, features[:200], None, np.ones(200, bool), 0, poll)
