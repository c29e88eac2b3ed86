"""What the stored results say of a selection, next to the results, and when they say nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from datamask.ablation.offer import doubt, instead_of, offer
from datamask.config import SelectionConfig
from datamask.config.target import Target
from tests.making.ablations import ROBUST, made_result

BY_BIGRAM = made_result(ROBUST)
LEVEL = np.array([[5.0] * 3, [5.5] * 3, [5.3] * 3, [5.0] * 3])


def by_transformer(truth: np.ndarray = ROBUST):
    """The second proxy model's result of the same question, of its first three seeds."""
    return replace(made_result(truth, seeds=3, judge="transformer"), question=BY_BIGRAM.question.by("transformer"))


def asked(**options) -> SelectionConfig:
    """A selection by facility location at ratio 0.3."""
    return SelectionConfig.from_options(**{"objective": "facility", "select_ratio": 0.3, **options})


def test_tried_lambdas_have_the_verdicts_of_the_result():
    offered = offer([BY_BIGRAM, by_transformer()], asked())
    assert offered.result is BY_BIGRAM and offered.reason == "" == offered.doubt
    verdicts = [[BY_BIGRAM.to_random(place, at).verdict for at in range(3)] for place in (2, 3)]
    counted = [(point.lamb, point.better, point.worse) for point in offered.tried]
    assert counted == [(lamb, row.count("better"), row.count("worse")) for lamb, row in zip((0.0, 0.7), verdicts)]
    assert [point.verdict for point in offered.apart] == ["worse", "better"]
    assert offered.at(0.7).words == "better than random for 2 of 3 targets"
    assert offered.at(0.0).words == "worse than random for 3 of 3 targets"
    assert offered.at(0.35) is None, "nothing between tried lambdas"
    assert offered.sentence == "Evidence: better than random at λ 0.7."


def test_level_is_no_mark_and_no_claim():
    offered = offer([made_result(LEVEL)], asked())
    assert [point.lamb for point in offered.apart] == [
        0.0
    ] and offered.sentence == "Evidence: small models learn no better from any λ than from random rows (▼ worse)."
    assert offered.at(0.7).words == "level with random for all 3 targets"
    offered = offer([made_result(np.full((4, 3), 5.0))], asked())
    assert not offered.apart
    assert offered.sentence == "Evidence: no difference from random could be shown at this size."
    alone = offer([made_result(ROBUST[:, :1])], asked())
    assert alone.at(0.7).words == "better than random for target 0"


def test_one_model_alone_is_a_doubt_and_two_that_disagree_say_nothing():
    alone = offer([BY_BIGRAM], asked())
    assert "Only one proxy" in alone.doubt and alone.apart
    contradicted = offer([BY_BIGRAM, by_transformer(10 - ROBUST)], asked())
    assert "rank the methods differently" in contradicted.doubt and not contradicted.tried
    assert contradicted.sentence.startswith("Evidence: the two proxy models rank")
    features = replace(BY_BIGRAM, judge="features")
    assert "no texts" in offer([features, by_transformer()], asked()).doubt == doubt(features, [])
    # the transformer alone is no result
    assert offer([by_transformer()], asked()).result is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"select_ratio": 0.1}, "select ratio 0.3, and the current one is 0.1"),
        ({"select_ratio": None, "budget": 1000}, "fills tokens"),
        ({"objective": "pairwise"}, "did not try the current objective, pairwise"),
        *[({**rule}, "without rules") for rule in ({"collapse": "exact"}, {"prune": 0.1}, {"ban": "ban.txt"})],
    ],
)
def test_of_another_objective_ratio_or_rules_it_says_nothing(options, said):
    offered = offer([BY_BIGRAM, by_transformer()], asked(**options))
    assert said in offered.reason and not offered.tried and offered.result is BY_BIGRAM
    assert offered.sentence.startswith("Evidence: the ablation ")


def test_provisional_circular_and_steered_results_say_nothing():
    early = offer([made_result(ROBUST, seeds=3)], asked())
    assert early.result is None and "3 of 10 seeds" in early.reason
    assert "No ablation" in offer([], asked()).reason
    assert "circular" in offer([made_result(ROBUST, circular=True)], asked()).reason
    # examples that score the rows are not of this quality
    steered = replace(
        made_result(ROBUST[:, :1]), question=replace(BY_BIGRAM.question, target=Target("ids", digest="0" * 64))
    )
    assert "No ablation" in offer([steered], asked()).reason
    assert offer([steered, BY_BIGRAM], asked()).result is BY_BIGRAM


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"estimator": "counterfactual", "lamb": 0.7},
            ["did not test this run's method, learned masks.", "At λ 0.7, a selection by Solve is better than"],
        ),
        ({"estimator": "counterfactual", "lamb": 0.4}, ["did not test this run's method, learned masks."]),
        ({"estimator": "semdedup", "lamb": 0.7}, []),  # uses no lambda
        ({"lamb": 0.7}, []),  # a solved selection
        ({"estimator": "top-quality"}, []),  # the ablation measured it
    ],
)
def test_of_another_method_it_says_what_was_measured_in_its_place(settings, said):
    found = instead_of(asked(**settings), offer([BY_BIGRAM], asked()), 400)
    assert len(found) == len(said) and all(part in sentence for part, sentence in zip(said, found, strict=True))
    assert instead_of(asked(**settings), offer([], asked()), 400) == []
