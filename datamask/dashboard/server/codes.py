"""The one-time code: who reads the server's terminal may allow a folder on its page.

A page on the loopback can be opened by everybody who has an account on the machine, and by whatever program of theirs
speaks HTTP; the terminal is read by the person who started the server. So a folder that was not named at the start is
allowed by a code that only the terminal shows.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from datamask.process import held

LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Of a code: none that is taken for another when read from a screen."""

LENGTH = 8
"""Letters of a code: one of 31 ** 8, some 8.5e11."""

FREE_TRIES = 2
"""Wrong tries without a pause: people mistype."""

LONGEST_PAUSE = 30.0
"""Seconds of a pause, at most."""

KEPT_SECONDS = 600.0
"""How long a visitor's time is remembered after it has come."""


@dataclass(frozen=True)
class Try:
    """What came of a try.

    Attributes:
        right: it was the code. judged: whether it was looked at; not in a pause.
        wait: seconds after which the same visitor's next try is looked at.
    """

    right: bool
    judged: bool
    wait: float


class OneTimeCode:
    """A random code that is right once. Thread-safe.

    Wrong tries do not change it: else any visitor could keep the person at the terminal out for ever. They make all
    visitors wait instead, each time twice as long, up to `LONGEST_PAUSE`. A visitor who was told to wait is judged
    after that time, also while others go on trying.

    Args:
        tell: called with every new code as people read it, ``ABCD-EFGH``: at once, and after one was used.
        clock: seconds; never goes back.
    """

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._lock = threading.Lock()
        self._wrong = 0
        self._free_at = self._clock()
        self._promised: dict[str, float] = {}
        self._renew()

    def spend(self, typed: str, visitor: str) -> Try:
        """Try a code; case, spaces and hyphens do not count. The right one is not right any more after that.

        Args:
            typed: by a person. visitor: tells visitors apart.
        """
        letters = "".join(letter for letter in typed.upper() if not letter.isspace() and letter != "-")
        with self._lock:
            now = self._clock()
            self._forget(now)
            due = self._promised.setdefault(visitor, self._free_at)
            if now < due:
                return Try(right=False, judged=False, wait=due - now)
            # in constant time: how many letters were right must not be told by how long it took
            right = hmac.compare_digest(letters.encode("utf-8", "replace"), self._code.encode())
            self._wrong = 0 if right else self._wrong + 1
            doublings = self._wrong - FREE_TRIES - 1
            pause = min(LONGEST_PAUSE, 2.0 ** min(doublings, 30)) if doublings >= 0 else 0.0
            self._free_at = self._promised[visitor] = now + pause
            if right:
                self._renew()
            return Try(right, judged=True, wait=pause)

    def _forget(self, now: float) -> None:
        self._promised = {visitor: due for visitor, due in self._promised.items() if now < due + KEPT_SECONDS}

    def _renew(self) -> None:
        self._code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        self._tell(f"{self._code[: LENGTH // 2]}-{self._code[LENGTH // 2 :]}")


def one_time_code() -> OneTimeCode:
    """The code of this process, printed in its terminal when it is first asked for, and each time that it changes."""
    return held("one-time code", lambda: OneTimeCode(_print))


def tell(sentence: str) -> None:
    """Print a sentence in the server's terminal; the server goes on where that is gone or its disk is full."""
    with contextlib.suppress(OSError):
        print(sentence, flush=True)


def _print(code: str) -> None:
    tell(f"datamask: {code} is the one-time code that opens a folder of your choice on the Data page")
