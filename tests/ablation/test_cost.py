"""The ablation that one press starts, its expected time, and methods as settings of a run."""

from __future__ import annotations

import pytest

from datamask.ablation.cost import expected_seconds, first_question
from datamask.ablation.methods import settings_of
from datamask.ablation.question import METHODS, SIMPLE, AblationQuestion
from datamask.ablation.result import Method


def test_the_first_question_is_about_the_current_selection():
    question = first_question("facility", 0.1)
    assert question.ratio == 0.1 and question.target is None and "facility" in question.objectives
    assert question.methods == METHODS
    # an objective that ablations leave out is tried where it is the current one
    assert "disf" in first_question("disf", 0.3).objectives
    # code of a person's own is run only where its name is typed
    assert first_question("mine.py:Mine", 0.3).objectives == first_question("facility", 0.3).objectives
    assert first_question("facility", None).ratio == AblationQuestion().ratio


def test_more_rows_methods_and_seeds_take_longer():
    question = first_question("facility", 0.3)
    assert 60 < expected_seconds(question, 18_000) < 600
    assert expected_seconds(question, 40_000) > expected_seconds(question, 18_000)
    without = AblationQuestion(methods=tuple(name for name in METHODS if name != "masks"))
    assert expected_seconds(without, 18_000) < expected_seconds(question, 18_000)
    # rows of a seed are bounded
    assert expected_seconds(question, 10**6) == expected_seconds(question, 10**9)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_a_selection_of_equal_size(name):
    settings = settings_of(Method(name, name, name in SIMPLE), 0.1, 5_000)
    assert settings.select_ratio == 0.1 and settings.size(5_000) == 500
    assert name in {"masks", "duplicates-removed"} or settings.estimator == name


def test_a_method_along_lambda_is_its_objective_at_that_lambda():
    settings = settings_of(Method("vendi-0.35", "Vendi", False, "vendi", 0.35), 0.3, 5_000)
    assert (settings.objective, settings.lamb, settings.select_ratio) == ("vendi", 0.35, 0.3)
