"""Rows in groups that are counted again for every selection along lambda. Pure numpy."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tally:
    """Rows in groups.

    Attributes:
        name: by which the browser finds its counts.
        codes: int ``(N,)``, the group of each row; -1: none. size: how many groups there are.
        shown: bool ``(N,)``, the rows that are counted; None: all.
    """

    name: str
    codes: np.ndarray
    size: int
    shown: np.ndarray | None = None

    @property
    def key(self) -> str:
        """Tells it from others on the same corpus."""
        shown = b"" if self.shown is None else np.packbits(self.shown).tobytes()
        return f"{self.name} {self.size} {hashlib.blake2b(shown, digest_size=8).hexdigest()}"

    def count(self, selected: np.ndarray | None = None) -> np.ndarray:
        """Rows in each group, int64 ``(size,)``; of those counted, or of those of them in a bool ``(N,)`` mask."""
        masks = [mask for mask in (selected, self.shown) if mask is not None]
        codes = self.codes if not masks else self.codes[np.logical_and.reduce(masks)]
        # one group more, for rows in none
        return np.bincount(codes + 1, minlength=self.size + 1)[1:]
