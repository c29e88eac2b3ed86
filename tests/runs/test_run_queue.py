"""The queue of runs: order, stopping, reloads, and what is left when its process dies."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from datamask.errors import InputError, RunStateError
from datamask.polling import no_poll, poll_of
from datamask.runs import run_queue as module
from datamask.runs import store as store_module
from datamask.work import lanes
from datamask.work.lanes import Priority
from datamask.work.worker import worker
from tests.making.modules import import_anew
from tests.making.run_folders import config, wait_for

ROOT = Path(store_module.__file__).parents[2]


@pytest.fixture
def queue(store, fake_execute):
    """The queue of an empty runs folder; whatever it still does is stopped at the end."""
    yield module.run_queue(store.root)
    module.run_queue(store.root).close(120.0)


def submit(queue, store, name="slow", **selection) -> str:
    run = store.create(config(name, **selection))
    queue.submit(run.id)
    return run.id


def state(store, run_id: str) -> str:
    return store.get(run_id).status().state


def test_a_submitted_run_gets_done_and_leaves_the_queue(queue, store):
    run_id = submit(queue, store, "quick")
    wait_for(lambda: state(store, run_id) == "done")
    wait_for(lambda: queue.active() == [])


def test_a_watcher_sees_share_words_and_eta(queue, store, monkeypatch):
    monkeypatch.setattr("datamask.work.pace.EARLY_SECONDS", 0.0)
    run_id = submit(queue, store)
    wait_for(lambda: queue.active()[0].left is not None)
    job = queue.active()[0]
    assert (job.about, job.state) == (run_id, "running")
    assert 0 < job.share < 1 and job.message.startswith("step ")
    assert job.left > 100  # 100,000 steps of at least 10 ms


def test_one_device_one_run_at_a_time_in_order(queue, store):
    first, second, third = (submit(queue, store) for _ in range(3))
    wait_for(lambda: state(store, first) == "running")
    time.sleep(0.1)
    assert [(job.about, job.state) for job in queue.active()] == [
        (first, "running"),
        (second, "queued"),
        (third, "queued"),
    ]
    assert [job.message for job in queue.active()[1:]] == ["number 1 in the queue", "number 2 in the queue"]
    assert state(store, second) == "queued"
    queue.stop(first)
    wait_for(lambda: state(store, second) == "running")
    assert (state(store, first), state(store, third)) == ("stopped", "queued")


def test_another_device_does_not_wait(queue, store):
    first, other = submit(queue, store), submit(queue, store, device="cuda:3")
    wait_for(lambda: state(store, first) == state(store, other) == "running")


def test_stop_is_obeyed_at_once(queue, store):
    run_id = submit(queue, store)
    wait_for(lambda: state(store, run_id) == "running")
    queue.stop(run_id)
    assert wait_for(lambda: state(store, run_id) == "stopped") < 10
    assert wait_for(lambda: queue.active() == []) < 10
    with pytest.raises(RunStateError, match="nothing to stop"):
        queue.stop(run_id)


def test_a_waiting_run_is_stopped_at_once_without_having_begun(queue, store):
    first, second = submit(queue, store), submit(queue, store, "quick")
    queue.stop(second)
    assert state(store, second) == "stopped"
    assert [job.about for job in queue.active()] == [first]
    queue.stop(first)
    wait_for(lambda: queue.active() == [])
    assert store.get(second).status().started is None


def test_a_stop_from_another_process_is_obeyed(queue, store):
    first, second = submit(queue, store), submit(queue, store, "quick")
    wait_for(lambda: state(store, first) == "running")
    store.get(second).request_stop()
    store.get(first).request_stop()
    assert wait_for(lambda: state(store, first) == "stopped") < 10
    wait_for(lambda: state(store, second) == "stopped")
    assert store.get(second).status().started is None


def test_resume_goes_on_and_only_what_has_not_finished(queue, store):
    run_id = submit(queue, store)
    wait_for(lambda: state(store, run_id) == "running")
    with pytest.raises(RunStateError, match="only a stopped"):
        queue.resume(run_id)
    queue.stop(run_id)
    wait_for(lambda: queue.active() == [])
    store.get(run_id).relabel("quick")
    queue.resume(run_id)
    wait_for(lambda: state(store, run_id) == "done")
    wait_for(lambda: queue.active() == [])
    for action in (queue.resume, queue.submit):
        with pytest.raises(RunStateError, match="done"):
            action(run_id)


def test_a_run_is_submitted_once(queue, store):
    run = store.create(config("slow"))
    refused = []

    def go():
        try:
            queue.submit(run.id)
        except RunStateError:
            refused.append(1)

    threads = [threading.Thread(target=go) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 5 and len(queue.active()) == 1
    with pytest.raises(InputError):
        queue.submit("never-made")


@pytest.mark.parametrize("name", ["bug", "mistake", "disk"])
def test_a_failing_run_does_not_hold_up_the_next(queue, store, name):
    broken, good = submit(queue, store, name), submit(queue, store, "quick")
    wait_for(lambda: state(store, good) == "done")
    assert state(store, broken) == "failed"


def test_a_run_removed_while_it_waits_is_passed_over(queue, store):
    first, gone, last = submit(queue, store), submit(queue, store, "quick"), submit(queue, store, "quick")
    wait_for(lambda: state(store, first) == "running")
    store.remove(gone)
    queue.stop(first)
    wait_for(lambda: state(store, last) == "done")


def test_the_queue_survives_reloads_and_so_do_its_runs(queue, store, monkeypatch):
    running, waiting = submit(queue, store), submit(queue, store, "quick")
    wait_for(lambda: state(store, running) == "running")
    importlib.reload(module)  # what an edited file does
    assert module.run_queue(store.root) is queue
    assert [job.about for job in module.run_queue(store.root).active()] == [running, waiting]
    later = submit(module.run_queue(store.root), store, "quick")
    fresh = import_anew("datamask.runs.run_queue", monkeypatch)  # what Streamlit does
    assert fresh is not module and fresh.run_queue(store.root) is queue
    fresh.run_queue(store.root).stop(running)
    wait_for(lambda: state(store, waiting) == state(store, later) == "done")


def test_one_queue_per_folder_however_it_is_written(store, fake_execute, monkeypatch, tmp_path):
    store.root.mkdir()
    monkeypatch.chdir(tmp_path)
    assert module.run_queue("runs") is module.run_queue(store.root)
    assert module.run_queue("runs") is not module.run_queue("other")
    found = []
    threads = [threading.Thread(target=lambda: found.append(module.run_queue("third"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


SERVER = """
import sys, time
from datamask.runs.run_queue import run_queue
from datamask.runs.store import RunStore
from datamask.work import lanes
from datamask.work.lanes import Priority
from datamask.work.worker import worker
from tests.making.run_folders import config, install_fake_execute, wait_for
install_fake_execute()
store = RunStore(sys.argv[1])
for name in ("first", "second"):
    store.create(config("slow"), run_id=name)
    run_queue(store.root).submit(name)
wait_for(lambda: store.get("first").status().step > 3)
print("ready", flush=True)
if sys.argv[2] == "wait":
    time.sleep(60)
"""


@contextlib.contextmanager
def server(store, how: str):
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(store.root), how], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout.readline().strip() == "ready"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_kill_nine_leaves_the_running_and_the_waiting_run_interrupted(store, monkeypatch, queue):
    monkeypatch.setattr(store_module, "QUEUE_GRACE", 0.0)
    with server(store, "wait") as process:
        assert (state(store, "first"), state(store, "second")) == ("running", "queued")
        with pytest.raises(RunStateError):
            queue.submit("second")  # it waits in the other process
        process.kill()
        process.wait()
        assert (state(store, "first"), state(store, "second")) == ("interrupted", "interrupted")
    store.get("first").relabel("quick")
    store.get("second").relabel("quick")
    queue.resume("first")
    queue.submit("second")
    wait_for(lambda: state(store, "first") == state(store, "second") == "done")


def test_a_process_that_ends_politely_saves_a_checkpoint(store, monkeypatch):
    monkeypatch.setattr(store_module, "QUEUE_GRACE", 0.0)
    with server(store, "end") as process:
        assert process.wait(120) == 0
    assert (state(store, "first"), state(store, "second")) == ("stopped", "interrupted")
    with store.get("first").writer() as writer:
        assert writer.load_checkpoint()[1]["step"] > 3


@pytest.mark.parametrize("name, key", [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")])
def test_devices_that_are_the_same_share_a_worker(name, key):
    assert module.device_key(name) == key
    assert module.device_key("auto") in ("cpu", "cuda:0")


def test_a_device_is_named_as_its_driver_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GPUS", tmp_path)
    assert module.device_name("cuda:1") == "GPU 1"
    for bus, model in (("0000:01:00.0", "NVIDIA A100"), ("0000:41:00.0", "NVIDIA H100 PCIe")):
        (tmp_path / bus).mkdir()
        (tmp_path / bus / "information").write_text(f"Model: \t\t {model}\nIRQ:   \t\t 1\n")
    assert [module.device_name(name) for name in ("cuda", "cuda:1", "cuda:2")] == [
        "NVIDIA A100",
        "NVIDIA H100 PCIe",
        "GPU 2",
    ]
    monkeypatch.setattr(module.os, "cpu_count", lambda: 3)
    assert module.device_name("cpu") == "2 CPU cores"


def test_a_turn_and_a_run_never_compute_at_once(queue, store):
    with lanes.turn("cpu", Priority.SWEEP, no_poll):
        run_id = submit(queue, store, "quick", device="cpu")
        wait_for(lambda: any(job.state == "queued" and job.ahead for job in queue.active()))
        assert state(store, run_id) == "queued" and "after other work" in queue.active()[0].message
    wait_for(lambda: state(store, run_id) == "done")
    busy = submit(queue, store, device="cpu")
    wait_for(lambda: state(store, busy) == "running")
    asked = []
    with lanes.turn("cpu", Priority.SWEEP, poll_of(lambda: bool(asked.append(1)) or len(asked) > 1)):
        assert len(asked) == 2 and state(store, busy) == "running"
    queue.stop(busy)
    wait_for(lambda: queue.active() == [])
    with lanes.turn("cpu", Priority.SWEEP, no_poll):
        assert queue.active() == []


def test_a_run_gives_way_to_a_page_and_goes_on(queue, store):
    busy = submit(queue, store, device="cpu")
    wait_for(lambda: state(store, busy) == "running")
    reached = []

    def page(job):
        wait_for(lambda: reached.append(store.get(busy).status().step) or len(reached) > 20)
        return lanes.lane("cpu")._inside is job._ticket

    job = worker().start("page", page, device="cpu", priority=Priority.PAGE)
    assert job.wait(120) and job.result is True
    wait_for(lambda: store.get(busy).status().step > max(reached))
    assert state(store, busy) == "running" and queue.active()[0].state == "running"
    queue.stop(busy)
    wait_for(lambda: queue.active() == [])
