"""What every kept result promises: a damaged, replaced or implausible file is as good as none, and never in the way."""

from __future__ import annotations

import copy
import errno
import logging
import os
import shutil
import stat

import pytest

from datamask.errors import StoreError
from datamask.work import cache as cache_module
from datamask.work.result_file import Content, Entry
from tests.making.pools import made_corpus
from tests.making.raw_cache import RawCache
from tests.work.kinds import KINDS, N, kept, kind_of, plain

every = pytest.mark.parametrize("name", KINDS)


@pytest.fixture(autouse=True)
def said_anew():
    cache_module.warn_once.cache_clear()


@every
def test_what_is_kept_is_found(name, tmp_path):
    kind = kind_of(name)
    assert kind.read(tmp_path) is None
    kept(kind, tmp_path)
    first, again = kind.read(tmp_path), kind.read(tmp_path)
    assert first is not None and plain(first) == plain(again)


@every
def test_describing_a_kind_leaves_nothing_in_the_working_directory(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    KINDS[name](made_corpus(N, 12))
    assert list(tmp_path.iterdir()) == []


DAMAGES = {
    "first byte": lambda whole: bytes([whole[0] ^ 1]) + whole[1:],
    "name": lambda whole: whole.replace(b'"name"', b'"mane"', 1),
    "a byte in the middle": lambda whole: (
        whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 4]) + whole[len(whole) // 2 + 1 :]
    ),
    "last byte": lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]),
    "cut short": lambda whole: whole[: len(whole) // 2],
    "cut by one": lambda whole: whole[:-1],
    "empty": lambda whole: b"",
    "longer": lambda whole: whole + b"0",
    "twice": lambda whole: whole + whole,
    "something else": lambda whole: b"PK\x03\x04 no such thing",
    "nested": lambda whole: b"[" * 100_000,
}


@every
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_none_and_is_made_anew(name, damage, tmp_path, caplog):
    kind = kind_of(name)
    path = kept(kind, tmp_path)
    good = plain(kind.read(tmp_path))
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert kind.read(tmp_path) is None and kind.read(tmp_path) is None
    assert len(caplog.records) == 1 and "\n" not in caplog.text.strip(), "one line says so, once"
    assert str(path) in caplog.text
    kept(kind, tmp_path)
    assert plain(kind.read(tmp_path)) == good


@every
def test_the_file_of_another_subject_key_version_or_kind_is_none(name, tmp_path):
    kind = kind_of(name)
    path = kept(kind, tmp_path)
    good, entry = path.read_bytes(), kind.entry
    for other in (
        Entry("another", entry.name, entry.version, entry.key),
        Entry(entry.subject, entry.name, entry.version, f"{entry.key}-2"),
        Entry(entry.subject, entry.name, entry.version + 1, entry.key),
        Entry(entry.subject, "another", entry.version, entry.key),
    ):
        elsewhere = RawCache(tmp_path / "elsewhere")
        assert elsewhere.keep(other, kind.content.value, kind.content.arrays)
        shutil.copy(elsewhere.path(other), path)
        assert kind.read(tmp_path) is None
    path.write_bytes(good)
    assert kind.read(tmp_path) is not None


@every
def test_what_no_such_result_can_hold_is_refused_though_the_digest_fits(name, tmp_path, caplog):
    kind = kind_of(name)
    assert len(kind.wrong) > 2
    for wrong, spoil in kind.wrong.items():
        value, arrays = copy.deepcopy(kind.content.value), {key: a.copy() for key, a in kind.content.arrays.items()}
        spoil(value, arrays)
        assert RawCache(tmp_path).keep(kind.entry, value, arrays)
        with caplog.at_level(logging.WARNING):
            assert kind.read(tmp_path) is None, wrong
        assert caplog.records or wrong == "other plan", "lists of another plan are no fault"
        caplog.clear()
        cache_module.warn_once.cache_clear()


@every
@pytest.mark.parametrize("what", ["pipe", "folder", "socket", "loop"])
def test_what_is_no_file_does_not_block_and_is_no_result(name, what, tmp_path):
    kind = kind_of(name)
    path = RawCache(tmp_path).path(kind.entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        (path / "inside").mkdir(parents=True)
    elif what == "loop":
        path.symlink_to(path)
    else:
        os.mknod(path, stat.S_IFSOCK | 0o644)
    assert kind.read(tmp_path) is None
    written = RawCache(tmp_path).keep(kind.entry, kind.content.value, kind.content.arrays)
    assert written is (kind.read(tmp_path) is not None)
    assert written is (what != "folder"), "only a folder is in the way"


@every
def test_a_full_disk_or_a_folder_in_the_way_means_not_kept(name, tmp_path, monkeypatch, caplog):
    kind = kind_of(name)

    def full(self, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr("pathlib.Path.replace", full)
        assert not RawCache(tmp_path).keep(kind.entry, kind.content.value, kind.content.arrays)
        with pytest.raises(StoreError, match="No space left"):
            RawCache(tmp_path).keep(kind.entry, kind.content.value, kind.content.arrays, required=True)
    assert len(caplog.records) == 1 and "No space left" in caplog.text
    assert kind.read(tmp_path) is None and not list(tmp_path.rglob("*.part"))
    (tmp_path / "file").write_text("in the way")
    assert not RawCache(tmp_path / "file").keep(kind.entry, kind.content.value, kind.content.arrays)
    assert kind.read(tmp_path / "file") is None


def test_a_read_only_folder_serves_what_it_holds(tmp_path, monkeypatch):
    """Rights do not hold for root, so the file system says no by itself."""
    entry = Entry("abc", "result", 1)
    assert RawCache(tmp_path).keep(entry, {"a": 1})

    def refused(*args, **kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tempfile.mkstemp", refused)
    monkeypatch.setattr("os.utime", refused)
    monkeypatch.setattr(cache_module, "TOUCHED_SECONDS", -1.0)
    assert RawCache(tmp_path).find(entry, lambda content: content) == Content({"a": 1})
    assert not RawCache(tmp_path).keep(entry, {"a": 2})
    assert RawCache(tmp_path).find(entry, lambda content: content.value["a"]) == 1


def test_a_read_only_folder_is_said_once_for_all_files(tmp_path, monkeypatch, caplog):
    def refused(*args, **kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tempfile.mkstemp", refused)
    with caplog.at_level(logging.WARNING):
        for key in ("a", "b", "c"):
            assert not RawCache(tmp_path).keep(Entry("abc", "result", 1, key), {"a": 1})
    assert len(caplog.records) == 1 and str(tmp_path) in caplog.text and "Read-only" in caplog.text
