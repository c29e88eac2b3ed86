"""Inner loops compiled by numba, wherever datamask is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile at the first call, without the interpreter lock, so that pages answer while it works.

    What was compiled is kept on disk for the next process; where there is no folder to keep it in (a read-only
    installation of a user without a home), every process compiles anew.
    """
    import numba

    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # "no locator available": numba may write nowhere
        return numba.njit(nogil=True)(function)
