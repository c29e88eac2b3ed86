"""Lanes: who computes on a device. One at a time, the most urgent first; what takes long gives way as it polls.

A thread that is inside a lane is known to this module, so that code deep below the work can give way (`give_way`) or
step out while it waits for something that another thread inside the lane may have to do first (`aside`). In a thread
that is in no lane, as in every program but the dashboard, all of this does nothing.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import threading
import time
from collections.abc import Callable, Iterator

from datamask.errors import Stopped
from datamask.polling import Poll
from datamask.process import held

ASKED_SECONDS = 0.2
"""Between two looks at whether waiting work was stopped."""


class Priority(enum.IntEnum):
    """Whose work goes first: the smaller number. Last comes what nobody has asked for yet."""

    LIVE = 0
    PAGE = 1
    RUN = 2
    SWEEP = 3
    UNASKED = 4


class Ticket:
    """A thread's place in a lane. Get it from `Lane.ticket`; a context manager, inside the lane while inside the block.

    Attributes:
        order: priority, then number; the smaller goes first. Who gave way is back before those who came later.
    """

    def __init__(self, lane: Lane, priority: Priority, number: int, poll: Poll) -> None:
        self.lane, self.order, self.poll = lane, (priority, number), poll

    def __enter__(self) -> Ticket:
        self.lane.enter(self)
        _local().ticket = self
        return self

    def __exit__(self, *_: object) -> None:
        _local().ticket = None
        self.lane.leave(self)

    def hasten(self, priority: Priority) -> None:
        """Go before more from now on, waiting or inside; never before fewer. From any thread."""
        self.lane.hasten(self, priority)

    @property
    def ahead(self) -> int:
        """How many go before it while it waits."""
        return self.lane.ahead(self)

    @property
    def must_give_way(self) -> bool:
        """Whether it is inside and somebody more urgent waits."""
        return self.lane.most_urgent < self.order[0] and self.lane.holds(self)


class Lane:
    """One device's lane. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[Ticket] = []
        self._inside: Ticket | None = None
        self._numbers = itertools.count()
        self.most_urgent: float = float("inf")
        """Priority of the most urgent that waits; infinity where nobody does. Read without a lock."""

    def ticket(self, priority: Priority, poll: Poll) -> Ticket:
        """A place behind all that came before with the same priority.

        Args:
            poll: called by whoever waits with it, who gives up once it raises.
        """
        return Ticket(self, priority, next(self._numbers), poll)

    def enter(self, ticket: Ticket) -> None:
        """Wait until the lane is free and nobody goes before, and take it.

        Raises:
            Stopped: from the ticket's `poll` meanwhile; the lane is not taken.
        """
        with self._changed:
            self._waiting.append(ticket)
            self._look()
            try:
                while self._inside is not None or min(self._waiting, key=lambda other: other.order) is not ticket:
                    ticket.poll()
                    self._changed.wait(ASKED_SECONDS)
                self._inside = ticket
            finally:
                self._waiting.remove(ticket)
                self._look()
                self._changed.notify_all()

    def leave(self, ticket: Ticket) -> None:
        """Give the lane back; harmless for who does not have it."""
        with self._changed:
            if self._inside is ticket:
                self._inside = None
                self._changed.notify_all()

    def hasten(self, ticket: Ticket, priority: Priority) -> None:
        """Make a ticket at least so urgent."""
        with self._changed:
            ticket.order = (min(ticket.order[0], priority), ticket.order[1])
            self._look()
            self._changed.notify_all()

    def wake(self) -> None:
        """Have all that wait look at once whether they were stopped."""
        with self._changed:
            self._changed.notify_all()

    def holds(self, ticket: Ticket) -> bool:
        """Whether that ticket is the one inside."""
        return self._inside is ticket

    def ahead(self, ticket: Ticket) -> int:
        """How many are before it: the one inside, and those waiting that go first."""
        with self._changed:
            return (self._inside not in (None, ticket)) + sum(other.order < ticket.order for other in self._waiting)

    def _look(self) -> None:
        self.most_urgent = min((ticket.order[0] for ticket in self._waiting), default=float("inf"))


def lane(device: str) -> Lane:
    """This process's lane of a device, by a name such as ``cpu`` or ``cuda:0``."""
    return held(f"lane {device}", Lane)


@contextlib.contextmanager
def turn(device: str, priority: Priority, poll: Poll) -> Iterator[None]:
    """Compute inside a device's lane; a thread that is inside one already stays there.

    Goes ahead outside the lane once `poll` raises, so that who was waiting ends in its own words.
    """
    if _local().ticket is not None:
        yield
        return
    ticket = lane(device).ticket(priority, poll)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(Stopped):
            stack.enter_context(ticket)
        yield


def give_way() -> None:
    """Let more urgent work of this thread's lane go first, where some waits; to be called between chunks of work.

    Raises:
        Stopped: the work was stopped while it waited to go on.
    """
    ticket = _local().ticket
    if ticket is not None and ticket.must_give_way:
        with aside():
            pass


def waited_for() -> bool:
    """Whether more urgent work waits for this thread's lane: for who would rather give up a lock than hold it aside."""
    ticket = _local().ticket
    return ticket is not None and ticket.must_give_way


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Out of this thread's lane while inside the block: for waiting, for a lock or for a child process that computes.

    Whoever holds a lock polls inside its lane and may give way there, so whoever waits for that lock waits outside:
    else one holds the lane and waits for the lock, the other the reverse.

    Raises:
        Stopped: the work was stopped before it was inside again.
    """
    ticket = _local().ticket
    if ticket is None or not ticket.lane.holds(ticket):
        yield
        return
    began = time.perf_counter()
    ticket.lane.leave(ticket)
    _local().ticket = None
    try:
        yield
    finally:
        _local().ticket = ticket
        try:
            ticket.lane.enter(ticket)
        finally:
            _local().waited += time.perf_counter() - began


@contextlib.contextmanager
def locked(lock: threading.Lock, poll: Poll, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock inside the block; waited for outside the lane, and in a way that can be stopped.

    Args:
        waiting: called again and again while it waits.

    Raises:
        Stopped: from `poll` before the lock was there.
    """
    with contextlib.ExitStack() as stack:
        if lock.acquire(blocking=False):
            stack.callback(lock.release)
        else:
            with aside():
                while not lock.acquire(timeout=ASKED_SECONDS):
                    waiting()
                    poll()
                stack.callback(lock.release)
        yield


def clock() -> float:
    """Seconds on a clock that stands still while this thread is outside its lane: for how long work took."""
    return time.perf_counter() - _local().waited


class _Local(threading.local):
    ticket: Ticket | None = None
    waited: float = 0.0


def _local() -> _Local:
    # held by the process: a module that is loaded anew must know who is inside
    return held("lane of a thread", _Local)
