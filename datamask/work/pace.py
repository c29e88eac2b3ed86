"""How long it still takes: a rate over the last while, since the phases of a run go at different speeds."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator

WINDOW_SECONDS = 20.0
RECENT_SECONDS = 4.0

EARLY_SHARE, EARLY_SECONDS = 0.05, 15.0
"""Before so much of the work is done and so much time has passed, whichever comes first, its pace says nothing."""

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
            slower: a quick beginning must not promise an end that is minutes away. None while nothing has moved, and
            until `EARLY_SHARE` more is done or `EARLY_SECONDS` have passed.
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
            if share > before and now > then
        ]
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


def duration(seconds: float) -> str:
    """Seconds as people say them: ``"8 s"``, ``"2:05"``, ``"3:10:00"``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, remainder = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{remainder:02d}" if hours else f"{minutes}:{remainder:02d}"
