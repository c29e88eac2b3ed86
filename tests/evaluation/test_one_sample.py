"""One sample to select: pair-wise similarity has no pair, so it has no scale and no say, whatever the rules."""

from __future__ import annotations

import numpy as np
import pytest

from datamask import select
from datamask.config import Quota, SelectionConfig
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.learning.device import resolve
from tests.making.pools import corpus_of

N = 10


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(3)
    return corpus_of(
        rng.normal(size=(N, 4)) + 0.5,
        rng.normal(size=N),
        lengths=rng.integers(5, 9, N).astype(float),
        kind=["a", "b"] * (N // 2),
    )


@pytest.mark.parametrize("estimator", ["counterfactual", "relaxed", "greedy", "reinforce"])
@pytest.mark.parametrize("scale", ["calibrated", "raw"])
@pytest.mark.parametrize("lamb", [0.0, 0.5])
def test_it_is_switched_off_and_quality_decides(corpus, estimator, scale, lamb, tmp_path):
    steps = {"n_epochs": 20} if estimator == "reinforce" else {}
    selection = select(
        corpus,
        objective="pairwise",
        estimator=estimator,
        lamb=lamb,
        scale=scale,
        select_ratio=1 / N,
        cache_dir=tmp_path,
        **steps,
    )
    summary = selection.summary
    assert summary["selected"] == 1 and summary["diversity"] == 0.0
    anchor = summary["anchors"]["diversity"]["pairwise"]
    assert (anchor["random"], anchor["best"]) == (0.0, 0.0)
    assert summary["calibrated"]["diversity"] == 0.0
    if lamb and estimator != "reinforce":
        assert selection.rows.tolist() == [int(corpus.quality.argmax())]
        assert summary["gap"] == pytest.approx(0.0, abs=1e-9)
    elif not lamb and scale == "calibrated":
        assert summary["upper_bound"] is None, "nothing counts, so there is nothing to prove"


def test_it_is_said(corpus, tmp_path):
    config = SelectionConfig.from_options(objective="pairwise", select_ratio=1 / N)
    posed = pose(Pool(corpus, resolve("cpu"), tmp_path), config)
    assert posed.switched_off() == ["pairwise is the same for every selection of this size, so it is switched off"]


def test_a_quota_changes_nothing_of_that(corpus, tmp_path):
    summary = select(
        corpus,
        objective="pairwise",
        estimator="counterfactual",
        lamb=0.5,
        cache_dir=tmp_path,
        select_ratio=1 / N,
        quotas=(Quota("kind", "b", 1.0, 1.0),),
    ).summary
    anchor = summary["anchors"]["diversity"]["pairwise"]
    assert anchor["best"] == anchor["random"] == summary["diversity"] == summary["calibrated"]["diversity"] == 0.0
    assert summary["selected"] == 1


def test_beside_a_given_row_there_is_a_pair(corpus, tmp_path):
    given = tmp_path / "given.txt"
    given.write_text("3\n", encoding="utf-8")
    selection = select(
        corpus,
        objective="pairwise",
        estimator="counterfactual",
        lamb=0.5,
        cache_dir=tmp_path,
        select_ratio=1 / N,
        given=str(given),
    )
    (row,) = selection.rows
    assert selection.summary["diversity"] == pytest.approx(-float(corpus.features[row] @ corpus.features[3]), abs=1e-6)
    anchor = selection.summary["anchors"]["diversity"]["pairwise"]
    assert anchor["best"] > anchor["random"]


def test_a_budget_that_every_row_fills_alone_has_no_pairs_either(tmp_path):
    rng = np.random.default_rng(3)
    filling = corpus_of(rng.normal(size=(N, 4)) + 0.5, rng.normal(size=N), lengths=np.full(N, 9.0))
    summary = select(
        filling, objective="pairwise", estimator="counterfactual", lamb=0.5, cache_dir=tmp_path, budget=9.0
    ).summary
    anchor = summary["anchors"]["diversity"]["pairwise"]
    assert anchor["best"] == anchor["random"] == summary["diversity"] == summary["calibrated"]["diversity"] == 0.0
    assert summary["selected"] == 1
