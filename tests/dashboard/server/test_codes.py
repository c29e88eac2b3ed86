"""The one-time code of the server's terminal: right once, whoever asks, and slow to be guessed."""

from __future__ import annotations

import hmac
import threading

import pytest

from datamask.dashboard.server import codes
from datamask.dashboard.server.codes import FREE_TRIES, KEPT_SECONDS, LETTERS, LONGEST_PAUSE, OneTimeCode


@pytest.fixture
def told() -> list[str]:
    """The codes that were told, the latest last."""
    return []


class Clock:
    """Seconds, as a test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_it_is_right_once_and_then_another_is_told(told):
    code = OneTimeCode(told.append)
    assert len(told) == 1 and not code.spend("", "me").right
    assert code.spend(told[0], "me").right and len(told) == 2
    assert not code.spend(told[0], "me").right and code.spend(told[1], "me").right
    assert len(set(told)) == 3


@pytest.mark.parametrize(
    "way", [str.lower, lambda text: text.replace("-", ""), lambda text: f" {text[:2]} {text[2:]}\n"]
)
def test_it_is_known_however_it_is_typed(told, way):
    assert OneTimeCode(told.append).spend(way(told[0]), "me").right


def test_wrong_tries_make_everyone_wait_longer_and_longer_and_the_code_stays(told, clock):
    code = OneTimeCode(told.append, clock)
    pauses = []
    for number in range(FREE_TRIES + 10):
        tried = code.spend("é\udc80" * 1000, f"visitor {number}")
        assert tried.judged and not tried.right
        pauses.append(tried.wait)
        clock.now += tried.wait
    assert pauses == [0.0] * FREE_TRIES + [1.0, 2.0, 4.0, 8.0, 16.0] + [LONGEST_PAUSE] * 5
    clock.now -= 1.0
    tried = code.spend(told[0], "me")
    assert not tried.right and not tried.judged and tried.wait == 1.0
    clock.now += 1.0
    assert len(told) == 1 and code.spend(told[0], "me").right
    assert code.spend("WRONG", "me").wait == 0.0  # from the beginning


def test_others_who_go_on_trying_do_not_keep_the_right_code_out(told, clock):
    code = OneTimeCode(told.append, clock)
    code._wrong = 1_000_000
    assert code.spend("WRONG", "other").wait == LONGEST_PAUSE
    wait = code.spend(told[0], "me").wait
    for second in range(1, int(wait) + 1):  # each judged as soon as anyone may be
        clock.now = second
        code.spend("WRONG", f"other {second}")
        code.spend("WRONG", "other")
    assert not code.spend(told[0], "another").judged
    assert code.spend(told[0], "me").right


def test_visitors_are_forgotten(told, clock):
    code = OneTimeCode(told.append, clock)
    for _ in range(100):
        clock.now += KEPT_SECONDS / 10
        code.spend("WRONG", str(clock.now))
    assert len(code._promised) <= 11


def test_each_letter_is_drawn_from_those_that_are_read_well(told):
    code = OneTimeCode(told.append)
    for _ in range(60):
        assert code.spend(told[-1], "me").right
    letters = "".join(told).replace("-", "")
    assert set(letters) == set(LETTERS) and len(letters) == 8 * len(told)


def test_it_is_compared_in_constant_time(told, monkeypatch):
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(codes.hmac, "compare_digest", lambda *pair: compared.append(pair) or compare(*pair))
    OneTimeCode(told.append).spend("abc", "me")
    assert compared == [(b"ABC", told[0].replace("-", "").encode())]


def test_of_many_who_type_it_at_once_one_is_let_in(told):
    code, right, ready = OneTimeCode(told.append), [], threading.Barrier(16)

    def spend(typed: str) -> None:
        ready.wait()
        right.append(code.spend(typed, "me").right)

    threads = [threading.Thread(target=spend, args=(told[0],)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(right) == [False] * 15 + [True]
