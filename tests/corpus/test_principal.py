"""Principal components against numpy's singular value decomposition."""

import numpy as np
import pytest

from datamask.corpus import principal
from datamask.corpus.principal import principal_axes, project
from datamask.corpus.projections import pca


def stretched(n, dim, seed=0):
    """Rows whose axes have clearly different variances, away from the origin."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, dim)) * np.geomspace(10, 0.1, dim) + rng.normal(size=dim) * 5).astype(np.float32)


@pytest.mark.parametrize(("n", "dim", "k"), [(300, 7, 3), (9000, 5, 2), (6, 20, 4)])
def test_axes_are_the_leading_right_singular_vectors(n, dim, k):
    features = stretched(n, dim)
    mean, axes = principal_axes(features, k)
    centred = features.astype(float) - features.astype(float).mean(0)
    expected = np.linalg.svd(centred, full_matrices=False)[2][:k].T
    np.testing.assert_allclose(mean, features.mean(0, dtype=float), atol=1e-4)
    np.testing.assert_allclose(np.abs(axes.T @ expected), np.eye(k), atol=1e-3)
    np.testing.assert_allclose(project(features, mean, axes), centred @ axes, atol=1e-3)


def test_signs_are_settled_and_the_same_corpus_gives_the_same_picture():
    features = stretched(500, 6)
    axes = principal_axes(features, 3)[1]
    assert (np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0) > 0).all()
    np.testing.assert_array_equal(pca(features), pca(features.copy()))


def test_a_sample_of_the_rows_gives_nearly_the_same_axes(monkeypatch):
    features = stretched(20_000, 8)
    whole = principal_axes(features, 2)[1]
    monkeypatch.setattr(principal, "FIT_ROWS", 4000)
    sample = principal_axes(features, 2)[1]
    assert not np.array_equal(whole, sample)
    np.testing.assert_allclose(np.abs((whole * sample).sum(0)), 1, atol=0.01)


def test_pca_of_degenerate_features():
    assert pca(np.ones((5, 3), np.float32)).shape == (5, 2)
    np.testing.assert_allclose(pca(np.ones((5, 3), np.float32)), 0, atol=1e-6)
    line = pca(np.arange(6, dtype=np.float32)[:, None])
    np.testing.assert_allclose(line, np.c_[np.arange(6) - 2.5, np.zeros(6)], atol=1e-6)
