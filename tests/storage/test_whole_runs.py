"""Runs on all rows of a bucket, out of core: a store that fails costs the shards in flight alone; Stop is heard."""

from __future__ import annotations

import threading
import time

import pyarrow.parquet as pq
import pytest

from datamask.corpus import shards
from datamask.errors import RemoteError
from datamask.out_of_core import scratch_writing
from datamask.out_of_core.scratch import RECORD
from datamask.runs.attempt import attempt
from datamask.runs.store import RunStore
from datamask.storage import patience
from datamask.work.context import Work
from tests.commands import last_json, run, table

SHARDS, ROWS = 6, 500
WHOLE = ["--objective", "pairwise", "--select_ratio", "0.2", "--rows", "400", "--device", "cpu"]
PROMPT = 10.0
"""Seconds: ten times what is promised."""


@pytest.fixture
def folder(bucket, tmp_path, monkeypatch):
    """A folder to give commands in, with shards, and the same shards in a bucket."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(patience, "FIRM", 1.0)
    # of a store more shards are read at once than there are
    monkeypatch.setattr(shards, "threads_for", lambda paths, count: 2)
    (tmp_path / "corpus").mkdir()
    for number in range(SHARDS):
        pq.write_table(table(ROWS, first=number * ROWS), f"corpus/{number}.parquet")
        bucket.put(f"corpus/{number}.parquet", (tmp_path / "corpus" / f"{number}.parquet").read_bytes())
    return tmp_path


def begun(folder, corpus: str) -> str:
    """A run on all rows of a corpus that was stopped before it read them; its id."""
    store = RunStore("runs")
    before = {each.id for each in store.list()}
    words = ["select", corpus, "--output", "out.parquet", *WHOLE, "--scratch-dir", "scratch"]
    assert run(*words) in (2, 130)
    (new,) = {each.id for each in store.list()} - before
    return new


@pytest.fixture
def from_disk(folder, capsys):
    """The ids that are selected from the disk."""
    assert run("select", "corpus", "--output", "disk.parquet", *WHOLE, "--scratch-dir", "scratch", "--json") == 0
    assert last_json(capsys)["n"] == SHARDS * ROWS
    return pq.read_table("disk.parquet")["chunk_id"]


def test_a_store_that_cuts_costs_the_shards_in_flight_alone(from_disk, folder, bucket, proxy, monkeypatch, capsys):
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")
    write_text, shard_batches = scratch_writing.write_text, scratch_writing.shard_batches
    finished: list[str] = []

    def noted(path, text):
        write_text(path, text)
        if path.suffix == ".json" and path.name != RECORD:
            finished.append(path.name)
            proxy.arm("cut", 0)

    monkeypatch.setattr(scratch_writing, "write_text", noted)
    name = begun(folder, bucket.url("corpus"))
    told = capsys.readouterr().err
    assert "tried 2 times" in told and "Traceback" not in told
    assert 1 <= len(finished) < SHARDS and RunStore("runs").get(name).status().state == "failed"
    proxy.heal()
    read: list[str] = []

    def reading(shard, *args):
        read.append(shard.path)
        return shard_batches(shard, *args)

    monkeypatch.setattr(scratch_writing, "write_text", write_text)
    monkeypatch.setattr(scratch_writing, "shard_batches", reading)
    assert run("resume", name) == 0
    assert len(read) == SHARDS - len(finished)
    assert pq.read_table("out.parquet")["chunk_id"].equals(from_disk)


def test_stop_is_heard_while_the_store_is_silent_and_it_goes_on(from_disk, folder, bucket, proxy, monkeypatch):
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")
    proxy.arm("cut", 0)
    name = begun(folder, bucket.url("corpus"))  # nothing was read of it
    proxy.heal()
    monkeypatch.setenv("DATAMASK_REMOTE_SECONDS", "60")
    shard_batches = scratch_writing.shard_batches
    stop, asked = threading.Event(), []

    def silent(*args):
        proxy.arm("stall", 0)
        return shard_batches(*args)

    def should_stop() -> bool:
        if proxy.struck and not asked:
            asked.append(time.monotonic())
            stop.set()
        return stop.is_set()

    monkeypatch.setattr(scratch_writing, "shard_batches", silent)
    proxy.struck = 0
    outcome = attempt(RunStore("runs").get(name), Work.of(should_stop))
    assert outcome.status.state == "stopped" and time.monotonic() - asked[0] < PROMPT
    proxy.heal()
    monkeypatch.setattr(scratch_writing, "shard_batches", shard_batches)
    assert run("resume", name) == 0
    assert pq.read_table("out.parquet")["chunk_id"].equals(from_disk)


def test_a_store_that_is_gone_says_so_before_anything_is_written(folder, bucket, proxy, monkeypatch, capsys):
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")
    proxy.arm("cut", 0)
    name = begun(folder, bucket.url("corpus"))
    assert "tried 2 times" in capsys.readouterr().err
    assert not list(folder.glob("scratch/*"))
    outcome = attempt(RunStore("runs").get(name))
    assert isinstance(outcome.error, RemoteError)
