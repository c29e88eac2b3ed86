"""The tables and charts of sweeps: which runs differ in one setting alone, what stands at a value, and over seconds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datamask import catalogue
from datamask.analyses.curves import chart
from datamask.analyses.curves.tables import CURVE
from datamask.analyses.frontier import chart as charts
from datamask.analyses.frontier import kinds, tables
from datamask.analyses.frontier.form_panel import arms
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.options import OPTIONS
from datamask.runs.varying import points, variable


def spots(made):
    return tables.survey(made.store.list(), made.fingerprint).spots


def stored(made, option):
    return tables.series(spots(made), option)


def test_every_option_that_a_sweep_varies_can_be_varied_here_with_the_values_it_starts_with():
    assert set(kinds.LABELS) == {*variable(), *kinds.PRESETS}
    assert len(set(kinds.LABELS.values())) == len(kinds.LABELS)
    for word in set(variable()):
        given = kinds.CHOSEN.get(word, kinds.choices(word)) or kinds.VALUES[word]
        values = kinds.values_of(word, given)
        for method in kinds.methods(word) or (catalogue.AUTO,):
            # blocks are of facility alone, and relaxed of concave objectives
            options = {"objective": "facility", "estimator": method}
            options = {name: value for name, value in options.items() if name != word and value != catalogue.AUTO}
            spanned = points(options, [(word, values)])
            assert len(spanned) == len(values) > 1 and all(OPTIONS[word].of(p.selection.estimator) for p in spanned)


@pytest.mark.parametrize("text", ["", "a", "0.1, 0.1", "0.1,,0.2", "0:1", "0:1:1", "0:1:x"])
def test_values_that_are_none_are_refused_with_the_way_out(text):
    with pytest.raises(OptionError, match="Values must be different numbers"):
        kinds.values_of("select_ratio", text)
    with pytest.raises(OptionError, match="whole numbers"):
        kinds.values_of("n_rollout", "8, 8.5")


def test_a_method_that_cannot_select_by_an_objective_is_no_point_of_it():
    methods = ("greedy", "relaxed")
    assert kinds.fitting("estimator", methods, "vendi") == ("relaxed",)
    assert kinds.fitting("estimator", methods, "facility") == kinds.fitting("lamb", methods, "vendi") == methods


def test_a_series_is_of_runs_that_differ_in_one_setting_alone(made):
    for ratio, quality in ((0.1, 0.9), (0.5, 0.5), (0.3, 0.7)):
        made(quality, 1 - quality, lamb=0.5, select_ratio=ratio)
    made(0.2, 0.2, lamb=0.6, select_ratio=0.1)
    (one,) = stored(made, "select_ratio")
    table = tables.ends(one)
    quality = table[table.term == "quality"]
    assert quality["value"].tolist() == [0.1, 0.3, 0.5]
    assert quality["share"].tolist() == pytest.approx([90, 70, 50]) and (quality["n"] == 1).all()
    assert tables.names([one]) == {one.key: "Pair-wise similarity"}
    # the same runs along another setting
    assert sorted(tuple(other.levels) for other in stored(made, "lamb")) == [(0.5,), (0.5,), (0.5, 0.6)]


def test_a_value_is_the_mean_of_its_seeds_between_the_worst_and_the_best(made):
    for share, options in ((0.1, {}), (0.5, {"seed": 1}), (0.6, {"prune": 0.5})):
        made(share, 0.0, lamb=0.5, **options)
    (one,) = stored(made, "prune")
    row = tables.ends(one).iloc[0]
    assert (row["level"], row["n"]) == ("0", 2)
    assert (row["share"], row["low"], row["high"]) == pytest.approx((30, 10, 50))


def test_methods_differ_in_the_options_they_have_and_count_at_their_defaults(made):
    made(0.5, 0.5, lamb=0.5, estimator="relaxed")
    made(0.4, 0.4, lamb=0.5, estimator="reinforce")
    made(0.1, 0.1, lamb=0.5, estimator="reinforce", n_rollout=8)
    made(0.0, 0.0, lamb=0.5, estimator="random")
    (one,) = stored(made, "estimator")
    assert {method: len(runs) for method, runs in one.levels.items()} == {"random": 1, "reinforce": 1, "relaxed": 1}


def test_objectives_by_their_own_solvers_are_a_series_too(made):
    made(0.5, 0.5, lamb=0.5, objective="pairwise", estimator=catalogue.auto("pairwise"))
    made(0.5, 0.5, lamb=0.5, objective="disf", estimator=catalogue.auto("disf"))
    assert catalogue.auto("pairwise") != catalogue.auto("disf")
    (one,) = stored(made, "objective")
    assert sorted(one.levels) == ["disf", "pairwise"] and tables.AUTO in tables.names([one])[one.key]


def test_bands_over_seconds_span_their_seeds(made):
    for size in (32, 8):
        for seed in range(2):
            made(0.5 + 0.1 * seed, 0.5, lamb=0.5, estimator="reinforce", n_rollout=size, seed=seed)
    made(0.5, 0.5, lamb=0.5)
    (one,) = stored(made, "n_rollout")
    shown = tables.curves(one, "G")
    table = shown.of(CURVE)
    assert shown.series == ("8", "32") and (table["note"] == "2").all()
    last = table[table["series"] == "8"].iloc[-1]
    assert (last["seconds"], last["low"], last["high"]) == pytest.approx((0.5, 0.5, 0.55))
    assert last["value"] == pytest.approx(0.525)
    color = chart.curves(shown, "seconds")["layer"][3]["encoding"]["color"]
    assert color["title"] == "G" and color["scale"]["domain"] == ["8", "32"]


def test_a_band_is_read_at_common_moments():
    curves = [(np.array([1.0, 10.0]), np.array([0.0, 1.0])), (np.array([2.0, 20.0]), np.array([1.0, 1.0]))]
    table = tables.band(curves)
    assert (table["seconds"].iloc[0], table["seconds"].iloc[-1]) == pytest.approx((2.0, 10.0))
    assert table["low"].iloc[0] == pytest.approx(math.log10(2)) and table["high"].iloc[0] == 1.0
    apart = tables.band([(np.array([1.0, 2.0]), np.array([0.0, 1.0])), (np.array([5.0, 6.0]), np.array([2.0, 3.0]))])
    assert len(apart) == 1 and (apart["low"][0], apart["high"][0]) == (1.0, 3.0)


@pytest.mark.parametrize("preset", kinds.PRESETS)
def test_all_arms_of_a_preset_pose_the_problem_that_was_given(preset):
    given = {"select_ratio": 0.2, "collapse": "exact"}
    learning = {} if preset == "single" else {"estimator": "reinforce", "n_epochs": 1000}
    made = arms(preset, {**given, "lamb": 0.25, **learning}, ("pairwise", "disf"), 3)
    assert len(made) == len(kinds.PRESETS[preset].arms) + 2 * (preset == "single")
    for name, spanned in made.items():
        for point in spanned:
            assert {option: getattr(point.selection, option) for option in given} == given, name
        chosen = spanned[0].selection
        assert len(spanned) == (3 if chosen.estimator in ("reinforce", "counterfactual", "random") else 1), name
        if preset != "single":
            reference = name.startswith("reference")
            assert (chosen.objective, chosen.lamb) == ("pairwise", 0.25)
            assert chosen.estimator == (catalogue.auto("pairwise") if reference else "reinforce")
            steps = {"250": 250, "500": 500, "2,000": 2000}.get(name.partition(" steps")[0], 1000)
            # the reference solver takes its own number of steps
            assert chosen.n_epochs == (
                SelectionConfig.from_options(objective="pairwise").n_epochs if reference else steps
            )
    assert "pruned by 0.5" not in arms("acceleration", {"select_ratio": 0.55}, ("pairwise",), 1)


def test_the_arms_of_a_preset_are_runs_of_its_settings(made):
    asked = arms("single", {"collapse": "exact", "lamb": 0.5}, ("pairwise",), 2)
    assert not tables.of_arms(spots(made), asked)
    for spanned, share in zip(asked.values(), (0.0, -0.9, 1.0, 0.6)):
        for point in spanned:
            settings = point.selection.to_dict().items()
            made(share, share, **{name: value for name, value in settings if value is not None})
    made(0.3, 0.3, lamb=0.3)  # of no arm
    (one,) = tables.of_arms(spots(made), asked)
    table = tables.ends(one)
    quality = table[table.term == "quality"]
    assert quality["level"].tolist() == ["random", "quality alone", "pairwise alone", "pairwise with quality"]
    assert quality["n"].tolist() == [len(spanned) for spanned in asked.values()]
    figure = charts.values(table, "arm", counted=False)
    (marks,) = [trace for trace in figure.data if trace.marker.symbol == "circle"]
    assert list(marks.x) == pytest.approx([0, -90, 100, 60])
    # what lies far below random does not squeeze the others
    assert -70 < figure.layout.xaxis.range[0] < charts.FARTHEST


def test_values_far_from_each_other_stand_on_a_logarithmic_axis(made):
    for steps in (10, 50, 400):
        made(0.5, 0.5, lamb=0.5, estimator="relaxed", n_epochs=steps)
    (one,) = stored(made, "n_epochs")
    figure = charts.values(tables.ends(one), "steps", counted=True)
    assert figure.layout.xaxis.type == "log" and list(figure.data[0].x) == [10, 50, 400]
    assert charts.values(tables.ends(one).query("value > 10"), "steps", counted=True).layout.xaxis.type is None
