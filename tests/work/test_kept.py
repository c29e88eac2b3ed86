"""The one call of all kept results: found, or computed once over processes, checked and kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import datamask
from datamask.errors import Stopped, StoreError
from datamask.polling import poll_of
from datamask.work.kept import Kept, Progress
from datamask.work.result_file import Content, Entry, require
from tests.making.raw_cache import RawCache

ROOT = Path(datamask.__file__).parents[1]


def read(content: Content) -> int:
    require(content.value["n"] < 100, "it is too large")
    return content.value["n"]


def stored(root: Path | None, subject: str = "abc", **options: bool) -> Kept[int]:
    return Kept(root, Entry(subject, "number", 1), read, lambda number: Content({"n": number}), **options)


def never() -> int:
    pytest.fail("it was computed")


def test_a_result_is_computed_kept_and_found(tmp_path):
    assert not stored(tmp_path).exists and stored(tmp_path).find() is None
    assert stored(tmp_path).find_or_compute(lambda: 3) == 3
    assert stored(tmp_path).exists and stored(tmp_path).path.is_file()
    assert stored(tmp_path).find_or_compute(never) == stored(tmp_path).find() == 3
    stored(tmp_path).drop()
    assert stored(tmp_path).find() is None and stored(tmp_path).find_or_compute(lambda: 4) == 4


def test_a_result_that_does_not_serve_is_replaced(tmp_path):
    stored(tmp_path).keep(3)
    assert stored(tmp_path).find_or_compute(never, enough=lambda number: number > 2) == 3
    assert stored(tmp_path).find_or_compute(lambda: 5, enough=lambda number: number > 3) == 5
    assert stored(tmp_path).find() == 5


def test_a_damaged_file_is_computed_anew(tmp_path):
    stored(tmp_path).keep(3)
    path = stored(tmp_path).path
    path.write_bytes(path.read_bytes().replace(b'"n": 3', b'"n": 4'))
    assert stored(tmp_path).find_or_compute(lambda: 5) == stored(tmp_path).find() == 5


def test_what_a_result_cannot_be_is_computed_anew(tmp_path):
    RawCache(tmp_path).keep(stored(tmp_path).entry, {"n": 100})
    assert stored(tmp_path).find_or_compute(lambda: 5) == stored(tmp_path).find() == 5


def test_the_file_of_another_subject_is_computed_anew(tmp_path):
    stored(tmp_path, "other").keep(3)
    path = stored(tmp_path).path
    path.parent.mkdir()
    shutil.copy(stored(tmp_path, "other").path, path)
    assert stored(tmp_path).find_or_compute(lambda: 5) == stored(tmp_path).find() == 5


def test_a_folder_that_cannot_be_written_gives_the_result_all_the_same(tmp_path):
    (tmp_path / "file").write_text("in the way")
    root = tmp_path / "file"
    assert stored(root).find_or_compute(lambda: 3) == 3
    with pytest.raises(StoreError, match="cannot be written"):
        stored(root, required=True).find_or_compute(lambda: 3)


def test_without_a_folder_nothing_is_kept():
    assert stored(None).find_or_compute(lambda: 3) == 3
    assert not stored(None).keep(3) and stored(None).find() is None and not stored(None).exists
    assert stored(None).keys() == []
    stored(None).drop()


def test_what_compute_raises_is_raised_and_another_call_can_compute(tmp_path):
    with pytest.raises(ZeroDivisionError):
        stored(tmp_path).find_or_compute(lambda: 1 // 0)
    assert stored(tmp_path).find() is None and stored(tmp_path).find_or_compute(lambda: 3) == 3


def test_what_a_killed_process_left_is_removed_before_anything_is_computed(tmp_path):
    left = tmp_path / "abc" / ".number-v1.cache.abcd1234.part"
    left.parent.mkdir()
    left.write_bytes(b"half")
    stored(tmp_path).find_or_compute(lambda: 3)
    assert not left.exists()


def test_a_stop_ends_the_wait_for_another_that_computes(tmp_path):
    inside, go = threading.Event(), threading.Event()

    def slowly() -> int:
        inside.set()
        assert go.wait(120)
        return 3

    computing = threading.Thread(target=stored(tmp_path).find_or_compute, args=(slowly,))
    computing.start()
    assert inside.wait(120)
    try:
        with pytest.raises(Stopped):
            stored(tmp_path).find_or_compute(never, poll_of(lambda: True))
    finally:
        go.set()
        computing.join(120)
    assert stored(tmp_path).find() == 3


OTHER = """
import sys
from pathlib import Path
from tests.work.test_kept import stored

def slowly():
    print("computing", flush=True)
    assert sys.stdin.readline() == "go on\\n"
    return 3

print(stored(Path(sys.argv[1])).find_or_compute(slowly), flush=True)
"""
"""Another process, which computes until it is told to go on."""


@pytest.mark.parametrize("killed", [False, True])
def test_of_two_processes_one_computes_and_of_a_killed_one_the_other(killed, tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    found, computed = [], []

    def compute() -> int:
        computed.append(5)
        return 5

    waiting = threading.Thread(target=lambda: found.append(stored(tmp_path).find_or_compute(compute)))
    try:
        assert other.stdout.readline() == "computing\n"
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive() and not computed
        if killed:
            other.kill()
        else:
            other.stdin.write("go on\n")
            other.stdin.flush()
            assert other.stdout.readline() == "3\n"
        waiting.join(120)
    finally:
        other.kill()
        other.communicate()
    assert found == ([5] if killed else [3]) and bool(computed) == killed


def test_a_part_that_is_not_locked_is_computed_without_waiting(tmp_path):
    with RawCache(tmp_path).lock(stored(tmp_path).entry):
        assert stored(tmp_path, locked=False).find_or_compute(lambda: 3) == 3
    assert stored(tmp_path, locked=False).find_or_compute(never) == 3


def test_half_done_work_goes_on_where_it_was_and_only_who_began_it_forgets_it(tmp_path):
    first, other = (Progress(stored(tmp_path), seconds) for seconds in (0.0, 1e6))
    assert first.found() is None and not first.resumed and first.due and not other.due and not Progress().due
    first.write(3)
    other.clear()
    assert other.found(lambda number: number > 3) is None and not other.resumed
    assert other.found() == 3 and other.resumed
    other.clear()
    assert first.found() is None
