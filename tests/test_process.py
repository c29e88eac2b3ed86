"""What there is once per process: one thing per name, made once, whatever is reloaded; a forked child has its own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading

import pytest

from datamask import process
from tests.making.modules import import_anew


def test_it_is_made_once_though_many_ask_at_once():
    made, barrier, answers = [], threading.Barrier(8), []

    def ask():
        barrier.wait()
        answers.append(process.held("asked by many", lambda: made.append(1) or object()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and len(set(map(id, answers))) == 1


def test_names_are_apart_and_what_makes_one_may_ask_for_another():
    inner = process.held("outer", lambda: [process.held("inner", list)])[0]
    assert process.held("inner", dict) is inner


def test_a_reload_of_the_module_loses_nothing(monkeypatch):
    thing = process.held("kept over a reload", object)
    again = importlib.reload(process)
    assert again.held("kept over a reload", object) is thing
    assert import_anew("datamask.process", monkeypatch).held("kept over a reload", object) is thing


def test_a_forked_child_makes_its_own():
    thing = process.held("of this process", lambda: os.getpid())
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(process.held("of this process", os.getpid)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        assert answer.read() == str(child) != str(thing)


def test_nothing_else_hangs_in_the_table_of_modules():
    own = {name for name in sys.modules if name.startswith("_datamask")}
    assert own <= {process.HOLDER}


@pytest.mark.parametrize("own", [None, "active"])
def test_idle_threads_sleep_unless_the_environment_says_otherwise(own):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    asked = "import datamask, os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env=environment | ({} if own is None else {"OMP_WAIT_POLICY": own}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [own or "passive", "False"]
