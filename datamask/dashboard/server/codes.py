"""The one-time code: who reads the server's terminal may allow a folder on its page.

A page on the loopback can be opened by everybody who has an account on the machine, and by whatever program of theirs
speaks HTTP; the terminal is read by the person who started the server. So a folder that was not named at the start is
allowed by a code that only the terminal shows.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable

from datamask.process import held

LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Of a code: none that is taken for another when read from a screen."""

LENGTH = 8
"""Letters of a code: one of 31 ** 8, some 8.5e11."""

TRIES = 3
"""Wrong tries after which a code is void."""


class OneTimeCode:
    """A random code that is right once. Thread-safe.

    Args:
        tell: called with every new code as people are to read it, ``ABCD-EFGH``: at once, when one was used, and when
            one was tried in vain `TRIES` times.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._renew()

    def spend(self, typed: str) -> bool:
        """Whether that is the code; case, spaces and hyphens aside. It is not any more after that."""
        letters = "".join(letter for letter in typed.upper() if not letter.isspace() and letter != "-")
        with self._lock:
            # in constant time: how many letters were right must not be told by how long it took
            right = hmac.compare_digest(letters.encode("utf-8", "replace"), self._code.encode())
            self._left -= 1
            if right or self._left == 0:
                self._renew()
            return right

    def _renew(self) -> None:
        self._code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        self._left = TRIES
        self._tell(f"{self._code[: LENGTH // 2]}-{self._code[LENGTH // 2 :]}")


def one_time_code() -> OneTimeCode:
    """The code of this process, printed in its terminal when it is first asked for, and each time that it changes."""
    return held("one-time code", lambda: OneTimeCode(_print))


def _print(code: str) -> None:
    print(f"datamask: {code} is the code that opens a folder of your choice on the Data page, once", flush=True)
