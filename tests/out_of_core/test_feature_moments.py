"""Moments gathered batch by batch, against numpy over all rows at once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from datamask.out_of_core.feature_moments import FeatureMoments


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_batches_of_any_size_add_up_to_the_moments_of_all_rows(offset):
    """Also where the mean is a million times the spread: sums of squares would lose all digits."""
    rows = np.random.default_rng(0).normal(size=(500, 4)) + offset
    moments = FeatureMoments.none(4)
    for part in np.split(rows, [0, 1, 7, 300]):
        moments = FeatureMoments.of(part).after(moments)
    assert moments.rows == 500
    assert moments.mean == pytest.approx(rows.mean(axis=0), rel=1e-14, abs=1e-14)
    assert np.sqrt(moments.squares / 500) == pytest.approx(rows.std(axis=0), rel=1e-9)
    again = FeatureMoments.from_dict(json.loads(json.dumps(moments.to_dict())))
    assert np.array_equal(again.mean, moments.mean) and np.array_equal(again.squares, moments.squares)


def test_a_constant_dimension_is_dead():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows[:, 1] = 0.25
    mean, inverse_sd = FeatureMoments.of(rows).standardisation()
    assert mean[1] == 0.25 and inverse_sd[1] == 0.0
    assert inverse_sd[[0, 2]] == pytest.approx(1 / rows.std(axis=0)[[0, 2]])
