"""The ledger: how many bytes of memory this process may use, and what holds how many of them.

What grows with a corpus reserves its bytes here before it takes them: an opening, an open corpus, a first look, the
lists of neighbors, an objective that is bound. One reservation is granted whole or not at all. A reservation
lasts as long as its owner, however that ends: the block that made it, the thread, or the object that took it over.

No deadlock: there is one lock, nothing waits or calls out while it holds it, and a wait ends after `WAIT_SECONDS`.
Owners are not told to give back: with every question the ledger looks which of them are still there.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable

from datamask.errors import NoRoomError
from datamask.memory import collect, give_back, memory_bytes
from datamask.polling import Poll, no_poll
from datamask.process import held
from datamask.work import lanes

SHARE = 0.8
"""Of the memory there is. The rest is for the interpreter, the libraries, and what is not counted."""

WAIT_SECONDS = 30.0
"""How long a reservation waits for others to end."""

ASKED_SECONDS = 0.1
"""Between two looks while it waits."""

KEPT_FREE = 1 / 8
"""Of the ledger. A reservation that is larger leaves so much free, unless it is alone, so that small ones find room
while large ones fill the rest."""

FREED_BYTES = 64 << 20
"""When so much was reserved and is no longer, what was freed is given back to the system before more is taken."""

UNITS = (2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")

Ask = Callable[[], bool]


def in_words(count: float) -> str:
    """Bytes for people, such as ``1.86 GiB``."""
    size, unit = next(named for named in UNITS if count >= named[0] / 10 or named == UNITS[-1])
    return f"{count / size:,.3g} {unit}"


class Reservation:
    """Bytes that are set aside, until the ``with`` block ends, its thread ends, or it is collected. See `pass_to`.

    Attributes:
        what: what takes them, the subject of a sentence. way_out: what a refusal says to do.
    """

    def __init__(self, ledger: Ledger, what: str, way_out: str) -> None:
        self.what, self.way_out = what, way_out
        self._ledger = ledger
        own, thread = weakref.ref(self), threading.current_thread()
        self._account = _Account(lambda: own() is not None and thread.is_alive())

    @property
    def nbytes(self) -> int:
        """Bytes that are set aside."""
        return self._account.nbytes

    def grow(self, nbytes: int) -> None:
        """Set more bytes aside, at once or not at all: what already holds some does not wait for more.

        Raises:
            NoRoomError: they are not free.
        """
        while not self._ledger.take(self._account, nbytes):
            possible = self.nbytes + nbytes <= self._ledger.total()
            if not possible or not self._ledger.let_go():
                raise self._ledger.refusal(self, self.nbytes + nbytes)

    def shrink(self, nbytes: int) -> None:
        """Keep so many bytes, where it has more."""
        self._account.nbytes = min(nbytes, self._account.nbytes)

    def pass_to(self, owner: object, nbytes: int | None = None) -> None:
        """Let an object take over, so that the bytes are free once it is collected, and not before.

        Args:
            nbytes: how many it keeps; None: all.
        """
        if nbytes is not None:
            self.shrink(nbytes)
        reference = weakref.ref(owner)
        self._account.alive = lambda: reference() is not None
        self._account = _Account(lambda: False)

    def release(self) -> None:
        """Give all of it back; harmless where that is done, or another object took over."""
        self._account.nbytes = 0

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class _Account:
    """The ledger's side of a reservation.

    Attributes:
        nbytes: that are set aside. seen: the same when the ledger last looked. alive: whether the owner is still there.
    """

    def __init__(self, alive: Ask) -> None:
        self.nbytes = self.seen = 0
        self.alive = alive


class Ledger:
    """All methods may be called from any thread.

    Args:
        total: gives the bytes there are for all reservations together.
    """

    def __init__(self, total: Callable[[], int] = lambda: int(SHARE * memory_bytes())) -> None:
        self.total = total
        self._lock = threading.Lock()
        self._accounts: list[_Account] = []
        self._freed = 0  # bytes that were reserved and are no longer, since memory was last given back to the system
        self._spare: list[Callable[[], Ask | None]] = []

    def reserve(
        self,
        nbytes: int,
        what: str,
        *,
        way_out: str = "try again when other work has ended",
        poll: Poll = no_poll,
        seconds: float | None = None,
    ) -> Reservation:
        """Set bytes aside, all of them or none; wait for them where others hold them.

        Args:
            nbytes: how many.
            what: what takes them, the subject of a sentence.
            way_out: what a refusal says to do.
            poll: called while it waits.
            seconds: how long it waits at most; None: `WAIT_SECONDS`.

        Raises:
            NoRoomError: there are not so many, or they did not become free. Stopped: from `poll`.
        """
        reservation = Reservation(self, what, way_out)
        if not self.take(reservation._account, nbytes):
            with lanes.aside():
                self._wait(reservation, nbytes, poll, time.monotonic() + (WAIT_SECONDS if seconds is None else seconds))
        return reservation

    def _wait(self, reservation: Reservation, nbytes: int, poll: Poll, deadline: float) -> None:
        collect()  # what failed for want of memory may hang in the cycles of its traceback
        while not self.take(reservation._account, nbytes):
            poll()
            possible = nbytes <= self.total()
            if possible and self.let_go():
                continue
            if not possible or time.monotonic() >= deadline:
                raise self.refusal(reservation, nbytes)
            time.sleep(ASKED_SECONDS)

    def take(self, account: _Account, nbytes: int) -> bool:
        """Add bytes to an account where they are free; whether they were."""
        total = self.total()
        with self._lock:
            wanted = account.nbytes + nbytes
            granted = wanted <= self._room(account, wanted, total) or not nbytes
            if granted:
                account.nbytes = account.seen = wanted
                if all(other is not account for other in self._accounts):
                    self._accounts.append(account)
            much_freed = self._freed >= FREED_BYTES
            if much_freed:
                self._freed = 0
        if much_freed:
            give_back()
        return granted

    def _room(self, account: _Account | None, wanted: int, total: int) -> int:
        """Bytes that one account may have in all, if it wants so many; under the lock."""
        for other in self._accounts:
            now = other.nbytes if other.alive() else 0
            self._freed += max(0, other.seen - now)
            other.seen = now
        self._accounts = [other for other in self._accounts if other.seen]
        others = sum(other.nbytes for other in self._accounts if other is not account)
        large = others and wanted > KEPT_FREE * total
        return total - others - (int(KEPT_FREE * total) if large else 0)

    def free(self) -> int:
        """Bytes that nothing holds."""
        total = self.total()
        with self._lock:
            return self._room(None, 0, total)

    def add_spare(self, let_go: Ask) -> None:
        """Ask this, where memory is short, to let one thing go that can be had again; it answers whether it did.

        Args:
            let_go: a method of an object that lives on; the ledger does not keep that alive.
        """
        with self._lock:
            self._spare.append(weakref.WeakMethod(let_go))

    def let_go(self) -> bool:
        """Have one thing let go that can be had again; false: there is none."""
        with self._lock:
            self._spare = [reference for reference in self._spare if reference() is not None]
            asked = [reference() for reference in self._spare]
        for let_go in filter(None, asked):
            if let_go():
                collect()
                return True
        return False

    def refusal(self, reservation: Reservation, nbytes: int) -> NoRoomError:
        """The one sentence for a reservation that got no room."""
        total = self.total()
        with self._lock:
            free = max(0, self._room(reservation._account, nbytes, total))
        there = f"this process may use {in_words(total)}"
        if nbytes <= total:
            there = f"{in_words(free)} of the {in_words(total)} that this process may use are free"
        return NoRoomError(f"{reservation.what} needs {in_words(nbytes)} of memory, but {there}; {reservation.way_out}")


def ledger() -> Ledger:
    """The ledger of this process."""
    return held("memory ledger", Ledger)
