"""Lanes: one inside, the most urgent next, and work that gives way in the middle; nobody waits for ever."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from datamask.errors import Stopped
from datamask.polling import no_poll, poll_of
from datamask.work import lanes
from datamask.work.job import Job
from datamask.work.lanes import Priority, lane
from datamask.work.locks import only_one
from datamask.work.worker import Worker

DEADLINE = 60.0
_names = itertools.count()


@pytest.fixture
def device() -> str:
    """A device that no other test computes on."""
    return f"test {next(_names)}"


@pytest.fixture
def worker() -> Worker:
    return Worker()


def until(condition) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


class Gate:
    """Work that says when it has begun, polls, and ends when it may."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, job: Job) -> None:
        self.begun.set()
        while not self.may_end.is_set():
            job.poll()
            time.sleep(0.001)


def waiting(device: str) -> int:
    return len(lane(device)._waiting)


def test_one_computes_at_a_time_and_the_most_urgent_comes_next(device, worker):
    order, may_end = [], threading.Event()

    def first(job):
        order.append(job.key)
        may_end.wait(DEADLINE)

    jobs = [worker.start("first", first, device=device, priority=Priority.LIVE)]
    until(lambda: order == ["first"])
    for place, (key, priority) in enumerate(
        (
            ("sweep", Priority.SWEEP),
            ("page", Priority.PAGE),
            ("run", Priority.RUN),
            ("page 2", Priority.PAGE),
            ("live", Priority.LIVE),
        )
    ):
        jobs.append(worker.start(key, lambda job: order.append(job.key), device=device, priority=priority))
        until(lambda place=place: waiting(device) == place + 1)
    assert [job.state for job in jobs] == ["running"] + 5 * ["queued"]
    assert jobs[1].ahead == 5 and jobs[-1].ahead == 1  # the sweep is last, the live answer behind the one inside
    assert jobs[1].message == "waits for other work to end"
    may_end.set()
    assert all(job.wait(DEADLINE) for job in jobs)
    assert order == ["first", "live", "page", "page 2", "run", "sweep"]
    assert {job.state for job in jobs} == {"done"} and jobs[1].ahead == 0


def test_long_work_gives_way_while_it_polls_and_then_goes_on(device, worker):
    long = Gate()
    low = worker.start("low", long, device=device, priority=Priority.SWEEP)
    assert long.begun.wait(DEADLINE)
    high = worker.start("high", lambda job: lane(device).holds(low._ticket), device=device, priority=Priority.LIVE)
    assert high.wait(DEADLINE) and high.result is False  # the low one was outside meanwhile
    assert low.state == "running"
    long.may_end.set()
    assert low.wait(DEADLINE) and low.state == "done"


def test_it_does_not_give_way_to_its_equals(device, worker):
    long, entered = Gate(), []
    low = worker.start("a", long, device=device, priority=Priority.RUN)
    assert long.begun.wait(DEADLINE)
    other = worker.start("b", lambda job: entered.append("b"), device=device, priority=Priority.RUN)
    until(lambda: waiting(device) == 1)
    for _ in range(20):
        assert entered == [] and not low._ticket.must_give_way
        time.sleep(0.002)
    long.may_end.set()
    assert low.wait(DEADLINE) and other.wait(DEADLINE) and entered == ["b"]


def test_who_gave_way_comes_back_before_those_that_came_later(device, worker):
    long, order = Gate(), []
    low = worker.start("low", lambda job: (long(job), order.append("low")), device=device, priority=Priority.RUN)
    assert long.begun.wait(DEADLINE)
    later = worker.start("later", lambda job: order.append("later"), device=device, priority=Priority.RUN)
    until(lambda: waiting(device) == 1)
    urgent = worker.start("urgent", lambda job: order.append("urgent"), device=device, priority=Priority.PAGE)
    assert urgent.wait(DEADLINE)
    long.may_end.set()
    assert low.wait(DEADLINE) and later.wait(DEADLINE) and order == ["urgent", "low", "later"]


def test_another_device_does_not_wait(device, worker):
    long = Gate()
    low = worker.start("low", long, device=device)
    assert long.begun.wait(DEADLINE)
    assert worker.start("elsewhere", lambda job: 1, device=f"{device} too").wait(DEADLINE)
    assert worker.start("nowhere", lambda job: 1, device=None).wait(DEADLINE) and not low.ended
    long.may_end.set()
    assert low.wait(DEADLINE)


@pytest.mark.parametrize("kind", ["thread lock", "file lock"])
def test_a_lock_that_two_want_is_waited_for_outside_the_lane(device, worker, tmp_path, kind):
    """The lower one holds the lock and gives way to the higher, which waits for that very lock: both get on."""
    lock, holding, going_on = threading.Lock(), threading.Event(), threading.Event()

    def locked(job):
        if kind == "thread lock":
            return lanes.locked(lock, job.poll)
        return only_one(tmp_path / "lock", job.poll)

    def low(job):
        with locked(job):
            holding.set()
            assert going_on.wait(DEADLINE)
            for _ in range(20):
                job.poll()
                time.sleep(0.001)

    def high(job):
        with locked(job):
            assert lane(device).holds(job._ticket)

    first = worker.start("low", low, device=device, priority=Priority.RUN)
    assert holding.wait(DEADLINE)
    second = worker.start("high", high, device=device, priority=Priority.LIVE)
    until(lambda: waiting(device) == 1)
    going_on.set()
    assert first.wait(DEADLINE) and second.wait(DEADLINE)
    assert (first.state, first.error) == (second.state, second.error) == ("done", "")


@pytest.mark.parametrize("kind", ["thread lock", "file lock"])
def test_waiting_for_a_lock_can_be_stopped(device, worker, tmp_path, kind):
    lock = threading.Lock()

    def work(job):
        with lanes.locked(lock, job.poll) if kind == "thread lock" else only_one(tmp_path / "lock", job.poll):
            raise AssertionError("nobody gave the lock back")

    with lock, only_one(tmp_path / "lock"):
        job = worker.start("waits", work, device=device)
        # others compute meanwhile
        assert worker.start("other", lambda job: 1, device=device, priority=Priority.SWEEP).wait(DEADLINE)
        job.stop()
        assert job.wait(DEADLINE) and (job.state, job.error) == ("stopped", "")
    assert not lock.locked()


@pytest.mark.parametrize("priority", Priority)
def test_a_job_is_stopped_while_it_waits_for_its_turn(device, worker, priority):
    long = Gate()
    first = worker.start("busy", lambda job: (long.begun.set(), long.may_end.wait(DEADLINE)), device=device)
    assert long.begun.wait(DEADLINE)
    left = []
    job = worker.start(
        "waits",
        lambda job: pytest.fail("it was stopped before it began"),
        device=device,
        priority=priority,
        leaving=left.append,
    )
    until(lambda: waiting(device) == 1)
    assert job.state == "queued"
    job.stop()
    assert job.wait(DEADLINE) and job.state == "stopped" and left == [job]
    long.may_end.set()
    assert first.wait(DEADLINE)


def test_a_job_stopped_while_it_has_given_way_ends_as_stopped(device, worker):
    low, high = Gate(), Gate()
    lower = worker.start("low", low, device=device, priority=Priority.SWEEP)
    assert low.begun.wait(DEADLINE)
    higher = worker.start("high", high, device=device, priority=Priority.PAGE)
    assert high.begun.wait(DEADLINE)
    lower.stop()
    assert lower.wait(DEADLINE) and lower.state == "stopped" and higher.state == "running"
    high.may_end.set()
    assert higher.wait(DEADLINE) and higher.state == "done"


def test_an_error_frees_the_lane(device, worker):
    def broken(job):
        raise ZeroDivisionError("division by zero")

    assert worker.start("broken", broken, device=device).wait(DEADLINE)
    last = worker.start("last", lambda job: 7, device=device, priority=Priority.SWEEP)
    assert last.wait(DEADLINE) and last.result == 7


def test_waiting_is_not_counted_in_the_time_left(device, worker, monkeypatch):
    now, clock = [100.0], []
    monkeypatch.setattr(lanes.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr("datamask.work.pace.Eta.update", lambda self, share, now, what: clock.append(now))

    def work(job):
        job.report(0.1, "a")
        now[0] += 5.0
        with lanes.aside():
            now[0] += 300.0
        job.report(0.2, "b")

    job = worker.start("job", work, device=device)
    job._ended.wait()
    assert job.error == "" and clock == [100.0, 105.0]


def test_the_clock_of_work_stands_still_while_it_gives_way(device, worker):
    long, urgent = Gate(), Gate()
    clocks = []

    def low(job):
        clocks.append((lanes.clock(), time.perf_counter()))
        long(job)
        clocks.append((lanes.clock(), time.perf_counter()))

    lower = worker.start("low", low, device=device, priority=Priority.RUN)
    assert long.begun.wait(DEADLINE)
    higher = worker.start("high", urgent, device=device, priority=Priority.LIVE)
    assert urgent.begun.wait(DEADLINE)
    assert not higher.wait(0.5)
    urgent.may_end.set()
    long.may_end.set()
    assert lower.wait(DEADLINE)
    (work, wall), (work_end, wall_end) = clocks
    assert 0 <= work_end - work <= wall_end - wall - 0.4


def test_a_turn_is_taken_by_work_outside_the_worker_and_not_twice(device, worker):
    long = Gate()
    job = worker.start("job", long, device=device, priority=Priority.RUN)
    assert long.begun.wait(DEADLINE)
    inside = []

    def sweep():
        with lanes.turn(device, Priority.SWEEP, no_poll), lanes.turn(device, Priority.SWEEP, no_poll):
            inside.append(lane(device).holds(job._ticket))

    thread = threading.Thread(target=sweep)
    thread.start()
    until(lambda: waiting(device) == 1)
    # who is told to stop goes on without the lane, and ends by itself
    with lanes.turn(device, Priority.SWEEP, poll_of(lambda: True)):
        assert lane(device).holds(job._ticket)
    long.may_end.set()
    thread.join(DEADLINE)
    assert inside == [False] and job.wait(DEADLINE)
    lanes.give_way()  # harmless outside every lane
    with lanes.aside():
        pass


def test_many_jobs_of_all_priorities_all_end_and_never_two_at_once(device, worker):
    inside, most, lock = [], [], threading.Lock()

    def work(job):
        for _ in range(5):
            with lock:
                inside.append(job.key)
                most.append(len(inside))
            time.sleep(0.001)
            with lock:
                inside.remove(job.key)
            job.poll()
        if job.about == "stops":
            job.stop()
            job.poll()

    jobs = [
        worker.start(f"{k}", work, device=device, priority=Priority(k % 5), about="stops" if k % 7 == 0 else "")
        for k in range(40)
    ]
    assert all(job.wait(DEADLINE) for job in jobs)
    assert max(most) == 1
    assert [job.state for job in jobs] == ["stopped" if k % 7 == 0 else "done" for k in range(40)]


def test_stopped_is_heard_in_a_poll():
    job = Job("job")
    job.stop()
    with pytest.raises(Stopped):
        job.poll()
