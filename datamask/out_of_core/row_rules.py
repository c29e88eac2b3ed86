"""What restricts a selection by passes: pins, bans and given rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RowRules:
    """Rules over the rows of a scratch.

    Attributes:
        pinned, banned, given: bool ``(N,)``, rows that must be in, must not be, and that one already has.
    """

    pinned: np.ndarray
    banned: np.ndarray
    given: np.ndarray

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
        digest = hashlib.blake2b(digest_size=12)
        for each in (self.pinned, self.banned, self.given):
            digest.update(np.ascontiguousarray(each).data)
        return digest.hexdigest()
