"""Large arrays in mapped files: no memory, nothing left behind, and a full disk is one sentence."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from datamask import places
from datamask.errors import StoreError
from datamask.places import MEMORY, Place

BYTES = 64 << 20


def anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says which memory is of files")
def test_a_mapped_array_takes_no_memory_that_counts(tmp_path):
    before = anonymous()
    mapped = Place(tmp_path).empty((BYTES // 8,), np.float64)
    mapped[:] = 1.0
    assert mapped.sum() == BYTES // 8 and anonymous() - before < BYTES // 4
    held = MEMORY.empty((BYTES // 8,), np.float64)
    held[:] = 1.0
    assert anonymous() - before > BYTES // 2, "what is measured"


@pytest.mark.parametrize("place", [MEMORY, "files"])
def test_arrays_are_plain_ones_wherever_they_lie(tmp_path, place):
    place = Place(tmp_path / "new" / "folder") if place == "files" else place
    array = place.empty((5, 3), np.int16)
    array[:] = np.arange(15).reshape(5, 3)
    assert type(array) is np.ndarray and array.flags.c_contiguous and array.flags.writeable
    order = np.array([4, 0, 0])
    for made, expected in ((place.copy(array[:, 1:]), array[:, 1:]), (place.taken(array, order), array[order])):
        np.testing.assert_array_equal(made, expected)
        assert made.dtype == np.int16 and made.flags.writeable and not np.shares_memory(made, array)
    assert place.empty((0, 3), np.float32).shape == (0, 3)


def test_its_file_cannot_be_found_or_taken_away(tmp_path):
    folder = tmp_path / "maps"
    array = Place(folder).empty((1000,), np.int32)
    assert not list(folder.iterdir())
    shutil.rmtree(folder)
    array[:] = 7
    assert (array == 7).all()


def test_a_killed_process_leaves_nothing(tmp_path):
    code = (
        "import os, pathlib, signal, sys\n"
        "from datamask.places import Place\n"
        "array = Place(pathlib.Path(sys.argv[1])).empty((1 << 20,), 'f8'); array[:] = 1\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL and not list(tmp_path.iterdir())


@pytest.mark.parametrize("system", ["linux", "macos"])
def test_a_file_gets_its_size_and_nothing_else(tmp_path, monkeypatch, system):
    if system == "macos":
        monkeypatch.delattr(places.os, "posix_fallocate", raising=False)
        monkeypatch.setattr(places, "ZEROS", bytes(1000))
    with (tmp_path / "zeros").open("wb") as file:
        places.take_room(file, 2345)
        assert (tmp_path / "zeros").read_bytes() == bytes(2345)


@pytest.mark.parametrize("in_one_call", [True, False])
def test_room_is_taken_at_once_and_none_is_one_sentence(tmp_path, monkeypatch, in_one_call):
    """The system's own refusal: a limit on the size of files. Before anything is written to the map."""
    if not in_one_call:
        monkeypatch.delattr(places.os, "posix_fallocate", raising=False)
    whole = Place(tmp_path).empty((1 << 17,), np.float64)
    whole[:] = 1.0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(StoreError, match=r"8 MiB cannot be written to .*: File too large; .*--scratch_dir"):
            Place(tmp_path).empty((1 << 20,), np.float64)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be written to .*file"):
        Place(tmp_path / "file").empty((4,), np.float64)
