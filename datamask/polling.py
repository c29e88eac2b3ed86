"""How long work hears that it is to stop: it calls `poll` between chunks of at most some 0.3 s, which raises."""

from __future__ import annotations

from collections.abc import Callable

from datamask.errors import Stopped

Poll = Callable[[], None]
"""Called between chunks of long work; raises `datamask.errors.Stopped` to end it."""


def no_poll() -> None:
    """The poll of work that cannot be stopped."""


def poll_of(should_stop: Callable[[], bool] | None, sentence: str = "stopped on request") -> Poll:
    """Make a poll that raises `Stopped` with this sentence once `should_stop` answers true.

    Args:
        should_stop: None: the work cannot be stopped.

    Example:
        >>> poll = poll_of(lambda: False)
        >>> poll()
    """
    if should_stop is None:
        return no_poll

    def poll() -> None:
        if should_stop():
            raise Stopped(sentence)

    return poll
