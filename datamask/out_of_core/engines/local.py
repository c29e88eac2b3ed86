"""The local engine: worker processes of this machine.

Each is a fresh interpreter, started as a command: a fork would copy locks that other threads hold, and what
`multiprocessing` spawns imports the caller's main module, which in a script or a web server is the program itself.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from datamask.out_of_core.engines.contract import (
    ASKED_SECONDS,
    ONE_THREAD,
    TRIES,
    Engine,
    OnDone,
    Result,
    lost_for_good,
    usable_cores,
)
from datamask.out_of_core.engines.replies import call_text, result_of
from datamask.polling import Poll
from datamask.process import child_environment

COMMAND = (sys.executable, "-m", "datamask.out_of_core.engines.worker")

DYING_SECONDS = 5.0
"""A process that has closed its stdout is about to end; after so long it is ended."""


class LocalEngine(Engine):
    """As many worker processes as asked for, or as there are cores, started when there is something to do for them."""

    def __init__(self, workers: int | None = None) -> None:
        """Raises ValueError: `workers` is below 1."""
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self._most = workers or usable_cores()
        self._workers: list[_Worker] = []

    @property
    def workers(self) -> int:
        """How many tasks it does at a time."""
        return self._most

    def run(
        self,
        task: str,
        arguments: Sequence[Mapping[str, Any]],
        *,
        poll: Poll,
        on_done: OnDone | None = None,
    ) -> list[Result]:
        """As `Engine.run` says."""
        calls = [call_text(task, argument) for argument in arguments]
        results: dict[int, Result] = {}
        begun: Counter[int] = Counter()
        waiting = deque(range(len(calls)))
        try:
            while len(results) < len(calls):
                for worker in self._idle(len(waiting)):
                    place = waiting.popleft()
                    begun[place] += 1
                    worker.begin(place, calls[place])
                for worker in self._heard():
                    place = worker.place
                    reply = worker.reply()
                    if reply is not None:
                        results[place] = result_of(reply)
                        if on_done is not None:
                            on_done(place, results[place])
                    elif worker.gone:
                        self._workers.remove(worker)
                        how = worker.ended() if begun[place] == TRIES else ""
                        worker.end()
                        if begun[place] == TRIES:
                            raise lost_for_good(task, how)
                        waiting.appendleft(place)
                poll()
        except BaseException:
            self.close()
            raise
        return [results[place] for place in range(len(calls))]

    def close(self) -> None:
        """End all workers, those at work too."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def _idle(self, wanted: int) -> list[_Worker]:
        """At most so many workers that have nothing to do; new ones where there may be more."""
        for worker in [worker for worker in self._workers if worker.place < 0 and worker.dead]:
            self._workers.remove(worker)  # killed while it had nothing to do: no task is to blame
            worker.end()
        idle = [worker for worker in self._workers if worker.place < 0][:wanted]
        while len(idle) < wanted and len(self._workers) < self._most:
            idle.append(_Worker())
            self._workers.append(idle[-1])
        return idle

    def _heard(self) -> list[_Worker]:
        """The workers at work from which something came, after `ASKED_SECONDS` at the latest."""
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:
                if worker.place >= 0:
                    selector.register(worker.pipe, selectors.EVENT_READ, worker)
            return [key.data for key, _ in selector.select(ASKED_SECONDS)]


class _Worker:
    """One worker process.

    Attributes:
        place: of the argument that it is at, -1 where it has nothing to do.
        gone: whether it has closed its end.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=child_environment() | ONE_THREAD,
            # Ctrl-C in a terminal is for whoever waits for the workers, and would reach all of its group
            process_group=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None, "both were asked for"
        self._calls, self.pipe = self._process.stdin.fileno(), self._process.stdout.fileno()
        self.place, self.gone, self._heard = -1, False, b""

    def begin(self, place: int, call: str) -> None:
        """Hand it a call."""
        self.place = place
        # one that has died meanwhile closes its end too, which is heard with the next look
        line = call.encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._calls, line) :]

    @property
    def dead(self) -> bool:
        """Whether its process has ended."""
        return self._process.poll() is not None

    def reply(self) -> str | None:
        """Its reply, where all of that has come."""
        piece = os.read(self.pipe, 1 << 16)
        self.gone = not piece
        self._heard += piece
        line, newline, rest = self._heard.partition(b"\n")
        if not newline:
            return None
        self.place, self._heard = -1, rest
        return line.decode()

    def ended(self) -> str:
        """How it ended, in words; it is waited for."""
        try:
            code = self._process.wait(DYING_SECONDS)
        except subprocess.TimeoutExpired:
            return "without a word"
        if code >= 0:
            return f"with exit code {code}"
        with contextlib.suppress(ValueError):
            return f"by {signal.Signals(-code).name}"
        return f"by signal {-code}"

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
