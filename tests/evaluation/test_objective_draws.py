"""Objectives in the panel: exact values against the definitions, draws against the real bootstrap."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.evaluation.measures import objective_measure
from tests.making.pools import entry, ground_of, made_corpus, reading
from tests.reference import truth

NAMES = ("facility", "pairwise", "disf", "disf_fixed", "vendi")


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return ground_of(made_corpus(400, 6), tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def rows():
    return np.sort(np.random.default_rng(3).choice(400, 240, replace=False))


@pytest.mark.parametrize("name", ["facility", "pairwise", "disf"])
def test_values_are_the_definitions(ground, rows, name):
    found = reading(ground, name, rows)
    assert found.value == pytest.approx(truth.OBJECTIVES[name](ground.corpus.features.astype(float), rows), rel=1e-4)
    anchor = ground.anchor(name, 240)
    assert found.extra["calibrated"] == pytest.approx((found.value - anchor.random) / (anchor.best - anchor.random))


def weighted(name: str, x: np.ndarray, w: np.ndarray) -> float:
    """The objective with each member counted w times, a row's copies of itself left out of pairs."""
    total = w.sum()
    if name == "pairwise":
        k = x @ x.T
        np.fill_diagonal(k, 0.0)
        return -float(w @ k @ w / (total**2 - (w**2).sum()))
    if name == "vendi":
        shares = np.linalg.eigvalsh((x * w[:, None]).T @ x / total)
        return -float((shares * np.log(shares)).sum())
    mean, d = w @ x / total, x.shape[1]
    centred = x - mean
    covariance = (centred * w[:, None]).T @ centred / total
    scale = np.sqrt(covariance.diagonal())
    c = covariance / np.outer(scale, scale) if name == "disf" else (x * w[:, None]).T @ x / total
    return -float(((c**2).sum() - (c.diagonal() ** 2).sum()) / (d * (d - 1)))


@pytest.mark.parametrize("name", NAMES[1:])
def test_draws_follow_the_real_bootstrap(ground, rows, name):
    x = ground.corpus.features.astype(float)
    if name == "disf_fixed":
        x = (x - x.mean(0)) / x.std(0)
    # the panel has Vendi as the score; its objective is in nats
    found = objective_measure(name).measure(ground, {"it": rows}, objective_measure(name))[0].readings["it"]
    weights = ground.weights()[rows].astype(float)
    real = np.array([weighted(name, x[rows], w) for w in weights.T])
    assert found.value == pytest.approx(weighted(name, x[rows], np.ones(240)), rel=1e-3)
    assert np.std(found.draws) == pytest.approx(np.std(real), rel=0.2)
    assert np.corrcoef(found.draws, real)[0, 1] > 0.92


def test_facility_resamples_the_corpus_under_the_selection_as_it_is(ground, rows):
    x, found = ground.corpus.features.astype(float), reading(ground, "facility", rows)
    best = np.maximum(0.0, (x @ x[rows].T).max(1))
    weights = ground.weights().astype(float)
    assert found.draws == pytest.approx(weights.T @ best / weights.sum(0), abs=1e-5)


def test_quality_and_its_columns(ground, rows):
    corpus = ground.corpus
    assert reading(ground, "quality", rows).value == pytest.approx(corpus.quality[rows].mean())
    columns = entry("column").measure(ground, {"it": rows}, entry("column"))
    assert [one.name for one in columns] == ["column:q_a", "column:q_b"]
    for one in columns:
        values = corpus.metadata[one.name.split(":")[1]].to_numpy()[rows]
        assert one.readings["it"].value == pytest.approx(values.mean()) and one.circular == ("quality",)
        half = values.std() * 1.96 / np.sqrt(len(rows))
        assert np.subtract(*one.readings["it"].interval[::-1]) / 2 == pytest.approx(half, rel=0.2)
