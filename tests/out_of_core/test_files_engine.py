"""The engine for any scheduler: calls as files, done by commands that know nothing of each other."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.errors import DatamaskError, InputError, LostWorkersError, OptionError, Stopped, StoreError
from datamask.out_of_core.engines import files, open_engine
from datamask.out_of_core.engines.contract import TRIES, Result
from datamask.out_of_core.engines.replies import call_text, function_of, result_of
from datamask.out_of_core.tasks import task
from datamask.polling import poll_of
from datamask.runs import execute as execute_module
from datamask.runs import whole
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from tests.making.derivable_runs import shard
from tests.out_of_core import toy
from tests.out_of_core.test_engines import ROOT, SQUARE, alive, squares, wait_until

WORKER = """
import sys
from datamask.out_of_core.engines import files
files.TASKS = {"tests.out_of_core.toy:square"}
# a worker that starts when all is over
files.DRIVER_SECONDS = 5.0
from datamask.cli import main
sys.exit(main(["task", *sys.argv[1:]]))
"""


@pytest.fixture
def calls(tmp_path):
    """Where calls lie."""
    return tmp_path / "calls"


@pytest.fixture
def work(tmp_path):
    """Where the toy works."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def worker(*words: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *map(str, words)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )


class Driver:
    """Runs the toy by calls in a folder, in a thread; `results` or `error` when it has ended."""

    def __init__(self, calls: Path, arguments: list[dict]) -> None:
        self.results: list[Result] = []
        self.error: Exception | None = None
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(calls, arguments))
        self._thread.start()

    def _run(self, calls: Path, arguments: list[dict]) -> None:
        def poll() -> None:
            if self.stopping.is_set():
                raise Stopped("stopped on request")

        try:
            with open_engine("files", address=str(calls)) as engine:
                self.results = engine.run(SQUARE, arguments, poll=poll)
        except Exception as error:
            self.error = error

    def ended(self) -> Driver:
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self


def test_two_workers_do_all_calls_once_and_end_with_the_run(calls, work):
    driver = Driver(calls, [*squares(work, range(6)), *squares(work, [3])])
    wait_until(lambda: len(list(calls.glob("*.call"))) == 6)
    workers = [worker(calls, "--wait") for _ in range(2)]
    assert [result["square"] for result in driver.ended().results] == [0, 1, 4, 9, 16, 25, 9]
    assert sorted(number for number, _ in toy.begun(work)) == list(range(6))
    for process in workers:
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0 and "done" in said
    assert not list(calls.iterdir())


def test_one_call_is_done_from_its_file(calls, work):
    driver = Driver(calls, squares(work, [5, 6]))
    wait_until(lambda: len(list(calls.glob("*.call"))) == 2)
    for path in sorted(calls.glob("*.call")):
        assert json.loads(path.read_text())["task"] == SQUARE
        process = worker(path)
        assert "1 call done" in process.communicate(timeout=120)[1]
    assert [result["square"] for result in driver.ended().results] == [25, 36]


def test_what_a_killed_worker_was_at_is_taken_up_by_another(calls, work):
    arguments = squares(work, [0, 1])
    arguments[1]["first"] = "hang"
    driver = Driver(calls, arguments)
    wait_until(lambda: len(list(calls.glob("*.call"))) == 2)
    first = worker(calls, "--wait")
    wait_until(lambda: toy.times(work, 1) == 1)
    # somebody who comes meanwhile leaves it alone
    second = worker(calls)
    second.communicate(timeout=120)
    assert toy.times(work, 1) == 1
    first.send_signal(signal.SIGKILL)
    first.communicate()
    wait_until(lambda: not alive(dict(toy.begun(work))[1]))
    third = worker(calls)
    assert "1 call done" in third.communicate(timeout=120)[1]
    assert [result["square"] for result in driver.ended().results] == [0, 1]
    assert toy.times(work, 1) == 2


def test_an_error_reaches_the_driver_as_it_is(calls, work):
    driver = Driver(calls, squares(work, [1], always="mistake"))
    wait_until(lambda: list(calls.glob("*.call")))
    worker(calls).communicate(timeout=120)
    error = driver.ended().error
    assert isinstance(error, InputError) and "no column 'quality'" in str(error)


def test_stop_takes_the_open_calls_away(calls, work):
    driver = Driver(calls, squares(work, range(3)))
    wait_until(lambda: len(list(calls.glob("*.call"))) == 3)
    driver.stopping.set()
    assert isinstance(driver.ended().error, Stopped)
    assert not list(calls.glob("*.call"))
    assert worker(calls).communicate(timeout=120)[1].endswith("0 calls done\n")


def test_a_worker_that_is_stopped_leaves_its_call_open(calls, work):
    driver = Driver(calls, squares(work, [4], first="hang"))
    wait_until(lambda: list(calls.glob("*.call")))
    process = worker(calls)
    wait_until(lambda: toy.times(work, 4) == 1)
    process.send_signal(signal.SIGTERM)
    assert "stays open" in process.communicate(timeout=120)[1] and process.returncode == 130
    worker(calls).communicate(timeout=120)
    assert driver.ended().results[0]["square"] == 16


@pytest.mark.parametrize(
    "text",
    [call_text("os:system", {"command": "true"}), call_text(SQUARE, {}), "[]", "{}", "no json", '{"task": "x"}', ""],
)
def test_a_file_that_asks_for_something_else_is_refused(text, calls):
    calls.mkdir()
    (calls / "x.call").write_text(text)
    with (
        open_engine("local", workers=1) as engine,
        pytest.raises(InputError, match="must be a call of a task of datam"),
    ):
        files.do_calls(calls / "x.call", engine)
    assert not (calls / "x.reply").exists()


HOSTILE = {
    "garbage": lambda path: path.write_bytes(b"\x93\x00" * 2000),
    "deep": lambda path: path.write_text("[" * 200_000),
    "huge": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 1 << 33),
    "pipe": os.mkfifo,
    "link": lambda path: path.symlink_to(path.with_name("target")),
    "link to nothing": lambda path: path.symlink_to("/nowhere"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "a function that is no task": lambda path: path.write_text(
        call_text("datamask.out_of_core.engines.worker:_hear", {"a": 1})
    ),
    "a module of a task": lambda path: path.write_text(call_text("datamask.out_of_core.partition:np", {"a": 1})),
    "a task of no text": lambda path: path.write_text('{"task": {}, "argument": {}}'),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_call_is_left_alone_with_one_warning(what, calls, work, monkeypatch):
    calls.mkdir()
    (calls / "target").write_text(call_text(SQUARE, squares(work, [3])[0]))
    HOSTILE[what](calls / "x.call")
    monkeypatch.setattr(files, "TASKS", files.TASKS | {SQUARE})
    told: list[files.NoCall] = []
    with open_engine("local", workers=1) as engine:
        if what != "folder":  # which may be one of calls
            with pytest.raises(files.NoCall, match=r"x\.call"):
                files.do_calls(calls / "x.call", engine)
        (calls / "y.call").write_text(call_text(SQUARE, squares(work, [2])[0]))
        assert files.do_calls(calls, engine, warn=told.append) == 1
    assert len(told) == 1 and "x.call" in str(told[0])
    assert not (calls / "x.reply").exists() and not toy.times(work, 3) and json.loads((calls / "y.reply").read_text())


@pytest.mark.parametrize("what", ["garbage", "folder", "pipe"])
def test_what_is_no_call_keeps_nobody_from_ending(what, calls, looks):
    with files.driving(calls):
        HOSTILE[what](calls / "x.call")
        waiting = Waiting(calls)
        looked(looks, True)
        assert not waiting.ended
    wait_until(lambda: waiting.ended)
    assert waiting.error is None and waiting.done == 0


@pytest.mark.parametrize("what", ["pipe", "folder", "link", "link to a device"])
def test_the_count_of_a_call_is_an_ordinary_file(what, calls, work, monkeypatch):
    calls.mkdir()
    call = calls / "x.call"
    call.write_text(call_text(SQUARE, squares(work, [3])[0]))
    (calls / "target").write_text("kept")
    HOSTILE[what](calls / "x.begun")
    monkeypatch.setattr(files, "TASKS", {SQUARE})
    with open_engine("local", workers=1) as engine:
        assert files.do_calls(calls, engine) == 1
    error = json.loads((calls / "x.reply").read_text())["error"]
    assert error["kind"] == "StoreError" and "x.begun must be an ordinary file" in error["sentence"]
    files._give_back(call)
    assert (calls / "target").read_text() == "kept" and not toy.times(work, 3)


def test_the_list_of_tasks_is_that_of_all_phases():
    package = ROOT / "datamask" / "out_of_core"
    texts = [path.read_text() for path in package.glob("*.py")]
    phase = r'(?:Phase\("datamask\.out_of_core\.|")([a-z_]+:[a-z_]+)"'
    named = {name for text in texts for name in re.findall(phase, text)}
    assert {f"datamask.out_of_core.{name}" for name in named} == files.TASKS
    assert all(callable(function_of(task)) for task in files.TASKS)


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b"])
def test_a_task_writes_no_file_outside_its_folder(name, tmp_path):
    with pytest.raises(InputError, match="must be named by one word"):
        task(lambda argument: ({}, {}))({"folder": str(tmp_path), "output": name, "number": 1})


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no json",
        "[]",
        "{}",
        '{"result": 5}',
        '{"error": "x"}',
        '{"error": {"kind": "OSError"}}',
        "[" * 99_999,
        "link",
    ],
)
def test_a_damaged_reply_is_named(reply, calls, work):
    driver = Driver(calls, squares(work, [9]))
    wait_until(lambda: list(calls.glob("*.call")))
    (call,) = calls.glob("*.call")
    if reply == "link":
        (work / "target").write_text('{"result": {}}')
        (work / "reply").symlink_to(work / "target")
    else:
        (work / "reply").write_text(reply)
    (work / "reply").rename(call.with_suffix(".reply"))
    error = driver.ended().error
    assert isinstance(error, StoreError) and f"{call.stem}.reply must be" in str(error)


def test_an_error_of_an_unknown_kind_calls_nothing():
    reply = json.dumps({"error": {"kind": "poll_of", "sentence": "x"}})
    with pytest.raises(DatamaskError, match=r"^x$"):
        result_of(reply)


def test_a_folder_in_the_place_of_a_count_is_named_to_the_driver(calls, work):
    name = hashlib.blake2b(call_text(SQUARE, squares(work, [9])[0]).encode(), digest_size=16).hexdigest()
    (calls / f"{name}.begun").mkdir(parents=True)
    error = Driver(calls, squares(work, [9])).ended().error
    assert isinstance(error, StoreError) and f"{name}.begun cannot be removed" in str(error)


def test_what_is_not_there_is_said(tmp_path):
    with open_engine("local", workers=1) as engine, pytest.raises(InputError, match="name a call or the folder"):
        files.do_calls(tmp_path / "nowhere", engine)
    with pytest.raises(OptionError, match="--engine files needs --address FOLDER"):
        open_engine("files")


def test_a_stale_reply_is_not_believed(calls, work):
    driver = Driver(calls, squares(work, [9]))
    wait_until(lambda: list(calls.glob("*.call")))
    (call,) = calls.glob("*.call")
    driver.stopping.set()
    driver.ended()
    call.with_suffix(".reply").write_text(json.dumps({"result": {"square": -1}}))
    driver = Driver(calls, squares(work, [9]))
    wait_until(call.exists)
    assert "1 call done" in worker(calls).communicate(timeout=120)[1]
    assert driver.ended().results[0]["square"] == 81


def kill_at_work(calls: Path, work: Path, number: int) -> None:
    """Start somebody who does calls, and kill all of it once it is at this one."""
    before = toy.times(work, number)
    process = worker(calls)
    wait_until(lambda: toy.times(work, number) == before + 1)
    inner = toy.begun(work)[-1][1]
    process.kill()
    process.communicate()
    wait_until(lambda: not alive(inner))


def test_a_call_that_nobody_survives_ends_the_run_in_a_sentence(calls, work):
    driver = Driver(calls, squares(work, [7], always="hang"))
    wait_until(lambda: list(calls.glob("*.call")))
    for _ in range(TRIES):
        kill_at_work(calls, work, 7)
    worker(calls).communicate(timeout=120)
    error = driver.ended().error
    assert isinstance(error, LostWorkersError) and f"{TRIES} worker processes died at the same piece" in str(error)
    assert toy.times(work, 7) == TRIES and not list(calls.iterdir())


def test_who_is_stopped_did_not_die_of_its_call(calls, work):
    driver = Driver(calls, squares(work, [7], always="hang"))
    wait_until(lambda: list(calls.glob("*.call")))
    for times in range(1, TRIES + 2):
        process = worker(calls)
        wait_until(lambda times=times: toy.times(work, 7) == times)
        process.terminate()
        assert "stays open" in process.communicate(timeout=120)[1]
    assert driver.error is None
    driver.stopping.set()
    assert isinstance(driver.ended().error, Stopped)


def test_stop_is_heard_while_calls_are_put_there(calls, work):
    polls = []

    def poll() -> None:
        polls.append(len(list(calls.glob("*.call"))))
        if len(polls) == 3:
            raise Stopped("stopped on request")

    with open_engine("files", address=str(calls)) as engine, pytest.raises(Stopped):
        engine.run(SQUARE, squares(work, range(5)), poll=poll)
    assert polls == [0, 1, 2] and not list(calls.iterdir())


def test_a_call_that_is_taken_away_as_it_is_opened_ends_nobody(calls, monkeypatch):
    calls.mkdir()
    (calls / "x.call").write_text(call_text(SQUARE, {}))
    read = files._read

    def taken_away(path: Path) -> str:
        path.unlink()
        return read(path)

    monkeypatch.setattr(files, "_read", taken_away)
    with open_engine("local", workers=1) as engine:
        assert files.do_calls(calls, engine) == 0


def test_a_call_that_is_taken_away_while_it_is_done_gets_no_reply(calls, work):
    driver = Driver(calls, squares(work, [4], after=5))
    wait_until(lambda: list(calls.glob("*.call")))
    process = worker(calls)
    wait_until(lambda: toy.times(work, 4) == 1)
    driver.stopping.set()
    driver.ended()
    (work / "5.json").write_text("{}")
    process.communicate(timeout=120)
    assert process.returncode == 0 and (work / "4.json").exists() and not list(calls.iterdir())


# -- who waits, and for whom -----------------------------------------------------------------------------------------


class Waiting:
    """Waits in a folder for calls, in a thread; `done` or `error` when it has ended."""

    def __init__(self, calls: Path) -> None:
        self.done, self.error = -1, None
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(calls,))
        self._thread.start()

    def _run(self, calls: Path) -> None:
        try:
            with open_engine("local", workers=1) as engine:
                self.done = files.do_calls(calls, engine, wait=True, poll=poll_of(self.stopping.is_set))
        except Exception as error:
            self.error = error

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def end(self) -> None:
        self.stopping.set()
        self._thread.join(120)


@pytest.fixture
def looks(monkeypatch):
    """How often somebody who waits has looked for a driver, and what was seen: a list of answers."""
    answers, driven = [], files._is_driven

    def noted(folder: Path) -> bool:
        answers.append(driven(folder))
        return answers[-1]

    monkeypatch.setattr(files, "_is_driven", noted)
    return answers


def looked(answers: list[bool], answer: bool) -> None:
    """Wait until somebody has looked twice anew, and seen that."""
    before = len(answers)
    wait_until(lambda: len(answers) >= before + 3 and answers[-2:] == [answer, answer])


def test_a_folder_that_was_used_before_keeps_those_who_wait_for_the_next_run(calls, looks, monkeypatch):
    monkeypatch.setattr(files, "TASKS", {SQUARE})
    with open_engine("files", address=str(calls)) as engine:
        engine.run(SQUARE, [], poll=lambda: None)
    (calls / "over").touch()
    with files.driving(calls):
        pass
    waiting = Waiting(calls)
    looked(looks, False)
    assert not waiting.ended
    # the second run learns on its sample before it has calls
    with files.driving(calls):
        looked(looks, True)
        assert not waiting.ended
    wait_until(lambda: waiting.ended)
    assert waiting.error is None and waiting.done == 0


def test_the_end_of_a_run_ends_nobody_while_another_is_at_work(calls, looks):
    with files.driving(calls):
        with files.driving(calls):
            waiting = Waiting(calls)
            looked(looks, True)
        looked(looks, True)
        assert not waiting.ended
    wait_until(lambda: waiting.ended)
    assert waiting.error is None and not list(calls.iterdir())


HOLDER = """
import sys, time
from datamask.out_of_core.engines import files
with files.driving(sys.argv[1]):
    print("ready", flush=True)
    time.sleep(1000)
"""


def test_a_driver_that_is_killed_keeps_nobody_waiting_and_leaves_nothing_that_the_next_does_not_remove(calls, looks):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(calls)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "ready\n"
    waiting = Waiting(calls)
    looked(looks, True)
    holder.kill()
    holder.communicate()
    wait_until(lambda: waiting.ended)
    assert waiting.error is None
    assert len(list(calls.iterdir())) == 1
    with files.driving(calls):
        assert len(list(calls.iterdir())) == 1
    assert not list(calls.iterdir())


def test_those_who_come_before_the_folder_wait_for_it(calls, looks):
    waiting = Waiting(calls)
    looked(looks, False)
    assert not waiting.ended
    with files.driving(calls):
        looked(looks, True)
    wait_until(lambda: waiting.ended)
    assert waiting.error is None and waiting.done == 0


def test_nobody_waits_for_ever_where_no_run_comes(calls, monkeypatch):
    monkeypatch.setattr(files, "DRIVER_SECONDS", 0.0)
    waiting = Waiting(calls)
    wait_until(lambda: waiting.ended)
    assert isinstance(waiting.error, InputError) and "no run made it" in str(waiting.error)
    calls.mkdir()
    waiting = Waiting(calls)
    wait_until(lambda: waiting.ended)
    assert waiting.error is None and waiting.done == 0


def test_a_run_is_a_driver_before_it_has_calls_and_until_its_end(tmp_path, calls, monkeypatch):
    place = tmp_path / "shards"
    place.mkdir()
    pq.write_table(shard(400, seed=0, d=8), place / "0.parquet")
    selection = SelectionConfig.from_options(
        objective="facility",
        estimator="blocks",
        block_rows=200,
        device="cpu",
        scratch_dir=str(tmp_path / "scratch"),
        engine="files",
        address=str(calls),
    )
    run = RunStore(tmp_path / "runs").create(RunConfig(CorpusConfig((str(place),), rows=200), selection))
    seen = []

    def load_corpus(execution):
        seen.append(files._is_driven(calls))
        raise Stopped("stopped on request")

    monkeypatch.setattr(execute_module, "OUT_OF_CORE_STAGES", (whole.prepare, load_corpus))
    execute(run)
    assert seen == [True] and not list(calls.iterdir())
