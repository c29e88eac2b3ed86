"""Background threads and the end of the process: asked, waited for, and never thrown out of compiled code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from datamask import endings

HEAD = """
import signal, sys, threading
import torch
from datamask.dashboard import tasks
torch.set_num_threads(1)
begun = threading.Event()

def work(progress, should_stop):
    from datamask.errors import Stopped
    square = torch.rand(300, 300)
    while not should_stop():
        square = square @ square
        square /= square.norm()
        begun.set()
    raise Stopped("stopped")

task = tasks.start("measuring", work)
begun.wait()
"""
"""A process that measures in compiled code; what follows says so and ends it in the middle."""

READY = "print('measuring', flush=True)\n"


def ended(tail: str, send: signal.Signals | None = None) -> subprocess.CompletedProcess:
    """How a process of HEAD and `tail` ended, once it measures and was sent a signal."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen([sys.executable, "-c", HEAD + tail], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment)
    try:
        assert child.stdout.readline() == b"measuring\n", child.stderr.read().decode()
        if send is not None:
            child.send_signal(send)
        said, wrong = child.communicate(timeout=120)
    finally:
        child.kill()
        child.wait()
    return subprocess.CompletedProcess(child.args, child.returncode, said.decode(), wrong.decode())


def test_a_process_ends_cleanly_while_compiled_code_runs_in_a_thread():
    """Without the wait this is `terminate called without an active exception`, and a core dump."""
    found = ended(READY)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_signal_ends_it_cleanly_too():
    # as Streamlit does: its handler lets the main thread run to its end
    tail = "gone = threading.Event()\nsignal.signal(signal.SIGTERM, lambda *_: gone.set())\n"
    found = ended(tail + READY + "gone.wait()\n", signal.SIGTERM)
    assert (found.returncode, found.stderr) == (0, "")


def test_everyone_is_asked_and_waited_for_together():
    asked = [threading.Event() for _ in range(3)]
    threads = [endings.start(stop.wait, 120, name=f"waits-{i}", stop=stop.set) for i, stop in enumerate(asked)]
    short = endings.start(lambda: None, name="short")
    assert endings.goodbye(120) and not any(thread.is_alive() for thread in (*threads, short))


def test_the_wait_has_an_end():
    go = threading.Event()
    endings.start(go.wait, 120, name="deaf")
    assert not endings.goodbye(0.3)
    go.set()
    assert endings.goodbye(120)
