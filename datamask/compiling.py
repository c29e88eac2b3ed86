"""Inner loops compiled by numba, wherever datamask is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call, without the interpreter lock, so that pages answer while it works.

    What was compiled is kept on disk for the next process; where there is no folder to keep it in (a read-only
    installation of a user without a home), every process compiles anew.
    """
    import numba

    dispatcher: Callable[P, R]  # numba does not say so, but what it makes is called as the function is
    try:
        dispatcher = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # "no locator available": numba may write nowhere
        dispatcher = numba.njit(nogil=True)(function)
    return dispatcher
