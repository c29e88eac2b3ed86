"""Who is best, who cannot be told apart, and who may not compete."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.evaluation.measures.reading import Measured, Reading
from datamask.evaluation.verdicts import optimised_by, optimised_sets, verdicts

NOISE = np.random.default_rng(0).normal(size=200)


def measured(better: str = "higher", name: str = "vendi", circular=(), **values) -> Measured:
    """Readings whose draws share their noise: differences of any size are certain unless noted as (value, draws)."""
    readings = {}
    for key, value in values.items():
        value, draws = value if isinstance(value, tuple) else (value, value + NOISE)
        readings[key] = Reading(value, draws, "bootstrap")
    return Measured(name, name, "", better, True, readings, circular)


def test_the_highest_or_the_lowest_is_best():
    assert verdicts(measured(a=1.0, b=2.0, c=0.0), {}) == {"a": "", "b": "best", "c": ""}
    assert verdicts(measured("lower", a=1.0, b=2.0, c=0.0), {}) == {"a": "", "b": "", "c": "best"}
    assert verdicts(measured("neither", a=1.0, b=2.0), {}) == {"a": "", "b": ""}


def test_a_lead_within_chance_is_a_tie():
    shaky = np.random.default_rng(1).normal(1.9, 1, 200)
    assert verdicts(measured(a=2.0, b=(1.9, shaky), c=-9.0), {}) == {"a": "tied", "b": "tied", "c": ""}
    assert verdicts(measured(a=2.0, b=2.0), {}) == {"a": "tied", "b": "tied"}


def test_whoever_optimised_a_measure_is_out_of_the_race_on_it():
    made = {"a": frozenset({"vendi"}), "b": frozenset({"quality"})}
    assert verdicts(measured(a=9.0, b=2.0, c=1.0), made) == {"a": "hatched", "b": "best", "c": ""}
    assert verdicts(measured(a=9.0, b=2.0, c=1.0, circular=("quality",)), made) == {
        "a": "hatched",
        "b": "hatched",
        "c": "",
    }  # nobody is left to beat
    assert verdicts(measured(a=9.0, b=2.0, c=1.0, name="clusters"), made)["a"] == "best"


def test_without_an_interval_nobody_is_best():
    assert verdicts(measured(a=(9.0, None), b=2.0), {}) == {"a": "", "b": ""}
    assert verdicts(measured(a=(None, None), b=2.0, c=1.0), {}) == {"a": "", "b": "best", "c": ""}


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"objective": "pairwise", "lamb": 0.5}, {"quality", "pairwise"}),
        ({"objective": "facility", "lamb": 0.0}, {"facility"}),
        ({"objective": "vendi", "lamb": 0.0}, {"vendi"}),
        ({"objective": "pairwise:0.7,facility:0.3", "lamb": 0.2}, {"quality", "pairwise", "facility"}),
        ({"objective": "disf", "lamb": 1.0}, {"quality"}),
        ({"objective": "disf", "lamb": 0.0, "prune": 0.2}, {"quality", "disf"}),
        ({"objective": "disf", "lamb": 0.0, "collapse": "0.95"}, {"quality", "disf", "near_copies"}),
        ({"objective": "disf", "lamb": 0.0, "collapse": "column:group"}, {"quality", "disf"}),
        ({"estimator": "random"}, set()),
        ({"estimator": "top-quality", "objective": "disf"}, {"quality"}),
        ({"estimator": "cluster-balanced", "objective": "disf"}, {"clusters"}),
        ({"estimator": "cluster-balanced", "inside": "best"}, {"clusters", "quality"}),
    ],
)
def test_what_a_selection_was_made_by_stands_in_its_settings(options, expected):
    assert optimised_by(SelectionConfig.from_options(**options)) == expected


@pytest.mark.parametrize(
    "estimator, lamb, expected",
    [
        ("semdedup", 0.0, {"quality", "near_copies"}),
        ("soft-quality", 0.0, {"quality"}),
    ],
)
def test_baselines_follow_their_own_measure_whatever_objective_they_are_given(estimator, lamb, expected):
    config = SimpleNamespace(
        estimator=estimator, lamb=lamb, terms=(("facility", 1.0),), prune=0.0, collapse="none", inside=None
    )
    assert optimised_by(config) == expected


def test_names_are_checked():
    assert optimised_sets({"a": ["Pair_simi"]}, ("a", "top-quality")) == {"a": {"pairwise"}, "top-quality": {"quality"}}
    assert optimised_sets({"a": ["drift:tokens"]}, ("a",)) == {"a": {"drift:tokens"}}
    with pytest.raises(OptionError, match=r"optimised names the selection 'c'; there are a, b"):
        optimised_sets({"c": ["quality"]}, ("a", "b"))
    with pytest.raises(OptionError, match=r"optimised\['a'\] names the measure 'qualty'; there are .*quality"):
        optimised_sets({"a": ["qualty"]}, ("a",))
