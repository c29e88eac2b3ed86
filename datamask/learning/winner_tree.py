"""The smallest key of each group, kept up to date change by change: a winner tree (tournament tree) for each, compiled.

A swap changes the loss of some hundred members. Looking for the cheapest among all rows after each swap takes longer
than the swap itself from some thousands of rows on; here a change costs a path to the root, at most log2 of the group.
"""

from __future__ import annotations

import numpy as np

from datamask.compiling import compiled


@compiled
def plant(group: np.ndarray, groups: int, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Empty trees over the rows of each group.

    Args:
        group: int ``(n,)``, values below `groups`. order: int ``(n,)``, the rows in the order of their leaves.

    Returns:
        tree: float64 ``(2 n,)``, all `inf`; a group's tree is a heap-ordered stretch of it.
        leaf: int32 ``(n,)``, where a row's key stands. row: int32 ``(n,)``, the rows of the leaves.
        root: int64 ``(C + 1,)``, where a group's stretch begins; its root is one behind, as heaps are counted from 1.
        The stretch of an empty group has length 0.
    """
    n = len(group)
    counts = np.zeros(groups, dtype=np.int64)
    for j in range(n):
        counts[group[j]] += 1
    root, deep = np.zeros(groups + 1, dtype=np.int64), np.ones(groups, dtype=np.int64)
    for g in range(groups):
        root[g + 1] = root[g] + 2 * counts[g]
        while deep[g] < counts[g]:
            deep[g] *= 2
    leaf, row = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    seen = np.zeros(groups, dtype=np.int64)
    for j in order:
        g = group[j]
        # from left to right, the leaves of the deepest level come first
        node = deep[g] + seen[g]
        if node >= 2 * counts[g]:
            node -= counts[g]
        leaf[j] = root[g] + node
        row[root[g] // 2 + node - counts[g]] = j
        seen[g] += 1
    return np.full(2 * n, np.inf), leaf, row, root


@compiled
def settle(tree: np.ndarray, root: np.ndarray) -> None:
    """Let all leaves play: for keys that were written to `tree` at their leaves, all of them numbers."""
    for g in range(len(root) - 1):
        base = root[g]
        for node in range((root[g + 1] - base) // 2 - 1, 0, -1):
            tree[base + node] = min(tree[base + 2 * node], tree[base + 2 * node + 1])


@compiled
def change(tree: np.ndarray, leaf: np.ndarray, base: int | np.int64, j: int | np.int64, key: float) -> None:
    """Give row j another key. base: ``root`` of its group. A key that is no number never wins."""
    tree[leaf[j]] = np.inf if np.isnan(key) else key
    node = (leaf[j] - base) // 2
    while node >= 1:
        smaller = min(tree[base + 2 * node], tree[base + 2 * node + 1])
        if tree[base + node] == smaller:
            return
        tree[base + node] = smaller
        node //= 2


@compiled
def winner(tree: np.ndarray, row: np.ndarray, root: np.ndarray, g: int) -> int:
    """The row of the group with the smallest key, of equal ones the first leaf's; -1: all are `inf`."""
    base, leaves = root[g], (root[g + 1] - root[g]) // 2
    if leaves == 0 or tree[base + 1] == np.inf:
        return -1
    node = 1
    while node < leaves:
        node = 2 * node if tree[base + 2 * node] == tree[base + node] else 2 * node + 1
    return int(row[base // 2 + node - leaves])
