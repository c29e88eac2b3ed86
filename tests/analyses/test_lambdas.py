"""Answers to "which lambda?", which stay visible: tables, the band, the store."""

from __future__ import annotations

import json

import pandas as pd

from datamask.analyses.which_lambda import tables as view
from datamask.analyses.which_lambda.chart import band
from datamask.config.target import Target
from datamask.runs import lambda_answers
from tests.making.answers import curve, keep_answer, key_of, made_answer, old_question


def test_only_what_helps_is_recommended_and_gaps_stay_gaps():
    gap = curve("facility", (-0.05, -0.01, -0.049, 0.2), leads=True)
    record = made_answer("f", gap)["measures"][0]
    assert record["curves"][0]["recommended"] == [[0.0, 0.0], [0.5, 0.5]]
    found = view.recommended(record, 0.1)
    assert found[["low", "high"]].to_numpy().tolist() == [[0.0, 0.0], [0.5, 0.5]]
    circular = made_answer("f", gap, target=Target("quality"))["measures"][0]
    assert view.recommended(circular, 0.1).empty and "circular" in circular["curves"][0]["sentence"]
    assert view.recommended(made_answer("f", curve("pairwise", (0.5, 0.5, 0.4, 0.2)))["measures"][0], 0.1).empty


def test_tables_hold_what_was_stored():
    answer = made_answer("f")
    record = view.measure(answer, "cross_entropy")
    points = view.points(record, 0.1)
    assert len(points) == 8 and points["difference"].tolist()[:2] == [-0.05, -0.045]
    assert points[points["best"]]["lambda"].tolist() == [0.0, 1.0]
    table = view.table(record, 0.1, 60)
    assert len(table) == 8 + 2 and table["selection"][0] == "Facility location, λ 0"
    assert table["interval"][0] == "−0.0600 to −0.0400" and table["against random"][0] == "better than random"
    assert (table["words"] == 1200).all() and (table["texts predicted"] == 60).all()
    assert view.ratios(
        made_answer("f", curve("facility", (0, 0, 0, 0)), curve("facility", (0, 0, 0, 0), ratio=0.3))
    ) == [0.1, 0.3]
    caption = view.caption(answer, record, 0.1)
    assert "1,200 words" in caption and "equally many" in caption and "60 held-out texts" in caption
    assert "the spread of random selections" in caption
    kept_earlier = {**record, "random": [{"ratio": 0.1, "selected": 24, "words": 1200, "value": 6.0, "spread": 0.01}]}
    assert "the spread of random selections" not in view.caption(answer, kept_earlier, 0.1)
    assert view.second_caption(answer).endswith("The second measure is made up.") and len(view.other_notes(answer)) == 1


def test_an_answer_by_features_has_one_measure_and_speaks_of_examples(tmp_path):
    answer = made_answer("f", target=Target.examples("ids", b"1", "mine.txt"), by_features=True)
    keep_answer(tmp_path, answer)
    assert lambda_answers.load(tmp_path, "f", answer["key"]) == answer
    record = view.main_measure(answer)
    assert record["name"] == "nearness" and view.second_measure(answer) is None
    assert view.effect(answer, record) == "" and "the samples named in mine.txt" in answer["headline"]
    table = view.table(record, 0.1, 60)
    assert "words" not in table.columns and (table["examples asked"] == 60).all()
    how = view.caption(answer, record, 0.1)
    assert (
        "among the features of the corpus" in how and "Half of the examples choose" in how and "model learns" not in how
    )
    assert view.titles([answer])[answer["key"]].startswith("Samples named in mine.txt")
    both = made_answer("f", target=Target.examples("features", b"1", "mine.parquet"))
    assert view.second_measure(both)["name"] == "coverage"
    assert "of your examples (3" in view.caption(both, view.main_measure(both), 0.1)


def test_an_answer_by_a_transformer_speaks_of_bytes():
    answer = made_answer("f")
    for record in answer["measures"]:
        record["counts"] = "bytes"
    record = view.main_measure(answer)
    assert "bytes" in view.table(record, 0.1, 60).columns and "each held-out byte is" in view.effect(answer, record)
    assert "1,200 bytes are drawn" in view.caption(answer, record, 0.1)
    assert "A small transformer" in view.caption(answer, record, 0.1) and "every byte about" in view.nats_help(record)
    plain = made_answer("f")
    assert view.nats_help(view.main_measure(plain)) == view.NATS
    other = {**plain, "key": "x", "question": {**plain["question"], "judge": "transformer"}}
    lines = [line.rpartition(" · ")[0] for line in view.titles([plain, other]).values()]
    assert lines == ["Held-out text · bigram", "Held-out text · transformer"]


def test_a_menu_says_what_tells_answers_apart():
    one, other = made_answer("f"), made_answer("f", curve("facility", (0, 0, 0, 0)))
    games = made_answer("f", target=Target("column", "domain", "games"))
    lines = [line.rpartition(" · ")[0] for line in view.titles([one, other, games]).values()]
    assert lines == ["Held-out text · facility, pairwise", "Held-out text · facility", "domain = games"]
    assert view.asked(games["question"], games["target"]["label"]).replace("\u00a0", " ") == (
        "Held-out text with domain = games · Facility location, Pair-wise similarity · 10 %"
    )


def test_what_a_difference_means_for_a_word():
    record = view.measure(made_answer("f"), "cross_entropy")
    assert view.effect(made_answer("f"), record).replace("\u00a0", " ") == (
        "At the best λ, 0, each held-out word is 5 % more likely than with a random selection (4 % to 6 %)."
    )
    strong = made_answer("f", curve("facility", (-1.0, 0, 0, 0), leads=True))
    assert "is 2.7 times as likely as with a random selection (2.7 to 2.7 times)" in view.effect(
        strong, view.measure(strong, "cross_entropy")
    )
    for nothing in (
        made_answer("f", curve("facility", (0.1, 0, 0, 0), leads=True)),
        made_answer("f", target=Target("quality")),
    ):
        assert view.effect(nothing, view.measure(nothing, "cross_entropy")) == ""


def test_what_is_far_worse_becomes_an_arrow_with_its_value():
    record = view.measure(made_answer("f"), "cross_entropy")
    assert view.lopsided(record, 0.1)
    near, whole = view.span(record, 0.1, near=True), view.span(record, 0.1)
    assert near[1] < 0.25 and whole[1] > 0.5 and near[0] < -0.06
    points = view.points(record, 0.1)
    labels = ["Facility location", "Pair-wise similarity"]

    def words_in(drawn) -> str:
        return " ".join(words.text for words in drawn.layout.annotations)

    drawn = band(points, labels, near, "nats per word", recommended=view.recommended(record, 0.1), top_quality=0.2)
    assert "Pair-wise similarity: +0.40 to +0.50" in words_in(drawn)
    far = [part for part in drawn.data if part.marker.symbol == "triangle-up"]
    assert sum(len(part.x) for part in far) == (points["difference"] > near[1]).sum()
    (line, shaded) = sorted(drawn.layout.shapes, key=lambda shape: shape.type)
    assert (line.y0, shaded.type) == (0, "rect") and shaded.x0 < 0.0 < 0.2 < shaded.x1
    everything = words_in(band(points, labels, whole, "nats per word", top_quality=0.2, dark=True))
    assert "top quality" in everything and "+0.40" not in everything


def standing(figure, words: str) -> tuple[float, float, float, str]:
    """Where words are written: the point, pixels down from it, and their alignment."""
    label = next(label for label in figure.layout.annotations if label.text.startswith(words))
    return label.x, label.y, -label.yshift, label.xanchor


def drawn(*differences: float, **others):
    points = pd.DataFrame(
        {
            "objective": "a",
            "lambda": [0.0, 0.5, 1.0],
            "difference": differences,
            "low": differences,
            "high": differences,
            "best": False,
        }
    )
    return band(points, ["a"], (-1.0, 1.0), "nats per word", height=246, **others)


def test_words_stand_where_no_curve_runs():
    right = 1.02
    assert standing(drawn(0.9, 0.9, 0.9), "a random") == (right, 0.0, 11, "right")
    # 0.11 of 2 in 200 pixels is 11 pixels: the middle of the words under the line
    assert standing(drawn(-0.11, -0.11, -0.11), "a random") == (right, 0.0, -11, "right")
    # it falls through both places on the right, and is above the line in the middle
    assert standing(drawn(0.9, 0.3, -0.3), "a random") == (0.5, 0.0, 11, "center")


def test_words_lie_not_on_each_other():
    alone = drawn(0.9, 0.9, 0.9, top_quality=0.0)
    # the diamond's own words take the first place, those of the line the other side of it
    assert standing(alone, "top quality")[2] == -13 and standing(alone, "a random")[2] == 11
    low = drawn(0.9, -0.14, -0.14, top_quality=0.0)
    assert standing(low, "top quality")[2] == -13 and standing(low, "a random")[:1] != (1.02,)
    shaded = pd.DataFrame([{"objective": "a", "low": 0.0, "high": 0.1}, {"objective": "a", "low": 0.12, "high": 0.2}])
    both = drawn(0.9, 0.9, 0.9, recommended=shaded)
    places = {standing(both, f"recommended: {ends}")[1:3] for ends in ("0 to 0.1", "0.12 to 0.2")}
    assert len(places) == 2, "beside each other there is no room for both"


def test_the_answers_of_these_tests_have_the_keys_that_old_versions_gave():
    lambdas = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
    for target, key in ((Target(), "75754e57a381"), (Target("quality"), "244055aa47c7")):
        assert key_of(old_question(("facility", "pairwise"), (0.1,), lambdas, target)) == key


def test_answers_are_found_again_newest_first_and_damaged_ones_left_out(tmp_path):
    old = made_answer("abc", created=1.0)
    new = made_answer("abc", curve("facility", (0, 0, 0, 0)), created=2.0)
    for answer in (old, new):
        keep_answer(tmp_path, answer)
    assert [one["key"] for one in lambda_answers.answers(tmp_path, "abc")] == [new["key"], old["key"]]
    assert lambda_answers.load(tmp_path, "abc", old["key"])["headline"] == old["headline"]
    assert lambda_answers.load(tmp_path, "abc", "../../etc") is None
    lambda_answers.stored_answer(tmp_path, "abc", old["key"]).path.write_text("{")
    outdated = tmp_path / "abc" / "which-lambda" / "0123456789ab.json"
    outdated.parent.mkdir()
    outdated.write_text(json.dumps({**new, "version": 0, "key": "0123456789ab"}))
    assert len(lambda_answers.answers(tmp_path, "abc")) == 1 and lambda_answers.answers(tmp_path, "none") == []
