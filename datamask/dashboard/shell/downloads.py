"""What a download button is given: small files at once, large ones when they are asked for.

A file that Streamlit makes on the press has an address of its own at every press, and is gone when the page is drawn
anew before the browser has fetched it, as it is when work in the background ends. A file that is there beforehand is
named by its content, so drawing anew changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Content = bytes | Callable[[], bytes]
"""A file, or what makes it."""

ROWS = 10_000
"""A list of ids of so many rows is written in some hundredths of a second."""


BYTES = 8_000_000
"""A file of so many bytes is read in some hundredths of a second."""


def of_rows(count: int, make: Callable[[], bytes]) -> Content:
    """The file of a list of rows, or what makes it.

    Args:
        count: how many rows the list has.
    """
    return make() if count <= ROWS else make


def of_file(path: Path) -> Content:
    """What a file holds, or what reads it."""
    return path.read_bytes() if path.stat().st_size <= BYTES else path.read_bytes
