"""How long it still takes."""

from __future__ import annotations

import contextlib

import pytest

from datamask.work.pace import Eta, RunPace, duration


def test_a_steady_pace_is_met_exactly():
    eta = Eta()
    assert eta.update(0.0, now=100.0) is None
    assert eta.update(0.25, now=110.0) == pytest.approx(30.0)
    assert eta.update(1.0, now=140.0) == pytest.approx(0.0)


def test_a_new_pace_is_believed_after_a_while():
    """A fast phase (10 % a second) followed by a slow one (0.1 % a second): 80 % left take 800 s, not 8."""
    eta = Eta()
    for second in range(3):
        eta.update(0.1 * second, now=second)
    for second in range(100):
        left = eta.update(0.2 + 0.001 * second, now=3.0 + second)
    assert left == pytest.approx((0.8 - 0.099) / 0.001, rel=0.01)


def test_a_quick_beginning_promises_nothing_for_long():
    """A quarter in two seconds, then 0.2 % a second: six minutes, and not seconds, after a moment."""
    eta = Eta()
    eta.update(0.0, now=0.0)
    eta.update(0.25, now=2.0)
    for second in range(5):
        left = eta.update(0.25 + 0.002 * second, now=2.0 + second)
    assert left == pytest.approx((0.75 - 0.008) / 0.002, rel=0.01)


def test_nothing_moved_or_began_anew_is_unknown():
    eta = Eta()
    eta.update(0.5, now=0.0)
    assert eta.update(0.5, now=9.0) is None
    assert eta.update(0.1, now=10.0) is None
    assert eta.update(0.2, now=11.0) == pytest.approx(8.0)


def test_nothing_is_said_before_a_twentieth_or_fifteen_seconds():
    eta = Eta()
    said = [eta.update(0.001 * second, now=float(second)) for second in range(17)]
    assert said[:15] == [None] * 15 and said[15] == pytest.approx(985.0)
    eta = Eta()
    assert [eta.update(share, now=now) for share, now in ((0.0, 0.0), (0.04, 1.0), (0.06, 2.0))][:2] == [None, None]
    assert eta.update(0.07, now=3.0) is not None


def test_a_resumed_run_goes_by_its_new_steps_alone():
    """Two seconds bring it through preparation and past 132 old steps; each of the other 4,868 takes half a second."""
    eta = Eta()
    eta.update(0.0, now=0.0, what="opening the corpus")
    eta.update(0.05, now=2.0, what="measuring top quality, for comparison")
    said = [
        eta.update(0.05 + 0.9 * step / 5000, now=2.0 + 0.5 * (step - 132), what=f"step {step:,} of 5,000")
        for step in range(133, 193)
    ]
    assert all(one is None for one in said[:29])
    # the last twentieth is taken for as slow as the steps
    assert said[-1] == pytest.approx(0.5 * (0.95 - 0.9 * 192 / 5000) * 5000 / 0.9, rel=0.01)


def test_a_sweep_goes_by_its_finished_runs_and_not_by_its_waits():
    """Ten runs of 10 s; before the third another job has the device for an hour."""
    now = 0.0
    pace = RunPace(lambda: now)
    said = []

    @contextlib.contextmanager
    def device(wait):
        nonlocal now
        now += wait
        yield

    assert pace.update(0.05) is None
    for place in range(10):
        with pace.run(device(3600.0 if place == 2 else 0.0)):
            for share in (0.0, 0.9, 1.0):  # most of the share passes in a moment
                said.append(pace.update(0.05 + 0.095 * (place + share)))
            now += 10.0
    assert said[:6] == [None] * 6
    assert said[6:] == pytest.approx(
        [10.0 * (10 - place - share) for place in range(2, 10) for share in (0, 0.9, 1)], abs=1e-6
    )
    assert pace.update(1.0) == pytest.approx(0.0)


def test_points_that_are_stored_cost_nothing():
    """Half of ten points are read, every other one: five runs of 10 s, of which two are done."""
    now = 0.0
    pace = RunPace(lambda: now)
    for place in (0, 2):
        with pace.run():
            for share in (0.0, 1.0):
                pace.update((place + share) / 10)
            now += 10.0
    assert pace.update(0.4) == pytest.approx(6 * 20 / 3)


@pytest.mark.parametrize(
    "seconds, text", [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (125, "2:05"), (11_400, "3:10:00")]
)
def test_durations_as_people_say_them(seconds, text):
    assert duration(seconds) == text
