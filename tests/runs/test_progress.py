"""How long it still takes."""

from __future__ import annotations

import pytest

from datamask.runs.progress import Eta, duration


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


@pytest.mark.parametrize("seconds, text", [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (125, "2:05"),
                                           (11_400, "3:10:00")])
def test_durations_as_people_say_them(seconds, text):
    assert duration(seconds) == text
