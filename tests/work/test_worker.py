"""The worker: one job per key, with progress, a stop, and every ending recorded."""

from __future__ import annotations

import threading

from datamask.dashboard.drawing.signs import Sign, signed
from datamask.errors import InputError, Stopped
from datamask.work import worker as worker_module
from datamask.work.worker import Worker, worker

LONG = 120


def ended(key, work, **options):
    job = worker().start(key, work, **options)
    assert job.wait(LONG)
    return job


def test_the_result_and_the_progress_are_kept():
    def work(job):
        job.report(0.5, "half")
        return 42

    job = ended("result", work)
    assert (job.state, job.result, job.share, job.message) == ("done", 42, 1.0, "half") and job.ended
    assert worker().find("result") is job and worker().find("no such") is None


def test_a_key_works_once_at_a_time_and_again_afterwards():
    go, calls = threading.Event(), []

    def work(job):
        calls.append(1)
        go.wait(LONG)

    first = worker().start("once", work)
    assert worker().start("once", work) is first and not first.ended
    go.set()
    assert first.wait(LONG)
    assert ended("once", work) is not first and len(calls) == 2


def test_stopped_failed_and_faulty_are_told_apart(caplog):
    def polling(job):
        while True:
            job.poll()

    job = worker().start("polling", polling)
    assert not job.stopping
    job.stop()
    assert job.wait(LONG) and job.state == "stopped" and not job.stopping

    def failing(job):
        raise InputError("no such shard")

    def faulty(job):
        raise KeyError("/a/folder")

    failed = ended("failing", failing)
    assert (failed.state, failed.error) == ("failed", "no such shard") and not caplog.records
    fault = ended("faulty", faulty)
    assert fault.state == "failed" and "KeyError" in fault.error and "/a/folder" not in fault.error
    # whoever runs the server finds the rest by its number
    assert fault.error.split("nternal error ")[1].split()[0] in caplog.text and "KeyError: '/a/folder'" in caplog.text


def test_a_lack_of_memory_is_no_fault_of_the_program(caplog):
    def hungry(job):
        raise MemoryError("Unable to allocate 74.5 GiB for an array")

    job = ended("hungry", hungry)
    assert job.state == "failed" and "Out of memory. Open fewer rows" in job.error
    assert "Internal error" not in job.error and job.error.split("internal error ")[1] in caplog.text


def test_what_was_raised_in_leaving_hides_no_ending():
    left = []
    job = ended("leaving", lambda job: 7, leaving=lambda job: left.append(job.state))
    assert left == ["running"] and job.state == "done"

    def stopping(job):
        raise Stopped("enough")

    job = ended("leaving stopped", stopping, leaving=lambda job: left.append(job.key))
    assert job.state == "stopped" and left[-1] == "leaving stopped"


def test_old_endings_are_forgotten_and_a_job_under_way_is_not():
    here, go = Worker(), threading.Event()
    under_way = here.start("under way", lambda job: go.wait(LONG))
    for place in range(worker_module.KEPT + 20):
        here.start(f"old {place}", lambda job: None).wait(LONG)
    assert here.find("old 0") is None and here.find(f"old {worker_module.KEPT + 19}") is not None
    here.forget("under way")
    assert here.find("under way") is under_way and here.active() == [under_way]
    go.set()
    assert under_way.wait(LONG)
    here.forget("under way")
    assert here.find("under way") is None and here.active() == []


def test_the_menu_sees_signed_work_only_while_it_goes_on():
    go, reported = threading.Event(), threading.Event()

    def work(job):
        for share in (0.1, 0.2):
            job.report(share, "part")
        reported.set()
        go.wait(LONG)

    sign = Sign("Long work", "app.py", {"corpus": "abc"})
    job = worker().start("signed", work, sign=sign, about="what was asked")
    unsigned = worker().start("unsigned", work)
    assert reported.wait(LONG)
    # other tests' work may be under way too
    keys = [other.key for other in signed()]
    assert "signed" in keys and "unsigned" not in keys and job.sign is sign
    assert job.about == "what was asked" and job.left is not None and job.left >= 0
    go.set()
    assert job.wait(LONG) and unsigned.wait(LONG)
    assert "signed" not in [other.key for other in signed()]
