"""Centres of cells: plain k-means where they are few, and what groups of them may change where they are many."""

import threading
import time

import numpy as np
import pytest

from datamask.corpus import centres as module
from datamask.corpus.centres import Centres, cell_count, group_count
from datamask.corpus.rounded_rows import rounded
from datamask.corpus.sampling import hash_under
from datamask.errors import Stopped
from datamask.work.context import Work


def clustered(n, dim=16, families=40, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(families, dim))[rng.integers(0, families, n)] + 0.4 * rng.normal(size=(n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def nearest_points(rows, points):
    """All cells of each row, nearest first, by the cosine in float64."""
    return np.argsort(-cosines_of(rows, points), axis=1, kind="stable")


def cosines_of(rows, points):
    both = rows.astype(float) @ points.astype(float).T
    lengths = np.linalg.norm(rows.astype(float), axis=1)[:, None] * np.linalg.norm(points.astype(float), axis=1)
    return (both / lengths).astype(np.float32)


def plain_k_means(rows, ties, count):
    """Rounds over all rows, each compared with all centres, in float64, rounded as rows are."""
    points = rows[np.argsort(hash_under(ties, module.BEGUN_BY))[:count]]
    for _ in range(module.ROUNDS):
        owner = nearest_points(rows, points)[:, 0]
        moved = points.copy()
        for cell in set(owner):
            mean = np.rint(rows[owner == cell].mean(axis=0))
            moved[cell] = np.rint(mean * (32_767 / np.linalg.norm(mean)))
        points = moved
    return points


def test_few_centres_are_those_of_k_means_with_all_rows_compared_with_all():
    rows, ties = rounded(clustered(900)), np.random.default_rng(1).permutation(900).astype(np.uint64)
    centres = Centres.learn(rows.__getitem__, ties, 30)
    np.testing.assert_array_equal(centres.points, plain_k_means(rows, ties, 30))
    assert len(centres) == 30 and centres.starts.tolist() == [0, 30]
    np.testing.assert_array_equal(centres.nearest_cells(rows, 7), nearest_points(rows, centres.points)[:, :7])


@pytest.fixture
def grouped(monkeypatch):
    """Few centres are put into groups too."""
    monkeypatch.setattr(module, "NEAR", 25)
    monkeypatch.setattr(module, "CENTRES_AT_ONCE", 7)


def test_rows_are_compared_with_the_centres_of_the_nearest_groups(grouped):
    rows, ties = rounded(clustered(3000)), np.random.default_rng(1).permutation(3000).astype(np.uint64)
    centres = Centres.learn(rows.__getitem__, ties, 100)
    assert (len(centres), len(centres.middles), centres.starts[-1]) == (100, group_count(100), 100) == (100, 10, 100)
    # each centre is in the group of its nearest middle
    group = np.repeat(np.arange(10), np.diff(centres.starts))
    np.testing.assert_array_equal(group, nearest_points(centres.points, centres.middles)[:, 0])
    looked = centres._groups_compared()
    near, in_order = centres.nearest_cells(rows, 5), nearest_points(rows, centres.points)
    groups = nearest_points(rows, centres.middles)[:, :looked]
    for row in range(0, 3000, 7):
        among = [cell for cell in in_order[row] if group[cell] in groups[row]]
        assert near[row].tolist() == among[:5]
    assert (near[:, 0] == in_order[:, 0]).mean() > 0.9, "most of the time that is the nearest of all"


def test_groups_cost_little_of_what_k_means_is_for(grouped, monkeypatch):
    rows, ties = rounded(clustered(3000)), np.random.default_rng(1).permutation(3000).astype(np.uint64)

    def closeness() -> float:
        points = Centres.learn(rows.__getitem__, ties, 100).points
        return float(cosines_of(rows, points).max(axis=1).mean())

    by_groups = closeness()
    monkeypatch.setattr(module, "NEAR", 100)
    by_all, unmoved = closeness(), cosines_of(rows, rows[:100]).max(axis=1).mean()
    assert by_all - by_groups < 0.05 * (by_all - unmoved)


def test_as_many_cells_as_are_asked_for_are_given_and_the_nearest_does_not_depend_on_it(grouped, monkeypatch):
    """However many that is, and however uneven groups are: of 90 centres some 45 are equal, and in one group."""
    features = clustered(600)
    features[:300] = features[0]
    rows, ties = rounded(features), np.random.default_rng(1).permutation(600).astype(np.uint64)
    monkeypatch.setattr(module, "MOST_NEAREST", 30)
    centres = Centres.learn(rows.__getitem__, ties, 90)
    assert (np.diff(centres.starts) > 0).all() and np.diff(centres.starts).max() > 30
    for m in (1, 8, 30):
        near = centres.nearest_cells(rows, m)
        assert near.shape == (600, m) and near.max() < 90 and all(len(set(row)) == m for row in near.tolist())
        np.testing.assert_array_equal(near, centres.nearest_cells(rows, 30)[:, :m])


@pytest.mark.parametrize("threads", [1, 3])
def test_centres_depend_neither_on_threads_nor_on_where_rows_stand(grouped, monkeypatch, threads):
    rows, ties = rounded(clustered(2500)), np.random.default_rng(1).permutation(2500).astype(np.uint64)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", (100, 300))
    monkeypatch.setattr(module, "LEARNED_AT_ONCE", 1000)
    order = np.random.default_rng(2).permutation(2500)
    first = Centres.learn(rows.__getitem__, ties, 90)
    again = Centres.learn(rows[order].__getitem__, ties[order], 90, Work(threads=threads))
    for name, values in vars(first).items():
        if not name.startswith("_"):
            np.testing.assert_array_equal(getattr(again, name), values)
    np.testing.assert_array_equal(
        again.nearest_cells(rows[order], 6, Work(threads=threads)), first.nearest_cells(rows, 6)[order]
    )


def test_cells_are_as_many_as_the_root_of_the_rows_or_one_for_500_of_them():
    assert [cell_count(rows) for rows in (5, 100, 40_000, 250_000)] == [5, 16, 200, 500]
    assert [cell_count(rows) for rows in (10**6, 10**7, 10**8)] == [2000, 20_000, 65_536]


def test_learning_can_be_stopped():
    stop = threading.Event()
    rows, ties = rounded(clustered(60_000, 256)), np.arange(60_000, dtype=np.uint64)
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        Centres.learn(rows.__getitem__, ties, 900, Work.of(stop.is_set))
    assert time.monotonic() - began < 30
