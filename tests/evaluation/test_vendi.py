"""The Vendi score against its definition on the n x n kernel matrix."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.config import SelectionConfig
from datamask.evaluation.measures.reading import Measured
from datamask.evaluation.measures.vendi import effective_number, spectrum
from datamask.evaluation.verdicts import HATCHED, optimised_by, verdicts
from tests.making.pools import ground_of, made_corpus, reading
from tests.reference.truth import unit_rows

VENDI = SelectionConfig.from_options(objective="vendi", lamb=0.3)


def by_kernel(x: np.ndarray) -> float:
    """Friedman and Dieng 2023: exponential of the entropy of the eigenvalues of K / n."""
    shares = np.linalg.eigvalsh(x @ x.T / len(x))
    shares = shares[shares > 1e-12]
    return float(np.exp(-np.sum(shares * np.log(shares))))


def score(x: np.ndarray) -> float:
    return effective_number(spectrum(x, np.arange(len(x)))[0])


@pytest.mark.parametrize("n, d", [(5, 12), (60, 12), (300, 7)])
def test_both_forms_agree(rng, n, d):
    x = unit_rows(rng, n, d)
    assert score(x) == pytest.approx(by_kernel(x), rel=1e-9)


def test_ends_are_one_and_the_number_of_directions():
    assert score(np.tile(np.eye(4)[0], (9, 1))) == pytest.approx(1)
    assert score(np.repeat(np.eye(4), 3, axis=0)) == pytest.approx(4)


def test_draws_along_the_tangent_are_those_of_the_real_bootstrap(tmp_path, rng):
    ground = ground_of(made_corpus(), tmp_path)
    rows = np.sort(rng.choice(1200, 360, replace=False))
    found = reading(ground, "vendi", rows)
    x = ground.corpus.features[rows].astype(float)
    assert found.value == pytest.approx(by_kernel(x), rel=1e-5)
    # the run that maximized its logarithm is marked as made by it
    assert (
        verdicts(Measured("vendi", "", "", "higher", True, {"it": found}), {"it": optimised_by(VENDI)})["it"] == HATCHED
    )
    real = [score(np.repeat(x, weights, axis=0)) for weights in ground.weights()[rows].T]
    assert np.std(found.draws) == pytest.approx(np.std(real), rel=0.1)
    assert np.corrcoef(found.draws, real)[0, 1] > 0.98
