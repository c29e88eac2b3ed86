"""A pass of NN-descent against its definition, for any number of threads and any order of the rows."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.corpus import neighbor_descent
from datamask.corpus.neighbor_descent import descend
from datamask.corpus.rounded_rows import rounded
from datamask.errors import Stopped
from datamask.work.context import Work
from tests.reference.lists import cosines


def lists_of(features, k, rng, ties=None):
    """Sorted lists of k other rows, drawn at random."""
    n = len(features)
    drawn = [rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)]
    return sorted_lists(drawn, cosines(features), np.arange(n) if ties is None else ties)


def sorted_lists(rows, near, ties):
    """Each list by falling cosine, ties first."""
    ordered = [sorted(others, key=lambda j: (-near[i, j], ties[j])) for i, others in enumerate(rows)]
    indices = np.array(ordered, np.int32)
    return indices, np.take_along_axis(near, indices.astype(int), 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 60), st.integers(1, 11), st.integers(1, 8), st.integers(1, 3), st.integers(0, 10**6))
def test_a_pass_lists_the_best_of_the_list_and_of_the_neighbors_of_neighbors(n, k, nearest, threads, seed):
    rng = np.random.default_rng(seed)
    # few different cosines: ties are many, and their order can be seen
    features, ties = rng.choice([-0.5, 0.5], (n, 4)).astype(np.float32), rng.permutation(n).astype(np.uint64)
    k = min(k, n - 1)
    indices, similarities = lists_of(features, k, rng, ties)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbor_descent, "TASK_ROWS", 7)
        better = descend(rounded(features), indices, similarities, ties, nearest=nearest, work=Work(threads=threads))
    near, wanted = cosines(features), []
    for i in range(n):
        offered = set(indices[i]) | set(indices[indices[i, :nearest], :nearest].ravel())
        wanted.append(sorted(offered - {i}, key=lambda j: (-near[i, j], ties[j]))[:k])
    expected = sorted_lists(wanted, near, ties)
    np.testing.assert_array_equal(better[0], expected[0])
    np.testing.assert_array_equal(better[1], expected[1])


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 24))[rng.integers(0, 30, 3000)] + 0.4 * rng.normal(size=(3000, 24))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_lists_depend_neither_on_the_threads_nor_on_the_order_of_the_rows(features):
    indices, similarities = lists_of(features, 10, np.random.default_rng(1))
    rows, ties = rounded(features), np.arange(3000, dtype=np.uint64)
    first = descend(rows, indices, similarities, ties, work=Work(threads=1))
    assert (first[0] != indices).any()
    for threads in (2, 5):
        order = np.random.default_rng(threads).permutation(3000)
        place = np.argsort(order).astype(np.int32)
        moved = rows[order], place[indices[order]], similarities[order], ties[order]
        again = descend(*moved, work=Work(threads=threads))
        np.testing.assert_array_equal(order[again[0][place]], first[0])
        np.testing.assert_array_equal(again[1][place], first[1])


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
        descend(rounded(features), indices, similarities, np.arange(3000).astype(np.uint64), work=Work(poll, threads=1))
    assert len(done) < 30
