"""The cache itself: names, sizes, making room, locks."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import threading
import time

import numpy as np
import pytest

from datamask.errors import Stopped
from datamask.polling import poll_of
from datamask.work import cache as cache_module
from datamask.work.cache import NOTES
from datamask.work.locks import only_one
from datamask.work.result_file import Entry, Implausible, require
from tests.making.raw_cache import RawCache


def entry(subject: str, key: str = "") -> Entry:
    return Entry(subject, "result", 1, key)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "", ".", "..", "a/b", "x" * 200, "\0", "ü\udcff"])
def test_whatever_a_name_is_its_file_lies_in_the_folder_of_its_subject(name, tmp_path):
    cache = RawCache(tmp_path / "root")
    for named in (Entry(name, "result", 1), Entry("abc", name, 1), Entry("abc", "result", 1, name)):
        path = cache.path(named)
        assert path.resolve().parent.parent == (tmp_path / "root").resolve()
        assert cache.keep(named, {"a": 1}) and cache.find(named, lambda content: content.value) == {"a": 1}


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5),
        np.empty((0, 4), np.float32),
        np.arange(6).reshape(2, 3).T,
        np.array(["ä", "bc"]),
        np.array([np.nan, -np.inf]),
        np.array([True]),
    ],
)
def test_arrays_come_back_as_they_were(array, tmp_path):
    assert RawCache(tmp_path).keep(entry("abc"), {"text": "ä\n\udcff"}, {"first": array, "second": array})
    content = RawCache(tmp_path).find(entry("abc"), lambda content: content)
    assert content.value == {"text": "ä\n\udcff"} and list(content.arrays) == ["first", "second"]
    for stored in content.arrays.values():
        assert stored.dtype == array.dtype and stored.shape == array.shape
        np.testing.assert_array_equal(stored, array)


@pytest.mark.parametrize("value, arrays", [({"a": float("nan")}, {}), ({}, {"a": np.array([{}], object)})])
def test_what_could_not_be_read_safely_is_not_written(value, arrays, tmp_path):
    with pytest.raises(ValueError):
        RawCache(tmp_path).keep(entry("abc"), value, arrays)
    assert not list(tmp_path.rglob("*.*"))


def test_a_stop_inside_a_check_is_a_stop(tmp_path):
    RawCache(tmp_path).keep(entry("abc"))

    def stopped(content):
        raise Stopped("stopped")

    with pytest.raises(Stopped):
        RawCache(tmp_path).find(entry("abc"), stopped)


def test_require_says_why():
    require(True, "never said")
    with pytest.raises(Implausible, match="no number"):
        require(False, "no number")


def test_keys_are_listed_newest_first(tmp_path):
    cache = RawCache(tmp_path)

    def named(key):
        return Entry("abc", "result", 1, key)

    for age, key in enumerate(("first", "second", "third")):
        cache.keep(named(key))
        os.utime(cache.path(named(key)), (1e9 + age, 1e9 + age))
    assert cache.keys(named("*")) == ["third", "second", "first"]
    cache.drop(named("second"))
    assert cache.keys(named("*")) == ["third", "first"] and RawCache(tmp_path / "none").keys(named("*")) == []


def test_sizes_are_told_and_freed(tmp_path):
    cache = RawCache(tmp_path)
    assert cache.sizes() == {} and cache.size() == 0 and cache.free() == 0
    for subject in ("one", "two"):
        cache.keep(entry(subject), arrays={"a": np.zeros(10_000)})
    (tmp_path / NOTES).mkdir()
    (tmp_path / NOTES / "0123456789ab.json").write_text("{}")
    sizes = cache.sizes()
    assert set(sizes) == {"one", "two"} and all(80_000 < size < 81_000 for size in sizes.values())
    assert cache.size() == sum(sizes.values()) and cache.size("one") == sizes["one"] and cache.size("none") == 0
    assert cache.free("one") == sizes["one"] and cache.find(entry("one"), lambda content: content) is None
    assert cache.free("../..") == 0 and cache.free(NOTES) == 0
    assert cache.free() == sizes["two"] and cache.sizes() == {}
    assert (tmp_path / NOTES / "0123456789ab.json").exists(), "where a corpus lies is no result"


def test_nothing_is_removed_that_is_no_result(tmp_path, monkeypatch):
    """Whoever calls with a folder of his own, full of other things, finds them all there afterwards."""
    for name in (
        "thesis.txt",
        "texts/shard.parquet",
        "texts/model-v2.cache",
        "texts/poetry.lock",
        "texts/umap.npz",
        "abc/board-2024.json",
        "abc/more/result-v1.cache",
        NOTES + "/0123456789ab.json",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine" * 100_000)
    (tmp_path / "empty").mkdir()
    there = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("DATAMASK_CACHE_GB", "0")
    cache = RawCache(tmp_path)
    for subject in ("abc", "def"):
        assert cache.keep(entry(subject), arrays={"a": np.zeros(1000)})
    assert list(cache.sizes()) == ["def"] and cache.free() > 8000
    assert sorted(tmp_path.rglob("*")) == there
    for subject in ("texts", "abc", NOTES, "..", ""):
        assert cache.free(subject) == 0
    assert sorted(tmp_path.rglob("*")) == there


def test_beyond_the_bound_what_was_used_longest_ago_goes_but_not_what_is_in_use(tmp_path, monkeypatch):
    cache = RawCache(tmp_path)
    for age, subject in enumerate(("locked", "old", "read", "newer")):
        assert cache.keep(entry(subject), arrays={"a": np.zeros(10_000)})
        os.utime(tmp_path / subject, (1e9 + age, 1e9 + age))
    monkeypatch.setenv("DATAMASK_CACHE_GB", "0.0003")  # three of these
    assert cache.find(entry("read"), lambda content: content) is not None
    assert list(cache.sizes()) == ["locked", "old", "newer", "read"]
    with cache.lock(entry("locked")):
        os.utime(tmp_path / "locked", (1e9, 1e9))
        cache.keep(entry("newest"), arrays={"a": np.zeros(10_000)})
        assert set(cache.sizes()) == {"locked", "read", "newest"}
        assert cache.free("locked") == 0
    cache.keep(entry("large"), arrays={"a": np.zeros(100_000)})
    assert set(cache.sizes()) == {"large"}, "what was just kept stays, however large"


@pytest.mark.parametrize("said", ["much", "-1", "nan"])
def test_a_bound_that_is_none_is_told_and_the_usual_one_is_taken(said, monkeypatch, caplog):
    monkeypatch.setenv("DATAMASK_CACHE_GB", said)
    cache_module.warn_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert cache_module.bound_bytes() == 20e9
    assert "DATAMASK_CACHE_GB must be a number of gigabytes" in caplog.text
    monkeypatch.setenv("DATAMASK_CACHE_GB", "1.5")
    assert cache_module.bound_bytes() == 1.5e9


def test_of_two_that_want_a_lock_one_waits_and_can_be_stopped(tmp_path):
    path, inside, go = tmp_path / "a" / "x.lock", threading.Event(), threading.Event()

    def hold():
        with only_one(path):
            inside.set()
            go.wait(120)

    holder = threading.Thread(target=hold)
    holder.start()
    assert inside.wait(120)
    try:
        with pytest.raises(Stopped, match="stopped on request"), only_one(path, poll_of(lambda: True)):
            pytest.fail("two at once")
    finally:
        go.set()
        holder.join(120)
    with only_one(path), path.open("ab") as handle, pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", ["pipe", "folder"])
def test_a_lock_that_is_no_file_is_done_without(what, tmp_path, caplog):
    path = tmp_path / "x.lock"
    os.mkfifo(path) if what == "pipe" else path.mkdir()
    with caplog.at_level(logging.WARNING), only_one(path):
        assert "cannot be locked" in caplog.text
    assert RawCache(tmp_path.parent).free(tmp_path.name) >= 0


def test_where_the_file_system_knows_no_locks_work_goes_on_without(tmp_path, monkeypatch, caplog):
    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with caplog.at_level(logging.WARNING), only_one(tmp_path / "x.lock"):
        assert "cannot be locked" in caplog.text


def test_many_writers_and_readers_never_see_half_a_result(tmp_path):
    ends, wrong = time.monotonic() + 1.0, []

    def write(number):
        while time.monotonic() < ends:
            RawCache(tmp_path).keep(entry("abc"), {"n": number}, {"a": np.full(50_000, number)}, sync=False)

    def read():
        while time.monotonic() < ends:
            content = RawCache(tmp_path).find(entry("abc"), lambda content: content)
            if content is not None and not (content.arrays["a"] == content.value["n"]).all():
                wrong.append(content.value)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong and RawCache(tmp_path).find(entry("abc"), lambda content: content) is not None
