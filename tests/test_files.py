"""Files written whole or not at all; what killed writers left, and what is no ordinary file."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from datamask.errors import StoreError
from datamask.files import open_regular, read_bounded, replacing, replacing_folder, sweep
from tests.making.run_folders import in_another_process, kill, names

WRITER = """
import sys, time
from datamask.files import replacing, replacing_folder
with replacing(sys.argv[1] + "/table.parquet") as part, replacing_folder(sys.argv[1] + "/corpus") as folder:
    part.write_text("half")
    (folder / "shard").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def make(kind: str, path: Path) -> None:
    """Something that is no ordinary file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "device", "loop"])
def test_only_an_ordinary_file_is_opened_and_nothing_waits(tmp_path, kind):
    make(kind, tmp_path / "x")
    with pytest.raises(OSError):
        open_regular(tmp_path / "x")


def test_a_file_whose_size_is_not_told_is_read_whole_and_up_to_a_bound():
    path = Path("/proc/self/maps") if Path("/proc/self/maps").exists() else Path(__file__)
    assert b"python" in read_bounded(path, 64 << 20)
    with pytest.raises(StoreError, match="larger than 20 bytes"):
        read_bounded(path, 20)


def test_a_file_is_read_up_to_a_bound(tmp_path):
    (tmp_path / "x").write_bytes(b"123")
    assert read_bounded(tmp_path / "x", 3) == b"123"
    with pytest.raises(StoreError, match="larger than 2 bytes"):
        read_bounded(tmp_path / "x", 2)


@pytest.mark.parametrize("sync", [True, False])
def test_what_was_written_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch, sync):
    happened, replace = [], Path.replace

    def synced(handle):
        happened.append(("synced", os.fstat(handle).st_ino, os.fstat(handle).st_size))

    def named(path, target):
        happened.append(("named", path.stat().st_ino, path.stat().st_size))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", named)
    with replacing(tmp_path / "x", sync=sync) as part:
        part.write_bytes(b"12345")
    inode = (tmp_path / "x").stat().st_ino
    assert happened == [("synced", inode, 5)] * sync + [("named", inode, 5)]


def test_what_killed_writers_left_is_swept_and_what_living_ones_write_is_not(tmp_path):
    (tmp_path / ".hidden").write_text("somebody's own")
    (tmp_path / "table.npz").write_text("whole")
    writer = in_another_process(WRITER, tmp_path)
    with replacing(tmp_path / "mine.npz", ".npz") as part, replacing_folder(tmp_path / "deep") as folder:
        sweep(tmp_path)
        assert part.exists() and folder.exists()
        assert len(names(tmp_path)) == 6
    kill(writer)
    sweep(tmp_path)
    assert names(tmp_path) == [".hidden", "deep", "mine.npz", "table.npz"]


@pytest.mark.parametrize("error, goes_back", [(KeyboardInterrupt(), True), (OSError(5, "Input/output error"), False)])
def test_a_folder_that_cannot_be_replaced_is_back_or_aside_but_never_lost(tmp_path, monkeypatch, error, goes_back):
    def rename(path, target):
        moves.append(path.name)
        if path.name == "new" or (path.name == "old" and not goes_back):
            raise error
        renamed(path, target)

    moves, folder, renamed = [], tmp_path / "corpus", Path.rename
    folder.mkdir()
    (folder / "shard").write_text("before")
    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises((KeyboardInterrupt, StoreError)), replacing_folder(folder):
        pass
    assert moves == ["corpus", "new", "old"]
    assert [path.read_text() for path in tmp_path.rglob("shard")] == ["before"]
    assert folder.exists() == goes_back


def test_an_error_while_the_temporary_file_is_removed_hides_nothing(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "unlink", refuse)
    with replacing(tmp_path / "x") as part:
        part.write_text("new")
    assert (tmp_path / "x").read_text() == "new"
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "x"):
        raise ZeroDivisionError
    assert (tmp_path / "x").read_text() == "new"
