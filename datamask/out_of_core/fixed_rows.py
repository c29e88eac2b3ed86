"""Rows that every selection has, and rows that none has: the rules that a solution by passes obeys."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from datamask.errors import InputError


@dataclass(frozen=True)
class FixedRows:
    """Rows of a scratch, int64, rising.

    Attributes:
        pinned: every selection has them; those that one has already too, which are counted in its size.
        banned: no selection has them.
    """

    pinned: np.ndarray
    banned: np.ndarray

    @classmethod
    def none(cls) -> FixedRows:
        """All rows are free."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    def __bool__(self) -> bool:
        return bool(len(self.pinned) or len(self.banned))

    def free(self, rows: int) -> np.ndarray:
        """Which of so many rows may be in or out, bool ``(N,)``."""
        free = np.ones(rows, bool)
        free[self.pinned] = free[self.banned] = False
        return free

    def check(self, rows: int, size: int) -> None:
        """Refuse rules that leave nothing to choose.

        Raises:
            InputError: a row is pinned and banned, or the free rows are no more than those still to be chosen, or none
                is to be.
        """
        both = np.intersect1d(self.pinned, self.banned)
        if len(both):
            raise InputError(f"{len(both):,} rows must be selected and must not be; take them from one of the lists")
        left, chosen = rows - len(self.pinned) - len(self.banned), size - len(self.pinned)
        if not 0 < chosen < left:
            raise InputError(
                f"{len(self.pinned):,} rows must be in and {len(self.banned):,} must not be, which leaves {left:,} of "
                f"{rows:,} to choose {max(chosen, 0):,} from; pin or ban fewer, or choose another --select_ratio"
            )

    @property
    def digest(self) -> str:
        """Of the rules."""
        digest = hashlib.blake2b(digest_size=12)
        for rows in (self.pinned, self.banned):
            digest.update(np.ascontiguousarray(rows, "<i8").tobytes() + b"|")
        return digest.hexdigest()
