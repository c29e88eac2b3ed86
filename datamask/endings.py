"""Background threads that end before the interpreter does, and imports that nobody has to wait for.

A thread that is inside a library's C++ code while Python ends is thrown out of it by force, which C++ answers by ending
the whole process: "terminate called without an active exception", and a core dump. So whoever computes in the
background starts its thread here. When the process ends, every such thread is asked to stop and waited for.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import NoReturn

from datamask.polling import Poll, no_poll
from datamask.process import held

GOODBYE_SECONDS = 9.0
"""How long a process that ends waits for its threads. Whatever can be stopped ends within one; containers give ten."""

ASKED_EVERY = 0.2
POLLED_EVERY = 0.1


def start(
    work: Callable[..., None], *args: object, name: str, stop: Callable[[], object] | None = None
) -> threading.Thread:
    """Call ``work(*args)`` in a thread of that name, which the end of the process waits for.

    Args:
        stop: asks the work to end soon; called from another thread, perhaps several times, and must not wait. None:
            the work is short, or ends by itself.
    """
    thread = threading.Thread(target=work, args=args, name=name, daemon=True)
    holder = _holder()
    with holder.lock:
        holder.threads = [(other, ask) for other, ask in holder.threads if other.is_alive()]
        # started under the lock: one that is not alive yet must not be taken for one that has ended
        thread.start()
        holder.threads.append((thread, stop))
    return thread


def goodbye(seconds: float = GOODBYE_SECONDS) -> bool:
    """Ask every thread of `start` to stop and wait for them together, so many seconds at most; true: all have ended."""
    holder, deadline = _holder(), time.monotonic() + seconds
    holder.ending = True
    while (there := _alive()) and time.monotonic() < deadline:
        for stop in filter(None, (stop for _, stop in there)):
            stop()
        there[0][0].join(ASKED_EVERY)
    holder.ending = False
    return not there


def under_way() -> bool:
    """Whether the process is about to end: threads are being asked to stop for that reason alone."""
    return bool(_holder().ending)


def load(module: str, poll: Poll = no_poll) -> types.ModuleType:
    """Import a module in a thread of its own, and wait for it unless told to stop.

    Loading torch on a cold machine takes ten seconds in which no Python code of the importing thread runs, so neither a
    signal nor a Stop would be heard. The import itself cannot be stopped: it goes on, and who asks next joins it.

    Raises:
        Stopped: from `poll` before the module was there.
        ImportError: whatever the import raised.
    """
    known = sys.modules.get(module)
    if known is not None and not getattr(known.__spec__, "_initializing", False):
        return known
    holder = _holder()
    with holder.lock:
        entry: _Import | None = holder.imports.get(module)
        if entry is None or not entry.thread.is_alive():
            entry = holder.imports[module] = _Import(module)
            entry.thread.start()
    while entry.thread.is_alive():
        entry.thread.join(POLLED_EVERY)
        if entry.thread.is_alive():
            poll()
    if entry.error is not None:
        raise entry.error
    assert entry.module is not None, "an import that has ended without an error gives its module"
    return entry.module


def forsake(thread: threading.Thread) -> None:
    """Nobody waits any longer for what this thread does inside of a library that cannot be stopped.

    A process that ends while it is still there leaves at once, where its code is known, and waits for it a while
    elsewhere: libraries that tidy up at the end would wait for their own calls.
    """
    holder = _holder()
    with holder.lock:
        holder.forsaken = [other for other in holder.forsaken if other.is_alive()] + [thread]
    # what was registered last is called first, and the library may have come since
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)


def leaving(code: int) -> int:
    """The process is about to end with this code, which is given back.

    An interpreter that ends while a thread imports can crash; knowing the code, the end of the process leaves without
    waiting for the import, or for a call that was forsaken.
    """
    _holder().code = code
    return code


class _Import:
    """One import under way, or done."""

    def __init__(self, name: str) -> None:
        self.module: types.ModuleType | None = None
        self.error: BaseException | None = None
        self._name = name
        self.thread = threading.Thread(target=self._work, name=f"import-{name}", daemon=True)

    def _work(self) -> None:
        try:
            self.module = importlib.import_module(self._name)
        # whatever it is, it belongs to whoever waits for the module
        except BaseException as error:
            self.error = error


def _at_exit() -> None:
    goodbye()
    holder = _holder()
    under_way = [entry.thread for entry in holder.imports.values() if entry.thread.is_alive()]
    under_way += [thread for thread in holder.forsaken if thread.is_alive()]
    if under_way and holder.code is not None:
        _exit(holder.code)
    deadline = time.monotonic() + GOODBYE_SECONDS
    for thread in under_way:
        thread.join(max(0.0, deadline - time.monotonic()))


def _exit(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


@atexit.register
def _past_the_libraries() -> None:
    # registered before everybody else, so called when all others have tidied up. What would follow is the end of the
    # interpreter and of the libraries' C++ threads, in which a short command that reads parquet aborts now and then
    holder = _holder()
    if holder.code is not None:
        _exit(holder.code)


def _alive() -> list[tuple[threading.Thread, Callable[[], object] | None]]:
    holder = _holder()
    with holder.lock:
        return [(thread, stop) for thread, stop in holder.threads if thread.is_alive()]


def _holder() -> types.SimpleNamespace:
    return held("background threads", _made)


def _made() -> types.SimpleNamespace:
    atexit.register(_at_exit)
    return types.SimpleNamespace(lock=threading.Lock(), threads=[], imports={}, forsaken=[], code=None, ending=False)
