"""A stopped search goes on where it was, to the answer it would have had."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.config.lambda_question import LambdaQuestion
from datamask.errors import Stopped
from datamask.evaluation.lambdas import selecting
from datamask.evaluation.lambdas.kept import ABLATION, Kept, forget, kept_for
from datamask.runs.lambdas import answer
from datamask.work.cache import Cache
from datamask.work.context import Work
from tests.evaluation.made import made_corpus

QUESTION = LambdaQuestion(("facility", "pairwise"), (0.2,), (0.0, 0.5, 1.0))


def test_what_was_selected_before_a_stop_is_not_selected_again(tmp_path, monkeypatch):
    corpus, solved = made_corpus(800), []
    select = selecting.select_quickly
    monkeypatch.setattr(selecting, "select_quickly", lambda *given: (solved.append(1), select(*given))[1])
    straight = answer(corpus, QUESTION, tmp_path / "straight")
    assert len(solved) == 30 and not kept_for(tmp_path / "straight", corpus.fingerprint, QUESTION.key).names()
    solved.clear()
    # the fourth pair-wise search of the third round begins, and the person stops it
    with pytest.raises(Stopped, match="goes on from what it has selected"):
        answer(corpus, QUESTION, tmp_path / "stopped", work=Work.of(lambda: len(solved) >= 16))
    before = len(solved)
    assert before == 16
    keep = kept_for(tmp_path / "stopped", corpus.fingerprint, QUESTION.key)
    assert len(keep.names()) == 15, "the one that was being solved is not kept"
    Cache(tmp_path / "stopped").path(keep.entry("1-0-0")).write_bytes(b"damaged")
    again = answer(corpus, QUESTION, tmp_path / "stopped")
    assert len(solved) == before + 15 + 1 and not keep.names()
    assert again["measures"] == straight["measures"] and again["headline"] == straight["headline"]


def test_another_question_lets_the_kept_go(tmp_path):
    corpus = made_corpus(800)
    first = kept_for(tmp_path, corpus.fingerprint, "0123456789ab")
    first.put("1-0-0", np.arange(3))
    assert first.names() == ["1-0-0"]
    with pytest.raises(Stopped):
        answer(corpus, QUESTION, tmp_path, work=Work.of(lambda: True))
    assert not first.names()


def test_cells_of_ablations_stay_where_another_question_is_asked(tmp_path):
    cells = Kept(tmp_path, "abc", ABLATION)
    cells.put("0123", np.arange(3))
    kept_for(tmp_path, "abc", "0123456789ab").put("1-0-0", np.arange(3))
    forget(tmp_path, "abc")
    assert cells.names() == ["0123"] and not kept_for(tmp_path, "abc", "0123456789ab").names()


def test_kept_selections_come_back_as_they_were(tmp_path):
    kept = Kept(tmp_path, "abc").under("1").under("0")
    kept.put("2", np.array([3, 1_000_000]))
    rows = kept.find("2", 2, 1_000_001)
    assert rows.dtype == np.int64 and rows.tolist() == [3, 1_000_000]
    assert kept.find("2", 3, 1_000_001) is None and kept.find("2", 2, 1_000_000) is None
    assert kept.find("3", 2, 9) is None and kept.under("2").find("2", 2, 1_000_001) is None
    Kept().put("2", rows)
    assert Kept().find("2", 2, 1_000_001) is None
