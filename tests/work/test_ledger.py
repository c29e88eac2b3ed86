"""The ledger of memory: granted whole or not at all, waited for, refused in a sentence, free once its owner is gone."""

from __future__ import annotations

import contextlib
import ctypes
import random
import threading
import time

import pytest

from datamask.errors import DatamaskError, NoRoomError, Stopped
from datamask.polling import no_poll, poll_of
from datamask.work import lanes
from datamask.work import ledger as module
from datamask.work.lanes import Priority
from datamask.work.ledger import KEPT_FREE, Ledger, in_words

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_to_collect(monkeypatch):
    """No cycles here, and to look for some takes a second each time after thousands of tests."""
    monkeypatch.setattr(module, "collect", lambda: None)


class Owner:
    """Something that can be collected."""


def made(mib: int = 100) -> Ledger:
    return Ledger(lambda: mib * MIB)


def test_a_block_holds_bytes_until_it_ends_however_it_ends():
    ledger = made()
    with ledger.reserve(30 * MIB, "A") as room:
        assert ledger.free() == 70 * MIB and room.nbytes == 30 * MIB
        room.grow(20 * MIB)
        assert ledger.free() == 50 * MIB
        room.shrink(10 * MIB)
        assert ledger.free() == 90 * MIB
    assert ledger.free() == 100 * MIB
    with pytest.raises(ZeroDivisionError), ledger.reserve(30 * MIB, "A"):
        raise ZeroDivisionError
    assert ledger.free() == 100 * MIB


def test_what_is_dropped_without_a_word_is_free():
    ledger = made()
    room = ledger.reserve(30 * MIB, "A")
    assert ledger.free() == 70 * MIB
    del room
    assert ledger.free() == 100 * MIB


def test_an_object_takes_over_and_keeps_less():
    ledger, owner = made(), Owner()
    with ledger.reserve(30 * MIB, "A") as room:
        room.pass_to(owner, 20 * MIB)
    assert ledger.free() == 80 * MIB
    del owner
    assert ledger.free() == 100 * MIB


def test_what_a_dead_thread_held_is_free():
    ledger, kept = made(), []
    thread = threading.Thread(target=lambda: kept.append(ledger.reserve(30 * MIB, "A")))
    thread.start()
    thread.join()
    assert kept and ledger.free() == 100 * MIB


def test_a_refusal_says_what_was_asked_what_is_free_and_what_to_do():
    ledger = made()
    with pytest.raises(NoRoomError) as refusal:
        ledger.reserve(101 * MIB, "Opening a.parquet", way_out="take a sample (--rows)")
    assert str(refusal.value) == (
        "Opening a.parquet needs 101 MiB of memory, but this process may use 100 MiB; take a sample (--rows)"
    )
    with ledger.reserve(60 * MIB, "A"), pytest.raises(NoRoomError) as refusal:
        ledger.reserve(50 * MIB, "Opening a.parquet", seconds=0.0)
    assert str(refusal.value) == (
        "Opening a.parquet needs 50 MiB of memory, but 27.5 MiB of the 100 MiB that this process may use are free; "
        "try again when other work has ended"
    ), "40 less the eighth that a large one leaves to small ones"
    assert isinstance(refusal.value, MemoryError) and in_words(3 << 29) == "1.5 GiB"


def test_growing_does_not_wait_and_takes_nothing_where_it_fails():
    ledger = made()
    with ledger.reserve(40 * MIB, "A") as one, ledger.reserve(40 * MIB, "B"):
        with pytest.raises(NoRoomError, match="A needs 80 MiB"):
            one.grow(40 * MIB)
        assert one.nbytes == 40 * MIB and ledger.free() == 20 * MIB


def test_nothing_is_let_go_for_what_could_never_be_had():
    ledger = made()
    cache = Cache(ledger)
    cache.add(20 * MIB)
    with ledger.reserve(40 * MIB, "A") as one, pytest.raises(NoRoomError, match=r"A needs 0\.137 GiB"):
        one.grow(100 * MIB)
    assert ledger.free() == 80 * MIB


def test_a_large_one_leaves_an_eighth_to_small_ones_but_may_have_all_when_alone():
    ledger = made()
    with ledger.reserve(100 * MIB, "A"):
        assert ledger.free() == 0
    with ledger.reserve(MIB, "Small"):
        with pytest.raises(NoRoomError):
            ledger.reserve(95 * MIB, "Large", seconds=0.0)
        with ledger.reserve(86 * MIB, "Large"):
            ledger.reserve(int(KEPT_FREE * 100 * MIB), "Small, too", seconds=0.0).release()


def test_it_waits_for_others_to_end_and_can_be_stopped():
    ledger, stop = made(), threading.Event()
    room = ledger.reserve(80 * MIB, "A")
    answers: list[object] = []

    def wait() -> None:
        with (
            contextlib.suppress(Stopped),
            ledger.reserve(50 * MIB, "B", poll=poll_of(stop.is_set), seconds=60.0) as mine,
        ):
            answers.append(mine.nbytes)

    threads = [threading.Thread(target=wait) for _ in range(2)]
    threads[0].start()
    threads[0].join(0.3)
    assert threads[0].is_alive() and not answers
    room.release()
    threads[0].join(10.0)
    assert answers == [50 * MIB] and ledger.free() == 100 * MIB
    room = ledger.reserve(80 * MIB, "A")
    threads[1].start()
    stop.set()
    threads[1].join(10.0)
    assert not threads[1].is_alive() and len(answers) == 1


def test_whoever_waits_leaves_its_lane():
    ledger, inside = made(), threading.Event()
    room = ledger.reserve(80 * MIB, "A")

    def wait() -> None:
        with lanes.lane("for memory").ticket(Priority.RUN, no_poll):
            inside.set()
            ledger.reserve(50 * MIB, "B").release()

    thread = threading.Thread(target=wait)
    thread.start()
    inside.wait(10.0)
    with lanes.lane("for memory").ticket(Priority.RUN, no_poll):
        room.release()
    thread.join(10.0)
    assert not thread.is_alive()


class Cache:
    """Holds objects that own bytes of a ledger, and lets one go when it is asked to."""

    def __init__(self, ledger: Ledger) -> None:
        self.kept: list[Owner] = []
        self._ledger = ledger
        ledger.add_spare(self.let_go)

    def add(self, nbytes: int) -> None:
        with self._ledger.reserve(nbytes, "A cached thing") as room:
            self.kept.append(Owner())
            room.pass_to(self.kept[-1])

    def let_go(self) -> bool:
        return bool(self.kept) and self.kept.pop(0) is not None


def test_where_memory_is_short_caches_give_first():
    ledger = made()
    cache = Cache(ledger)
    for _ in range(4):
        cache.add(20 * MIB)
    with ledger.reserve(40 * MIB, "A", seconds=0.0) as room:
        assert len(cache.kept) == 2
        room.grow(20 * MIB)
        assert len(cache.kept) == 1
    in_use = cache.kept[0]
    with pytest.raises(NoRoomError):
        ledger.reserve(90 * MIB, "A", seconds=0.0)
    assert not cache.kept and ledger.free() == 80 * MIB, "let go of, and still held by who uses it"
    del in_use, cache
    assert ledger.free() == 100 * MIB and not ledger.let_go()


class Killed(BaseException):
    """Raised in a thread from outside."""


def kill(thread: threading.Thread) -> None:
    """End a thread, wherever it is in its Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Killed))


def test_fifty_owners_killed_at_random_leave_nothing_and_lock_nobody_out():
    ledger, rng = made(), random.Random(7)
    cache = Cache(ledger)
    everything: list[object] = []  # keeps what the dead leave behind, as a traceback would

    def live(seed: int) -> None:
        with contextlib.suppress(Killed):
            work(seed)

    def work(seed: int) -> None:
        own = random.Random(seed)
        while True:
            with contextlib.suppress(DatamaskError):
                room = ledger.reserve(own.randint(1, 40) * MIB, f"Owner {seed}", seconds=0.05)
                everything.append(room)
                match own.randrange(4):
                    case 0:
                        room.grow(own.randint(1, 20) * MIB)
                    case 1:
                        room.pass_to(Owner())
                    case 2:
                        cache.add(own.randint(1, 5) * MIB)
                    case 3:
                        with room:
                            time.sleep(own.random() / 500)
                if own.random() < 0.5:
                    room.release()

    threads = [threading.Thread(target=live, args=(seed,), daemon=True) for seed in range(50)]
    for thread in threads:
        thread.start()
    order = threads.copy()
    rng.shuffle(order)
    for thread in order:
        time.sleep(rng.random() / 100)
        assert 0 <= ledger.free() <= 100 * MIB
        kill(thread)
    deadline = time.monotonic() + 60.0
    for thread in threads:
        while thread.is_alive() and time.monotonic() < deadline:
            kill(thread)  # one may be lost in a call that suppresses it
            thread.join(0.1)
    assert not any(thread.is_alive() for thread in threads)
    while ledger.let_go():
        pass
    assert everything and ledger.free() == 100 * MIB
    ledger.reserve(100 * MIB, "All of it", seconds=0.0).release()


def test_memory_that_was_freed_goes_back_to_the_system_before_more_is_taken(monkeypatch):
    given: list[int] = []
    monkeypatch.setattr(module, "give_back", lambda: given.append(1))
    ledger, owner = made(400), Owner()
    for _ in range(10):
        ledger.reserve(10 * MIB, "Small").release()
    assert len(given) == 1, "once for 64 MiB and more of small ones together"
    ledger.reserve(100 * MIB, "Large").pass_to(owner)
    room = ledger.reserve(100 * MIB, "Large, too")
    assert len(given) == 1
    del owner
    room.grow(150 * MIB)
    assert len(given) == 2, "as much is taken as is gone, and that was freed all the same"
