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
