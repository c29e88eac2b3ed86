"""Dashboards that begin with everybody else's libraries imported: forked off a process that does nothing else.

A dashboard of its own takes some seconds of a processor before its first page is whole, nearly all of them for
importing torch, scipy, sklearn and pandas, which is the same each time. Of datamask nothing is imported beforehand, and
of settings and environment nothing read: a forked dashboard starts as any other does, only sooner.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LIBRARIES = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.cluster",
    "sklearn.feature_extraction.text",
    "torch",
    "numba",
    "plotly.graph_objects",
    "PIL.Image",
    "uvicorn",
    "streamlit.web.bootstrap",
    "streamlit.web.cli",
)
"""What a dashboard has imported after a while, besides datamask."""


def program_of_fork() -> str:
    """Import the libraries, then fork for every line of stdin; returns in the forked processes alone.

    A line is JSON: ``program``, the text that is returned; ``arguments``, what follows the program's name;
    ``environment``; and ``log``, the path of a file that stdout and stderr go to. Its answer is a line with the id of
    the process. Ends with stdin.
    """
    for library in LIBRARIES:
        importlib.import_module(library)
    # pyarrow's allocator has a thread of its own, which it starts anew in the fork; Python threads there are none
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    for line in sys.stdin:
        while _reaped():
            pass
        process = os.fork()
        if process == 0:
            order = json.loads(line)
            program: str = order.pop("program")
            _become(**order)
            return program
        print(process, flush=True)
    sys.exit()


def _reaped() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _become(arguments: list[str], environment: dict[str, str], log: str) -> None:
    """Take over what a process that is started gets: arguments, environment, and no way to the one that started it."""
    sys.argv[1:] = arguments
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.dup2(1, 2)


class Forked:
    """A process that is no child of this one: of `subprocess.Popen`, what `tests.e2e.serving` uses."""

    def __init__(self, process: int) -> None:
        self.pid = process
        self._handle = os.pidfd_open(process)

    def poll(self) -> int | None:
        """None while it runs; once it has ended 0, however it did."""
        return 0 if select.select([self._handle], [], [], 0)[0] else None

    def wait(self, timeout: float) -> int:
        """Wait until it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not within so many seconds.
        """
        if not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return 0

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __del__(self) -> None:
        os.close(self._handle)


class Prepared:
    """The process with the libraries; started where it is first needed."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None

    @staticmethod
    def possible() -> bool:
        """Whether this system can hold on to a process that is no child (Linux can)."""
        return hasattr(os, "pidfd_open")

    def start(self, program: str, arguments: list[str], environment: dict[str, str], log: Path) -> Forked:
        """A process that runs a program, as ``python -c PROGRAM ARGUMENTS`` does."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from tests.e2e.prepared import program_of_fork\nexec(program_of_fork())"],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        order = {"program": program, "arguments": arguments, "environment": environment, "log": str(log)}
        assert self.process.stdin and self.process.stdout
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return Forked(int(self.process.stdout.readline()))

    def end(self) -> None:
        """End it; what it has forked goes on."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None
