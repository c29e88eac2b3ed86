"""The task that swaps members of a block for others of it, against what the other blocks hold.

`datamask.learning.eager_swaps` wants one square set of lists. Here rows that list a block's rows are in other blocks
too, and what covers them outside is one number. That number becomes an entry of their list, of a row that stands for
all members elsewhere, which is a member and stays one. So a swap is judged by all that it changes, in this block and in
others; what is left out against swaps in memory is that no member is swapped for a row of another block.
"""

from __future__ import annotations

import numpy as np

from datamask.out_of_core.rounds import BlockAgainstOthers, lists_in
from datamask.out_of_core.tasks import Argument, Made, task

FEWEST_SWAPS = 1 / 500
"""Swaps end after a pass over all rows that swapped a smaller share of the members."""


@task
def swap(argument: Argument) -> Made:
    """The members of a block after swaps that help, as many as before."""
    from datamask.learning.eager_swaps import EagerSwaps, Limits
    from datamask.learning.lists import Lists

    own = BlockAgainstOthers(argument)
    indices, similarities, first = lists_of_listers(own)
    n, rows = len(indices), own.high - own.low
    bonus, member = np.full(n, -np.inf), np.zeros(n, bool)
    inside = slice(first, first + rows)
    bonus[inside], member[inside] = own.bonus, own.member
    elsewhere = n - 2
    bonus[elsewhere], member[elsewhere] = 0.0, True
    # its own rows first, by the hash that decides ties
    visit = np.concatenate([first + np.argsort(own.order), np.arange(first), np.arange(first + rows, n)])
    limits = Limits.none(n)
    limits.pinned[elsewhere] = True
    fewest = max(1, FEWEST_SWAPS * own.member.sum())
    search = EagerSwaps(Lists(indices, similarities), bonus, member, visit, limits, fewest)
    while not search.finished:
        search.advance()
    return own.made(np.flatnonzero(member[inside]))


def lists_of_listers(own: BlockAgainstOthers) -> tuple[np.ndarray, np.ndarray, int]:
    """Lists, falling, of the rows that list rows of a block, as far as they name these, with an entry for the nearest
    member elsewhere.

    Returns:
        Indices int32 and similarities float32, ``(m + 2, K)``, and which of the m rows is the block's first: its rows
        are those from there on. Of the last two rows, one stands for all members elsewhere, one for nobody.
    """
    from datamask.out_of_core import list_kernels

    offsets, listing, near = lists_in(own.reverse)
    m, first = len(own.best), int(own.reverse["lister_starts"][own.number])
    indices = np.full((m + 2, int(np.bincount(listing, minlength=m).max(initial=0)) + 1), m + 1, np.int32)
    similarities = np.zeros(indices.shape, np.float32)
    list_kernels.lists_with_elsewhere(offsets, listing, near, own.best, first, indices, similarities)
    return indices, similarities, first
