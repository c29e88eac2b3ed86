"""Inner loops compiled by numba, wherever datamask is installed."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call, without the interpreter lock, so that pages answer while it works.

    What was compiled is kept on disk for the next process; where there is no folder to keep it in (a read-only
    installation of a user without a home), every process compiles anew.
    """
    return _compiled(function)


def compiled_sum(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a sum of floats whose terms may be added in any order, which takes a tenth of the time of `compiled`.

    The order is the same at every call, and for all threads.
    """
    return _compiled(function, fastmath={"reassoc", "contract"})


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    import numba

    dispatcher: Callable[P, R]  # numba does not say so, but what it makes is called as the function is
    try:
        dispatcher = numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # "no locator available": numba may write nowhere
        dispatcher = numba.njit(nogil=True, **options)(function)
    return dispatcher


@contextlib.contextmanager
def keeping_compiled() -> Iterator[None]:
    """Within it, what another library has numba compile is kept on disk too, where that can be.

    For a process of one's own: meanwhile every thread of this one gets numba's decorator from here.
    """
    import numba

    plain = numba.njit

    def njit(*arguments: Any, **options: Any) -> Any:
        def decorated(function: Callable[P, R]) -> Callable[P, R]:
            given = arguments[1:] if bare else arguments
            kept: Callable[P, R]
            try:
                kept = plain(*given, **{"cache": True, **options})(function)
            except RuntimeError:  # as in `compiled`
                kept = plain(*given, **options)(function)
            return kept

        bare = bool(arguments) and inspect.isfunction(arguments[0])
        return decorated(arguments[0]) if bare else decorated

    numba.njit = njit
    try:
        yield
    finally:
        numba.njit = plain
