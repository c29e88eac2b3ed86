"""Comparing rows with the rows of the cells that they look into, for `datamask.corpus.partition_search`.

A pair is compared where either of the two looks into the other's cell, and offered to the lists of both, to each once.
A search has the lists of all rows, with a lock for each part of them, or those of one part alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from datamask.corpus.exact_search import Base, nearest
from datamask.corpus.rounded_rows import slack, widened
from datamask.polling import Poll, no_poll

PIECE = 1024
"""Rows and columns multiplied at once."""


@dataclass(frozen=True)
class Visits:
    """Which rows of a group look into which cells.

    Attributes:
        visited: int64 ``(V,)``, the cells that any of them looks into, rising.
        offsets: int64 ``(V + 1,)``, where in `visitors` those of each cell begin: int32, rows of the group, rising.
    """

    visited: np.ndarray
    offsets: np.ndarray
    visitors: np.ndarray

    @classmethod
    def of_probed(cls, probed: np.ndarray) -> Visits:
        """Visits by row, int32 ``(n, m)``, to visits by cell."""
        flat = probed.reshape(-1)
        order = np.argsort(flat, kind="stable")
        counts = np.bincount(flat)
        visited = np.flatnonzero(counts)
        offsets = np.concatenate([[0], np.cumsum(counts[visited])])
        return cls(visited, offsets, (order // probed.shape[1]).astype(np.int32))

    def within(self, low: int, high: int) -> Iterator[tuple[int, np.ndarray]]:
        """Cells from `low` to before `high` that are looked into, each with the rows that do."""
        for at in range(*np.searchsorted(self.visited, [low, high])):
            yield int(self.visited[at]), self.visitors[self.offsets[at] : self.offsets[at + 1]]


@dataclass(frozen=True)
class PairSearch:
    """Compares rows by position, and lists the best for those from `first` on.

    Attributes:
        rows: int16 ``(N, d)``, rounded. ties: uint64 ``(N,)``. starts: int64 ``(C + 1,)``, where cells begin.
        first: the first row with a list here. probed: int32 ``(n, m)``, the rising cells that these rows look into.
        similarities, indices: float32 and int32 ``(n, k)``, their lists, as heaps.
    """

    rows: Base
    ties: np.ndarray
    starts: np.ndarray
    first: int
    probed: np.ndarray
    similarities: np.ndarray
    indices: np.ndarray

    def compare(
        self,
        guests: np.ndarray,
        cell: int,
        *,
        to_guests: AbstractContextManager[object] | None,
        to_hosts: AbstractContextManager[object] | None,
    ) -> None:
        """Compare rows that look into a cell with the rows of that cell.

        Args:
            guests: int32, positions, rising.
            to_guests: held while the guests are offered the hosts; None: they are not. to_hosts: the reverse.
        """
        from datamask.corpus import kernels

        low, high = int(self.starts[cell]), int(self.starts[cell + 1])
        guest_cells = (np.searchsorted(self.starts, guests, side="right") - 1).astype(np.int32)
        for right in range(low, high if len(guests) else low, PIECE):
            names = np.arange(right, min(right + PIECE, high), dtype=np.int32)
            hosts = np.asarray(self.rows[right : right + len(names)])
            hosts_wide, host_inverses = widened(hosts)
            heaps = self.ties, slack(hosts.shape[1]), self.similarities, self.indices
            for left in range(0, len(guests), PIECE):
                some = guests[left : left + PIECE]
                rows = self.rows[some]
                wide, inverses = widened(rows)
                pair = np.dot(wide, hosts_wide.T), rows, inverses, hosts, host_inverses, some, names
                if to_guests is not None:
                    with to_guests:
                        kernels.offer_rows(*pair, some - self.first, *heaps)
                if to_hosts is not None:
                    of_guests = guest_cells[left : left + PIECE]
                    with to_hosts:
                        kernels.offer_columns(*pair, names - self.first, of_guests, self.probed, *heaps)

    def fill_up(self, among: Base, threads: int | None = None, poll: Poll = no_poll) -> None:
        """Give rows that were compared with too few others their true neighbours."""
        incomplete = np.flatnonzero(np.isneginf(self.similarities).any(axis=1))
        if len(incomplete):
            names = self.first + incomplete
            self.indices[incomplete], self.similarities[incomplete] = nearest(
                self.rows[names],
                among,
                self.indices.shape[1],
                self.ties,
                names=names,
                threads=threads,
                poll=poll,
            )
