"""What was made of a file is remembered while the file stays as it is, and never longer."""

from __future__ import annotations

import os

import pytest

from datamask import memo
from datamask.memo import FileMemo


@pytest.fixture
def settled(monkeypatch):
    """Files count as settled at once."""
    monkeypatch.setattr(memo, "SETTLED_SECONDS", -60.0)


class Reader:
    """Reads a file and counts how often."""

    def __init__(self, path):
        self.path, self.reads = path, 0

    def __call__(self):
        self.reads += 1
        return self.path.read_text()


@pytest.fixture
def reader(tmp_path):
    (tmp_path / "file").write_text("first")
    return Reader(tmp_path / "file")


def test_an_unchanged_file_is_read_once_by_path_and_by_handle(settled, reader):
    contents = FileMemo(2)
    with reader.path.open() as opened:
        for file in (reader.path, str(reader.path), opened.fileno()):
            assert contents.get(file, reader) == "first"
    assert reader.reads == 1


def in_place(path):
    path.write_text("other")


def in_place_with_its_time_set_back(path):
    stat = path.stat()
    path.write_text("other")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def by_another_file(path):
    path.with_name("new").write_text("other")
    path.with_name("new").replace(path)


@pytest.mark.parametrize("change", [in_place, in_place_with_its_time_set_back, by_another_file])
def test_a_changed_file_is_read_anew_though_its_size_is_the_same(settled, reader, change):
    contents = FileMemo(2)
    before = reader.path.stat().st_ctime_ns
    assert contents.get(reader.path, reader) == "first"
    while reader.path.stat().st_ctime_ns == before:  # the clock of files ticks in steps of some milliseconds
        change(reader.path)
    assert contents.get(reader.path, reader) == "other" and reader.reads == 2


def test_what_changed_within_the_clocks_tick_is_not_remembered(reader):
    contents = FileMemo(2)
    assert contents.get(reader.path, reader) == "first"
    reader.path.write_text("other")
    assert contents.get(reader.path, reader) == "other"


def test_aspects_are_kept_apart_and_the_longest_unused_is_forgotten(settled, reader):
    contents = FileMemo(2)
    for aspect in ("a", "b", "a", "c", "a", "b"):
        contents.get(reader.path, reader, aspect)
    assert reader.reads == 4, "a, b and c once; b once more, which had made room for c"


def test_files_are_forgotten_once_they_have_too_many_bytes_together(settled, tmp_path):
    contents = FileMemo(9, most_bytes=10)
    readers = {name: Reader(tmp_path / name) for name in ("a", "b", "c")}
    for name, reader in readers.items():
        reader.path.write_text(4 * name)
        contents.get(reader.path, reader)
    for name, reads in (("c", 1), ("b", 1), ("a", 2), ("c", 2)):
        contents.get(readers[name].path, readers[name])
        assert readers[name].reads == reads
    (tmp_path / "large").write_text(11 * "x")
    large = Reader(tmp_path / "large")
    assert [contents.get(large.path, large) for _ in range(2)] == [11 * "x"] * 2
    assert large.reads == 2, "it alone has too many bytes"


def test_failures_are_raised_and_tried_again_and_a_missing_file_is_makes_own_business(settled, reader):
    contents = FileMemo(2)

    def fail():
        raise ValueError("damaged")

    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            contents.get(reader.path, fail)
    assert contents.get(reader.path, reader) == "first"
    reader.path.unlink()
    with pytest.raises(ValueError, match="damaged"):
        contents.get(reader.path, fail)
