"""What restricts a selection from all rows of a corpus: pins, bans, given rows, quotas, a token budget."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RowRules:
    """Rules over the rows of a scratch.

    Attributes:
        pinned, banned, given: bool ``(N,)``, rows that must be in, must not be, and that one already has.
        group: int32 ``(N,)``, the quota group of a row; low, high: ``(C,)``, members per group, or its tokens under a
            budget, given rows among them; names: of the groups. See `datamask.quotas`.
        budget: tokens of the selected rows, in the place of their number; lengths: float64 ``(N,)``, tokens of rows.
    """

    pinned: np.ndarray
    banned: np.ndarray
    given: np.ndarray
    group: np.ndarray
    low: np.ndarray
    high: np.ndarray
    names: tuple[str, ...]
    budget: float | None = None
    lengths: np.ndarray | None = None

    @property
    def always(self) -> np.ndarray:
        """Rows that count among the members of every selection, bool ``(N,)``: pinned and given ones."""
        always: np.ndarray = self.pinned | self.given
        return always

    @property
    def free(self) -> np.ndarray:
        """Rows that may be in or out, bool ``(N,)``."""
        free: np.ndarray = ~(self.always | self.banned)
        return free

    @property
    def digest(self) -> str:
        """Of all that a selection has to obey: by it what is kept of an earlier attempt is known."""
        digest = hashlib.blake2b(repr(self.budget).encode(), digest_size=12)
        for each in (self.pinned, self.banned, self.given, self.group, self.low, self.high, self.lengths):
            digest.update(b"" if each is None else np.ascontiguousarray(each).data)
        return digest.hexdigest()
