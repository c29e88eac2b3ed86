"""The contract of engines, over all of them: order, errors, workers and drivers that are killed, Stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from datamask.errors import InputError, LostWorkersError, OptionError, Stopped
from datamask.out_of_core.engines import ENGINES, local, open_engine
from datamask.out_of_core.engines.contract import ONE_THREAD, TRIES
from datamask.out_of_core.engines.replies import LARGEST, TaskFault, call_text, reply_to, result_of
from datamask.out_of_core.engines.worker import NICE
from tests.out_of_core import toy

ROOT = Path(__file__).parents[2]
SQUARE = "tests.out_of_core.toy:square"
PATIENCE = 120.0

NEEDS_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: requirements-dev.txt names it")
EVERY_ENGINE = [pytest.param(name, marks=NEEDS_RAY if name == "ray" else ()) for name in sorted(ENGINES)]


def no_poll() -> None:
    """Nobody stops."""


@pytest.fixture(scope="module", params=EVERY_ENGINE)
def engine(request):
    """Each engine with two workers, shared by the tests of this file: starting one takes long."""
    with open_engine(request.param, workers=2) as opened:
        yield opened


def squares(folder: Path, numbers, **more) -> list[dict]:
    """Arguments for the toy."""
    return [{"folder": str(folder), "number": number, **more} for number in numbers]


def wait_until(condition) -> None:
    """Poll until it holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def alive(process: int) -> bool:
    """Whether that process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def begun_processes(folder: Path) -> set[int]:
    """The processes that have begun something."""
    return {process for _, process in toy.begun(folder)}


def references_of_ray() -> dict:
    """What this process has of Ray's results: while an error is kept too, since Ray ends a process that drops one while
    its connection ends."""
    worker = sys.modules["ray._private.worker"].global_worker if "ray" in sys.modules else None
    return worker.core_worker.get_all_reference_counts() if worker is not None and worker.connected else {}


# -- what comes back -------------------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_arguments_and_each_is_told_once(engine, tmp_path):
    told: list[tuple[int, int]] = []
    arguments = squares(tmp_path, range(6))
    # the first one ends once all others have been told of
    arguments[0]["after"] = "others"

    def tell(place: int, result: dict) -> None:
        told.append((place, result["square"]))
        if len(told) == 5:
            (tmp_path / "others.json").touch()

    results = engine.run(SQUARE, arguments, poll=no_poll, on_done=tell)
    assert [result["square"] for result in results] == [0, 1, 4, 9, 16, 25]
    assert sorted(told) == [(number, number**2) for number in range(6)]
    assert told[-1] == (0, 0)
    assert len(begun_processes(tmp_path)) == 2 and os.getpid() not in begun_processes(tmp_path)


def test_nothing_to_do_is_done(engine):
    assert engine.run(SQUARE, [], poll=no_poll) == []


def test_what_is_done_is_not_done_again(engine, tmp_path):
    engine.run(SQUARE, squares(tmp_path, range(3)), poll=no_poll)
    results = engine.run(SQUARE, squares(tmp_path, range(5)), poll=no_poll)
    assert [bool(result.get("reused")) for result in results] == [True, True, True, False, False]
    assert sorted(number for number, _ in toy.begun(tmp_path)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("workers", [1, 3])
def test_results_do_not_depend_on_the_number_of_workers(workers, tmp_path):
    with open_engine("local", workers=workers) as engine:
        assert engine.workers == workers
        results = engine.run(SQUARE, squares(tmp_path, range(4)), poll=no_poll)
    assert [(result["number"], result["square"]) for result in results] == [(0, 0), (1, 1), (2, 4), (3, 9)]


def test_workers_compute_in_one_thread(engine):
    (result,) = engine.run("tests.out_of_core.toy:threads", [{"names": sorted(ONE_THREAD)}], poll=no_poll)
    assert result == ONE_THREAD


def test_local_workers_let_others_go_first():
    with open_engine("local", workers=1) as engine:
        (result,) = engine.run("tests.out_of_core.toy:priority", [{}], poll=no_poll)
    assert result == {"nice": min(os.nice(0) + NICE, 19)}


def test_what_a_task_prints_is_no_reply(engine, tmp_path):
    (result,) = engine.run(SQUARE, squares(tmp_path, [7], always="chatter"), poll=no_poll)
    assert result["square"] == 49


# -- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "happens, kind, words",
    [
        ("mistake", InputError, "no column 'quality'"),
        ("full", OSError, "No space left"),
        ("memory", MemoryError, "8 GiB"),
        ("bug", TaskFault, "ZeroDivisionError: division by zero"),
    ],
)
def test_errors_come_through_as_they_are_and_are_not_tried_again(engine, tmp_path, happens, kind, words):
    arguments = [*squares(tmp_path, [3], always=happens), *squares(tmp_path, [4], always="hang")]
    with pytest.raises(kind, match=words) as raised:
        engine.run(SQUARE, arguments, poll=no_poll)
    assert toy.times(tmp_path, 3) == 1
    # the other one, in flight, was ended
    wait_until(lambda: not any(map(alive, [process for number, process in toy.begun(tmp_path) if number == 4])))
    if kind is TaskFault:
        assert "in _bug" in raised.value.__notes__[0]
    if happens == "full":
        assert (raised.value.errno, raised.value.filename) == (28, "scratch.bin")
    assert references_of_ray() == {}


def test_an_engine_goes_on_after_an_error(engine, tmp_path):
    with pytest.raises(InputError):
        engine.run(SQUARE, squares(tmp_path, [1], always="mistake"), poll=no_poll)
    assert engine.run(SQUARE, squares(tmp_path, [2]), poll=no_poll)[0]["square"] == 4


def test_a_worker_that_is_killed_costs_only_what_it_was_at(engine, tmp_path):
    arguments = squares(tmp_path, range(6))
    arguments[2]["first"] = "hang"

    def kill() -> None:
        wait_until(lambda: toy.times(tmp_path, 2) == 1)
        os.kill(dict(toy.begun(tmp_path))[2], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    results = engine.run(SQUARE, arguments, poll=no_poll)
    killer.join()
    assert [result["square"] for result in results] == [0, 1, 4, 9, 16, 25]
    assert [toy.times(tmp_path, number) for number in range(6)] == [1, 1, 2, 1, 1, 1]


def test_a_task_that_kills_its_workers_is_given_up_in_a_sentence(engine, tmp_path):
    with pytest.raises(LostWorkersError, match=rf"^{TRIES} worker processes died .*toy:square.*resume") as lost:
        engine.run(SQUARE, squares(tmp_path, [5], always="die"), poll=no_poll)
    assert toy.times(tmp_path, 5) == TRIES
    # how the last one died, as far as the engine knows
    assert any(how in str(lost.value) for how in ("by SIGKILL", "WorkerCrashedError (The worker died"))
    assert references_of_ray() == {}


def test_workers_killed_while_they_had_nothing_to_do_are_no_task_s_fault(tmp_path):
    with open_engine("local", workers=TRIES) as engine:
        engine.run(SQUARE, squares(tmp_path, range(3 * TRIES), seconds=0.2), poll=no_poll)
        processes = begun_processes(tmp_path)
        assert len(processes) == TRIES
        for process in processes:
            os.kill(process, signal.SIGKILL)
        wait_until(lambda: not any(alive(process) for process in processes))
        (result,) = engine.run(SQUARE, squares(tmp_path, [99]), poll=no_poll)
    assert result["square"] == 99**2


def test_a_worker_that_closes_its_end_and_lives_on_is_ended_the_last_time_too(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "DYING_SECONDS", 0.1)
    with open_engine("local", workers=1) as engine:
        with pytest.raises(LostWorkersError, match="the last one without a word"):
            engine.run(SQUARE, squares(tmp_path, [5], always="mute"), poll=no_poll)
        processes = begun_processes(tmp_path)
        assert len(processes) == TRIES and not any(map(alive, processes))


def test_stop_ends_what_is_in_flight(engine, tmp_path):
    def poll() -> None:
        if len(toy.begun(tmp_path)) == 2:
            raise Stopped("stopped on request")

    with pytest.raises(Stopped, match="on request") as stopped:
        engine.run(SQUARE, squares(tmp_path, range(5), always="hang"), poll=poll)
    assert references_of_ray() == {}, f"kept by {stopped.value!r}"
    wait_until(lambda: not any(map(alive, begun_processes(tmp_path))))
    assert len(toy.begun(tmp_path)) == 2


DRIVER = """
import sys
from datamask.out_of_core.engines import open_engine
name, folder, slow = sys.argv[1:]
arguments = [{"folder": folder, "number": number} for number in range(8)]
for number in map(int, slow.split()):
    arguments[number]["first"] = "hang"
with open_engine(name, workers=2) as engine:
    engine.run("tests.out_of_core.toy:square", arguments, poll=lambda: None)
"""


@pytest.mark.parametrize("name", EVERY_ENGINE)
def test_a_driver_that_is_killed_takes_its_workers_along_and_only_what_was_in_flight_is_done_again(name, tmp_path):
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, name, str(tmp_path), "3 6"], cwd=ROOT)
    # two workers hang in 3 and 6 when all before 6 is done
    wait_until(lambda: toy.times(tmp_path, 3) == toy.times(tmp_path, 6) == 1)
    workers = begun_processes(tmp_path)
    assert any(map(alive, workers))
    driver.kill()
    driver.wait()
    wait_until(lambda: not any(map(alive, workers)))
    assert sorted(int(path.stem) for path in tmp_path.glob("*.json")) == [0, 1, 2, 4, 5]
    with open_engine(name, workers=2) as engine:
        results = engine.run(SQUARE, squares(tmp_path, range(8)), poll=no_poll)
    assert [result["square"] for result in results] == [number**2 for number in range(8)]
    assert [toy.times(tmp_path, number) for number in range(8)] == [1, 1, 1, 2, 1, 1, 2, 1]


CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 3, "object_store_memory": 78643200})
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


JOINING = """
import sys
from datamask.errors import RemoteError
from datamask.out_of_core.engines import open_engine
arguments = [{"folder": sys.argv[2], "number": number} for number in range(5)]
try:
    for _ in range(2):
        with open_engine("ray", address=sys.argv[1]) as engine:
            results = engine.run("tests.out_of_core.toy:square", arguments, poll=lambda: None)
            print(engine.workers, *(result["square"] for result in results), flush=True)
        sys.stdin.readline()
except RemoteError as error:
    print(error)
"""


@NEEDS_RAY
def test_a_cluster_is_joined_and_left(tmp_path):
    # not from within this process, which can be joined to one cluster at a time
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    address = cluster.stdout.readline().strip()
    words = [sys.executable, "-c", JOINING, address, str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout.readline().split() == ["3", "0", "1", "4", "9", "16"]
        # it is there still for others, and not any more when it has been shut down
        assert cluster.poll() is None
        cluster.communicate()
        said, _ = driver.communicate("go on\n", timeout=PATIENCE)
    assert f"the Ray cluster cannot be joined at {address}" in said


@NEEDS_RAY
def test_a_cluster_of_three_nodes_loses_some_and_gets_others(tmp_path):
    """Two here; without the last word it is one in each phase, which takes minutes."""
    words = [sys.executable, "-m", "tests.out_of_core.losing_nodes", str(tmp_path), "2"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    outcome = json.loads((tmp_path / "outcome.json").read_text())
    assert outcome.pop("phases") > 2 and outcome == {"same": True, "lost": 2, "repeated": 2, "most": 2}


# -- what may cross --------------------------------------------------------------------------------------------------


def test_only_small_json_crosses(engine):
    with pytest.raises(TypeError, match=r"must be JSON"):
        engine.run(SQUARE, [{"folder": Path("x")}], poll=no_poll)
    with pytest.raises(ValueError, match=rf"above {LARGEST:,}: write it to a file"):
        engine.run(SQUARE, [{"folder": "x" * LARGEST}], poll=no_poll)
    with pytest.raises(TaskFault, match=r"must give a dict back.*gave list"):
        engine.run("tests.out_of_core.toy:no_dict", [{}], poll=no_poll)
    with pytest.raises(TaskFault, match=rf"above {LARGEST:,}"):
        engine.run("tests.out_of_core.toy:too_much", [{"rows": LARGEST}], poll=no_poll)


@pytest.mark.parametrize("task", ["tests.out_of_core.toy", "tests.out_of_core.toy:", "tests.out_of_core.toy:SQUARES"])
def test_a_task_is_a_function_of_a_module(task):
    with pytest.raises(TaskFault, match=r"package\.module:function"):
        result_of(reply_to(call_text(task, {})))


def test_numbers_cross_as_they_are():
    argument = {"folder": "x", "number": 0.1 + 0.2, "not": float("nan"), "above": float("inf")}
    text = call_text("a:b", argument)
    assert "0.30000000000000004" in text and "\n" not in text


def test_unknown_engines_and_clusters_of_engines_without_are_refused():
    with pytest.raises(OptionError, match=r"--engine must be one of .*local.*got 'slurm'"):
        open_engine("slurm")
    with pytest.raises(OptionError, match=r"--address is of --engine ray"):
        open_engine("local", address="head:6379")
    with pytest.raises(ValueError, match="at least 1, got 0"):
        open_engine("local", workers=0)
