"""Settings: defaults per estimator, refusals that name the option, round trips."""

from __future__ import annotations

import pytest

from datamask import catalogue
from datamask.config import CorpusConfig, QualityColumn, Quota, RunConfig, SelectionConfig
from datamask.errors import OptionError, VersionError


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        ({}, "relaxed"),
        ({"partial": 0.1}, "reinforce"),
        ({"max_lr": 10.0}, "reinforce"),
        ({"min_lr": 1.0}, "reinforce"),
        ({"partial": 0.5, "estimator": "counterfactual"}, "counterfactual"),
        ({"preset": "paper"}, "reinforce"),
        ({"estimator": "auto", "n_rollout": 128}, "counterfactual"),
    ],
)
def test_auto_keeps_the_papers_line_the_papers_method(options, estimator):
    assert SelectionConfig.from_options(**options).estimator == estimator


def test_an_unknown_option_is_named_with_the_one_that_was_meant():
    with pytest.raises(OptionError, match=r"^select_ratoi is not an option of a selection; did you mean select_ratio"):
        SelectionConfig.from_options(select_ratoi=0.3)
    with pytest.raises(OptionError, match=r"^zzz is not an option of a selection$"):
        SelectionConfig.from_options(zzz=1)


def test_the_preset_is_the_papers_setting():
    config = SelectionConfig.from_options(preset="paper")
    assert (
        config.scale,
        config.n_rollout,
        config.n_epochs,
        config.partial,
        config.max_lr,
        config.min_lr,
        config.init,
    ) == ("raw", 128, 5000, 0.1, 10.0, 1.0, "quality")
    with pytest.raises(OptionError, match="n_rollout"):
        SelectionConfig.from_options(preset="paper", n_rollout=64)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lamb": 1.5}, "lamb"),
        ({"lamb": float("nan")}, "lamb"),
        ({"select_ratio": 0.0}, "select_ratio"),
        ({"select_ratio": 1.0}, "select_ratio"),
        ({"prune": 1.0}, "prune"),
        ({"n_epochs": 0}, "n_epochs"),
        ({"estimator": "reinforce", "n_rollout": 1}, "n_rollout"),
        ({"partial": 0.0}, "partial"),
        ({"max_lr": -1.0}, "max_lr"),
        ({"max_lr": 1.0, "min_lr": 2.0}, "min_lr"),
        ({"init": "zero"}, "init"),
        ({"neighbors": "quick"}, "neighbors"),
        ({"device": "tpu"}, "device"),
        ({"device": "mps"}, "float64"),
        ({"collapse": "2"}, "collapse"),
        ({"collapse": "near"}, "collapse"),
        ({"collapse": "column:"}, "collapse"),
        ({"objective": "volume"}, "objective"),
        ({"objective": "pairwise:-1"}, "objective"),
        ({"objective": "disf,DiSF"}, "objective"),
        ({"estimator": "magic"}, "estimator"),
        ({"seed": -1}, "seed"),
        ({"estimator": "random", "n_rollout": 8}, "n_rollout"),
        ({"estimator": "greedy", "objective": "vendi"}, "facility or pairwise or disf alone.* --estimator relaxed"),
        ({"estimator": "greedy", "objective": "disf,facility"}, "got --objective disf:1,.* --estimator counterfactual"),
        ({"estimator": "greedy", "objective": "mine.own:Objective"}, "got --objective mine.own:Objective"),
        ({"colour": "blue"}, "colour"),
        ({"polish": "wax"}, "polish"),
        ({"scale": "log"}, "scale"),
    ],
)
def test_bad_options_are_refused_by_name(options, says):
    with pytest.raises(OptionError, match=says) as caught:
        SelectionConfig.from_options(**options)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("ratio", "n", "size"), [(0.3, 10, 3), (0.25, 10, 3), (0.1, 63_666, 6_367), (0.5, 3, 2)])
def test_size_rounds_half_up(ratio, n, size):
    assert SelectionConfig.from_options(select_ratio=ratio).size(n) == size


@pytest.mark.parametrize(("ratio", "n"), [(0.01, 10), (0.99, 10)])
def test_a_ratio_that_selects_none_or_all_is_refused(ratio, n):
    with pytest.raises(OptionError, match="select_ratio"):
        SelectionConfig.from_options(select_ratio=ratio).size(n)


def test_weighted_sums_are_normalised():
    assert SelectionConfig.from_options(objective="Pair_simi:3,facility:1").terms == (
        ("pairwise", 0.75),
        ("facility", 0.25),
    )


@pytest.mark.parametrize("estimator", [entry.name for entry in catalogue.ESTIMATORS])
def test_round_trip(estimator):
    config = RunConfig(
        CorpusConfig(("a", "b"), quality_columns=(QualityColumn("q", 0.5, "z"),), rows=10),
        SelectionConfig.from_options(estimator=estimator),
        "name",
        "notes",
    )
    assert RunConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize("estimator", [entry.name for entry in catalogue.ESTIMATORS])
def test_an_option_that_a_record_lacks_has_its_default_and_one_that_there_is_not_is_refused(estimator):
    config = SelectionConfig.from_options(estimator=estimator)
    fewer = {k: v for k, v in config.to_dict().items() if k != "polish"}
    assert SelectionConfig.from_dict(fewer) == config
    with pytest.raises(VersionError, match="made by another version of datamask"):
        SelectionConfig.from_dict({**fewer, "an_option_of_the_future": 1})


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("q", ("q", 1.0, "raw")),
        ("q:0.5", ("q", 0.5, "raw")),
        ("q:2:rank", ("q", 2.0, "rank")),
        ("a:b", ("a:b", 1.0, "raw")),
        ("a:b:0.5:z", ("a:b", 0.5, "z")),
    ],
)
def test_quality_columns_parse(text, parsed):
    column = QualityColumn.parse(text)
    assert (column.name, column.weight, column.transform) == parsed
    assert QualityColumn.parse(str(column)) == column


@pytest.mark.parametrize("text", ["source=python:0.1:0.3", "url=http://a=b:0.0:1.0"])
def test_quotas_parse(text):
    assert str(Quota.parse(text)) == text


@pytest.mark.parametrize("text", ["source:0.1:0.3", "source=a:0.3:0.1", "source=a:x:1", "=a:0:1", "source=a:0:2"])
def test_bad_quotas_are_refused(text):
    with pytest.raises(OptionError, match="COLUMN=VALUE"):
        Quota.parse(text)


def test_rules_of_the_quotas():
    a, b = Quota("source", "a", 0.0, 0.5), Quota("kind", "b", 0.0, 0.5)
    with pytest.raises(OptionError, match="one column"):
        SelectionConfig.from_options(quotas=(a, b))
    with pytest.raises(OptionError, match="once per value"):
        SelectionConfig.from_options(quotas=(a, a))
    assert SelectionConfig.from_options(quotas=(a,), estimator="greedy").ruled
    config = RunConfig(CorpusConfig(("x",)), SelectionConfig.from_options(quotas=(a,), pin="p.txt", ban="b.txt"))
    assert RunConfig.from_dict(config.to_dict()) == config
    assert config.arguments()[-6:] == ["--pin", "p.txt", "--ban", "b.txt", "--quota", "source=a:0.0:0.5"]


def test_steps_follow_from_the_rows_where_nobody_chose_them_and_swaps_follow():
    masks = {"estimator": "counterfactual", "n_rollout": 128}
    many = SelectionConfig.from_options(**masks)
    assert many.planned_steps(200_000) == 60, "few rows are quick enough"
    assert [many.planned_steps(n) for n in (236_007, 1_000_000, 10_000_000)] == [9, 8, 8]
    assert SelectionConfig.from_options(estimator="counterfactual").planned_steps(1_000_000) == 60, "two masks a step"
    for options in (
        masks | {"n_epochs": 40},
        masks | {"polish": "none"},
        masks | {"objective": "disf"},
        masks | {"objective": "facility:0.5,disf:0.5"},
        {"preset": "paper"},
        {"estimator": "reinforce"},
    ):
        config = SelectionConfig.from_options(**options)
        assert config.planned_steps(1_000_000) == config.n_epochs, options
    assert SelectionConfig.from_options(estimator="relaxed").planned_steps(10**8) == 60
    assert SelectionConfig.from_options(estimator="random").planned_steps(10**8) is None
