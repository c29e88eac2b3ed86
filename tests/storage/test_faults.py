"""A store that cuts, stalls or refuses: a few tries, one sentence, and Stop is heard meanwhile."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from datamask.cli import beyond_memory
from datamask.config import CorpusConfig
from datamask.corpus import first_look, open_corpus
from datamask.corpus.opening import read_corpus
from datamask.corpus.shards import list_files
from datamask.errors import RemoteError, Stopped
from datamask.storage import patience
from datamask.work.context import Work
from tests.commands import FAST, ROOT, last_json, run, table
from tests.storage.elsewhere import child_environment

HEAD = 4_000
"""Bytes of an answer that hold its header and some of a file."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(patience, "FIRM", 1.0)


@pytest.fixture
def shard(proxy, bucket):
    """The address of a shard of three row groups behind the proxy."""
    return bucket.put("corpus/shard.parquet", table(1500), row_group_size=500)


@pytest.mark.parametrize("after", [0, HEAD])
def test_a_store_that_breaks_off_is_asked_again(shard, proxy, after):
    corpus = open_corpus(CorpusConfig((shard,)))
    proxy.arm("cut", after, times=3)
    again = open_corpus(CorpusConfig((shard,)))
    assert proxy.struck == 3 and again.fingerprint == corpus.fingerprint


def test_an_answer_without_end_is_given_up_and_asked_again(shard, proxy):
    proxy.arm("stall", HEAD, times=1)
    assert len(open_corpus(CorpusConfig((shard,)))) == 1500 and proxy.struck == 1


@pytest.mark.parametrize(
    "kind, after, words",
    [
        ("cut", 0, "it breaks off while it sends"),
        ("cut", HEAD, "it breaks off while it sends"),
        ("stall", 0, "it does not answer for 0.5 s"),
        ("stall", HEAD, "it does not answer for 0.5 s"),
    ],
)
def test_one_sentence_names_file_fault_and_tries(shard, proxy, monkeypatch, kind, after, words):
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")
    monkeypatch.setenv("DATAMASK_REMOTE_SECONDS", "0.5")
    proxy.arm(kind, after)
    with pytest.raises(RemoteError) as caught:
        open_corpus(CorpusConfig((shard,)))
    sentence = str(caught.value)
    assert sentence.startswith(f"{shard} cannot be read: {words} (") and "\n" not in sentence
    assert "), tried 2 times; start again when it answers" in sentence
    assert proxy.struck == 2


def test_a_store_that_throttles_is_asked_twice_as_often(shard, proxy, monkeypatch):
    """A store that throttles three requests of ten broke most openings of six small shards after four tries."""
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")
    proxy.arm("throttle", times=3)
    assert len(open_corpus(CorpusConfig((shard,)))) == 1500 and proxy.struck == 3
    proxy.arm("throttle")
    with pytest.raises(RemoteError, match=r"cannot be read: it is asked too often \(.*\), tried 4 times; start again"):
        open_corpus(CorpusConfig((shard,)))
    assert proxy.struck == 7


def test_nobody_there_is_said_too(shard, monkeypatch):
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for call in (lambda: list_files([shard]), lambda: list_files([shard.replace("shard", "*")])):
        with pytest.raises(RemoteError, match=r"it cannot be reached .*, tried once; start again"):
            call()


LIVENESS = 10.0
"""Stop is heard within a second; ten of them on a machine that is busy."""


LONG = [
    read_corpus,
    lambda config, work: first_look(config, work=work),
    lambda config, work: list_files(config.inputs, poll=work.poll),
]


@pytest.mark.parametrize("call, requests", list(zip(LONG, (HEAD, HEAD, 0))))
def test_stop_is_heard_while_a_store_is_silent(shard, proxy, monkeypatch, call, requests):
    monkeypatch.setenv("DATAMASK_REMOTE_SECONDS", "60")
    proxy.arm("stall", requests)
    stop = threading.Event()
    asked: list[float] = []
    mine = threading.get_ident()

    def should_stop() -> bool:
        assert threading.get_ident() == mine
        if proxy.struck and not asked:
            asked.append(time.monotonic())
            stop.set()
        return stop.is_set()

    with pytest.raises(Stopped):
        call(CorpusConfig((shard,)), Work.of(should_stop))
    assert time.monotonic() - asked[0] < LIVENESS


def test_stop_is_heard_between_tries(shard, proxy, monkeypatch):
    monkeypatch.setattr(patience, "FIRST_PAUSE", 60.0)
    proxy.arm("cut", 0)
    began = time.monotonic()
    with pytest.raises(Stopped):
        open_corpus(CorpusConfig((shard,)), should_stop=lambda: proxy.struck > 0)
    assert time.monotonic() - began < LIVENESS


@pytest.mark.parametrize("asked_by", [signal.SIGINT])
def test_the_command_line_ends_although_a_store_is_silent(shard, proxy, tmp_path, asked_by):
    proxy.arm("stall", HEAD)
    words = ["select", shard, "--output", "out.parquet", "--n_epochs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "datamask", *words],
        cwd=tmp_path,
        env=child_environment(proxy.port, DATAMASK_REMOTE_SECONDS="60", PYTHONPATH=str(ROOT)),
        stderr=subprocess.PIPE,
        text=True,
    )
    while not proxy.struck and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(asked_by)
    began = time.monotonic()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and time.monotonic() - began < LIVENESS
    # the look at the shards comes before there is a run
    assert "Traceback" not in told and "stopped on request" in told and not (tmp_path / "runs").exists()


def test_a_run_whose_store_fails_can_be_gone_on_with(shard, proxy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")
    settle = beyond_memory.settle

    def failing(*given):
        config = settle(*given)
        proxy.arm("cut", 0)
        return config

    with monkeypatch.context() as patched:
        patched.setattr(beyond_memory, "settle", failing)
        assert run("select", shard, "--output", "out.parquet", *FAST) == 2
    told = capsys.readouterr().err
    assert "tried 2 times" in told and "Traceback" not in told
    (name,) = [path.name for path in (tmp_path / "runs").iterdir() if not path.name.startswith(".")]
    proxy.heal()
    assert run("resume", name, "--json") == 0
    assert last_json(capsys)["status"] == "done" and (tmp_path / "out.parquet").exists()


def test_a_store_that_fails_in_the_middle_of_a_shard_says_so_in_every_format(proxy, bucket, monkeypatch):
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "1")
    rng = np.random.default_rng(0)
    line = b'{"id": %d, "quality": 1.5, "features": [1.0, 2.0], "text": "%s"}\n'
    rows = b"".join(line % (row, rng.bytes(200).hex().encode()) for row in range(12_000))
    wide = pa.table({"id": range(300), "quality": [1.0] * 300, "features": [rng.normal(size=2500) for _ in range(300)]})
    flat = b"id,quality,features,text\n" + b"".join(
        b'%d,1.5,"[1.0, 2.0]",%s\n' % (row, rng.bytes(200).hex().encode()) for row in range(12_000)
    )
    contents = {"rows.jsonl": rows, "rows.csv": flat, "rows.csv.gz": gzip.compress(flat), "rows.parquet": wide}
    for name, content in contents.items():
        address = bucket.put(name, content, **({"row_group_size": 100} if name == "rows.parquet" else {}))
        proxy.arm("cut", 1_000_000)
        with pytest.raises(RemoteError, match=f"^{address} cannot be read: it breaks off"):
            open_corpus(CorpusConfig((address,)))
        proxy.heal()
