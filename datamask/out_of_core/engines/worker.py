"""A worker process of the local engine: ``python -m datamask.out_of_core.engines.worker``.

Reads calls on stdin, one a line, and writes a reply on stdout for each. It ends when its stdin closes, which is when
the engine lets it go or the process that started it has died, however that died.
"""

from __future__ import annotations

import os
import queue
import threading
from typing import NoReturn

from datamask.out_of_core.engines.replies import reply_to

NICE = 5
"""Workers take all cores: a server that started them goes first, and so does whatever else is asked of the machine."""


def _hear(calls: queue.SimpleQueue[str]) -> None:
    # the bare descriptor: a thread inside a buffered read makes the interpreter abort when it ends
    rest = b""
    while piece := os.read(0, 1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            calls.put(line.decode())
    os._exit(0)


def main() -> NoReturn:
    """Do one call after another, until stdin closes."""
    os.nice(NICE)
    calls: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_hear, args=(calls,), daemon=True).start()
    # what a task or one of its libraries prints must not be taken for a reply
    replies = os.dup(1)
    os.dup2(2, 1)
    while True:
        line = reply_to(calls.get()).encode() + b"\n"
        while line:
            line = line[os.write(replies, line) :]


if __name__ == "__main__":
    main()
