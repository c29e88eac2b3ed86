"""The quality rules against values worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datamask.corpus import quality_rules
from datamask.corpus.quality_rules import ANY_LANGUAGE, RULES, TextFacts, scored

CAT = "The cat sat on the mat."
PROSE = (
    "The committee met to review the proposal, and the members agreed that it should be accepted with changes. "
    "They asked the authors of the plan to have a second draft ready in a month, so that work could begin early."
)
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n| 1 | 2 |\n| 1 | 2 |\n..."


def scores_of(text: str) -> dict[str, float]:
    """The score of every rule, by name."""
    facts = TextFacts(text)
    return {rule.__name__: rule(facts) for rule in RULES}


def test_every_rule_on_one_short_sentence():
    # 6 words, 17 letters, 1 of 8 stop words ("the"), 5 distinct words, one sentence end
    assert scores_of(CAT) == pytest.approx(
        {
            "word_count": math.log(6 / 5) / math.log(400 / 5),
            "mean_word_length": 0.0,
            "alphabetic_share": 1.0,
            "stop_words": 1 / 6,
            "symbol_ratio": 1.0,
            "bullet_lines": 1.0,
            "ellipsis_lines": 1.0,
            "repeated_lines": 1.0,
            "sentence_ends": 1.0,
            "distinct_words": 0.0,
        }
    )
    by_hand = 2 * math.log(1.2) / math.log(80) + 1 + 1.5 / 6 + 1.5 + 0.5 + 0.5 + 0.5 + 1.5
    assert scored(CAT)[0] == pytest.approx(10 * by_hand / 11.5)


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        ("word_count", " ".join(["word"] * 20), math.log(4) / math.log(80)),
        ("word_count", "word " * 400, 1.0),
        ("word_count", "three short words", 0.0),
        ("mean_word_length", "abc defg", 0.5),  # 3.5
        ("mean_word_length", "abcdefgh ijklmnop", 0.5),  # 8
        ("mean_word_length", "spell words right", 1.0),  # 5
        ("alphabetic_share", "one two three 4 5", 0.0),  # 3 of 5
        ("alphabetic_share", "a b c d 5", 0.5),  # 4 of 5
        ("stop_words", "to be with the and of", 1.0),
        ("stop_words", "the the the that", 2 / 6),
        ("symbol_ratio", "a = b c d", 0.5),  # 1 in 4
        ("symbol_ratio", "wait ... for the next", 0.5),  # the ellipsis counts once
        ("symbol_ratio", "snake_case other thing more", 0.5),
        ("bullet_lines", "- one\n- two\n3. three\nfour\n", 1 - 0.75 / 0.9),
        ("bullet_lines", "-1 is a number\n3.5 too", 1.0),
        ("ellipsis_lines", "a ...\nb\nc\nd\n\ne…", 0.0),  # 2 of 5
        ("ellipsis_lines", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj ...", 2 / 3),
        ("repeated_lines", "a\nb\n\n  a\nc\nd\ne\nf\ng\nh\ni\n", 2 / 3),  # 1 of 10
        ("sentence_ends", "no end " * 20, 0.0),
        ("sentence_ends", "word " * 39 + "word.", 0.5),
        ("sentence_ends", 'Is it? (Yes.) "Quoted."', 1.0),
        ("sentence_ends", "to be continued ...", 0.0),
        ("distinct_words", "a b c d e f g h", (8 / 4 - 1.5) / 4.5),
        ("distinct_words", "same Same SAME same same same same same", 0.0),
    ],
)
def test_rule_by_hand(rule, text, value):
    assert getattr(quality_rules, rule)(TextFacts(text)) == pytest.approx(value)


def test_prose_beats_a_table_and_nothing_is_saturated():
    assert 0 <= scored(TABLE)[0] < 5 < scored(PROSE)[0] < 10


@given(st.text())
def test_every_rule_stays_between_0_and_1_on_any_text(text):
    scores = scores_of(text)
    assert all(0 <= score <= 1 for score in scores.values())
    assert 0 <= scored(text)[0] <= 10


def test_each_rule_says_what_it_does():
    assert all(weight > 0 and len(rule.__doc__.partition("\n\n")[0]) > 20 for rule, weight in RULES.items())


@pytest.mark.parametrize(
    ("text", "english"),
    [
        (PROSE, True),
        (TABLE, True),
        ("def f(x): return x + 1", True),
        ("Die Katze sitzt auf der Matte, und das ist nicht die Matte mit den Löchern.", False),
        ("Le chat est sur la table et les souris dansent dans une maison pour la nuit.", False),
        ("違う行を選ぶ方法があります。", False),
        ("قطة تجلس على السجادة", False),
    ],
)
def test_rules_for_english_score_english_alone(text, english):
    facts = TextFacts(text)
    rules = RULES if english else ANY_LANGUAGE
    by_hand = 10 * sum(weight * rule(facts) for rule, weight in rules.items()) / sum(rules.values())
    assert scored(text) == (pytest.approx(by_hand), english)


def test_chinese_and_thai_texts_differ_in_their_scores():
    """A run of characters was one word: all texts of 400 had one of two scores."""
    for characters in ("天地人日月山水火木金土风云电雨", "กขคงจฉชซญดตถทนบปผพ"):
        scores = {round(scored(characters[i:] * 3 + "。" + characters[: i * 2])[0], 3) for i in range(8)}
        assert len(scores) > 4
