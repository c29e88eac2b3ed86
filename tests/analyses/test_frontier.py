"""The frontier's tables and chart: which runs share a curve, what is proved, what a point costs, the picture."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datamask.analyses.frontier import chart as charts
from datamask.analyses.frontier import tables as frontier
from datamask.dashboard.tradeoff import spots
from datamask.dashboard.tradeoff.geometry import HalfPlane


def circle(made, count=5, **options):
    """A frontier like a quarter circle, with its own bounds."""
    for lamb in np.linspace(0, 1, count):
        length = math.hypot(lamb, 1 - lamb)
        made(lamb / length, (1 - lamb) / length, bound=length, lamb=float(lamb), **options)


def found(made):
    return frontier.survey(made.store.list(), made.fingerprint)


def test_curves_whose_ends_two_versions_found_are_not_drawn_on_one_axis(made):
    """They are two curves of one name; a place of one is another gain than the same place of the other."""
    end = {"random": 0.0, "best": 1.0, "best_kind": "proved"}

    def by(best, count, **options):
        objective = options.get("objective", "pairwise")
        anchors = {"quality": end, "diversity": {objective: {**end, "best": best}}}
        circle(made, count, anchors=anchors, **options)

    by(1.0, 5)
    by(1.0002, 4)
    by(1.7, 3, objective="facility")
    lines = found(made).lines
    assert [len(line.spots) for line in lines] == [5, 4, 3]
    assert [len(line.spots) for line in frontier.on_one_axis(lines)] == [5, 3]
    assert [len(line.spots) for line in frontier.on_one_axis(lines[1:])] == [4, 3]


def test_curves_are_never_joined_across_objective_ratio_rules_or_scale(made):
    circle(made)
    circle(made, objective="facility")
    circle(made, select_ratio=0.1)
    circle(made, collapse="exact", count=3)
    made(0.5, 0.5, lamb=0.5, scale="raw")
    made(0.0, 0.0, estimator="random", name="r")
    made(0.4, 0.4, estimator="greedy", lamb=0.5)
    survey = found(made)
    assert [
        (
            line.settings.objective,
            line.settings.select_ratio,
            line.settings.collapse,
            line.settings.scale,
            len(line.spots),
        )
        for line in survey.lines
    ] == [
        ("facility", 0.3, "none", "calibrated", 5),
        ("pairwise", 0.1, "none", "calibrated", 5),
        ("pairwise", 0.3, "none", "calibrated", 5),
        ("pairwise", 0.3, "exact", "calibrated", 3),
        ("pairwise", 0.3, "none", "raw", 1),
    ]
    assert [spot.label for spot in survey.named] == ["Greedy, λ 0.5", "Random"]
    names = list(frontier.names(survey.lines).values())
    assert len(set(names)) == 5 and names[0].startswith("Facility location, 30") and "exact" in names[3]
    # named points stand with curves of their own objective and size alone
    assert not frontier.named_for(survey, survey.lines[:2]) and len(frontier.named_for(survey, survey.lines[2:3])) == 2


def test_another_learner_is_called_by_its_name_not_by_its_options(made):
    circle(made)
    for steps in (20, 40):
        made(0.5, 0.5, lamb=0.5, estimator="counterfactual", n_epochs=steps)
    names = sorted(frontier.names(found(made).lines).values())
    assert len(set(names)) == 3
    assert sum("steps" in name for name in names) == 2 and not any("batch share" in name for name in names)


def test_seeds_of_one_lambda_are_drawn_apart_and_joined_by_their_mean(made):
    for seed, quality in enumerate((0.4, 0.6)):
        made(quality, 0.8, lamb=0.4, seed=seed, estimator="counterfactual")
    made(0.9, 0.1, lamb=0.9, estimator="counterfactual")
    line = found(made).lines[0]
    assert len(line.spots) == 3 and line.means() == [(0.4, pytest.approx(0.5), pytest.approx(0.8)), (0.9, 0.9, 0.1)]


def test_unfinished_foreign_and_constant_runs_are_left_out(made):
    circle(made, 2)
    made(None, 0.5, lamb=0.3)
    with made(0.5, 0.5, lamb=0.4).writer() as writer:
        writer.update_facts(fingerprint="f" * 64)
    with made(0.5, 0.5, lamb=0.6).writer() as writer:
        writer.set_status("stopped")
    assert [spot.lamb for line in found(made).lines for spot in line.spots] == [0.0, 1.0]


def test_what_is_proved_and_for_what(made):
    circle(made)
    stored = found(made)
    line, planes = stored.lines[0], stored.planes(stored.lines[0])
    assert HalfPlane(0.5, pytest.approx(math.hypot(0.5, 0.5))) in planes and len(planes) == 5
    raw = made(0.5, 0.5, bound=3.0, lamb=0.5, scale="raw")
    listed = made(0.5, 0.5, bound=0.6, lamb=0.5, objective="facility")
    with listed.writer() as writer:
        writer.set_status("done", summary={**listed.status().to_dict()["summary"], "bound_holds_for": "listed"})
    assert [spots.spot_of(run).plane for run in (raw, listed)] == [None, None]
    assert line.spots[0].gap == pytest.approx(0.01) and spots.spot_of(raw).gap is None


def test_what_one_estimator_proved_holds_for_all_under_the_same_rules_alone(made):
    circle(made, 11)
    circle(made, 3, collapse="exact")
    circle(made, 3, select_ratio=0.1)
    made(0.4, 0.4, bound=0.9, lamb=0.5, estimator="counterfactual", seed=3, n_epochs=20)
    stored = found(made)
    by = {(line.settings.estimator, line.settings.collapse, line.settings.select_ratio): line for line in stored.lines}
    alone, whole = by["counterfactual", "none", 0.3], by["relaxed", "none", 0.3]
    assert len(stored.planes(alone)) == 12 and stored.planes(alone) == stored.planes(whole)
    assert len(stored.planes(by["relaxed", "exact", 0.3])) == len(stored.planes(by["relaxed", "none", 0.1])) == 3
    # fewer than three points are not joined
    for focus, joined in ((alone, 0), (whole, 1)):
        figure = charts.frontier([focus], planes=stored.planes(focus))
        curves = [trace for trace in figure.data if trace.mode == "lines" and trace.fill is None]
        assert len(curves) == joined
        assert traces(figure, "provably unreachable")


def test_the_price_of_a_point(made):
    circle(made)
    line = found(made).lines[0]
    assert frontier.price_words(line.spots[2]) == "+1 % quality costs 1 % diversity here."
    assert "3 %" in frontier.price_words(line.spots[3]) and "0.33 %" in frontier.price_words(line.spots[1])
    assert "any price" in frontier.price_words(line.spots[4]) and "almost free" in frontier.price_words(line.spots[0])
    greedy = spots.spot_of(made(0.4, 0.4, estimator="greedy", lamb=0.5))
    assert frontier.price_words(greedy) == ""


def test_where_nothing_proves_concavity_it_is_said():
    assert frontier.hull_only("disf") and frontier.hull_only("pairwise:1,disf:1")
    assert not frontier.hull_only("pairwise") and not frontier.hull_only("facility")


def test_the_table_has_every_point_once(made):
    circle(made)
    made(0.0, 0.0, estimator="random")
    survey = found(made)
    table = frontier.table(survey.lines, survey.named)
    assert len(table) == 6 and table["run_id"].is_unique
    assert table["quality"].iloc[4] == pytest.approx(100) and math.isnan(table["λ"].iloc[5])


# -- the figure --------------------------------------------------------------------------------------------------------


def traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def test_the_current_selection_is_a_dot_of_its_own(made):
    circle(made, 3)
    survey = found(made)
    assert not traces(charts.frontier(survey.lines), "the current selection")
    here = charts.Here("λ 0.37", 0.57, 1.1)
    figure = charts.frontier(survey.lines, here=here)
    (dot,) = traces(figure, "the current selection")
    assert (list(dot.x), list(dot.y)) == ([0.57], [1.1]) and dot.customdata is None
    assert figure.layout.yaxis.range[1] > 1.1


def test_what_the_map_has_solved_is_a_line_that_opens_no_run(made):
    circle(made, 3)
    survey = found(made)
    assert not traces(charts.frontier(survey.lines), "solved on the Map")
    solved = [charts.Here("λ 0.2", 0.3, 1.2), charts.Here("λ 0.4", 0.5, 0.9)]
    (line,) = traces(charts.frontier(survey.lines, solved=solved), "solved on the Map")
    assert (list(line.x), list(line.y)) == ([0.3, 0.5], [1.2, 0.9]) and line.customdata is None


def test_the_figure_has_equal_axes_the_ring_and_the_shade(made):
    circle(made, 11)
    survey = found(made)
    line = survey.lines[0]
    spot, planes = line.spots[3], survey.planes(line)
    figure = charts.frontier(survey.lines, planes=planes, chosen=spot)
    assert figure.layout.yaxis.scaleanchor == "x" and figure.layout.yaxis.scaleratio is None
    ring = figure.data[-1]
    assert ring.marker.symbol == "circle-open" and (ring.x[0], ring.y[0]) == (spot.quality, spot.diversity)
    (shade,) = traces(figure, "provably unreachable")
    # every corner of the shaded part is on or beyond some bound, or on the window's edge
    x, y = (np.array(values) for values in (shade.x, shade.y))
    room = np.min([p.bound - p.lamb * x - (1 - p.lamb) * y for p in planes], axis=0)
    assert ((room <= 1e-9) | np.isclose(y, figure.layout.yaxis.range[1])).all()
    marks = [trace for trace in figure.data if trace.customdata is not None]
    assert list(marks[0].customdata) == [one.run_id for one in line.spots]
    (said,) = [trace for trace in figure.data if trace.mode == "text"]
    labels = [text.strip() for text in said.text]
    assert "λ 0.5" in labels and "λ 0" in labels and "random" in labels and len(labels) == len(set(labels)) <= 12
    legend = [trace.name for trace in figure.data if trace.showlegend]
    assert legend == ["provably unreachable", "Pair-wise similarity, 30\u00a0%"]


def test_baselines_with_options_are_points_named_by_them(made):
    circle(made, 3)
    for options in ({}, {"temperature": 0.5}, {"temperature": 0.5, "seed": 3}):
        made(0.6, 0.1, estimator="soft-quality", **options)
    made(0.2, 0.3, estimator="cluster-balanced", clusters=40, inside="best")
    survey = found(made)
    assert len(survey.lines) == 1 and not any(spot.priced for spot in survey.named)
    assert sorted(spot.label for spot in survey.named) == [
        "Cluster-balanced, clusters 40, inside best",
        "Soft quality sampling",
        "Soft quality sampling, temperature 0.5",
    ]


def test_far_off_points_do_not_squeeze_the_others(made):
    circle(made, 3)
    made(1.0, -0.9, estimator="top-quality")
    made(0.9, -0.15, estimator="greedy")
    survey = found(made)
    figure = charts.frontier(survey.lines, survey.named)
    assert figure.layout.yaxis.range[0] == pytest.approx(-0.15 - charts.MARGIN)
    assert [spot.label for spot in survey.named if charts.far(spot)] == ["Top quality"]


def test_colour_is_the_objective_and_shape_tells_its_curves_apart(made):
    circle(made, 2)
    circle(made, 2, select_ratio=0.1)
    circle(made, 2, objective="facility")
    looks = charts.styles(found(made).lines)
    facility, first, second = looks.values()
    assert first[0] == second[0] != facility[0] and first[1:] != second[1:]
