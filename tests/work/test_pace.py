"""How long it still takes."""

from __future__ import annotations

import contextlib

import pytest

from datamask.work.pace import Eta, PhasePace, RoundPace, RunPace, duration


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


@pytest.mark.parametrize("crawl", [1e-7, 1e-5, 1e-4])
def test_a_phase_that_hardly_moves_never_promises_hours(crawl):
    """A quarter within 10 s, then a phase that tells almost nothing of itself: the first minute says no hours."""
    eta = Eta()
    for second in range(60):
        left = eta.update(0.025 * min(second, 10) + crawl * max(0, second - 10), now=float(second))
        assert left is None or left < 3600, second
    assert left is not None


def test_a_plan_that_nothing_was_measured_of_says_no_time():
    now = 0.0
    pace = PhasePace(lambda: now)
    pace.plan({"graph": 600.0, "ends": 60.0})
    pace.begin("graph")
    now = 100.0
    assert pace.left is None
    pace.at(0.0)
    pace.at(0.5)
    assert pace.left is not None


ROUND = {"baseline": 1.0, "masks": 40.0, "measuring": 5.0}


def rounds(count: int, pace: RoundPace, now: list[float], stored: int = 0):
    """``(elapsed, share, left)`` at every step of `count` rounds; the first `stored` of them take no time."""
    pace.plan(count, tuple(ROUND))
    seen = []
    for place in range(count):
        with pace.round(lambda place=place: place >= stored):
            for step, seconds in ROUND.items():
                pace.begin(step)
                seen.append((now[0], pace.share, pace.update(pace.share)))
                now[0] += 0.0 if place < stored else seconds
    return [*seen, (now[0], pace.share, pace.update(pace.share))]


@pytest.mark.parametrize("stored", [0, 3])
def test_rounds_of_unequal_steps_go_by_what_each_took(stored):
    now = [0.0]
    seen = rounds(10, RoundPace(lambda: now[0]), now, stored)
    shares = [share for _, share, _ in seen]
    assert shares == sorted(shares) and shares[-1] == 1.0
    first, told = seen[: 3 * (stored + 1)], seen[3 * (stored + 1) :]
    assert all(left is None for _, _, left in first) and len(told) == 3 * (9 - stored) + 1
    whole = seen[-1][0]
    assert [left for _, _, left in told] == pytest.approx([whole - elapsed for elapsed, _, _ in told])


def test_rounds_that_are_planned_again_are_measured_again():
    now = [0.0]
    pace = RoundPace(lambda: now[0])
    rounds(2, pace, now)
    assert pace.update(0.0) == 0.0
    assert rounds(2, pace, now)[0][1:] == (0.0, None)


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


PLAN = {"graph": 8.0, "ends": 3.0, "learning": 6.0, "ending": 10.0}


def told(plan: dict[str, float], took: dict[str, float], *, tells: tuple[str, ...], step: float = 0.25):
    """Work in phases that take so long by a fake clock: ``(elapsed, share, left)`` at every step of the clock.

    Args:
        plan: what is expected. took: what each phase that is done takes; one that is missing is not needed.
        tells: phases that say how far they are.
    """
    now = 100.0
    pace = PhasePace(lambda: now)
    seen = []
    pace.plan(plan)
    for phase, seconds in took.items():
        pace.begin(phase, 0.0 if phase in tells else None)
        for tick in range(1, round(seconds / step) + 1):
            now += step
            if phase in tells:
                pace.at(tick * step / seconds)
            seen.append((now - 100.0, pace.share, pace.update(0.0)))
    pace.over()
    return seen, pace


def worst(seen) -> float:
    """The factor by which elapsed and left together are at most off the whole, after its first tenth."""
    whole = seen[-1][0]
    after = [elapsed + left for elapsed, _, left in seen if left is not None and elapsed > whole / 10]
    return max(max(guess / whole, whole / guess) for guess in after)


@pytest.mark.parametrize("tells", [(), ("graph", "learning"), tuple(PLAN)], ids=["none", "some", "all"])
@pytest.mark.parametrize("machine", [0.4, 1.0, 3.0])
def test_phases_of_known_cost_are_met_within_two_after_a_tenth(tells, machine):
    took = {phase: machine * seconds for phase, seconds in PLAN.items()}
    seen, pace = told(PLAN, took, tells=tells)
    # where nothing tells how far it is, a machine is not known before its first phase is over
    known = seen if tells or machine == 1.0 else [entry for entry in seen if entry[0] > took["graph"] + 0.25]
    assert worst([*known[:-1], seen[-1]]) < 2.0
    shares = [share for _, share, _ in seen]
    assert shares == sorted(shares) and shares[-1] <= 1.0 and pace.share == 1.0 and pace.left == 0.0


@pytest.mark.parametrize("kept", ["graph", "ends"])
def test_what_was_kept_is_no_work_and_says_nothing_of_the_machine(kept):
    took = {phase: 2 * seconds for phase, seconds in PLAN.items() if phase != kept}
    seen, _ = told(PLAN, took, tells=("graph", "learning"))
    ahead = [entry for entry in seen if entry[0] > 2 * sum(list(PLAN.values())[:2])]
    assert worst([*ahead[:-1], seen[-1]]) < 2.0


@pytest.mark.parametrize("phase", PLAN)
@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_one_phase_of_another_cost_than_planned_spoils_nothing(phase, factor):
    """Such as a graph of features without structure, or a bound that ends early."""
    took = PLAN | {phase: factor * PLAN[phase]}
    assert worst(told(PLAN, took, tells=("graph", "learning"))[0]) < 2.0


def test_a_phase_that_is_gone_on_with_goes_by_its_new_part():
    """Half of the steps were done before; the others take 2 s each, ten times what the plan says."""
    now = 0.0
    pace = PhasePace(lambda: now)
    pace.plan({"learning": 20.0, "ending": 1.0})
    pace.begin("learning", 0.5)
    assert pace.share == pytest.approx(0.05 + 0.95 * 10 / 21)
    for step in range(51, 81):
        now += 2.0
        pace.at(step / 100)
    assert pace.left == pytest.approx(40.0 + 10**0.5, rel=0.05)
    before = pace.share
    pace.begin("ending")
    assert pace.share == pytest.approx(0.05 + 0.95 * 20 / 21) and pace.share > before


def test_nothing_is_said_before_there_is_a_plan_and_a_twentieth_of_it():
    now = 0.0
    pace = PhasePace(lambda: now)
    pace.opening(0.5)
    assert pace.left is None and pace.share == pytest.approx(0.025)
    now = 50.0
    pace.plan({"learning": 10.0})
    pace.begin("learning", 0.0)
    assert pace.left is None and pace.share == pytest.approx(0.05)
    now = 51.0
    pace.at(0.1)
    assert pace.left == pytest.approx(9.0) and pace.share == pytest.approx(0.05 + 0.95 * 0.1)


@pytest.mark.parametrize(
    "seconds, text", [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (125, "2:05"), (11_400, "3:10:00")]
)
def test_durations_as_people_say_them(seconds, text):
    assert duration(seconds) == text
