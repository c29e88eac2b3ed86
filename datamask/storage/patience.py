"""A call to a store elsewhere, which may never answer: a few tries with pauses between them, and Stop heard meanwhile.

The libraries cannot be interrupted, so each try is a thread of its own, and whoever asks waits for it a tenth of a
second at a time. What a stop, or a try without end, leaves behind ends by the library's own time-out; nobody waits for
it.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from datamask import endings
from datamask.errors import DatamaskError, InputError, OptionError, RemoteError
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, harmless

TRIES, SECONDS = "DATAMASK_REMOTE_TRIES", "DATAMASK_REMOTE_SECONDS"
"""Names in the environment: how often a store is asked, and how long it may go without an answer."""

POLL_SECONDS = 0.1
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
"""Before the second try, doubled before each next one."""

THROTTLED_TRIES = 2
"""A store that answers "slow down" is alive: it is asked so many times as often before a call fails."""

FIRM = 3.0
"""A try is given up after so many times the seconds without an answer, whatever the library makes of them."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Patience:
    """How often a store is asked, and how many seconds it may be silent."""

    tries: int = 4
    seconds: float = 15.0

    @property
    def longest(self) -> float:
        """Seconds after which one try is given up."""
        return FIRM * self.seconds

    @classmethod
    def of_environment(cls) -> Patience:
        """The defaults, or what the environment says.

        Raises:
            OptionError: it says what is no number, or none above 0.
        """
        return cls(
            int(_number(TRIES, cls.tries, 1, "a whole number from 1 on")),
            _number(SECONDS, cls.seconds, 0.1, "a number of seconds from 0.1 on"),
        )


def _number(name: str, default: float, least: float, expected: str) -> float:
    text = os.environ.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = float("nan")
    if not least <= value < 1e6:
        raise OptionError(f"{name} must be {expected}, got {text!r}")
    return value


def ask(address: Address, call: Callable[[], Answer], poll: Poll = no_poll) -> Answer:
    """``call()``, again where the store does not answer or breaks off.

    Args:
        address: what is asked for, in sentences.
        call: may take long, and is thrown away half done; called in other threads.
        poll: called some ten times a second from this thread.

    Raises:
        FileNotFoundError: the store has no such file. InputError: `call` cannot work.
        RemoteError: it refuses to give it, or has not answered; one sentence with what happened, and how often it was
            tried.
        Stopped: from `poll`.
    """
    patience = Patience.of_environment()
    pause = FIRST_PAUSE
    for attempt in itertools.count(1):
        attempted: _Try[Answer] = _Try(call, f"datamask-remote-{address.host}")
        problem = attempted.wait(patience.longest, poll)
        if problem is None:
            return attempted.answer()
        _raise_final(address, problem)
        happened = _what_happened(problem, patience)
        if attempt >= patience.tries * (THROTTLED_TRIES if happened.startswith(THROTTLED) else 1):
            times = f"{attempt:,} times" if attempt > 1 else "once"
            raise RemoteError(
                f"{address} cannot be read: {happened}, tried {times}; start again when it "
                "answers (`datamask resume` continues a run)"
            ) from problem
        # stores that are asked too much are asked by all threads at once
        _sleep(pause * random.uniform(0.75, 1.25), poll)
        pause = min(2 * pause, LONGEST_PAUSE)
    raise AssertionError("the last try answers or raises")


class _Try(Generic[Answer]):
    """One try, in a thread of its own."""

    def __init__(self, call: Callable[[], Answer], name: str) -> None:
        self._call = call
        self._answers: list[Answer] = []
        self._error: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._answers.append(self._call())
        except Exception as error:
            self._error = error
        finally:
            self._ended.set()

    def wait(self, seconds: float, poll: Poll) -> Exception | None:
        """What went wrong, None where nothing did; a TimeoutError after so many seconds.

        Raises:
            Stopped: from `poll`.
        """
        deadline = time.monotonic() + seconds
        try:
            while not self._ended.wait(POLL_SECONDS):
                poll()
                if time.monotonic() > deadline:
                    return TimeoutError(f"no answer in {seconds:g} s")
        finally:
            if not self._ended.is_set():
                endings.forsake(self._thread)
        return self._error

    def answer(self) -> Answer:
        return self._answers[0]


def _sleep(seconds: float, poll: Poll) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, POLL_SECONDS))
        poll()


# -- what went wrong ---------------------------------------------------------------------------------------------------

_ACCESS = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|INVALID_SIGNATURE|MISSING_AUTHENTICATION|EXPIRED_TOKEN|"
    r"INVALID_CLIENT_TOKEN|UNRECOGNIZED_CLIENT|ExpiredToken|PERMISSION_DENIED|UNAUTHENTICATED|"
    r"HTTP status(?: code)?:? 40[13]\b|NO_CREDENTIALS|Could not load default credentials",
    re.IGNORECASE,
)
_REGION = re.compile(r"HTTP status(?: code)?:? 301\b|PermanentRedirect|different region|AuthorizationHeaderMalformed")
_MISSING = re.compile(r"NO_SUCH_BUCKET|NO_SUCH_KEY|RESOURCE_NOT_FOUND|HTTP status(?: code)?:? 404\b")
THROTTLED = "it is asked too often"
_HAPPENED = (
    (r"curlCode: (28|42)\b|time.?out|timed out|no answer in|DEADLINE_EXCEEDED|too slow", "it does not answer"),
    (r"curlCode: 6\b|getaddrinfo|Name or service|could not resolve", "the network knows no server of its name"),
    (r"curlCode: 7\b|refused|Cannot connect|Could not connect", "it cannot be reached"),
    (
        r"SLOW_DOWN|SlowDown|SERVICE_UNAVAILABLE|TooManyRequests|THROTTL|status(?: code)?:? (429|503)\b",
        THROTTLED,
    ),
    (
        r"curlCode: (18|52|55|56)\b|reset|closed|disconnected|partial|fewer bytes|payload",
        "it breaks off while it sends",
    ),
    (r"INTERNAL_FAILURE|status(?: code)?:? 5\d\d\b", "it reports a fault of its own"),
)
FINAL = (ImportError, ValueError, TypeError, AttributeError, LookupError, NotImplementedError, MemoryError)
"""Errors of a call that will not end otherwise the next time."""


def _raise_final(address: Address, problem: Exception) -> None:
    """Raise what no further try would change.

    Raises:
        FileNotFoundError: there is no such file. RemoteError: access is refused. InputError: any other.
    """
    if isinstance(problem, DatamaskError):
        raise problem
    status = _status(problem)
    words = _words(problem)
    if status in (404, 410) or isinstance(problem, FileNotFoundError) or _MISSING.search(words):
        raise FileNotFoundError(2, "there is no such file", str(address)) from problem
    if _REGION.search(words):
        raise InputError(
            f"{address} lies in another region than it was looked for in; name it by AWS_REGION or ?region="
        ) from problem
    if status in (401, 403) or isinstance(problem, PermissionError) or _ACCESS.search(words):
        raise RemoteError(
            f"{address} may not be read: access is refused ({_reason(problem)}); name credentials by the environment "
            f"({CREDENTIALS.get(address.scheme, 'as its server requires')})"
        ) from problem
    if isinstance(problem, FINAL) or (status is not None and 400 <= status < 500 and status not in (408, 425, 429)):
        raise InputError(f"{address} cannot be read: {_reason(problem)}") from problem


CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; ?anonymous=true for a public bucket",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS; ?anonymous=true for a public bucket",
    "hf": "HF_TOKEN",
}
"""Scheme -> where its library looks for credentials."""


def _status(problem: BaseException) -> int | None:
    """The number of an answer of HTTP, where a library tells it."""
    for holder in (problem, getattr(problem, "response", None)):
        for name in ("status", "status_code"):
            status = getattr(holder, name, None)
            if isinstance(status, int):
                return status
    return None


def _words(problem: BaseException) -> str:
    """A library's message without the names it quotes: a bucket may be called ``'status-503'``."""
    return re.sub(r"'[^']*'", "''", str(problem))


def _what_happened(problem: Exception, patience: Patience) -> str:
    status = _status(problem)
    words = f"status {status}" if status is not None else type(problem).__name__
    words = f"{words} {_words(problem)}"
    for pattern, sentence in _HAPPENED:
        if re.search(pattern, words, re.IGNORECASE):
            within = f" for {patience.seconds:g} s" if sentence == "it does not answer" else ""
            return f"{sentence}{within} ({_reason(problem)})"
    return _reason(problem)


def _reason(problem: Exception) -> str:
    """The first sentence of a library's message, without secrets and without the number of the request."""
    text = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
    text = re.sub(r"\s*\(Request ID: [^)]*\)?", "", text)
    text = text.rpartition("; Details: ")[2] if "; Details: " in text else text
    return harmless(text.rstrip(". "))[:160] or type(problem).__name__
