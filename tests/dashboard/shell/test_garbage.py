"""The garbage collector: what stays is set aside, and what became garbage since is not kept for ever."""

from __future__ import annotations

import gc
import sys
import types
import weakref

import pytest

from datamask.dashboard.shell import garbage


class Knot:
    """Holds itself, so that only the collector ends it."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def settled(monkeypatch):
    """`garbage.settled` with a memory and a clock of its own; what it sets aside is taken back."""
    aside, clock = garbage.Aside(), [1000.0]
    monkeypatch.setattr(garbage, "held", lambda name, make: aside)
    yield lambda later=0.0: (clock.__setitem__(0, clock[0] + later), garbage.settled(lambda: clock[0]))[1]
    gc.unfreeze()


def test_what_there_is_is_set_aside_once(settled):
    gc.unfreeze()
    assert settled() and gc.get_freeze_count() > 1000
    before = gc.get_freeze_count()
    for _ in range(3):
        assert not settled(1.0)
    assert gc.get_freeze_count() <= before


def test_what_much_has_been_imported_is_set_aside_too(settled, monkeypatch):
    assert settled() and not settled(1.0)
    for place in range(garbage.MODULES):
        monkeypatch.setitem(sys.modules, f"made_up_{place}", types.ModuleType("made_up"))
    assert settled(1.0) and not settled(1.0)


def test_new_modules_have_nothing_looked_at_again_that_is_set_aside_and_put_off_no_later_look(settled, monkeypatch):
    knot = Knot()
    ended = weakref.ref(knot)
    assert settled()
    del knot
    for place in range(garbage.MODULES):
        monkeypatch.setitem(sys.modules, f"made_up_{place}", types.ModuleType("made_up"))
    assert settled(garbage.SECONDS - 1.0) and ended() is not None
    assert settled(2.0) and ended() is None


def test_what_became_garbage_is_kept_for_a_while_and_no_longer(settled):
    knot = Knot()
    ended = weakref.ref(knot)
    assert settled()
    del knot
    gc.collect()
    assert ended() is not None, "what is set aside is not looked at"
    assert not settled(garbage.SECONDS - 1.0) and ended() is not None
    assert settled(2.0) and ended() is None


def test_only_one_drawing_does_it(settled, monkeypatch):
    inside = []
    monkeypatch.setattr(garbage.gc, "freeze", lambda: inside.append(settled(2 * garbage.SECONDS)))
    assert settled() and inside == [False]
