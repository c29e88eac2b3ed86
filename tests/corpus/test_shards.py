"""Files, pieces and scanning; threads."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from datamask.corpus.shards import list_files, open_source, pieces, scan
from datamask.corpus.threads import Speed, in_threads, one_blas_thread
from datamask.errors import InputError, Stopped
from datamask.work.context import Work

ROOT = Path(__file__).parents[2]


def test_files_folders_and_globs_each_file_once_in_order(tmp_path, monkeypatch):
    for name in ("b.parquet", "a.parquet", "deep/er/c.parquet", "x.txt", ".hidden.parquet", "odd[1].parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    names = [str(tmp_path / name) for name in ("a.parquet", "b.parquet", "deep/er/c.parquet", "odd[1].parquet")]
    assert list(list_files([str(tmp_path)])) == names
    assert list(list_files([names[1], str(tmp_path / "*.parquet")])) == [names[1], names[0], names[3]]
    assert list(list_files([str(tmp_path / "**" / "*.parquet")])) == names
    assert list(list_files([str(tmp_path / "odd[1].parquet")])) == [names[3]], "a name is not a pattern if it exists"
    monkeypatch.chdir(tmp_path)
    assert list_files(["a.parquet", "./a.parquet", names[0]]) == ("a.parquet",)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert list_files(["~/a.parquet"]) == (names[0],)
    with pytest.raises(InputError, match=r"--scores .* matches no file"):
        list_files([str(tmp_path / "*.csv")], "scores")


@pytest.fixture
def source(tmp_path):
    """Rows 0 to 99 in three files, row groups of 7."""
    for number, (low, high) in enumerate([(0, 30), (30, 30), (30, 100)]):
        pq.write_table(
            pa.table({"n": np.arange(low, high), "other": np.zeros(high - low)}),
            tmp_path / f"{number}.parquet",
            row_group_size=7,
        )
    return open_source("input", [str(tmp_path)])


def read(source, **options):
    got, lock = {}, threading.Lock()

    def take(rows, batch):
        assert batch.schema.names == ["n"]
        with lock:
            got.update(zip(rows.tolist(), batch["n"].to_pylist()))

    scan(source, ["n"], take, **options)
    return got


def test_a_scan_sees_every_row_with_its_number(source):
    assert source.rows == 100 and source.starts.tolist() == [0, 30, 30, 100]
    assert read(source, row_bytes=8) == {i: i for i in range(100)}
    assert read(source, row_bytes=1 << 30) == {i: i for i in range(100)}
    assert source.place(35).endswith("2.parquet row 5")
    files, rows = source.locate(np.array([0, 29, 30, 99]))
    assert files.tolist() == [0, 0, 2, 2] and rows.tolist() == [0, 29, 0, 69]


def test_row_groups_without_a_wanted_row_are_not_read(source):
    got = read(source, row_bytes=8, only_rows=np.array([3, 40, 95]))
    assert got == {i: i for i in [*range(7), *range(37, 44), *range(93, 100)]}
    assert read(source, row_bytes=8, only_rows=np.array([], np.int64)) == {}


def test_pieces_hold_about_as_many_rows_as_asked(source):
    cut = pieces(source, rows_each=14)
    assert sum(piece.rows for piece in cut) == 100
    assert all(piece.rows <= 14 for piece in cut) and len(cut) == 8


def test_one_failing_batch_ends_the_scan(source):
    def take(rows, batch):
        raise InputError("row is bad")

    with pytest.raises(InputError, match="row is bad"):
        scan(source, ["n"], take, row_bytes=8)


def test_a_file_changed_after_opening_is_told(source, tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "0.parquet")
    with pytest.raises(InputError, match=r"0\.parquet is damaged or was changed"):
        read(source, row_bytes=8)
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(InputError, match=r"0\.parquet is damaged or was changed"):
        read(source, row_bytes=8)


def test_stop_ends_a_scan_at_the_next_batch(source):
    seen = []

    def take(rows, batch):
        seen.append(len(rows))
        time.sleep(0.05)

    with pytest.raises(Stopped):
        scan(source, ["n"], take, row_bytes=4 << 20, work=Work.of(lambda: len(seen) > 2))
    assert len(seen) < 60


def test_results_come_in_order_and_threads_run_side_by_side():
    barrier = threading.Barrier(3, timeout=120)
    assert in_threads(lambda i: barrier.wait() * 0 + i, 3, threads=3) == [0, 1, 2]
    assert in_threads(lambda i: i, 0) == []


def test_tasks_that_were_left_out_because_somebody_else_stopped_them_are_no_results():
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        in_threads(lambda i: i, 3, stop=stop)


def test_after_an_error_no_further_task_begins():
    begun = []

    def task(index):
        begun.append(index)
        if index == 3:
            raise InputError("three")
        time.sleep(0.01)

    with pytest.raises(InputError, match="three"):
        in_threads(task, 1000, threads=2)
    assert len(begun) < 500


def test_tick_and_stop_are_called_from_the_calling_thread():
    callers, noted = set(), threading.Event()

    def note():
        callers.add(threading.get_ident())
        noted.set()

    in_threads(lambda _: noted.wait(120), 1, poll=note, tick=note)
    assert callers == {threading.get_ident()}


def test_work_begun_while_the_process_ends_is_stopped_and_not_failed():
    """In a process of its own: its pools take no work once the main thread has ended."""
    code = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
from datamask.corpus.threads import in_threads
from datamask.errors import Stopped

def late():
    try:
        while True:
            ThreadPoolExecutor(1).submit(int)
            time.sleep(0.01)
    except RuntimeError:
        pass
    try:
        in_threads(lambda index: index, 2)
    except Stopped as stopped:
        print(stopped)

threading.Thread(target=late).start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout.strip(), done.stderr) == ("stopped: the program is ending", "")


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_gets_its_threads_back_when_the_last_user_leaves():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert blas_threads() == {1}
        first.__exit__(None, None, None)
        assert blas_threads() == {1}, "the second still needs it"
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_the_share_of_a_scan_is_that_of_the_bytes(tmp_path):
    """A shard of 100 long rows beside one of 10,000 short ones: most of the bytes are in the first."""
    pq.write_table(
        pa.table({"n": np.arange(100), "text": ["x" * 50_000 + str(i) for i in range(100)]}), tmp_path / "a.parquet"
    )
    pq.write_table(pa.table({"n": np.arange(10_000), "text": [str(i) for i in range(10_000)]}), tmp_path / "b.parquet")
    source = open_source("input", [str(tmp_path)])
    long, short = (shard.rows * shard.facts.row_bytes for shard in source.shards)
    held, told = threading.Event(), []

    def take(rows, batch):
        if rows[0] >= 100:
            held.wait(240)

    def progress(share, what):
        told.append((share, what))
        if "100 of 10,100" in what:
            held.set()

    scan(source, ["n", "text"], take, row_bytes=1 << 16, work=Work(report=progress))
    at_first = next(share for share, what in told if "100 of 10,100" in what)
    assert at_first == pytest.approx(long / (long + short)) and at_first > 0.9
    assert told[-1] == (1.0, told[-1][1]) and "10,100 of 10,100 rows" in told[-1][1]
    assert [share for share, _ in told] == sorted(share for share, _ in told)


def test_speed_is_that_of_the_last_seconds():
    now = [0.0]
    speed = Speed(lambda: now[0])
    now[0] = 0.5
    assert speed.words(100_000_000) == "", "the first moments say nothing"
    for second in range(1, 11):
        now[0] = float(second)
        words = speed.words(50_000_000 * second)
    assert words == ", 50 MB/s"
    for second in range(11, 21):
        now[0] = float(second)
        words = speed.words(500_000_000 + 2_500_000 * (second - 10))
    assert words == ", 2.5 MB/s"
