"""Facility location solved block by block: each block alone, one price for all, then rounds against the others.

A corpus that is larger than memory is cut into blocks of rows. In the first round a block knows itself alone: lazy
greedy on its own rows, whose gains fall, so that the S largest gains over all blocks are one price for all of them, and
exactly S members. In every later round a block drops its members and is solved again against what all *other* blocks
hold, as many members as before. Blocks of one colour are solved side by side: each sees the others as they were before
the colour's turn, so the answer depends on no order and on no number of workers.

With blocks of neighbouring k-means cells (`cell_blocks`) three rounds end above lazy greedy over all rows; random
blocks, as in the paper, do not get there.

A block needs of the others one number for each row that lists one of its candidates: how well members outside cover it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from datamask.compiling import compiled
from datamask.learning.medoids import greedy, picked_gains, reverse_lists
from datamask.polling import Poll, no_poll


@dataclass(frozen=True)
class Block:
    """The candidates of one block, and the rows that list them.

    Attributes:
        candidates: int64 ``(c,)``, its rows in the corpus, rising.
        rows: int64 ``(m,)``, all rows of the corpus that list a candidate, rising; own: bool ``(m,)``, its own ones.
        offsets, listing, near: candidate -> places in `rows`, and similarities, as from `medoids.reverse_lists`.
    """

    candidates: np.ndarray
    rows: np.ndarray
    own: np.ndarray
    offsets: np.ndarray
    listing: np.ndarray
    near: np.ndarray

    @classmethod
    def cut(cls, reverse: tuple[np.ndarray, np.ndarray, np.ndarray], block: np.ndarray, number: int) -> Block:
        """Block `number` of ``block``, int64 ``(n,)``, out of the reverse lists of all rows."""
        offsets, rows, near = reverse
        candidates = np.flatnonzero(block == number)
        counts = offsets[candidates + 1] - offsets[candidates]
        entries = np.repeat(offsets[candidates] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        listed = rows[entries]
        of_block, listing = np.unique(listed, return_inverse=True)
        return cls(
            candidates,
            of_block.astype(np.int64),
            block[of_block] == number,
            np.concatenate([[0], np.cumsum(counts)]),
            listing.astype(np.int32),
            near[entries],
        )

    def solve(
        self, best: np.ndarray, bonus: np.ndarray, order: np.ndarray, size: int, poll: Poll = no_poll
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lazy greedy on the block's candidates.

        Args:
            best: float64 ``(m,)``, how well others cover `rows` already. bonus: float64 ``(n,)``, what a member adds by
                itself; ``-inf`` bars it. order: int64 ``(n,)``, smaller goes first among equal gains.
            size: members, at most.

        Returns:
            Rows of the corpus in the order of picking, int64, and their gains, float64, which never rise.
        """
        own_bonus = bonus[self.candidates]
        lists = self.offsets, self.listing, self.near
        size = min(size, int((own_bonus != -np.inf).sum()))
        picks = greedy(*lists, own_bonus, size, order[self.candidates], poll, best=best.copy())
        return self.candidates[picks], picked_gains(*lists, own_bonus, best.copy(), picks)


class BlockGreedy:
    """Maximise ``sum over v of best_v + sum over members of bonus`` over subsets of S, block by block.

    Args:
        indices, similarities: lists ``(n, K)``, falling, itself first.
        block: int64 ``(n,)``, 0 to B - 1. bonus: float64 ``(n,)``; ``-inf`` bars a row.
        size: S, at most the rows that are not barred. order: int64 ``(n,)``, a permutation that decides ties.
    """

    def __init__(
        self,
        indices: np.ndarray,
        similarities: np.ndarray,
        block: np.ndarray,
        bonus: np.ndarray,
        size: int,
        order: np.ndarray,
    ) -> None:
        self._indices = np.ascontiguousarray(indices, dtype=np.int32)
        self._similarities = np.ascontiguousarray(similarities, dtype=np.float32)
        self._block, self._bonus, self._size, self._order = block, bonus, size, order
        reverse = reverse_lists(self._indices, self._similarities)
        self._blocks = [Block.cut(reverse, block, number) for number in range(int(block.max()) + 1)]

    def alone(self, poll: Poll = no_poll) -> np.ndarray:
        """The first round, bool ``(n,)``: every block knows of its own rows alone; the S largest gains are taken."""
        return merged([self._alone(part, self._size, poll) for part in self._blocks], self._size, self._order)

    def in_equal_shares(self, poll: Poll = no_poll) -> np.ndarray:
        """The paper's way: every block alone, and of each block the same share of its rows, bool ``(n,)``."""
        free = np.array([(self._bonus[part.candidates] != -np.inf).sum() for part in self._blocks])
        upto = np.floor(np.cumsum(free) / free.sum() * self._size + 0.5).astype(np.int64)
        member = np.zeros(len(self._block), dtype=bool)
        for part, size in zip(self._blocks, np.diff(upto, prepend=0), strict=True):
            member[self._alone(part, int(size), poll)[0]] = True
        return member

    def again(self, member: np.ndarray, colour: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
        """A later round, bool ``(n,)``: each block anew against what the others hold, as many members as before.

        Args:
            member: bool ``(n,)``, the selection before. colour: int64 ``(B,)``; colours take turns by their number.
        """
        for turn in np.unique(colour):
            fresh = member.copy()
            for number in np.flatnonzero(colour == turn):
                poll()
                part = self._blocks[number]
                best = covered_outside(self._indices, self._similarities, part.rows, member, self._block, int(number))
                picks, _ = part.solve(best, self._bonus, self._order, int(member[part.candidates].sum()), poll)
                fresh[part.candidates] = False
                fresh[picks] = True
            member = fresh
        return member

    def _alone(self, part: Block, size: int, poll: Poll) -> tuple[np.ndarray, np.ndarray]:
        # rows of other blocks count as covered, whatever lists them
        return part.solve(np.where(part.own, 0.0, np.inf), self._bonus, self._order, size, poll)


def merged(solved: Sequence[tuple[np.ndarray, np.ndarray]], size: int, order: np.ndarray) -> np.ndarray:
    """The S picks with the largest gains over all blocks, bool ``(n,)``: greedy on a sum of independent functions."""
    picks = np.concatenate([block_picks for block_picks, _ in solved])
    gains = np.concatenate([block_gains for _, block_gains in solved])
    member = np.zeros(len(order), dtype=bool)
    member[picks[np.lexsort((order[picks], -gains))[:size]]] = True
    return member


@compiled
def covered_outside(
    indices: np.ndarray,
    similarities: np.ndarray,
    rows: np.ndarray,
    member: np.ndarray,
    block: np.ndarray,
    number: int,
) -> np.ndarray:
    """Similarity of each of the rows to its nearest listed member outside a block, float64 ``(m,)``; 0 without one."""
    best = np.zeros(len(rows))
    for r in range(len(rows)):
        v = rows[r]
        for c in range(indices.shape[1]):
            i = indices[v, c]
            if member[i] and block[i] != number:
                best[r] = max(0.0, float(similarities[v, c]))
                break
    return best
