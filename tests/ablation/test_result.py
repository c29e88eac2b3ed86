"""What follows from losses: summaries, the recommendation, sentences, JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from datamask.ablation import question as questions
from datamask.ablation import wording
from datamask.ablation.question import AblationQuestion, objectives_known
from datamask.ablation.result import VERSION, AblationResult
from datamask.config.target import Target
from datamask.errors import OptionError
from tests.making.ablations import ROBUST, made_result


def test_the_method_with_the_smallest_largest_regret_is_recommended():
    result = made_result(ROBUST)
    by_name = {summary.method.name: summary for summary in result.summaries}
    robust, top = by_name["facility-0.7"], by_name["top-quality"]
    assert (robust.better, robust.worse) == (2, 0) and robust.regret == pytest.approx(0.1, abs=0.02)
    assert (top.better, top.worse) == (1, 1) and top.worst.name == top.regret_on.name == "t2"
    assert (robust.better_than_simple, robust.worse_than_simple) == (1, 1)
    assert result.recommendation is robust
    said = wording.headline(result)
    assert "For an unknown target, Facility location λ 0.7 is the safest method: at most 0.1" in said
    assert "The safest simple baseline is Random (0." in said
    assert "the best simple baseline it is better on 1 and worse on 1" in said


def test_where_random_is_the_robust_choice_the_sentence_is_about_the_best_joint_method():
    result = made_result(np.array([[5.0, 5.0], [4.8, 5.6], [5.3, 5.3], [5.1, 5.4]]))
    said = wording.headline(result)
    assert "For an unknown target, Random is the safest method: at most 0." in said
    assert "The safest method with λ is Facility location λ 0.7 (0." in said
    assert "Random is better than random" not in said and "and worse on 2. Against" in said


def test_a_provisional_result_compares_and_recommends_nothing():
    result = made_result(ROBUST, seeds=3)
    assert result.provisional and result.comparisons is None and result.recommendation is None and not result.claims
    assert all(summary.better == summary.worse == 0 for summary in result.summaries)
    assert wording.headline(result).startswith("Provisional: 3 of 10 seeds are done.")
    assert result.to_dict()["derived"]["cells"][3]["to_random"] is None


def test_where_nothing_differs_nothing_is_recommended():
    result = made_result(np.full((4, 3), 5.0))
    assert not result.claims and result.recommendation is None
    said = wording.headline(result)
    assert f"differences below {result.visible:.2g} nats per word in the mean over 3 targets are not visible" in said
    assert "with 5,000 rows and 10 seeds" in said


def test_the_smallest_visible_difference_is_that_which_an_interval_of_the_mean_would_show():
    result = made_result(np.full((4, 3), 5.0))
    means = replace(
        made_result(np.full((4, 1), 5.0)),
        losses=result.losses.mean(axis=2, keepdims=True),
        of_texts=result.of_texts.sum(axis=2, keepdims=True) / 9,
    )
    widths = [(each.high - each.low) / 2 for each in means.comparisons.to_random[0][1:]]
    assert result.visible == pytest.approx(min(widths)) and means.overall is means.comparisons
    # one that is better by a little more than this is seen
    shifted = result.losses - np.array([0, 0, 0, 1.5 * max(widths)])[:, None]
    assert replace(result, losses=shifted).overall.to_random[0][3].verdict == "better"
    assert made_result(ROBUST, seeds=3).visible == np.inf


def test_where_methods_are_level_or_worse_nothing_is_recommended():
    result = made_result(np.array([[5.0, 5.0], [5.4, 5.5], [5.0, 5.0], [5.3, 5.0]]))
    assert result.claims and result.recommendation is None
    said = wording.headline(result)
    assert said.startswith("Too small to tell: ") and "No method is better than random" in said
    assert said.endswith("2 of 3 are worse than random on at least one.")


def test_sentences_on_one_target_name_the_best_simple_baseline():
    ahead = made_result(np.array([[5.0], [4.9], [5.2], [4.7]]))
    said = wording.headline(ahead)
    assert "Facility location λ 0.7 is better than the best simple baseline, Top quality (−0.2" in said
    # quality alone does as well: the sentence says so
    equal = made_result(np.array([[5.0], [4.7], [5.2], [4.7]]))
    said = wording.headline(equal)
    assert "is better than random" in said and "No method is better than the best simple baseline, Top quality." in said
    behind = wording.headline(made_result(np.array([[5.0], [5.3], [5.2], [5.0]])))
    assert "no method is better than random" in behind and "Worse than random: Top quality and Facility" in behind


def test_a_circular_target_recommends_nothing():
    result = made_result(ROBUST[:, :1], circular=True)
    assert result.recommendation is None and wording.headline(result) == wording.CIRCULAR


def test_chance_of_texts_widens_intervals_and_never_narrows_them():
    result = made_result(ROBUST)
    wider = AblationResult.from_dict({**result.to_dict(), "of_texts": np.full((4, 2, 3), 0.01).tolist()})
    for target in range(3):
        plain, wide = result.to_random(3, target), wider.to_random(3, target)
        assert wide.low < plain.low and wide.high > plain.high and wide.mean == plain.mean
    assert wider.comparisons.reach == result.comparisons.reach


def test_a_result_comes_back_from_json_as_it_was():
    result = made_result(ROBUST)
    written = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    again = AblationResult.from_dict(written)
    assert again.to_dict() == result.to_dict() and again.question.key == written["key"]
    with pytest.raises(ValueError, match="version"):
        AblationResult.from_dict({**written, "version": VERSION + 1})
    with pytest.raises(ValueError, match="losses must be"):
        AblationResult.from_dict({**written, "losses": [[[1.0]]]})
    with pytest.raises(ValueError, match="finite"):
        AblationResult.from_dict({**written, "losses": (result.losses * np.nan).tolist()})


def test_a_question_of_another_meaning_has_another_key(monkeypatch):
    before = AblationQuestion().key
    monkeypatch.setattr(questions, "MEANING", questions.MEANING + 1)
    assert AblationQuestion().key != before


def test_a_question_validates_itself_and_has_a_key():
    question = AblationQuestion(methods=("top-quality",), lambdas=(1.0, 0.5, 0.5, 0.0))
    assert question.methods == ("random", "top-quality") and question.lambdas == (0.0, 0.5)
    assert question.objectives == objectives_known()
    again = AblationQuestion.from_dict(json.loads(json.dumps(question.to_dict())))
    assert again == question and again.key == question.key != AblationQuestion().key
    assert AblationQuestion.from_dict(AblationQuestion(target=Target("random")).to_dict()).target == Target("random")
    for wrong, said in (
        ({"seeds": 5}, "--seeds must be at least 6"),
        ({"methods": ("best",)}, "--methods must be of random"),
        ({"ratio": 1.0}, "--select_ratio"),
        ({"lambdas": (1.0,)}, "--lambdas"),
        ({"target": Target(), "label": "domain"}, "--label"),
        ({"judge": "oracle"}, "--judge"),
    ):
        with pytest.raises(OptionError, match=said):
            AblationQuestion(**wrong)
