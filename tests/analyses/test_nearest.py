"""The nearest samples are those of a comparison of all, in float64, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.analyses.samples import nearest as module
from datamask.analyses.samples.nearest import nearest


@pytest.mark.parametrize("block", [7, 50, 65_536])
def test_they_are_those_of_a_comparison_of_all(monkeypatch, block):
    monkeypatch.setattr(module, "BLOCK", block)
    rng = np.random.default_rng(3)
    features = rng.normal(size=(120, 6)).astype(np.float32)
    features[40:44] = features[7]  # copies, whose cosines are equal
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    exact = features.astype(np.float64) @ features.astype(np.float64).T
    for row in (0, 7, 41, 119):
        rows, cosines = nearest(features, row, 8)
        others = np.delete(np.arange(120), row)
        assert row not in rows and len(set(rows.tolist())) == 8
        assert cosines == pytest.approx(np.sort(exact[row, others])[::-1][:8], abs=1e-6)
        assert exact[row, rows] == pytest.approx(cosines, abs=1e-6)
    assert sorted(nearest(features, 7, 3)[0].tolist()) == [40, 41, 42]


def test_there_are_never_more_than_there_are_others():
    features = np.eye(3, dtype=np.float32)
    assert nearest(features, 1, 8)[0].tolist() == [0, 2]
    assert len(nearest(features[:1], 0, 8)[0]) == 0


@pytest.mark.parametrize("count", [1, 7, 200])
def test_cosines_to_the_mean_of_rows_are_those_of_float64(count):
    rng = np.random.default_rng(count)
    x = rng.normal(size=(500, 24)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    rows = rng.choice(500, count, replace=False)
    mean = x[rows].astype(np.float64).mean(axis=0)
    expected = x.astype(np.float64) @ mean / np.linalg.norm(mean)
    assert module.cosines_to(x, rows) == pytest.approx(expected, abs=1e-6)
    assert (module.cosines_to(np.stack([x[0], -x[0]]), np.arange(2)) == 0).all(), "their mean has no direction"
