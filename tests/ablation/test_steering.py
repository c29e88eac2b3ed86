"""When a result may color the lambda track: every state has its sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from datamask.ablation.steering import track
from datamask.config.target import Target
from tests.making.ablations import ROBUST, made_result

BY_BIGRAM = made_result(ROBUST)


def by_transformer(truth: np.ndarray = ROBUST):
    """The second proxy model's result of the same question, of its first three seeds."""
    return replace(made_result(truth, seeds=3, judge="transformer"), question=BY_BIGRAM.question.by("transformer"))


def test_two_models_that_agree_color_the_track():
    shown = track([BY_BIGRAM, by_transformer()], "facility", 0.3)
    assert shown.state == "colored" and "rank the methods alike" in shown.reason
    assert [(point.lamb, point.verdict) for point in shown.points] == [(0.0, "worse"), (0.7, "better")]
    counted = [(point.better, point.worse, point.targets) for point in shown.points]
    verdicts = [[BY_BIGRAM.to_random(place, at).verdict for at in range(3)] for place in (2, 3)]
    assert counted == [(row.count("better"), row.count("worse"), 3) for row in verdicts]
    assert shown.result is BY_BIGRAM and shown.fits and shown.target is None


def test_one_model_alone_or_two_that_disagree_leave_it_gray():
    assert track([BY_BIGRAM], "facility", 0.3).state == "gray"
    assert "Only one proxy" in track([BY_BIGRAM], "facility", 0.3).reason
    shown = track([BY_BIGRAM, by_transformer(10 - ROBUST)], "facility", 0.3)
    assert shown.state == "gray" and "rank the methods differently" in shown.reason
    # the same marks, without color
    assert shown.points == track([BY_BIGRAM, by_transformer()], "facility", 0.3).points and not shown.fits
    assert track([BY_BIGRAM], "facility", 0.3).fits
    # the transformer alone is no result either
    assert track([by_transformer()], "facility", 0.3).state == "gray"


def test_another_objective_ratio_or_rules_leave_it_dashed():
    stored = [BY_BIGRAM, by_transformer()]
    for shown, said, marks in (
        (track(stored, "facility", 0.1), "select ratio 0.3, and the current one is 0.1", 2),
        (track(stored, "facility", None), "fills tokens", 2),
        (track(stored, "pairwise", 0.3), "did not try the current objective, pairwise", 0),
        (track(stored, "facility", 0.3, rules=True), "without rules", 2),
    ):
        assert shown.state == "dashed" and said in shown.reason and len(shown.points) == marks and not shown.fits


def test_one_target_of_several_has_its_own_verdicts():
    stored = [BY_BIGRAM, by_transformer()]
    shown = track(stored, "facility", 0.3, target="t2")
    assert shown.target == 2 and [facts.name for facts in shown.targets] == ["t2"]
    assert [(point.better, point.worse, point.targets) for point in shown.points] == [(0, 1, 1), (0, 0, 1)]
    assert track(stored, "facility", 0.3, target="of another result") == track(stored, "facility", 0.3)


def test_a_result_of_examples_that_score_the_rows_is_not_of_this_quality():
    question = replace(BY_BIGRAM.question, target=Target("ids", digest="0" * 64))
    steered = replace(made_result(ROBUST[:, :1]), question=question)
    assert "No ablation" in track([steered], "facility", 0.3).reason
    assert track([steered, BY_BIGRAM, by_transformer()], "facility", 0.3).state == "colored"


def test_provisional_circular_and_textless_results_stay_gray():
    early = track([made_result(ROBUST, seeds=3)], "facility", 0.3)
    assert "provisional: 3 of 10" in early.reason and not early.points
    assert "No ablation" in track([], "facility", 0.3).reason
    features = replace(BY_BIGRAM, judge="features")
    shown = track([features, by_transformer()], "facility", 0.3)
    assert shown.state == "gray" and "no texts" in shown.reason
    circular = made_result(ROBUST, circular=True)
    shown = track([circular, by_transformer()], "facility", 0.3)
    assert "circular" in shown.reason and not shown.points
