"""Background threads that end before the interpreter does.

A thread that is inside a library's C++ code while Python ends is thrown out of it by force, which C++ answers by ending
the whole process: "terminate called without an active exception", and a core dump. So whoever computes in the
background starts its thread here. When the process ends, every such thread is asked to stop and waited for.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
import types
from collections.abc import Callable

ANCHOR = "_datamask_background"
GOODBYE_SECONDS = 9.0
"""How long a process that ends waits for its threads. Whatever can be stopped ends within one; containers give ten."""

ASKED_EVERY = 0.2


def start(work: Callable[..., None], *args: object, name: str, stop: Callable[[], object] | None = None
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
    deadline = time.monotonic() + seconds
    while (there := _alive()) and time.monotonic() < deadline:
        for stop in filter(None, (stop for _, stop in there)):
            stop()
        there[0][0].join(ASKED_EVERY)
    return not there


def _alive() -> list[tuple[threading.Thread, Callable[[], object] | None]]:
    holder = _holder()
    with holder.lock:
        return [(thread, stop) for thread, stop in holder.threads if thread.is_alive()]


def _holder() -> types.ModuleType:
    found = sys.modules.get(ANCHOR)
    if found is None:
        fresh = types.ModuleType(ANCHOR, "Holds datamask's background threads where no reload reaches them.")
        fresh.lock, fresh.threads = threading.Lock(), []
        found = sys.modules.setdefault(ANCHOR, fresh)
        if found is fresh:
            atexit.register(goodbye)
    return found
