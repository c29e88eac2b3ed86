"""The Vendi score against its definition on the n x n kernel matrix."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.evaluation.measures.vendi import effective_number, vendi_score
from tests.evaluation.made import ground_of, made_corpus, reading
from tests.reference.truth import unit_rows

ORDERS = (0.0, 0.5, 1.0, 2.0, np.inf)


def by_kernel(x: np.ndarray, order: float) -> float:
    """Friedman and Dieng 2023: exponential of the Renyi entropy of the eigenvalues of K / n."""
    shares = np.linalg.eigvalsh(x @ x.T / len(x))
    shares = shares[shares > 1e-12]
    if order == 1:
        return float(np.exp(-np.sum(shares * np.log(shares))))
    if np.isinf(order):
        return float(1 / shares.max())
    return float(np.sum(shares**order) ** (1 / (1 - order)))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n, d", [(5, 12), (60, 12), (300, 7)])
def test_both_forms_agree(rng, n, d, order):
    x = unit_rows(rng, n, d)
    assert vendi_score(x, order) == pytest.approx(by_kernel(x, order), rel=1e-9)


def test_ends_are_one_and_the_number_of_directions():
    same = np.tile(np.eye(4)[0], (9, 1))
    assert all(vendi_score(same, order) == pytest.approx(1) for order in ORDERS)
    assert all(vendi_score(np.repeat(np.eye(4), 3, axis=0), order) == pytest.approx(4) for order in ORDERS)


def test_a_higher_order_counts_rare_directions_less(rng):
    shares = rng.dirichlet(np.ones(9))
    assert np.diff([effective_number(shares, order) for order in ORDERS]).max() < 0


def test_orders_and_rows_that_make_no_sense_are_refused(rng):
    with pytest.raises(ValueError, match="at least 0, got -1"):
        vendi_score(unit_rows(rng, 4, 3), -1.0)
    with pytest.raises(ValueError, match="at least one row"):
        vendi_score(np.empty((0, 3)))


def test_draws_along_the_tangent_are_those_of_the_real_bootstrap(tmp_path, rng):
    ground = ground_of(made_corpus(), tmp_path)
    rows = np.sort(rng.choice(1200, 360, replace=False))
    found = reading(ground, "vendi", rows)
    x = ground.corpus.features[rows].astype(float)
    assert found.value == pytest.approx(by_kernel(x, 1.0), rel=1e-5)
    real = [vendi_score(np.repeat(x, weights, axis=0)) for weights in ground.weights()[rows].T]
    assert np.std(found.draws) == pytest.approx(np.std(real), rel=0.1)
    assert np.corrcoef(found.draws, real)[0, 1] > 0.98
