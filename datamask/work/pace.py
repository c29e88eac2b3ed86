"""How long it still takes: a rate over the last while, since the phases of a run go at different speeds."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

WINDOW_SECONDS = 20.0
RECENT_SECONDS = 4.0

EARLY_SHARE, EARLY_SECONDS = 0.05, 15.0
"""Before so much of the work is done and so much time has passed, whichever comes first, its pace says nothing."""

MEASURED = 0.005
"""Share of the work from which a rate is measured. A smaller step is noise: divided by it, minutes become weeks."""

STEPS = "step "
"""How the words begin that a learner reports after each step."""

TELLING_RUNS = 2
"""Runs of a sweep that tell how long the others take: the first one alone also prepares what all share."""


class Eta:
    """Seconds left, from the shares (0 to 1) reported so far. Not thread-safe: one reporter."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()
        self._began = (0.0, 0.0)
        self._stepping = False

    def update(self, share: float, now: float | None = None, what: str = "") -> float | None:
        """Take note that `share` is done at time `now` (seconds on any rising clock).

        Args:
            what: the words reported with it. Once they are about steps, what was prepared before, and the steps that a
                resumed run had done already, count no more.

        Returns:
            Seconds left at the rate of the last `WINDOW_SECONDS`, or at that of the last `RECENT_SECONDS` where it is
            slower: a quick beginning must not promise an end that is minutes away. Where neither saw `MEASURED` of
            the work done, at the rate since the beginning. None until that is measured, and until `EARLY_SHARE` more
            is done or `EARLY_SECONDS` have passed.
        """
        now = time.monotonic() if now is None else now
        turned = what.startswith(STEPS) and not self._stepping
        self._stepping = what.startswith(STEPS)
        if self._seen and (turned or share < self._seen[-1][1]):
            # the work began anew, such as a second pass: what went before says nothing about it
            self._seen.clear()
        if not self._seen:
            self._began = (now, share)
        self._seen.append((now, share))
        # the oldest one kept is the last that is older than the window, so a slow phase still has two to compare
        while len(self._seen) > 2 and self._seen[1][0] < now - WINDOW_SECONDS:
            self._seen.popleft()
        recent = next((sample for sample in reversed(self._seen) if sample[0] <= now - RECENT_SECONDS), self._seen[0])
        estimates = [
            (1.0 - share) * (now - then) / (share - before)
            for then, before in (self._seen[0], recent)
            if share - before >= MEASURED and now > then
        ]
        if not estimates and share - self._began[1] >= MEASURED:
            estimates = [(1.0 - share) * (now - self._began[0]) / (share - self._began[1])]
        if share - self._began[1] < EARLY_SHARE and now - self._began[0] < EARLY_SECONDS:
            return None
        return max(estimates, default=None)


class RunPace:
    """Seconds left of a sweep, from its finished runs alone. Not thread-safe: one reporter.

    Within a run the share moves at many speeds, and between two runs the sweep may wait for a device; neither says how
    long the other runs take.

    Attributes:
        share: as reported last.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.share = 0.0
        self._clock = clock
        self._first: float | None = None
        self._finished = 0
        self._worked = 0.0
        self._each: float | None = None
        self._working = False

    @contextlib.contextmanager
    def run(self, turn: contextlib.AbstractContextManager[object] | None = None) -> Iterator[None]:
        """Around each run that is computed, once `turn` is there: the wait for it is not counted."""
        with turn or contextlib.nullcontext():
            began, self._working = self._clock(), True
            yield
            self._working = False
            self._finished += 1
            self._worked += self._clock() - began
            if self._first is not None and self.share > self._first:
                self._each = self._worked / (self.share - self._first)

    def update(self, share: float, what: str = "") -> float | None:
        """Take note that `share` of the whole sweep is done.

        Returns:
            Seconds left; None until `TELLING_RUNS` runs have been computed.
        """
        self.share = share
        if self._working and self._first is None:
            self._first = share
        return None if self._each is None or self._finished < TELLING_RUNS else (1.0 - share) * self._each


class RoundPace:
    """Share done and seconds left of rounds of the same steps, from what each step took before. One reporter.

    Steps may differ a hundredfold, as a baseline and learned masks do: each weighs what it was measured to take.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.plan(0, ())

    def plan(self, rounds: int, steps: Sequence[str]) -> None:
        """So many rounds of these steps lie ahead, in order; what was measured of earlier ones is forgotten."""
        self._rounds, self._steps, self._over = rounds, tuple(steps), 0
        self._seconds: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._step: str | None = None
        self._since = self._clock()

    @contextlib.contextmanager
    def round(self, computed: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Around each round. `computed` answers at its end: a round that was read from disk says nothing of others."""
        self._took = {}
        yield
        self._end_step()
        if computed():
            # the slowest so far: part of a round may have been read from disk
            self._seconds = {step: max(took, self._seconds.get(step, 0.0)) for step, took in self._took.items()}
        self._over += 1

    def begin(self, step: str) -> None:
        """A step of the round under way begins, and the one before it is over. The same one again: it goes on."""
        if step == self._step:
            return
        self._end_step()
        self._step, self._since = step, self._clock()

    @property
    def share(self) -> float:
        """Share of all rounds that is done, 0 to 1. Before one is measured, all steps weigh the same."""
        if self._over >= self._rounds:
            return 1.0
        done, whole = (self._cost(steps) for steps in (self._done(), self._steps))
        return (self._over + (done / whole if whole > 0 else 0.0)) / self._rounds

    def update(self, share: float, what: str = "") -> float | None:
        """Seconds left; None until one round has been measured."""
        if not self._seconds:
            return None
        if self._over >= self._rounds:
            return 0.0
        whole, done = self._cost(self._steps), self._cost(self._done())
        begun = 0.0 if self._step is None else min(self._clock() - self._since, self._cost((self._step,)))
        return (self._rounds - self._over) * whole - done - begun

    def _end_step(self) -> None:
        if self._step is not None:
            self._took[self._step] = self._clock() - self._since
            self._step = None

    def _done(self) -> tuple[str, ...]:
        """The steps of the round under way before the one under way."""
        return self._steps[: self._steps.index(self._step)] if self._step in self._steps else ()

    def _cost(self, steps: Sequence[str]) -> float:
        return sum(self._seconds.get(step, 0.0) for step in steps) if self._seconds else float(len(steps))


class PhasePace:
    """Share done and seconds left of work in phases whose costs are roughly known. Not thread-safe: one reporter.

    The plan says what each phase takes on a usual machine. Phases that are over tell how this machine compares, and the
    one under way goes by its own pace too, as soon as it has one. What turns out not to be needed, since it was kept,
    is work no more and says nothing of the machine.
    """

    OPENING = 0.05
    """Share that stands for what is done before there is a plan."""

    BELIEVED = 0.2
    """Share of a phase after which its own pace alone says how long it still takes."""

    TELLING = 0.02
    """Share of all costs from which a phase tells of the machine; shorter ones are mostly beginnings and ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ahead: dict[str, float] = {}
        self._planned: float | None = None
        self._over: list[tuple[float, float]] = []
        self._cost = self._earlier = 0.0
        self._phase = ""
        self._since = clock()
        self._entered: float | None = None
        self._at: float | None = None
        self._opened = self._most = 0.0

    def opening(self, share: float) -> None:
        """How far it is with what is done before there is a plan."""
        self._opened = max(self._opened, min(share, 1.0))

    def plan(self, seconds: Mapping[str, float]) -> None:
        """What lies ahead, in order: name of each phase and its seconds on a usual machine."""
        self._ahead, self._planned, self._over = dict(seconds), self._clock(), []
        self._phase, self._cost, self._earlier, self._at = "", 0.0, 0.0, None
        self._since = self._planned

    def begin(self, phase: str, done: float | None = None) -> None:
        """A phase begins, and those before it are over or were not needed.

        Args:
            done: share of it that was done earlier, such as the steps before a checkpoint; None where it does not tell
                how far it is.
        """
        if phase == self._phase or phase not in self._ahead:
            return
        now = self._clock()
        if self._phase:
            self._over.append((self._cost, now - self._since))
        for name in list(self._ahead):
            cost = self._ahead.pop(name)
            if name == phase:
                break
        self._phase, self._since = phase, now
        self._entered = self._at = done
        self._cost = cost * (1.0 - (done or 0.0))
        self._earlier += cost * (done or 0.0)

    def over(self) -> None:
        """All of it is done."""
        if self._phase:
            self._over.append((self._cost, self._clock() - self._since))
        self._ahead, self._phase, self._cost, self._earlier, self._most = {}, "", 0.0, 0.0, 1.0

    def at(self, share: float) -> None:
        """How far the phase under way is, from 0 to 1."""
        if self._phase:
            self._entered = share if self._entered is None else self._entered
            self._at = min(max(share, self._at or 0.0), 1.0)

    @property
    def share(self) -> float:
        """Share of the costs that is done, from 0 to 1; what was kept is no part of them. It never falls."""
        self._most = max(self._most, min(self._share(), 1.0))
        return self._most

    def _share(self) -> float:
        done = sum(cost for cost, _ in self._over) + self._earlier
        total = done + self._cost + sum(self._ahead.values())
        if self._planned is None or total <= 0:
            return self.OPENING * self._opened
        within = self._within() or 1.0 - math.exp(-self._passed() / self._usual())
        return self.OPENING + (1.0 - self.OPENING) * (done + self._cost * within) / total

    @property
    def left(self) -> float | None:
        """Seconds; None before a phase of the plan has been measured, and while too little has passed to say."""
        if self._planned is None or not self._telling():
            return None
        left = self._speed() * sum(self._ahead.values()) + self._left_of_phase()
        worked = self._clock() - self._planned
        return left if worked > min(EARLY_SECONDS, EARLY_SHARE * (worked + left)) else None

    def update(self, share: float, what: str = "") -> float | None:
        """Seconds left, for those who watch the shares of the same work."""
        return self.left

    def _passed(self) -> float:
        return self._clock() - self._since

    def _usual(self) -> float:
        """Seconds of the phase under way on this machine, by the plan; never nothing."""
        return max(self._speed() * self._cost, 1e-3)

    def _within(self) -> float:
        """Share that is done of what this phase had to do when it was begun; 0 where nothing tells."""
        if self._at is None or self._entered is None:
            return 0.0
        return max(0.0, (self._at - self._entered) / max(1.0 - self._entered, 1e-9))

    def _left_of_phase(self) -> float:
        if not self._phase:
            return 0.0
        passed, usual, within = self._passed(), self._usual(), self._within()
        if not within:
            # nothing tells how far it is: it is never quite over, and less and less is left of it
            return usual * math.exp(-passed / usual)
        own = passed * (1.0 - within) / within
        believed = min(1.0, within / self.BELIEVED)
        return believed * own + (1.0 - believed) * (1.0 - within) * usual

    def _speed(self) -> float:
        """How many times as long as the plan says this machine takes.

        One phase that is slow may be slow for reasons of its own, as its data may be; several are the machine.
        """
        telling = self._telling()
        took = sum(seconds for _, seconds in telling)
        if not telling or took <= 0:
            return 1.0
        weight = float(len(telling))
        if 0 < self._within() < self.BELIEVED and len(telling) > len(self._told()):
            weight += self._within() / self.BELIEVED - 1.0
        return float((took / sum(cost for cost, _ in telling)) ** (weight / (weight + 1.0)))

    def _told(self) -> list[tuple[float, float]]:
        """Cost and seconds of the phases that are over and long enough to tell of the machine."""
        least = self.TELLING * self._costs()
        return [(cost, took) for cost, took in self._over if cost > least and took > 0]

    def _telling(self) -> list[tuple[float, float]]:
        """`_told`, and of the phase under way what is done of it."""
        within = self._within()
        if within > 0 and self._cost > self.TELLING * self._costs():
            return [*self._told(), (self._cost * within, self._passed())]
        return self._told()

    def _costs(self) -> float:
        return sum(cost for cost, _ in self._over) + self._cost + sum(self._ahead.values())


def duration(seconds: float) -> str:
    """Seconds as people say them: ``"8 s"``, ``"2:05"``, ``"3:10:00"``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, remainder = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{remainder:02d}" if hours else f"{minutes}:{remainder:02d}"
