"""`Work`: the one context that long work is done in. It asks there whether to go on, and says there how far it is.

Functions that take long and report take a `Work`. Inner loops that only need to be stoppable take its bare `poll`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from datamask.errors import Stopped
from datamask.polling import Poll, no_poll, poll_of

Report = Callable[[float, str], None]
"""Called with the share done, 0 to 1, and what is being done."""


def no_report(share: float, what: str) -> None:
    """The report of work that is not watched."""


@dataclass(frozen=True)
class Work:
    """What long work needs from whoever started it.

    Attributes:
        poll: to be called at least every 0.3 s; raises `Stopped` where the work is to end, and gives way to more
            urgent work.
        report: to be called with the share done, 0 to 1, and what is being done.
        threads: threads to compute with; None: as many as there are cores to use. A run takes them for its arithmetic,
            and keeps them when it is resumed.

    Example:
        >>> seen = []
        >>> work = Work(report=lambda share, what: seen.append(share))
        >>> work.part(0.5, 1.0).report(0.5, "second half")
        >>> seen
        [0.75]
    """

    poll: Poll = no_poll
    report: Report = no_report
    threads: int | None = None

    @classmethod
    def of(
        cls,
        should_stop: Callable[[], bool] | None = None,
        progress: Report | None = None,
        threads: int | None = None,
    ) -> Work:
        """Make the context from the two callables of the public API."""
        return cls(poll_of(should_stop), progress or no_report, threads)

    def part(self, start: float, end: float) -> Work:
        """Give the context of a part of the work, whose shares 0 to 1 are shares `start` to `end` of the whole."""
        report = self.report
        return replace(self, report=lambda share, what: report(start + share * (end - start), what))

    def stopping(self) -> bool:
        """Whether the work is to end; for work that ends in order instead of being interrupted by `poll`."""
        try:
            self.poll()
        except Stopped:
            return True
        return False


UNWATCHED = Work()
"""The context of work that is neither watched nor stopped."""
