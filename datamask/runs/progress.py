"""How long it still takes: a rate over the last while, since the phases of a run go at different speeds."""

from __future__ import annotations

import time
from collections import deque

WINDOW_SECONDS = 20.0
RECENT_SECONDS = 4.0


class Eta:
    """Seconds left, from the shares (0 to 1) reported so far. Not thread-safe: one reporter."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()

    def update(self, share: float, now: float | None = None) -> float | None:
        """Take note that `share` is done at time `now` (seconds on any rising clock).

        Returns:
            Seconds left at the rate of the last `WINDOW_SECONDS`, or at that of the last `RECENT_SECONDS` where it is
            slower: a quick beginning must not promise an end that is minutes away. None while nothing has moved.
        """
        now = time.monotonic() if now is None else now
        if self._seen and share < self._seen[-1][1]:
            # the work began anew, such as a second pass: what went before says nothing about it
            self._seen.clear()
        self._seen.append((now, share))
        # the oldest one kept is the last that is older than the window, so a slow phase still has two to compare
        while len(self._seen) > 2 and self._seen[1][0] < now - WINDOW_SECONDS:
            self._seen.popleft()
        recent = next((seen for seen in reversed(self._seen) if seen[0] <= now - RECENT_SECONDS), self._seen[0])
        found = [(1.0 - share) * (now - then) / (share - before) for then, before in (self._seen[0], recent)
                 if share > before and now > then]
        return max(found, default=None)


def duration(seconds: float) -> str:
    """Seconds as people say them: ``"8 s"``, ``"2:05"``, ``"3:10:00"``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
