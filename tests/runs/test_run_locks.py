"""Who may work on a run: the lock, kill -9, stopping and removing."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading

import pytest

from datamask.errors import RunStateError, StoreError
from datamask.runs import store as store_module
from tests.making.run_folders import ROOT, config, in_another_process, kill, names

WORKER = """
import sys, time
from datamask.runs.store import RunStore
run = RunStore(sys.argv[1]).get(sys.argv[2])
with run.writer() as writer:
    writer.set_status("running")
    writer.beat(7, 100, "learning")
    writer.append_metrics({"step": 7, "joint": 0.5})
    print("ready", flush=True)
    time.sleep(60)
"""


# -- the lock ---------------------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_in_this_process_and_in_another(store):
    run = store.create(config())
    code = (
        "import sys\nfrom datamask.runs.store import RunStore\nfrom datamask.errors import RunStateError\n"
        "try:\n    RunStore(sys.argv[1]).get(sys.argv[2]).writer().__enter__()\n"
        "except RunStateError as error:\n    print(error)"
    )
    with run.writer():
        with pytest.raises(RunStateError, match="already running"):
            run.writer().__enter__()
        other = subprocess.run(
            [sys.executable, "-c", code, store.root, run.id], capture_output=True, text=True, cwd=ROOT
        )
        assert "already running" in other.stdout
    with run.writer() as writer:
        writer.set_status("running")


def test_a_watcher_at_the_wrong_moment_does_not_turn_a_worker_away(store):
    run = store.create(config())
    handle = os.open(run.path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_SH)  # what a watcher holds for an instant
    threading.Timer(0.1, os.close, [handle]).start()
    with run.writer() as writer:
        writer.set_status("running")


def test_kill_nine_leaves_interrupted_and_resume_takes_the_lock(store):
    run = store.create(config())
    worker = in_another_process(WORKER, store.root, run.id)
    assert run.status().state == "running"
    assert run.status().pid == worker.pid
    with pytest.raises(RunStateError):
        run.writer().__enter__()
    with pytest.raises(RunStateError, match="running"):
        store.remove(run.id)
    kill(worker)
    status = run.status()
    assert (status.state, status.step, status.resumable) == ("interrupted", 7, True)
    assert json.loads((run.path / "status.json").read_text())["state"] == "running"  # derived, never written
    with run.writer() as writer:
        writer.set_status("running")
        assert run.status().state == "running"


def test_finishing_is_never_mistaken_for_an_interruption(store, monkeypatch):
    """The worker ends between the watcher's look at the status and its look at the lock."""
    run = store.create(config())
    writer = run.writer()
    writer.__enter__()
    writer.set_status("running")
    real = store_module.is_held

    def ends_just_now(path):
        if path.name == "lock" and run._written_status().state == "running":
            writer.finish("stopped")
            writer.__exit__()
        return real(path)

    monkeypatch.setattr(store_module, "is_held", ends_just_now)
    assert run.status().state == "stopped"


def test_a_queued_run_of_a_dead_process_is_interrupted(store, monkeypatch):
    run = store.create(config())
    monkeypatch.setattr(store_module, "QUEUE_GRACE", 0.0)
    assert run.status().state == "interrupted"
    assert "before it began" in run.status().message
    code = (
        "import sys, time\nfrom datamask.runs.store import RunStore\nrun = RunStore(sys.argv[1]).get(sys.argv[2])\n"
        "with run.queued():\n    print('ready', flush=True)\n    time.sleep(60)"
    )
    owner = in_another_process(code, store.root, run.id)
    assert run.status().state == "queued"
    with pytest.raises(RunStateError, match="another queue"), run.queued():
        pass
    kill(owner)
    assert run.status().state == "interrupted"
    with run.queued():
        assert run.status().state == "queued"
    monkeypatch.setattr(store_module, "QUEUE_GRACE", 3600.0)
    assert run.status().state == "queued"  # just created: its owner may still be on its way to the queue


# -- stopping and removing --------------------------------------------------------------------------------------------


def test_a_stop_request_reaches_the_worker_and_is_forgotten_once_obeyed(store):
    run = store.create(config())
    with run.writer() as writer:
        writer.set_status("running")
        assert not run.stop_requested()
        store.get(run.id).request_stop()
        assert run.stop_requested()
        writer.finish("stopped", ending="stopped")
    assert not run.stop_requested()


def test_a_stop_request_of_the_last_attempt_does_not_stop_the_next(store):
    run = store.create(config())
    run.request_stop()
    with run.writer() as writer:  # asked while it was queued: that counts
        assert run.stop_requested()
        writer.set_status("running")
    assert run.status().state == "interrupted"
    with run.writer() as writer:
        assert not run.stop_requested()
    run.request_stop()
    with run.writer() as writer:
        writer.set_status("queued")
    assert not run.stop_requested()


def test_a_removed_run_is_gone_and_says_so_to_whoever_still_looks(store):
    run = store.create(config())
    store.remove(run.id)
    assert names(store.root) == []
    assert "has been removed" in run.status().error
    for action in (lambda: run.writer().__enter__(), run.request_stop, lambda: run.relabel("x")):
        with pytest.raises(StoreError):
            action()
    assert not run.path.exists()
