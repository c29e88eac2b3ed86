"""Quality columns to one number."""

import numpy as np
import pytest
from scipy.stats import rankdata

from datamask.config import QualityColumn
from datamask.corpus.quality import transform, weighted_sum


def test_rank_is_the_mean_rank_over_n_minus_one():
    values = np.random.default_rng(0).integers(0, 9, 50).astype(float)
    np.testing.assert_allclose(transform(values, "rank"), (rankdata(values) - 1) / 49)
    assert transform(np.array([3.0]), "rank").tolist() == [0.0]


def test_z_has_mean_0_and_deviation_1_and_a_constant_is_0():
    values = np.random.default_rng(0).normal(5, 3, 100)
    np.testing.assert_allclose(transform(values, "z"), (values - values.mean()) / values.std())
    assert transform(np.full(4, 0.1), "z").tolist() == [0] * 4
    assert transform(np.zeros(4), "z").tolist() == [0] * 4
    np.testing.assert_allclose(transform(np.array([-1e308, 1e308]), "z"), [-1, 1])


def test_weighted_sum():
    values = np.array([[1.0, 2, 3], [10.0, 30, 20]])
    columns = (QualityColumn("a", 2.0), QualityColumn("b", -1.0, "rank"))
    np.testing.assert_allclose(weighted_sum(values, columns), [2, 4 - 1, 6 - 0.5])
    with pytest.raises(ValueError):
        weighted_sum(values, columns[:1])
