"""Imports by several threads at once, past a race in Python's own import.

Python 3.11 to 3.13 take a module that has just been executed out of ``sys.modules`` and put it back in the next
instruction. A thread that imports a submodule of it in between, as a page does beside a job that loads scipy, gets
``KeyError: 'scipy'``; and a submodule that was loaded already never becomes an attribute of its package.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
import time
import types
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

ATTEMPTS = 5
BACK_SECONDS = 1.0
"""How long a package may be away before it counts as gone: it is one instruction of a thread that may have to wait."""

_IMPORTERS = ("<frozen importlib._bootstrap>", importlib.__file__)
_LOADING = "_find_and_load_unlocked"


def guard() -> None:
    """From now on an import statement that loses this race is made again; calling it twice changes nothing.

    So is `importlib.import_module`, unless a module took it over by name before, and no import in C is. For programs
    whose threads import, which are those with a server: an import statement costs a call more.
    """
    if not hasattr(builtins.__import__, "__wrapped__"):
        builtins.__import__ = _made_again(builtins.__import__)
        importlib.import_module = _made_again(importlib.import_module)


def _made_again(load: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(load)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(ATTEMPTS):
            try:
                return load(*args, **kwargs)
            except KeyError as error:
                frame = _lost_in(error)
                if frame is None:
                    raise
                _mend(frame.f_locals)
        return load(*args, **kwargs)

    return guarded


def _lost_in(error: KeyError) -> types.FrameType | None:
    """Where the import itself failed for want of a package; None: a module that was executed has failed."""
    step = error.__traceback__
    assert step is not None, "a caught error has its traceback"
    while step.tb_next is not None:
        step = step.tb_next
        if step.tb_frame.f_code.co_filename not in _IMPORTERS:
            return None
    frame = step.tb_frame
    return frame if frame.f_code.co_name == _LOADING and error.args == (frame.f_locals.get("parent"),) else None


def _mend(importing: dict[str, str]) -> None:
    """Wait until the package is back, and give it the submodule that was loaded meanwhile; without it that one goes."""
    name, package = importing["name"], importing["parent"]
    deadline = time.monotonic() + BACK_SECONDS
    while package not in sys.modules and time.monotonic() < deadline:
        time.sleep(0.001)
    parent, child = sys.modules.get(package), name.rpartition(".")[2]
    if parent is None:
        sys.modules.pop(name, None)
    elif name in sys.modules and not hasattr(parent, child):
        setattr(parent, child, sys.modules[name])
