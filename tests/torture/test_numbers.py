"""A handful of the torture suite's small problems, and that its judge can say no."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.making.whole_runs import units_of
from tests.torture import numbers
from tests.torture.contract import Finding
from tests.torture.small_problems import (
    COUNTED,
    ESTIMATORS,
    OBJECTIVES,
    RELATED,
    SCRATCH_SHAPES,
    SCRATCH_TYPES,
    counted_problems,
    drawn_problem,
    scratch_problem,
    value_of,
)

COUNTED_CASES = COUNTED * len(OBJECTIVES)


@pytest.mark.parametrize(
    "number",
    [0, 12, *range(COUNTED_CASES, COUNTED_CASES + 6), *range(numbers.SCRATCH_FIRST, numbers.SCRATCH_FIRST + 3)],
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


def test_every_type_shape_objective_and_scale_is_among_the_problems_over_scratch():
    drawn = [scratch_problem(number) for number in range(300)]
    assert {problem.flavour for problem in drawn} == {f"{t}, {s}" for t in SCRATCH_TYPES for s in SCRATCH_SHAPES}
    asked = {(problem.options["objective"], problem.options["scale"], problem.options["lamb"]) for problem in drawn}
    assert len(asked) == 2 * 2 * 5
    assert all(2 <= problem.size < problem.n <= 13 for problem in drawn)


def test_values_and_bounds_of_the_rounded_rows_are_findings():
    """A run that values what the scratch holds, features as float16, in place of what the shards hold."""
    drawn = next(problem for problem in map(scratch_problem, range(300)) if problem.flavour == "float32, offset")
    small = replace(drawn, options={**drawn.options, "scale": "raw", "lamb": 0.0})
    true = numbers._Truth(small, units_of(small.features), {}, small.options["objective"])
    rounded = numbers._Truth(
        small, units_of(units_of(small.features).astype(np.float16)), {}, small.options["objective"]
    )
    best = float(true.joint().max())
    numbers._check_scratch_bound(small, {"upper_bound": best}, true)
    for bound in (best - 1e-8, None):
        with pytest.raises(Finding, match="is not at least"):
            numbers._check_scratch_bound(small, {"upper_bound": bound}, true)
    with pytest.raises(Finding, match="refused: no threshold"):
        numbers._scratch_refused(small, units_of(small.features), "no threshold tells rows apart")
    members, (name,), ends = true.possible[0], true.weights, {"best": 1.0, "random": 0.0}
    summary = {"quality": small.quality[members].mean(), "objectives": {name: rounded.raw(name, members)}}
    summary["anchors"] = {"quality": ends, "diversity": {name: ends}}
    true.summary = summary
    summary["calibrated"] = numbers._shares(true, members)
    with pytest.raises(Finding, match=f"{name} is reported as"):
        numbers._check_scratch_values(small, summary, true, members)
    summary["objectives"][name] = true.raw(name, members)
    numbers._check_scratch_values(small, summary, true, members)


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
