"""Winner trees against a look at all rows."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.learning import winner_tree


def cheapest(keys: np.ndarray, group: np.ndarray, g: int, order: np.ndarray) -> int:
    """The first row, in this order, of the group with its smallest finite key; -1: none."""
    rows = order[(group[order] == g) & (keys[order] < np.inf)]
    return int(rows[np.argmin(keys[rows])]) if len(rows) else -1


@pytest.mark.parametrize("n, groups", [(1, 1), (2, 1), (64, 1), (65, 1), (3, 1), (50, 3), (200, 40), (33, 7)])
def test_the_winner_is_the_first_of_the_smallest_after_every_change(n, groups):
    rng = np.random.default_rng(n)
    group = rng.integers(0, max(1, groups - 1), n)  # the last group of several is empty
    keys = rng.integers(0, 5, n).astype(float)  # many are equal
    keys[rng.random(n) < 0.3] = np.inf
    order = rng.permutation(n)
    tree, leaf, row, root = winner_tree.plant(group, groups, order)
    tree[leaf] = keys
    winner_tree.settle(tree, root)
    for _ in range(300):
        winners = [winner_tree.winner(tree, row, root, g) for g in range(groups)]
        assert winners == [cheapest(keys, group, g, order) for g in range(groups)]
        j = rng.integers(n)
        keys[j] = rng.choice([np.inf, float(rng.integers(0, 5))])
        winner_tree.change(tree, leaf, root[group[j]], j, keys[j])


def test_a_key_that_is_no_number_never_wins():
    tree, leaf, row, root = winner_tree.plant(np.zeros(3, dtype=np.int64), 1, np.arange(3))
    for j, key in enumerate([np.nan, 2.0, np.nan]):
        winner_tree.change(tree, leaf, root[0], j, key)
    assert winner_tree.winner(tree, row, root, 0) == 1
    winner_tree.change(tree, leaf, root[0], 1, np.nan)
    assert winner_tree.winner(tree, row, root, 0) == -1
