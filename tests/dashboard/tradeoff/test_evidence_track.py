"""What the slider's track is sent, next to the stored result; and where a term is below random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from datamask.ablation.offers import offers
from datamask.ablation.steering import track
from datamask.config import SelectionConfig
from datamask.dashboard.tradeoff import below_random, evidence_track
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from tests.making.ablations import ROBUST, made_result


def stored():
    """A result and that of its second proxy model."""
    result = made_result(ROBUST)
    return [result, made_result(ROBUST, seeds=3, judge="transformer", question=result.question.by("transformer"))]


def point(lamb: float, quality: float = 0.5, diversity: float = 0.5, exact: bool = True) -> LambdaPoint:
    joint = lamb * quality + (1 - lamb) * diversity
    return LambdaPoint(lamb, quality, diversity, joint, 0.0, exact, None, np.packbits(np.ones(8, bool)), 8)


def test_the_track_has_a_mark_at_each_tried_lambda_and_no_other():
    results = stored()
    shown = track(results, "facility", 0.3)
    sent = evidence_track.header(shown, offers(shown))
    places = {method.lamb: place for place, method in enumerate(results[0].methods) if method.along_lambda}
    assert [mark["lamb"] for mark in sent["points"]] == sorted(places)
    for mark in sent["points"]:
        verdicts = [results[0].to_random(places[mark["lamb"]], at).verdict for at in range(3)]
        verdict = "better" if "better" in verdicts else "worse"
        assert f"{verdict} than random for {verdicts.count(verdict)} of 3 targets" in mark["words"]
        assert ("worse" in mark["words"]) == ("worse" in verdicts)
    assert sent["state"] == "colored" and sent["offer"] == results[0].recommendation.method.lamb == 0.7
    assert [verdict for verdict, _ in sent["key"]] == ["better", "worse"]
    assert sent["sentences"] == [offers(shown)[0].sentence]


def test_without_a_colored_track_nothing_is_offered():
    results = stored()
    for state, shown in (
        ("gray", track(results[:1], "facility", 0.3)),
        ("dashed", track(results, "facility", 0.1)),
        ("gray", track([], "facility", 0.3)),
    ):
        sent = evidence_track.header(shown, offers(shown))
        assert (sent["state"], sent["offer"], sent["reason"]) == (state, None, shown.reason)


def test_one_target_is_said_by_its_name():
    shown = track(stored(), "facility", 0.3, target="t2")
    said = [mark["words"] for mark in evidence_track.header(shown, [])["points"]]
    assert said == ["Solved at λ 0: worse than random for target 2", "Solved at λ 0.7: level with random for target 2"]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [({}, False), ({"collapse": "exact"}, True), ({"prune": 0.1}, True), ({"ban": "ban.txt"}, True)],
)
def test_rules_are_all_that_an_ablation_does_not_have(rules, expected):
    assert evidence_track.has_rules(SelectionConfig.from_options(**rules)) == expected


def test_stretches_below_random_are_those_of_solved_points():
    points = [point(0, -0.1), point(0.1, -0.02), point(0.2, 0.3), point(0.9, 0.9, -0.2), point(1, 1, -0.4, exact=False)]
    quality, diversity = below_random.marks(points)
    assert (quality.low, quality.high, diversity.low, diversity.high) == (0, 0.1, 0.9, 1)
    assert "λ 0 to 0.1: quality is below random (0 %), at worst −10" in quality.words
    assert "−40" in diversity.words and "listed neighbors" in diversity.words
    assert below_random.marks([point(0), point(1)]) == [] == below_random.marks([])
    # two stretches of one term, and one lambda alone
    first, second = below_random.marks([point(0, -1), point(0.5), point(1, -1)])
    assert (first.low, first.high, second.low, second.high) == (0, 0, 1, 1) and first.words.startswith(
        "λ 0: quality is −100"
    )


def test_a_lambda_is_below_random_where_the_solved_ones_on_both_sides_are():
    points = [point(0, -0.1), point(0.2, -0.02, -0.1), point(0.4, 0.3)]
    assert "At λ 0.1, quality is below a random selection" in below_random.below_at(points, 0.1)
    assert "quality and diversity are below" in below_random.below_at(points, 0.2)
    assert below_random.below_at(points, 0.3) == "" == below_random.below_at(points, 0.9)
    assert below_random.below_at([], 0.5) == ""
    assert below_random.below_at([replace(points[0], quality=-1e-7)], 0.0) == ""


def test_the_strip_says_what_was_measured_for_the_current_settings():
    settings = SelectionConfig.from_options(objective="facility", lamb=0.7)
    assert evidence_track.strip_part(stored(), settings) == "better than random for 2 of 3 targets"
    for other in (
        {"lamb": 0.6},
        {"objective": "pairwise"},
        {"select_ratio": 0.1},
        {"collapse": "exact"},
        {"estimator": "random"},
    ):
        changed = SelectionConfig.from_options(**{"objective": "facility", "lamb": 0.7, **other})
        assert evidence_track.strip_part(stored(), changed) == ""
    assert evidence_track.strip_part(stored(), settings, "t2") == "level with random for target 2"
    assert evidence_track.strip_part([], settings) == ""
