"""A pass of NN-descent against its definition, for any number of threads and any order of the rows."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.corpus import neighbor_descent
from datamask.corpus.neighbor_descent import descend
from datamask.errors import Stopped
from datamask.work.context import Work


def lists_of(features, k, rng):
    """Sorted lists of k rows: the row itself, then others drawn at random."""
    n = len(features)
    cosines = features.astype(float) @ features.astype(float).T
    drawn = [[i, *rng.choice(np.delete(np.arange(n), i), k - 1, replace=False)] for i in range(n)]
    return sorted_lists(drawn, cosines)


def sorted_lists(rows, cosines):
    """Each list by falling cosine, ties by rising index, its first entry kept in front."""
    indices = np.array([[i, *sorted(others, key=lambda j: (-cosines[i, j], j))] for i, *others in rows], np.int32)
    return indices, np.take_along_axis(cosines, indices.astype(int), 1).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 60), st.integers(2, 12), st.integers(1, 8), st.integers(1, 3), st.integers(0, 10**6))
def test_a_pass_lists_the_best_of_the_list_and_of_the_neighbors_of_neighbors(n, k, nearest, threads, seed):
    rng = np.random.default_rng(seed)
    # cosines are multiples of a quarter, exact in float32: ties are many, and their order can be seen
    features = rng.choice([-0.5, 0.5], (n, 4)).astype(np.float32)
    k = min(k, n)
    indices, similarities = lists_of(features, k, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbor_descent, "TASK_ROWS", 7)
        better = descend(
            features, indices, similarities, rng.permutation(n), nearest=nearest, work=Work(threads=threads)
        )
    cosines, wanted = features.astype(float) @ features.astype(float).T, []
    for i in range(n):
        near = indices[i, 1 : nearest + 1]
        offered = set(indices[i]) | set(indices[near, 1 : nearest + 1].ravel())
        others = sorted(offered - {i}, key=lambda j: (-cosines[i, j], j))
        wanted.append([i, *others[: k - 1]])
    expected = sorted_lists(wanted, cosines)
    np.testing.assert_array_equal(better[0], expected[0])
    np.testing.assert_array_equal(better[1], expected[1])


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 24))[rng.integers(0, 30, 3000)] + 0.4 * rng.normal(size=(3000, 24))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_lists_depend_neither_on_the_threads_nor_on_the_order_of_the_rows(features):
    indices, similarities = lists_of(features, 10, np.random.default_rng(1))
    first = descend(features, indices, similarities, np.arange(3000), work=Work(threads=1))
    assert (first[0] != indices).any()
    for threads in (2, 5):
        order = np.random.default_rng(threads).permutation(3000)
        again = descend(features, indices, similarities, order, work=Work(threads=threads))
        np.testing.assert_array_equal(again[0], first[0])
        np.testing.assert_array_equal(again[1], first[1])


def test_cosines_are_those_of_the_rows_and_stay_within_one(features):
    features[1::2] = features[::2]  # the cosine of two equal rows may round to more than 1
    indices, similarities = lists_of(features, 10, np.random.default_rng(1))
    indices, similarities = descend(features, indices, similarities.clip(-1, 1), np.arange(3000))
    pairs = np.einsum("nd,nkd->nk", features.astype(float), features.astype(float)[indices])
    np.testing.assert_allclose(similarities, pairs, atol=1e-6)
    assert similarities.max() <= 1.0


def test_a_stop_ends_a_pass(features, monkeypatch):
    indices, similarities = lists_of(features, 10, np.random.default_rng(1))
    monkeypatch.setattr(neighbor_descent, "TASK_ROWS", 100)
    done, stopped = [], threading.Event()
    real = neighbor_descent.in_threads

    def counted(task, count, **options):
        def until_stopped(number):
            done.append(number)
            assert number == 0 or stopped.wait(120)
            task(number)

        return real(until_stopped, count, **options)

    def poll():
        stopped.set()
        raise Stopped("stopped")

    monkeypatch.setattr(neighbor_descent, "in_threads", counted)
    with pytest.raises(Stopped):
        descend(features, indices, similarities, np.arange(3000), work=Work(poll, threads=1))
    assert len(done) < 30
