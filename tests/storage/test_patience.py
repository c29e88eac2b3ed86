"""A call to a store: what is tried again, what is not, and how long anybody waits."""

from __future__ import annotations

import threading
import time

import pytest

from datamask import endings
from datamask.errors import InputError, OptionError, RemoteError, Stopped
from datamask.polling import poll_of
from datamask.storage import patience
from datamask.storage.address import Address
from datamask.storage.patience import Patience, ask

ADDRESS = Address.parse("s3://bucket/x.parquet")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.01)


class Failing:
    """Raises these errors in turn, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "bytes"


class StatusError(Exception):
    """An answer of HTTP, as libraries of the web raise it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status}, url='https://u:hunter2@host/x?sig=hunter2'")
        self.status = status


@pytest.mark.parametrize(
    "error",
    [
        OSError("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 56, ..."),
        OSError("AWS Error SLOW_DOWN during GetObject operation: Please reduce your request rate."),
        ConnectionResetError(104, "Connection reset by peer"),
        TimeoutError(),
        StatusError(429),
        StatusError(500),
        StatusError(503),
    ],
)
def test_what_may_pass_is_tried_again(error):
    call = Failing(error, error)
    assert ask(ADDRESS, call) == "bytes" and call.calls == 3


@pytest.mark.parametrize(
    "error, words",
    [
        (OSError("AWS Error ACCESS_DENIED during HeadObject operation: No response body."), "AWS_ACCESS_KEY_ID"),
        (OSError("AWS Error INVALID_ACCESS_KEY_ID during GetObject operation: ..."), "access is refused"),
        (OSError("AWS Error UNKNOWN (HTTP status 301) during HeadObject operation"), "AWS_REGION or [?]region="),
        (PermissionError(13, "no"), "access is refused"),
        (StatusError(401), "access is refused"),
        (StatusError(403), "access is refused"),
        (StatusError(400), "cannot be read: 400"),
        (ValueError("no ranges"), "cannot be read: no ranges"),
        (InputError("a sentence"), "^a sentence$"),
    ],
)
def test_what_will_not_pass_is_said_at_once(error, words):
    call = Failing(error)
    # credentials that have run out say nothing about the shards: what was selected from them stays as it is
    refused = RemoteError if words in ("AWS_ACCESS_KEY_ID", "access is refused") else InputError
    with pytest.raises(refused, match=words) as caught:
        ask(ADDRESS, call)
    assert call.calls == 1 and "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "no"), StatusError(404), OSError("AWS Error NO_SUCH_BUCKET during ListObjectsV2")]
)
def test_what_is_not_there_is_not_there(error):
    with pytest.raises(FileNotFoundError):
        ask(ADDRESS, Failing(error))


@pytest.mark.parametrize(
    "error, words",
    [
        (OSError("curlCode: 28, Timeout was reached; Details: Operation too slow"), "it does not answer for 15 s ("),
        (OSError("curlCode: 7, Could not connect to server"), "it cannot be reached ("),
        (OSError("curlCode: 6, Could not resolve hostname"), "the network knows no server of its name ("),
        (OSError("curlCode: 18, Transferred a partial file (Request ID: abc)"), "it breaks off while it sends ("),
        (ConnectionError("fewer bytes than were asked for (1 of 2)"), "it breaks off while it sends ("),
        (StatusError(500), "it reports a fault of its own ("),
        (RuntimeError(), "RuntimeError, tried"),
    ],
)
def test_the_sentence(monkeypatch, error, words):
    monkeypatch.setenv(patience.TRIES, "3")
    call = Failing(*[error] * 3)
    with pytest.raises(RemoteError) as caught:
        ask(ADDRESS, call)
    sentence = str(caught.value)
    assert sentence.startswith(f"{ADDRESS} cannot be read: {words}") and "hunter2" not in sentence
    assert ", tried 3 times; start again when it answers" in sentence and "Request ID" not in sentence
    assert call.calls == 3


@pytest.mark.parametrize(
    "error",
    [
        StatusError(503),
        OSError("AWS Error SLOW_DOWN during GetObject operation: Please reduce your request rate."),
        OSError("AWS Error SERVICE_UNAVAILABLE during GetObject operation: "),
        OSError("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation: No response body"),
    ],
)
def test_a_store_that_throttles_is_given_twice_the_tries(monkeypatch, error):
    monkeypatch.setenv(patience.TRIES, "3")
    assert ask(ADDRESS, Failing(*[error] * 5)) == "bytes"
    call = Failing(*[error] * 9)
    with pytest.raises(RemoteError, match=r"it is asked too often \(.*\), tried 6 times") as caught:
        ask(ADDRESS, call)
    assert call.calls == 6 and "hunter2" not in str(caught.value)


def test_numbers_in_the_names_of_files_are_no_status(monkeypatch):
    monkeypatch.setenv(patience.TRIES, "2")
    said = "When reading information for key '503/NO_SUCH_KEY.parquet' in bucket 'status-429': curlCode: 52, Empty"
    call = Failing(*[OSError(said)] * 2)
    with pytest.raises(RemoteError, match=r"it breaks off while it sends \(.*\), tried 2 times"):
        ask(ADDRESS, call)
    assert call.calls == 2


def test_pauses_grow_and_are_bounded(monkeypatch):
    paused = []
    monkeypatch.setattr(patience, "_sleep", lambda seconds, poll: paused.append(seconds))
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.5)
    monkeypatch.setenv(patience.TRIES, "9")
    with pytest.raises(RemoteError):
        ask(ADDRESS, Failing(*[TimeoutError()] * 9))
    bases = [0.5, 1, 2, 4, 8, 10, 10, 10]
    assert all(0.75 * base <= pause <= 1.25 * base for pause, base in zip(paused, bases, strict=True))


def test_a_call_without_end_is_left_and_the_process_may_end(monkeypatch):
    monkeypatch.setenv(patience.TRIES, "2")
    monkeypatch.setenv(patience.SECONDS, "0.1")
    release = threading.Event()
    with pytest.raises(RemoteError, match=r"it does not answer for 0\.1 s"):
        ask(ADDRESS, release.wait)
    left = [thread for thread in endings._holder().forsaken if thread.is_alive()]
    assert len(left) == 2 and all(thread.daemon for thread in left)
    release.set()
    for thread in left:
        thread.join(30)
        assert not thread.is_alive()


def test_stop_is_polled_from_the_thread_that_waits():
    mine, release = threading.get_ident(), threading.Event()

    def should_stop() -> bool:
        assert threading.get_ident() == mine
        return time.monotonic() > began + 0.2

    began = time.monotonic()
    with pytest.raises(Stopped, match="stopped on request"):
        ask(ADDRESS, release.wait, poll_of(should_stop))
    release.set()


@pytest.mark.parametrize("name, text", [("TRIES", "0"), ("TRIES", "many"), ("SECONDS", "-1"), ("SECONDS", "nan")])
def test_an_environment_that_says_nonsense_is_refused(monkeypatch, name, text):
    monkeypatch.setenv(f"DATAMASK_REMOTE_{name}", text)
    with pytest.raises(OptionError, match=f"DATAMASK_REMOTE_{name} must be a .*, got '{text}'"):
        Patience.of_environment()
