"""What a result offers for the current selection, and what it says of it, next to the stored result."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.ablation.offers import instead_of, measured, offers, solved_at
from datamask.ablation.steering import track
from datamask.config import SelectionConfig
from tests.making.ablations import ROBUST, made_result

NOTHING_BETTER = np.array([[5.0, 5.0, 5.0], [5.4, 5.5, 5.3], [5.0, 5.0, 5.0], [5.0, 5.6, 5.0]])
SIMPLE_WINS = np.array([[5.0, 5.0, 5.0], [4.5, 4.5, 4.5], [5.2, 5.1, 5.1], [4.8, 4.9, 4.9]])


def confirmed(truth: np.ndarray):
    """A result and that of its second proxy model."""
    result = made_result(truth)
    second = made_result(truth, seeds=3, judge="transformer", question=result.question.by("transformer"))
    return [result, second]


def test_several_targets_recommend_the_method_that_is_never_far_behind():
    stored = confirmed(ROBUST)
    (offer,) = offers(track(stored, "facility", 0.3))
    recommended = stored[0].recommendation
    assert offer.method == recommended.method and offer.moves and offer.method.lamb == 0.7
    assert offer.sentence.startswith("λ 0.7 is the safest method for an unknown target: at most 0.1")
    assert f"{recommended.regret:.3f} nats per word" in offer.sentence


def test_one_target_recommends_its_best_lambda_next_to_the_best_simple_baseline():
    stored = confirmed(ROBUST)
    # the one target that the wanted offer is about; on it top quality is best of all
    recommended = offers(track(stored, "facility", 0.3, target="t0"))[-1]
    assert recommended.moves and recommended.method.lamb == 0.7
    assert (
        "better than random for target 0, and worse than the best simple baseline, Top quality" in recommended.sentence
    )
    # on the third one no lambda can be told apart from random
    assert not any(offer.moves for offer in offers(track(stored, "facility", 0.3, target="t2")))


def test_where_no_joint_method_beats_the_best_simple_baseline_that_baseline_is_offered():
    stored = confirmed(SIMPLE_WINS)
    (offer,) = offers(track(stored, "facility", 0.3))
    assert offer.method.name == "top-quality" and not offer.moves
    assert "No tried λ beats the best simple baseline on any of 3 targets" in offer.sentence
    assert "The safest simple baseline is Top quality: at most 0." in offer.sentence
    # one proxy model alone: that nothing was better is said all the same
    assert offers(track(stored[:1], "facility", 0.3)) == [offer]
    (single,) = [one for one in offers(track(stored, "facility", 0.3, target="t1")) if not one.moves]
    assert single.sentence == "No tried λ beats the best simple baseline, Top quality, for target 1."


def test_where_nothing_is_better_than_random_no_method_is_offered():
    # some are worse, and the least regret is a solved selection's
    shown = track(confirmed(NOTHING_BETTER), "facility", 0.3)
    (offer,) = offers(shown)
    assert offer.method is None and not offer.moves
    assert offer.sentence == "In the ablation, no λ and no simple baseline beats random on any of 3 targets."
    (single,) = offers(track(confirmed(NOTHING_BETTER), "facility", 0.3, target="t1"))
    assert single.method is None and single.sentence.endswith("beats random for target 1.")


def test_a_simple_baseline_that_is_most_robust_is_offered_as_a_run():
    # a joint method is best on one target and far behind on the others
    truth = np.array([[5.0, 5.0, 5.0], [4.9, 4.8, 4.8], [4.7, 5.4, 5.4], [5.3, 5.3, 5.3]])
    stored = confirmed(truth)
    assert stored[0].summaries[2].better_than_simple
    (offer,) = offers(track(stored, "facility", 0.3))
    assert offer.method == stored[0].recommendation.method and offer.method.simple and not offer.moves
    assert offer.sentence.startswith("Top quality is the safest method for an unknown target: at most 0.")


def test_a_recommendation_without_a_claim_over_random_says_so():
    # what is best on the first target is far behind on the others; the most robust method is level with random
    truth = np.array([[5.0, 5.0, 5.0], [4.0, 6.0, 6.0], [4.99, 4.99, 4.99], [5.3, 5.3, 5.3]])
    stored = confirmed(truth)
    recommended = offers(track(stored, "facility", 0.3))[-1]
    (summary,) = [each for each in stored[0].summaries if each.method == recommended.method]
    assert not summary.better and recommended.sentence.endswith("It is better than random on none of them.")


def test_nothing_is_recommended_without_a_colored_track():
    stored = confirmed(ROBUST)
    assert offers(track(stored[:1], "facility", 0.3)) == []
    assert offers(track(stored, "facility", 0.1)) == [] == offers(track([], "facility", 0.3))
    assert offers(track([made_result(ROBUST, seeds=3)], "facility", 0.3)) == []


@pytest.mark.parametrize("lamb", [0.0, 0.7])
def test_the_strip_counts_the_targets_of_a_tried_lambda(lamb):
    stored = confirmed(ROBUST)
    place = {0.0: 2, 0.7: 3}[lamb]
    verdicts = [stored[0].to_random(place, at).verdict for at in range(3)]
    said = measured(track(stored, "facility", 0.3), lamb)
    if verdicts.count("better"):
        assert said.startswith(f"better than random for {verdicts.count('better')} of 3 targets")
    else:
        assert said == f"worse than random for {verdicts.count('worse')} of 3 targets"


def test_level_everywhere_is_said_as_such():
    stored = confirmed(np.array([[5.0] * 3, [5.5] * 3, [5.3] * 3, [5.0] * 3]))
    shown = track(stored, "facility", 0.3)
    assert measured(shown, 0.7) == "level with random for all 3 targets"
    assert solved_at(shown.points[-1], shown) == "Solved at λ 0.7: level with random for all 3 targets"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"estimator": "counterfactual", "lamb": 0.7},
            [
                "did not test this run's method, learned masks.",
                "At λ 0.7, a selection by Solve is better than",
            ],
        ),
        ({"estimator": "counterfactual", "lamb": 0.4}, ["did not test this run's method, learned masks."]),
        ({"estimator": "semdedup", "lamb": 0.7}, []),  # uses no lambda
        ({"lamb": 0.7}, []),  # a solved selection
        ({"estimator": "top-quality"}, []),  # the ablation measured it
    ],
)
def test_of_another_method_it_says_what_was_measured_in_its_place(settings, said):
    found = instead_of(
        SelectionConfig.from_options(objective="facility", **settings), track(confirmed(ROBUST), "facility", 0.3), 400
    )
    assert len(found) == len(said) and all(part in sentence for part, sentence in zip(said, found, strict=True))
    assert instead_of(SelectionConfig.from_options(estimator="random"), track([], "facility", 0.3), 400) == []


def test_the_strip_says_nothing_that_was_not_measured():
    stored = confirmed(ROBUST)
    shown = track(stored, "facility", 0.3)
    assert measured(shown, 0.35) == "", "nothing between tried lambdas"
    assert measured(track(stored, "pairwise", 0.3), 0.7) == "" == measured(track(stored, "facility", 0.1), 0.7)
    assert measured(track(stored, "facility", 0.3, rules=True), 0.7) == ""
    assert measured(track([made_result(ROBUST, seeds=3)], "facility", 0.3), 0.7) == ""
    contradicted = [stored[0], confirmed(10 - ROBUST)[1]]
    assert measured(track(contradicted, "facility", 0.3), 0.7) == ""
    assert measured(track(stored, "facility", 0.3, target="t0"), 0.7) == "better than random for target 0"
