"""The one-time code of the server's terminal: right once, whoever asks, and void after three wrong tries."""

from __future__ import annotations

import hmac
import threading

import pytest

from datamask.dashboard.server import codes
from datamask.dashboard.server.codes import LETTERS, TRIES, OneTimeCode


@pytest.fixture
def told() -> list[str]:
    """The codes that were told, the latest last."""
    return []


def test_it_is_right_once_and_then_another_is_told(told):
    code = OneTimeCode(told.append)
    assert len(told) == 1 and not code.spend("")
    assert code.spend(told[0]) and len(told) == 2
    assert not code.spend(told[0]) and code.spend(told[1])
    assert len(set(told)) == 3


@pytest.mark.parametrize(
    "way", [str.lower, lambda text: text.replace("-", ""), lambda text: f" {text[:2]} {text[2:]}\n"]
)
def test_it_is_known_however_it_is_typed(told, way):
    assert OneTimeCode(told.append).spend(way(told[0]))


def test_after_three_wrong_tries_there_is_another_code(told):
    code = OneTimeCode(told.append)
    for _ in range(TRIES - 1):
        assert not code.spend("WRONG")
    assert len(told) == 1
    assert not code.spend("é\udc80" * 1000) and len(told) == 2
    assert not code.spend(told[0]) and code.spend(told[1])


def test_each_letter_is_drawn_from_those_that_are_read_well(told):
    code = OneTimeCode(told.append)
    for _ in range(60):
        assert code.spend(told[-1])
    letters = "".join(told).replace("-", "")
    assert set(letters) == set(LETTERS) and len(letters) == 8 * len(told)


def test_it_is_compared_in_constant_time(told, monkeypatch):
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(codes.hmac, "compare_digest", lambda *pair: compared.append(pair) or compare(*pair))
    OneTimeCode(told.append).spend("abc")
    assert compared == [(b"ABC", told[0].replace("-", "").encode())]


def test_of_many_who_type_it_at_once_one_is_let_in(told):
    code, right, ready = OneTimeCode(told.append), [], threading.Barrier(16)

    def spend(typed: str) -> None:
        ready.wait()
        right.append(code.spend(typed))

    threads = [threading.Thread(target=spend, args=(told[0],)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(right) == [False] * 15 + [True]
