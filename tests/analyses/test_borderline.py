"""The borderline reader: the tally, its interval, and what is told of a sample afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.analyses.borderline.tables import DROP, KEEP, SKIP, answers_table, revealed, tally, within
from datamask.analyses.explanation.explanations import Deck
from datamask.corpus import open_corpus
from tests.making.runs import write_shard

DECK = Deck(
    np.array([5, 3, 9, 1, 7]), np.array([True, False, True, False, True]), np.array([0.02, -0.01, 0.03, -0.04, 0.01])
)


def test_the_tally_counts_agreement_and_leaves_skips_out():
    found = tally(DECK, [KEEP, KEEP, SKIP, DROP])
    assert (found.agreed, found.judged, found.kept, found.kept_agreed) == (2, 3, 1, 1)
    # Wilson's interval by its definition: the shares whose own normal interval reaches 2 of 3
    for end in (found.low, found.high):
        assert abs(2 / 3 - end) == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / 3), rel=1e-5)
    assert "2 of 3" in found.sentence and "no different from chance" in found.sentence
    assert "drop 1 of 2" in found.sentence
    assert tally(DECK, []).sentence == "No answers yet." == tally(DECK, [SKIP]).sentence


def test_a_reader_who_always_agrees_or_never_does_is_no_coin():
    selected = np.arange(20) % 2 == 0
    deck = Deck(np.arange(20), selected, np.where(selected, 0.1, -0.1))
    alike = [KEEP if kept else DROP for kept in selected]
    assert "more often than" in tally(deck, alike).sentence
    assert "less often than" in tally(deck, [DROP if one == KEEP else KEEP for one in alike]).sentence


def test_what_is_told_afterwards():
    said = revealed(DECK, 1, KEEP, {"quality": "4.2"})
    assert "**dropped** (you differ)" in said and "0.01 standard deviations below" in said and "quality 4.2" in said
    assert "(you agree)" in revealed(DECK, 0, KEEP, {}) and "(skipped)" in revealed(DECK, 0, SKIP, {})


def test_texts_follow_the_filter_where_it_shows_enough_of_both_sides():
    selected = np.arange(20) % 2 == 0
    shown = np.arange(20) < 8
    rows, said = within(shown, selected, 4)
    assert rows is shown and "8 rows" in said
    rows, said = within(shown, selected, 5)
    assert rows is None and "From all rows" in said and "4 selected and 4 other" in said


def test_the_answers_as_a_table(tmp_path):
    corpus = open_corpus(write_shard(tmp_path / "shard.parquet"))
    table = answers_table(corpus, DECK, [KEEP, SKIP], "run-1").to_pydict()
    assert table["chunk_id"] == ["doc-0005", "doc-0003"] and table["answer"] == [KEEP, SKIP]
    assert table["selected"] == [True, False] and table["agrees"] == [True, None]
    assert table["quality"] == corpus.quality[[5, 3]].tolist() and table["run"] == ["run-1"] * 2
