"""Fixtures for all tests: few CPU threads, so that tests beside each other do not fight, and every device there is."""

from __future__ import annotations

import gc
import os
import sys

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # set, not defaulted: a worker inherits what the process that hands out the tests has set for itself below
    os.environ["OMP_NUM_THREADS"] = "1"
else:
    os.environ.setdefault("OMP_NUM_THREADS", "2")
# what Python compiles is kept: the tests start the program hundreds of times, and every worker reads all test files
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def unsynced(handle: int) -> None:
    """In the place of `os.fsync`: no test takes the power away, and tens of thousands of small files wait for no disk.

    That files are synced before they are named is tested in tests/test_files.py.
    """
    os.fstat(handle)


os.fsync = unsynced


def pytest_generate_tests(metafunc):
    """`device` runs a test on the CPU, and again on a GPU where there is one."""
    if "device" in metafunc.fixturenames:
        import torch

        metafunc.parametrize("device", ["cpu"] + (["cuda"] if torch.cuda.is_available() else []))


@pytest.fixture
def live_of_its_own(monkeypatch):
    """A holder of live lambdas for one test, on one processor; the sessions that it leaves are stopped."""
    from datamask.dashboard.tradeoff import live

    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(live, "_NAME", "live lambda of a test")
    yield
    for session in live._holder().sessions.values():
        session.stop()
    live._holder().sessions.clear()


BROWSER_AND_PROCESSES = ("e2e", "golden", "runs")
"""Folders whose files take longest: begun first, so that no worker is left alone with them at the end."""


def pytest_collection_modifyitems(items):
    """Slow folders first; the command line of `make test` keeps pytest-xdist from ordering files its own way."""
    items.sort(key=lambda item: not set(item.path.parts) & set(BROWSER_AND_PROCESSES))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """While modules are imported nothing becomes garbage; looking for it takes a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """What came with the collection stays: every full look for garbage would look at half a million objects of it."""
    gc.freeze()


@pytest.fixture(autouse=True)
def main_module():
    """A page drawn by AppTest leaves its script as the main module, which a process that is spawned later would run."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture
def rng():
    """A seeded numpy generator."""
    import numpy as np

    return np.random.default_rng(20251224)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to give commands in, with two shards."""
    import pyarrow.parquet as pq

    from tests.commands import table

    monkeypatch.chdir(tmp_path)
    # on tensors this small, two threads on a busy machine wait for each other a thousand times longer than they work
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    pq.write_table(table(), "in.parquet")
    pq.write_table(table(60, first=1000), "more.parquet")
    return tmp_path
