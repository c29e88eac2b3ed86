"""Tasks: one per key, with progress, a stop, and every ending recorded."""

import threading

from datamask.dashboard import tasks
from datamask.errors import InputError, Stopped


def ended(key, work):
    task = tasks.start(key, work)
    task.wait(120)
    return task


def test_the_result_and_the_progress_are_kept():
    def work(progress, should_stop):
        progress(0.5, "half")
        return 42

    task = ended("result", work)
    assert (task.state, task.result, task.share) == ("done", 42, 1.0) and tasks.find("result") is task


def test_a_key_works_once_at_a_time_and_again_afterwards():
    go, calls = threading.Event(), []

    def work(progress, should_stop):
        calls.append(1)
        go.wait(120)

    first = tasks.start("once", work)
    assert tasks.start("once", work) is first
    go.set()
    first.wait(120)
    assert ended("once", work) is not first and len(calls) == 2


def test_stopped_failed_and_faulty_are_told_apart():
    def stopping(progress, should_stop):
        while not should_stop():
            pass
        raise Stopped("stopped")

    task = tasks.start("stopping", stopping)
    task.stop()
    task.wait(120)
    assert task.state == "stopped"

    def failing(progress, should_stop):
        raise InputError("no such shard")

    def faulty(progress, should_stop):
        raise KeyError("x")

    assert (ended("failing", failing).state, tasks.find("failing").error) == ("failed", "no such shard")
    assert ended("faulty", faulty).state == "failed" and "KeyError" in tasks.find("faulty").error


def test_old_endings_are_forgotten():
    for i in range(tasks.KEPT + 20):
        ended(f"old-{i}", lambda progress, should_stop: None)
    assert tasks.find("old-0") is None and tasks.find(f"old-{tasks.KEPT + 19}") is not None


def test_the_menu_sees_signed_work_only_while_it_goes_on():
    go, told = threading.Event(), threading.Event()

    def work(progress, should_stop):
        for share in (0.1, 0.2):
            progress(share, "part")
        told.set()
        go.wait(120)

    sign = tasks.Sign("Long work", "app.py", {"corpus": "abc"}, "Stops at once.")
    task = tasks.start("signed", work, sign=sign, about="what was asked")
    tasks.start("unsigned", work)
    assert told.wait(120)
    # other tests' work may be under way too
    keys = [one.key for one in tasks.signed()]
    assert "signed" in keys and "unsigned" not in keys and task.sign is sign
    assert task.about == "what was asked" and task.left is not None and task.left >= 0
    go.set()
    task.wait(120)
    tasks.find("unsigned").wait(120)
    assert "signed" not in [one.key for one in tasks.signed()]
