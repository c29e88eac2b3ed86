"""When a result may color the lambda track: every state has its sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from datamask.ablation.steering import track
from tests.ablation.made import ROBUST, made_result

BY_BIGRAM = made_result(ROBUST)


def by_transformer(truth: np.ndarray = ROBUST):
    """The second proxy model's result of the same question, of its first three seeds."""
    return replace(made_result(truth, seeds=3, judge="transformer"), question=BY_BIGRAM.question.by("transformer"))


def test_two_models_that_agree_color_the_track():
    shown = track([BY_BIGRAM, by_transformer()], "facility", 0.3)
    assert shown.state == "colored" and "rank the methods alike" in shown.reason
    assert shown.points == ((0.0, "worse"), (0.7, "better"))


def test_one_model_alone_or_two_that_disagree_leave_it_gray():
    assert track([BY_BIGRAM], "facility", 0.3).state == "gray"
    assert "Only one proxy model" in track([BY_BIGRAM], "facility", 0.3).reason
    shown = track([BY_BIGRAM, by_transformer(10 - ROBUST)], "facility", 0.3)
    assert shown.state == "gray" and "rank the methods differently" in shown.reason and not shown.points
    # the transformer alone is no result either
    assert track([by_transformer()], "facility", 0.3).state == "gray"


def test_another_objective_ratio_or_rules_leave_it_dashed():
    stored = [BY_BIGRAM, by_transformer()]
    for shown, said in (
        (track(stored, "facility", 0.1), "select ratio 0.3, and the current one is 0.1"),
        (track(stored, "pairwise", 0.3), "did not try the current objective, pairwise"),
        (track(stored, "facility", 0.3, rules=True), "without rules"),
    ):
        assert shown.state == "dashed" and said in shown.reason and not shown.points


def test_provisional_circular_and_textless_results_stay_gray():
    assert "provisional: 3 of 10" in track([made_result(ROBUST, seeds=3)], "facility", 0.3).reason
    assert "No ablation" in track([], "facility", 0.3).reason
    features = replace(BY_BIGRAM, judge="features")
    shown = track([features, by_transformer()], "facility", 0.3)
    assert shown.state == "gray" and "no texts" in shown.reason
    circular = made_result(ROBUST, circular=True)
    assert "circular" in track([circular, by_transformer()], "facility", 0.3).reason
