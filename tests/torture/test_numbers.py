"""A handful of the torture suite's small problems, and that its judge can say no."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.torture import numbers
from tests.torture.contract import Finding
from tests.torture.small_problems import (
    COUNTED,
    ESTIMATORS,
    OBJECTIVES,
    RELATED,
    counted_problems,
    drawn_problem,
    value_of,
)

COUNTED_CASES = COUNTED * len(OBJECTIVES)


@pytest.mark.parametrize(
    "number",
    [0, 12, *range(COUNTED_CASES, COUNTED_CASES + 6)],
)
def test_a_case_holds(number, tmp_path):
    assert numbers.run(number, tmp_path)


def test_a_case_depends_on_its_number_alone_and_can_be_described():
    for number in (0, 999, COUNTED_CASES + 17, numbers.PART.size - 1):
        assert numbers.describe(number) == numbers.describe(number) != ""
    again = drawn_problem(5), drawn_problem(5)
    assert np.array_equal(again[0].features, again[1].features) and again[0].options == again[1].options


def test_every_rule_estimator_and_objective_is_among_the_drawn_problems():
    drawn = [drawn_problem(number) for number in range(400)]
    assert {problem.options["estimator"] for problem in drawn} == {*ESTIMATORS, *RELATED.values()}
    assert {name for problem in drawn for name in OBJECTIVES if name in problem.options["objective"]} == set(OBJECTIVES)
    for rule in ("pinned", "banned", "given", "quotas", "budget"):
        assert any(getattr(problem, rule) for problem in drawn)
    sizes = {(problem.size == 1, problem.size == problem.n - 1) for problem in drawn if problem.n > 2}
    assert {(True, False), (False, True), (False, False)} <= sizes


def test_too_many_missed_optima_are_a_finding_whatever_part_was_tried():
    numbers.verdict(Counter({"facility below": 10, "disf below": 35, "pairwise optimum": 10}))
    for objective, missed in (("facility", 11), ("pairwise", 4), ("disf", 36), ("disf_fixed", 7)):
        with pytest.raises(Finding, match=f"optimum of {objective} on at most {missed - 1}"):
            numbers.verdict(Counter({f"{objective} below": missed}))


def test_wrong_values_bounds_and_broken_rules_are_findings():
    small = replace(counted_problems()[0], options={"lamb": 0.0, "scale": "raw"})
    x = small.features / np.linalg.norm(small.features, axis=1, keepdims=True)
    truth = numbers._Truth(small, x.astype(float), {}, "facility")
    best = float(truth.joint().max())
    members = truth.possible[0]
    numbers._check_bound(small, {"upper_bound": best, "bound_holds_for": "exact"}, truth, members)
    with pytest.raises(Finding, match="lies below"):
        numbers._check_bound(small, {"upper_bound": best - 1e-6, "bound_holds_for": "exact"}, truth, members)
    with pytest.raises(Finding, match="by its definition"):
        numbers._close(small, "facility", best + 1e-4, best, 1e-6)
    rows = SimpleNamespace(rows=members[:-1], summary={"selected": len(members) - 1})
    with pytest.raises(Finding, match="rows selected, not"):
        numbers._check_rules(small, rows, members[:-1])
    whole = SimpleNamespace(rows=members, summary={"selected": len(members)})
    with pytest.raises(Finding, match="banned"):
        numbers._check_rules(replace(small, banned=(int(members[0]),)), whole, members)
    assert value_of("facility", x, small.lengths, None, members) <= best + 1e-12
