"""Which estimator `auto` takes: one rule, everywhere, held against a statement of it that reads no table."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from datamask import api, catalogue
from datamask.cli.parser import parse, run_config
from datamask.config import LEARNER_OPTIONS, CorpusConfig, Quota, SelectionConfig
from datamask.corpus import open_corpus
from datamask.options import OPTIONS
from datamask.runs.varying import parse_vary, points
from tests.commands import ROOT

SOLVED = ("facility", "facility:3", "pairwise", "Pair_simi", "disf_fixed", "pairwise:0.7,disf_fixed:0.3")
LEARNED = (
    "disf",
    "pairwise:0.7,facility:0.3",
    "facility,disf_fixed",
    "disf,pairwise",
    "mine.own:Objective",
)

RULES = {
    "free": {},
    "pin and ban": {"pin": "pin.txt", "ban": "ban.txt"},
    "given": {"given": "given.txt"},
    "quota": {"quotas": (Quota("source", "numpy", 0.0, 0.1),)},
    "budget": {"budget": "9k"},
    "fewer rows": {"prune": 0.2, "collapse": "exact", "center": True, "scale": "raw", "seed": 3, "lamb": 0.0},
}
VALUES = {
    "n_rollout": (1, 2),
    "n_epochs": (1,),
    "partial": (0.5,),
    "max_lr": (2.0,),
    "min_lr": (0.5,),
    "init": ("same",),
    "polish": ("none",),
}


def takes(objective: str, options: dict) -> str:
    """The rule in the words of the design, without a look at the catalogue."""
    if "partial" in options or "max_lr" in options or "min_lr" in options:
        return "reinforce"
    if {"n_rollout", "init"} & set(options):  # of whoever draws masks
        return "counterfactual"
    return "relaxed" if objective in SOLVED else "counterfactual"


def combinations():
    """Every set of learner's options, each with every value of `VALUES`."""
    for values in itertools.product(*((None, *VALUES[name]) for name in VALUES)):
        yield {name: value for name, value in zip(VALUES, values) if value is not None}


def is_accepted(options: dict) -> bool:
    """Whether these options are in range for the estimator that auto takes."""
    if {"partial", "max_lr", "min_lr"} & set(options):  # reinforce, whose lowest step size is 1 if not given
        return options.get("n_rollout") != 1 and options.get("min_lr", 1.0) <= options.get("max_lr", 10.0)
    return True


BASELINES = {"temperature", "clusters", "clip", "inside"}
"""Options of baselines, which are never taken unless they are named."""


def test_the_values_are_of_all_options_that_only_some_estimators_have():
    assert set(VALUES) | BASELINES == set(LEARNER_OPTIONS)


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("objective", SOLVED + LEARNED)
def test_the_rule(objective, rules):
    resolved = set()
    for options in combinations():
        expected = takes(objective, options)
        assert catalogue.auto(objective, {**options, **rules}) == expected, options
        if is_accepted(options):
            config = SelectionConfig.from_options(objective=objective, **options, **rules)
            assert config.estimator == expected, options
            assert all(getattr(config, name) == value for name, value in options.items())
            resolved.add(expected)
    assert resolved == {"reinforce", "counterfactual", *(["relaxed"] if objective in SOLVED else [])}


def test_what_none_of_them_has_is_refused_by_name(monkeypatch):
    monkeypatch.setitem(OPTIONS, "oddness", replace(OPTIONS["n_epochs"], name="oddness", owners={"random": 1}))
    assert catalogue.auto("facility", ["oddness"]) == "counterfactual"


@pytest.mark.parametrize(
    ("words", "estimator"),
    [
        ("", "relaxed"),
        ("--objective disf", "counterfactual"),
        ("--estimator auto --objective pairwise", "relaxed"),
        ("--n_rollout 8", "counterfactual"),
        ("--init quality", "counterfactual"),
        ("--partial 0.1", "reinforce"),
        ("--preset paper", "reinforce"),
        ("--preset paper --estimator auto", "reinforce"),
        ("--n_epochs 5 --polish none", "relaxed"),
        ("--estimator counterfactual", "counterfactual"),
    ],
)
def test_the_command_line_takes_it(words, estimator):
    options = parse(["select", "a.parquet", "--output", "o.parquet", *words.split()])
    assert run_config(options).selection.estimator == estimator


def test_each_point_of_a_sweep_takes_its_own():
    found = points({"lamb": 0.5}, [parse_vary("objective=facility,disf,disf_fixed")])
    assert [point.selection.estimator for point in found] == ["relaxed", "counterfactual", "relaxed"]
    drawn = points({}, [parse_vary("n_rollout=2,4")])
    assert {point.selection.estimator for point in drawn} == {"counterfactual"}


@pytest.mark.parametrize("rules", ["pin and ban", "given", "quota", "budget"])
@pytest.mark.parametrize("objective", ["facility", "pairwise", "disf_fixed", "pairwise:0.7,disf_fixed:0.3"])
def test_relaxed_takes_every_rule_so_the_rule_need_not_ask(objective, rules, tmp_path):
    corpus = open_corpus(CorpusConfig((str(ROOT / "tests/golden/corpus/part-1.parquet"),)))
    for name, rows in (("pin", slice(0, 3)), ("ban", slice(10, 15)), ("given", slice(20, 30))):
        (tmp_path / f"{name}.txt").write_text("\n".join(corpus.ids[rows].to_pylist()), encoding="utf-8")
    options = {
        name: str(tmp_path / value) if name in ("pin", "ban", "given") else value
        for name, value in RULES[rules].items()
    }
    selection = api.select(corpus, objective=objective, n_epochs=4, **options)
    assert selection.summary["estimator"] == "relaxed"
    assert np.isfinite(selection.summary["calibrated"]["joint"])
