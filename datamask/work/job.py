"""A job: long work under way, as those who watch it and as the work itself see it.

States, one vocabulary for everything that takes long: ``queued`` (waits for its lane), ``running``, and then ``done``,
``stopped`` or ``failed``; ``interrupted`` is only ever derived, by whoever reads a record that says running while its
lock is free. That a job has been asked to stop is no state but a flag.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
from collections.abc import Callable
from typing import Any

from datamask.errors import DatamaskError, Stopped, out_of_memory
from datamask.polling import poll_of
from datamask.work import lanes
from datamask.work.context import Work
from datamask.work.lanes import Priority, Ticket
from datamask.work.pace import Eta

log = logging.getLogger(__name__)

QUEUED, RUNNING, DONE, STOPPED, FAILED = "queued", "running", "done", "stopped", "failed"
ENDED = (DONE, STOPPED, FAILED)

Pace = Callable[[float, str], "float | None"]
"""Seconds left, from the share done and what is being done; None while it does not tell."""


class Job:
    """One piece of long work. `datamask.work.worker.Worker.start` makes and runs it.

    The watcher's side may be used from any thread; the worker's side (`poll`, `report` ...) is for the work.

    Attributes:
        key: what it is known by in this process. device: whose lane it computes in, None where in none.
        about: what was asked for, so that a page can say it and ask again.
        sign: how those who watch name it and where they watch it; this module does not look at it.
        state: see the module. share, message: progress, 0 to 1, and what is being done.
        left: seconds it still computes, as far as the pace tells; None while it does not. Waiting is not counted.
        result: what the work returned.
        error: the sentence when it failed. The traceback of a fault of the program's own is in the log.
    """

    def __init__(
        self,
        key: str,
        *,
        device: str | None = None,
        priority: Priority = Priority.PAGE,
        about: object = None,
        sign: Any = None,
        pace: Pace | None = None,
    ) -> None:
        self.key, self.device, self.about, self.sign = key, device, about, sign
        self.state, self.share, self.message = QUEUED, 0.0, "starting"
        self.left: float | None = None
        self.result: Any = None
        self.error = ""
        self._asked, self._ended = threading.Event(), threading.Event()
        self._ticket: Ticket | None = None
        if device is not None:
            self._ticket = lanes.lane(device).ticket(priority, poll_of(self._asked.is_set))
        eta = Eta()
        # on a clock that does not run while the work gives way
        self._pace = pace or (lambda share, what: eta.update(share, lanes.clock(), what))

    # -- the watcher's side -------------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether it is done, stopped or failed."""
        return self.state in ENDED

    @property
    def stopping(self) -> bool:
        """Whether it has been asked to stop and has not ended yet."""
        return self._asked.is_set() and not self.ended

    @property
    def ahead(self) -> int:
        """How many go before it while it is queued."""
        return self._ticket.ahead if self._ticket is not None and self.state == QUEUED else 0

    def stop(self) -> None:
        """Ask it to stop; it ends within about a second."""
        self._asked.set()
        if self._ticket is not None:
            self._ticket.lane.wake()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, at most `seconds`; whether it has ended. A page waits a blink at most."""
        return self._ended.wait(seconds)

    # -- the worker's side --------------------------------------------------------------------------------------

    def poll(self) -> None:
        """To be called every 0.3 s of work: ends it where it was asked to stop, gives way where somebody is waiting.

        Raises:
            Stopped: it was asked to stop.
        """
        with contextlib.suppress(Stopped):
            lanes.give_way()
        if self._asked.is_set():
            raise Stopped("stopped on request")

    @property
    def work(self) -> Work:
        """The context to hand to the work itself."""
        return Work(self.poll, self.report)

    def report(self, share: float, what: str) -> None:
        """Progress: the share done, 0 to 1, and what is being done."""
        self.share, self.message, self.left = share, what, self._pace(share, what)

    # -- its life, for the worker alone --------------------------------------------------------------------------

    def run(self, work: Callable[[Job], Any], leaving: Callable[[Job], None] | None = None) -> None:
        """Do the work in this thread, from its wait for the lane to its end. Raises nothing.

        Args:
            leaving: called at the end, outside the lane, whether the work began or not.
        """
        state = FAILED
        try:
            if self.ahead:
                self.message = "waits for other work to end"
            with self._ticket or contextlib.nullcontext():
                self.state, self.message = RUNNING, "starting"
                self.result = work(self)
            self.share, self.left, state = 1.0, 0.0, DONE
        except Stopped:
            state = STOPPED
        except DatamaskError as error:
            self.error = str(error)
        # the thread's last door: what went wrong must reach who watches, not vanish with the thread
        except Exception as error:
            # its words and its traceback may name folders of the server: they are for whoever runs it
            number = secrets.token_hex(4)
            log.exception("fault %s in %s", number, self.key)
            self.error = (
                "Out of memory. Open fewer rows, or features with fewer dimensions. The server's log has details of "
                f"internal error {number}"
                if out_of_memory(error)
                else f"Internal error {number} ({type(error).__name__}). See the server's log"
            )
        finally:
            try:
                if leaving is not None:
                    leaving(self)
            finally:
                self.state = state
                self._ended.set()
