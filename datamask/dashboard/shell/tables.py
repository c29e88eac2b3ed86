"""How tall a table is, so that no row is cut in two."""

from __future__ import annotations

ROW = 33
"""Pixels of a row and of the header, in this theme's font size."""


def height(rows: int, most: int) -> int:
    """Pixels for the header and so many rows, at most `most` of them before the table scrolls."""
    return ROW * (1 + max(1, min(rows, most))) + 2
