"""Runs in a process of their own: they outlive their starter, and everybody else meets them in their folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from datamask import start_run
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.errors import RunStateError
from datamask.runs import store as store_module
from datamask.runs.detached import LOG, start_detached
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.work.context import Work
from datamask.work.locks import FileLock, is_held
from tests.commands import ROOT, last_json, run
from tests.making.run_folders import wait_for

QUICK = {"objective": "pairwise", "estimator": "relaxed", "device": "cpu"}
SLOW = {"objective": "pairwise", "estimator": "reinforce", "n_epochs": 1_000_000, "device": "cpu"}
QUICK_WORDS = ["--objective", "pairwise", "--estimator", "relaxed", "--device", "cpu"]
SLOW_WORDS = ["--objective", "pairwise", "--estimator", "reinforce", "--n_epochs", "1000000", "--device", "cpu"]


def settings(**selection) -> RunConfig:
    return RunConfig(CorpusConfig(("in.parquet",)), SelectionConfig.from_options(**selection))


def ended(stored) -> bool:
    return not stored.status().active


def learning(stored) -> bool:
    """Whether it has come as far as its steps."""
    return stored.status().state == "running" and stored.status().step > 0


@pytest.fixture
def stopping():
    """Drivers started by a test that must not outlive it: a list of runs."""
    started = []
    yield started
    for stored in started:
        if stored.status().active:
            stored.request_stop()
            wait_for(lambda stored=stored: ended(stored))


STARTER = """
import sys
from datamask.cli import main
code = main(["select", "in.parquet", "--output", "out.parquet", "--detach", *sys.argv[1:]])
print("ready", code, flush=True)
sys.stdin.read()
"""


def test_it_ends_though_its_starter_and_all_of_its_group_are_killed(here):
    """And it has an objective of one's own, which was named to the starter."""
    example = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own-objective.md").read_text(), re.DOTALL)[0]
    (here / "spread.py").write_text(example)
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, "--objective", "spread:Spread", "--n_epochs", "3", "--device", "cpu"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    run_id = starter.stdout.readline().strip()
    assert starter.stdout.readline().strip() == "ready 0"
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    starter.stdin.close(), starter.stdout.close()
    stored = RunStore("runs").get(run_id)
    assert stored.status().state in ("queued", "running")
    wait_for(lambda: ended(stored))
    assert stored.status().state == "done"
    # the last thing its driver does, and only then it lets go
    wait_for(lambda: not is_held(stored.path / "queue"))
    assert pq.read_table("out.parquet").num_rows == stored.status().to_dict()["summary"]["selected"] == 72


def test_stop_from_another_process_keeps_a_checkpoint_and_it_resumes(here, capsys, stopping):
    assert run("select", "in.parquet", "--output", "out.parquet", *SLOW_WORDS, "--detach", "--json") == 0
    told = last_json(capsys)
    stored = RunStore("runs").get(told["run_id"])
    stopping.append(stored)
    assert told["status"] == "queued" and told["pid"] != os.getpid()
    wait_for(lambda: learning(stored))
    assert stored.status().pid == told["pid"]
    assert run("runs", "show", stored.id, "--json") == 0
    assert last_json(capsys)["status"]["state"] == "running"
    with pytest.raises(RunStateError, match="is running"):
        start_detached(stored)
    assert run("runs", "stop", stored.id, "--json") == 0
    assert last_json(capsys) == {"run_id": stored.id, "status": "stopped", "requested": True}
    before = stored.status().step
    assert before > 0 and (stored.path / "checkpoint.npz").exists()
    wait_for(lambda: not is_held(stored.path / "queue"))

    assert run("resume", stored.id, "--detach") == 0
    assert capsys.readouterr().out.strip() == stored.id
    wait_for(lambda: stored.status().step > before)
    # a polite kill of its driver is a request to stop as well
    os.kill(stored.status().pid, signal.SIGTERM)
    wait_for(lambda: ended(stored))
    assert stored.status().state == "stopped"


def test_a_driver_that_is_killed_leaves_an_interrupted_run_that_ends_as_an_unbroken_one_would(here, stopping):
    # seconds of steps: of a run that ends within the pause between two notes of its step, no step is ever seen
    options = SLOW | {"n_epochs": 1500}
    broken, whole = (RunStore("runs").create(settings(**options)) for _ in range(2))
    driver = start_detached(broken)
    wait_for(lambda: learning(broken))
    os.kill(driver, signal.SIGKILL)
    wait_for(lambda: broken.status().state == "interrupted")
    start_detached(broken)
    execute(whole, Work(threads=1))
    wait_for(lambda: ended(broken))
    assert broken.status().state == "done", broken.status()
    assert broken.selection().equals(whole.selection())


def test_bad_input_is_one_sentence_in_its_status_and_its_log(here):
    stored = start_run(
        RunConfig(CorpusConfig(("in.parquet",), id_column="nowhere"), SelectionConfig.from_options(**QUICK))
    )
    wait_for(lambda: not is_held(stored.path / "queue"))  # of a driver that has written its last word
    status = stored.status()
    assert status.state == "failed" and "nowhere" in status.error and not status.traceback
    assert "nowhere" in (stored.path / LOG).read_text()


def test_from_python_nobody_ever_sees_it_interrupted_and_an_output_that_cannot_be_written_is_told(
    here, tmp_path_factory, capsys, monkeypatch
):
    """Not while it is handed over; `resume` writes the output."""
    monkeypatch.setattr(store_module, "QUEUE_GRACE", 0.0)
    runs_dir = tmp_path_factory.mktemp("elsewhere")
    (here / "place").mkdir()
    stored = start_run(settings(**QUICK), runs_dir, output="place/out.parquet")
    (here / "place").rmdir()
    (here / "place").write_text("in the way")
    assert stored.path.parent == runs_dir
    seen = set()
    while not seen & {"done", "failed", "interrupted"}:
        seen.add(stored.status().state)
    assert "interrupted" not in seen and "done" in seen
    wait_for(lambda: not is_held(stored.path / "queue"))
    assert stored.status().state == "done"
    with pytest.raises(RunStateError, match="is done; only a new, stopped"):
        start_detached(stored)
    show = ["runs", "show", stored.id, "--runs_dir", str(runs_dir)]
    assert run(*show) == 0
    shown = capsys.readouterr().out
    assert f"{here}/place/out.parquet is not written: " in shown and f"resume {stored.id}" in shown
    (here / "place").unlink()
    assert run("resume", stored.id, "--runs_dir", str(runs_dir)) == 0
    assert pq.read_metadata("place/out.parquet").num_rows == 72
    capsys.readouterr()
    assert run(*show) == 0
    assert "not written" not in capsys.readouterr().out


KILLED = """
import os, signal, sys
from datamask.runs import driver, exports
exports.write_selection = lambda run, path: os.kill(os.getpid(), signal.SIGKILL)
driver.main(sys.argv[1:])
"""


def test_a_driver_that_is_killed_before_it_writes_the_output_leaves_word_of_that(here, capsys):
    stored = RunStore("runs").create(settings(**QUICK), str(here / "out.parquet"))
    lock = FileLock(stored.path / "queue")
    assert lock.acquire()
    words = [sys.executable, "-c", KILLED, str(stored.path.absolute()), str(lock.handle)]
    path = os.environ | {"PYTHONPATH": str(ROOT)}
    ending = subprocess.run(words, pass_fds=[lock.handle], env=path, timeout=120, check=False)
    assert ending.returncode == -signal.SIGKILL and stored.status().state == "done"
    assert run("runs", "show", stored.id) == 0
    # somebody holds the queue lock: it is being written
    assert "is not written" not in capsys.readouterr().out
    lock.release()
    assert run("runs", "show", stored.id) == 0
    assert "out.parquet is not written: its driver ended before that" in capsys.readouterr().out


def test_what_waits_in_a_queue_is_not_started_twice(here):
    stored = RunStore("runs").create(settings(**QUICK))
    with stored.queued(), pytest.raises(RunStateError, match="already waiting in another queue"):
        start_detached(stored)


def test_what_has_ended_cannot_be_stopped(here, capsys):
    stored = RunStore("runs").create(settings(**QUICK))
    with stored.writer() as writer:
        writer.finish("stopped", ending="stopped")
    assert run("runs", "stop", stored.id) == 2
    assert "there is nothing to stop" in capsys.readouterr().err


def test_a_lock_that_is_not_held_cannot_be_handed_over(tmp_path):
    lock = FileLock(tmp_path / "queue")
    with pytest.raises(RuntimeError, match="call acquire first"):
        _ = lock.handle
    assert lock.acquire()
    twin = FileLock.adopted(tmp_path / "queue", os.dup(lock.handle))
    lock.release()
    assert is_held(tmp_path / "queue")
    twin.release()
    assert not is_held(tmp_path / "queue")
