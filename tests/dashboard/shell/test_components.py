"""Which data of a component were sent last, as the browser is to know it (browser/newest.js reads the numbers)."""

from __future__ import annotations

import struct

import pytest

from datamask.dashboard.shell import components

DATA = ({"name": "map", "rows": [1, 2]}, {"name": "map", "rows": [1, 3]}, b"parcel", b"another")


@pytest.fixture(autouse=True)
def session(monkeypatch) -> dict:
    """The state of a session that is new with every test."""
    state: dict = {}
    monkeypatch.setattr(components.st, "session_state", state)
    return state


def number_of(data: dict | bytes) -> float:
    """The number that a component's data travel with; the rest of them arrives as it was given."""
    sent = []
    components._mount(lambda **given: sent.append(given["data"]), "key", data)
    if isinstance(data, bytes):
        assert sent[0][8:] == data
        return struct.unpack("<d", sent[0][:8])[0]
    assert {**sent[0], "number": 0} == {**data, "number": 0}
    return sent[0]["number"]


def test_the_same_data_keep_their_number_and_others_get_a_higher_one():
    numbers = []
    for data in (*DATA, *DATA[::-1]):
        numbers.append(number_of(data))
        assert number_of(data.copy() if isinstance(data, dict) else bytes(bytearray(data))) == numbers[-1]
    assert numbers[3] == numbers[4]  # the turn of the list: the same data twice
    others = numbers[:4] + numbers[5:]
    assert others == sorted(set(others))


def test_numbers_rise_where_the_clock_goes_back_and_in_a_session_after(monkeypatch, session):
    before = number_of(DATA[0])
    with monkeypatch.context() as patched:
        patched.setattr(components.time, "time", lambda: before - 3600.0)
        assert number_of(DATA[1]) > before
    session.clear()
    assert number_of(DATA[0]) > before


def test_a_component_without_data_is_sent_none_and_gets_no_number():
    sent = []
    components._mount(lambda **given: sent.append(given), "theme", on_ground_change=components.nothing)
    assert sent == [{"key": "theme", "data": None, "on_ground_change": components.nothing}]
