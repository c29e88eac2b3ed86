"""`Work`: parts of parts, and how it hears that it is to stop."""

from __future__ import annotations

import pytest

from datamask.errors import Stopped
from datamask.work.context import UNWATCHED, Work
from datamask.work.job import Job


def test_shares_of_a_part_of_a_part_are_shares_of_the_whole():
    told = []
    work = Work(report=lambda share, what: told.append((share, what)), threads=2)
    inner = work.part(0.2, 0.8).part(0.5, 1.0)
    for share in (0.0, 0.5, 1.0):
        inner.report(share, "x")
    assert told == [(pytest.approx(share), "x") for share in (0.5, 0.65, 0.8)]
    assert inner.threads == 2


def test_it_stops_where_its_starter_says_so():
    asked = [False]
    work = Work.of(lambda: asked[0])
    work.poll()
    assert not work.stopping()
    asked[0] = True
    assert work.stopping() and work.part(0.0, 0.5).stopping()
    with pytest.raises(Stopped, match="on request"):
        work.poll()


def test_a_job_hands_its_own_poll_and_report_to_the_work():
    job = Job("x")
    job.work.report(0.25, "reading")
    assert (job.share, job.message) == (0.25, "reading")
    job.stop()
    with pytest.raises(Stopped):
        job.work.poll()


def test_nobody_stops_or_watches_the_default():
    UNWATCHED.report(1.0, "done")
    UNWATCHED.poll()
    assert not UNWATCHED.stopping()
