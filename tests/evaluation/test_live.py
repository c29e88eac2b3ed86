"""The live lambda: its answers are real selections with their own values, near a run's, and within their gap."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.corpus.centered import centered
from datamask.errors import OptionError, Stopped
from datamask.evaluation import lambda_path, live_methods
from datamask.evaluation.frontier import frontier
from datamask.evaluation.live import COARSE, GRID, Live, fits, open_live
from datamask.evaluation.path_bounds import best_line, chord
from datamask.evaluation.pool import Pool
from tests.commands import TINY
from tests.making.pools import corpus_of
from tests.reference import truth


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return Pool(open_corpus(CorpusConfig((TINY,))), torch.device("cpu"), tmp_path_factory.mktemp("cache"))


def options(**given):
    return SelectionConfig.from_options(**{"objective": "pairwise", "estimator": "relaxed", **given})


def joint_of(pool, live, answer, name):
    """The joint value of an answer's mask from its definition in numpy."""
    x, q = pool.corpus.features.astype(np.float64), pool.corpus.quality.astype(np.float64)
    members = answer.mask.nonzero()[0]
    anchors = live.posed.anchors()
    q0, d0 = anchors.quality.to_dict(), anchors.diversity[name].to_dict()
    quality = (q[members].mean() - q0["random"]) / (q0["best"] - q0["random"])
    diversity = (getattr(truth, name)(x, members) - d0["random"]) / (d0["best"] - d0["random"])
    return quality, diversity


@pytest.mark.parametrize("name", ["pairwise", "facility"])
@pytest.mark.parametrize("collapse", ["none", "exact"])
def test_between_solved_lambdas_the_answer_is_a_selection_near_the_best(pool, name, collapse):
    config = options(objective=name, collapse=collapse)
    live = Live(pool, config)
    for lamb in (0.4, 0.5):
        assert live.solve(lamb).solved
    quick = live.answer(0.46)
    assert not quick.solved and quick.exact and live.lambdas == [0.4, 0.5]
    assert int(quick.mask.sum()) == 360
    assert (quick.quality, quick.diversity) == pytest.approx(joint_of(pool, live, quick, name), abs=1e-4)
    best = frontier(pool, config, [0.46])[0]
    assert quick.joint <= best.joint + best.gap + 1e-6
    assert quick.joint > best.joint - 0.02
    if name == "pairwise":
        assert quick.gap is not None and best.joint <= quick.joint + quick.gap + 1e-6 and quick.gap < 0.01


def test_a_solved_lambda_is_what_the_frontier_finds_and_is_remembered(pool, monkeypatch):
    live = Live(pool, options())
    solved = live.solve(0.3)
    point = frontier(pool, options(), [0.3])[0]
    assert solved.joint == pytest.approx(point.joint, abs=2e-4) and solved.gap < 1e-3
    monkeypatch.setattr(live, "solve", None)
    again = live.answer(0.3)
    assert (again.mask == solved.mask).all() and again.quality == solved.quality and again.solved


@pytest.mark.parametrize("name", ["pairwise", "facility"])
def test_at_the_ends_it_is_one_term_alone(pool, name):
    live = Live(pool, options(objective=name))
    top = live.answer(1.0)
    assert top.quality == pytest.approx(1.0) and top.gap == pytest.approx(0.0, abs=1e-9)
    assert live.answer(0.0).diversity > 0.99


def test_no_more_lambdas_are_kept_than_allowed(pool, monkeypatch):
    monkeypatch.setattr(lambda_path, "MOST_LAMBDAS", 2)
    live = Live(pool, options())
    for lamb in (0.1, 0.2, 0.3):
        live.solve(lamb)
    assert live.lambdas == [0.2, 0.3]
    # those of the grid stay while there are others to let go of
    live = Live(pool, options())
    for lamb in (0.33, 0.3, 0.37, 0.41):
        live.solve(lamb)
    assert live.lambdas == [0.3, 0.41] and 0.3 in live.grid


def test_far_from_exact_it_says_so(pool, monkeypatch):
    live = Live(pool, options(objective="facility", select_ratio=0.02))
    exact = live.solve(0.99)
    monkeypatch.setattr(live_methods, "EXACT_PAIRS", -1)
    rough = Live(pool, options(objective="facility", select_ratio=0.02)).solve(0.99)
    assert exact.exact and not rough.exact and rough.diversity <= exact.diversity + 1e-9
    assert (rough.mask == exact.mask).all()
    monkeypatch.undo()
    # on approximate lists a listed member may not be the nearest, however few rows lack one; and nothing is proved
    monkeypatch.setattr(live._term.function, "exact_lists", False)
    listed = Live(pool, options(objective="facility", select_ratio=0.02))
    assert not listed.solve(0.99).exact and not listed.provable(0.99)


def test_it_refuses_what_it_cannot_follow_and_stops(pool):
    assert fits(options()) and not fits(options(scale="raw"))
    with pytest.raises(OptionError, match="live lambda"):
        Live(pool, options(objective="pairwise:1,facility:1", estimator="counterfactual"))

    def poll():
        raise Stopped("stop")

    with pytest.raises(Stopped):
        Live(pool, options()).answer(0.5, poll)
    assert GRID[0] == 0 and GRID[-1] == 1 and (np.diff(GRID) > 0).all()


def test_it_is_opened_with_the_settings_of_a_run(pool, tmp_path):
    live = open_live(pool.corpus, options(center=True, neighbors="exact"), tmp_path)
    answer = live.solve(0.5)
    seen = SimpleNamespace(corpus=centered(pool.corpus))
    assert (answer.quality, answer.diversity) == pytest.approx(joint_of(seen, live, answer, "pairwise"), abs=1e-4)


def test_where_all_features_are_the_same_the_best_by_quality_is_proved_best(tmp_path):
    live = open_live(corpus_of(np.ones((40, 3))), options(), tmp_path)
    answer = live.answer(0.25)
    assert answer.joint == pytest.approx(0.25) and answer.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", ["pairwise", "facility", "disf_fixed", "vendi", "disf"])
@pytest.mark.parametrize("seed", range(3))
def test_between_solved_lambdas_nothing_is_above_the_proved_band(tmp_path, name, seed):
    """Against every selection there is; of one seed, among the rows that pruning and collapsing leave."""
    rng = np.random.default_rng([seed, len(name)])
    features, left_out = rng.normal(size=(13, 3)), {"prune": 0.2, "collapse": "exact"} if seed == 2 else {}
    features[4] = features[7]
    pool = Pool(corpus_of(features, rng.normal(size=13)), torch.device("cpu"), tmp_path)
    live = Live(
        pool,
        options(
            objective=name, estimator="counterfactual" if name == "disf" else "relaxed", select_ratio=0.3, **left_out
        ),
    )
    may = live.posed.problem.eligible.tolist()
    assert len(may) == 13 if not left_out else len(may) < 11
    for lamb in (1.0, 0.0, 0.6):
        live.solve(lamb)
    assert [lamb for lamb in live.lambdas if live.provable(lamb)] == {
        "facility": [0.0, 0.6],
        "disf_fixed": [0.0, 0.6],
    }.get(name, [])
    for lamb in live.lambdas:
        if live.provable(lamb):
            live.prove(lamb)
    everything = [np.isin(np.arange(13), members) for members in itertools.combinations(may, 4)]
    ends = [joint_of(pool, live, SimpleNamespace(mask=mask), name) for mask in everything]
    for lamb in (0.0, 0.15, 0.37, 0.6, 0.8, 1.0):
        best = max(lamb * quality + (1 - lamb) * diversity for quality, diversity in ends)
        answer = live.answer(lamb)
        assert int(answer.mask.sum()) == 4 and answer.joint <= best + 1e-6
        quality, diversity = joint_of(pool, live, answer, name)
        assert answer.joint == pytest.approx(lamb * quality + (1 - lamb) * diversity, abs=1e-5)
        if name == "disf":
            assert answer.gap is None or lamb == 1.0
        else:
            assert best <= answer.joint + answer.gap + 1e-6
        solved_there = [lamb * one.answer.quality + (1 - lamb) * one.answer.diversity for _, one in live._path]
        assert answer.joint >= max(solved_there) - 1.1e-6


def test_a_quick_answer_of_a_slow_objective_is_a_solved_selection(pool):
    live = Live(pool, options(objective="disf", estimator="counterfactual", n_epochs=6))
    assert live.grid == COARSE
    first = live.answer(0.4)  # nothing is solved, and quality alone is a sort
    assert first.solved_at == 1.0 and live.lambdas == [1.0] and first.gap is None
    live.solve(0.4)
    near = live.answer(0.45)
    assert near.solved_at == 0.4 and not near.solved and (near.mask == live.answer(0.4).mask).all()
    assert near.joint == pytest.approx(0.45 * near.quality + 0.55 * near.diversity)


def test_bounds_and_lines():
    assert chord([(0.0, 1.0), (0.5, 0.4), (1.0, 1.0)], 0.25) == pytest.approx(0.7)
    assert chord([(0.0, 1.0), (0.5, 2.0), (1.0, 1.0)], 0.5) == pytest.approx(1.0)  # a loose bound is no better for it
    assert chord([(0.2, 0.5)], 0.2) == 0.5 and chord([(0.2, 0.5)], 0.3) is None
    assert best_line([(1.0, 0.0), (0.6, 0.7), (0.0, 1.0)], 0.5) == (1, pytest.approx(0.65))
    with pytest.raises(ValueError, match="at least one"):
        best_line([], 0.5)


def test_row_scores_are_what_the_value_gains_with_a_row_and_loses_without_it(pool, tmp_path):
    (tmp_path / "banned.txt").write_text("\n".join(pool.corpus.ids.to_pylist()[:5]))
    live = Live(pool, options(objective="facility", ban=str(tmp_path / "banned.txt")))
    answer = live.solve(0.0)
    scores = live.row_scores(answer.mask, 0.0)
    assert np.isnan(scores[:5]).all() and np.isfinite(scores[5:]).all()
    x, members = pool.corpus.features.astype(np.float64), answer.mask.nonzero()[0]
    anchor = live.posed.anchors().diversity["facility"].to_dict()
    value = truth.facility(x, members)
    outside = np.flatnonzero(~answer.mask[5:])[:20] + 5
    changed = [value - truth.facility(x, members[members != row]) for row in members[:20]]
    changed += [truth.facility(x, np.append(members, row)) - value for row in outside]
    expected = np.array(changed) / (anchor["best"] - anchor["random"])
    assert scores[np.append(members[:20], outside)] == pytest.approx(expected, abs=1e-6)
