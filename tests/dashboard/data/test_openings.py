"""Openings: once per process, in the background, stoppable, remembered, and bounded."""

import json
import os
import threading
import time

import pytest

from datamask.config import CorpusConfig
from datamask.corpus.shared_corpora import SharedCorpora
from datamask.dashboard.data import openings as module
from datamask.dashboard.data.openings import IDLE_SECONDS, Openings, openings
from datamask.errors import InputError
from tests.making.runs import write_shard


def anything(config: CorpusConfig) -> None:
    """Every corpus may be opened."""


@pytest.fixture
def config(tmp_path):
    return write_shard(tmp_path / "shard.parquet")


def ready(opening):
    opening.wait(240)
    assert opening.ready, opening.job.error
    return opening


def test_a_corpus_opens_counts_its_copies_and_is_noted(tmp_path, config):
    all_ = Openings(tmp_path / "runs")
    opening = ready(all_.start(config, "mine"))
    assert len(opening.corpus) == 240 and opening.job.share == 1.0
    assert opening.counting.state == "done" and opening.copies.exact == 0 and 0 <= opening.copies.near <= 1
    assert [(note.title, note.rows, note.config) for note in all_.recent()] == [("mine", 240, config)]


def test_the_same_openings_whoever_asks(tmp_path):
    assert openings(tmp_path) is openings(str(tmp_path) + "/../" + tmp_path.name)
    assert openings(tmp_path) is not openings(tmp_path / "other")


def test_a_second_asker_joins_the_opening_under_way(tmp_path, config, monkeypatch):
    started, calls = threading.Event(), []

    def slow(self, config, work):
        calls.append(config)
        work.report(0.5, "reading")
        started.set()
        while True:
            work.poll()
            time.sleep(0.005)

    monkeypatch.setattr(SharedCorpora, "get", slow)
    all_ = Openings(tmp_path / "runs")
    first = all_.start(config, "mine")
    assert started.wait(120)
    assert all_.start(config, "mine") is first and all_.active() == [first] and first.job.share == 0.5
    first.stop()
    first.wait(120)
    assert first.job.state == "stopped" and len(calls) == 1
    assert all_.recent() == []


def test_what_cannot_be_opened_says_why(tmp_path):
    opening = Openings(tmp_path / "runs").start(CorpusConfig((str(tmp_path / "none.parquet"),)), "gone")
    opening.wait(120)
    assert opening.job.state == "failed" and "does not exist" in opening.job.error


def test_a_fault_of_the_program_is_a_number_and_its_traceback_is_in_the_log(tmp_path, config, monkeypatch, caplog):
    def broken(self, *_, **__):
        raise ZeroDivisionError("in /a/folder")

    monkeypatch.setattr(SharedCorpora, "get", broken)
    opening = Openings(tmp_path / "runs").start(config, "mine")
    opening.wait(120)
    assert opening.job.state == "failed" and "ZeroDivisionError" in opening.job.error
    assert "/a/folder" not in opening.job.error
    number = opening.job.error.split("nternal error ")[1].split()[0]
    assert f"fault {number}" in caplog.text and "ZeroDivisionError: in /a/folder" in caplog.text


def test_a_note_is_opened_only_where_its_corpus_may_be(tmp_path, config):
    key = ready(Openings(tmp_path / "runs").start(config, "mine")).key
    asked = []

    def refuse(named):
        asked.append(named)
        raise InputError("outside")

    with pytest.raises(InputError, match="outside"):
        Openings(tmp_path / "runs").resume(key, refuse)
    assert asked == [config]


def test_only_a_few_corpora_stay_open_and_the_rest_come_back(tmp_path):
    all_ = Openings(tmp_path / "runs")
    keys = []
    for i in range(3):
        opening = ready(all_.start(write_shard(tmp_path / f"{i}.parquet", 60, seed=i), str(i)))
        keys.append(opening.key)
        opening.used = i
    assert all_.get(keys[0]) is None and all_.get(keys[2]) is not None
    assert len(ready(all_.resume(keys[0], anything)).corpus) == 60


def test_a_clock_that_goes_back_lets_go_of_no_corpus_in_use(tmp_path, monkeypatch):
    all_ = Openings(tmp_path / "runs")
    configs = [write_shard(tmp_path / f"{i}.parquet", 60, seed=i) for i in range(3)]
    first, second = (ready(all_.start(config, "before")) for config in configs[:2])
    monkeypatch.setattr("time.time", lambda now=time.time: now() - 86400)
    assert all_.get(second.key) is second
    third = ready(all_.start(configs[2], "after"))
    assert all_.get(third.key) is third and all_.get(second.key) is second and all_.get(first.key) is None


def test_only_a_corpus_that_nobody_asked_for_lately_makes_room_for_another(tmp_path, config):
    all_ = Openings(tmp_path / "runs")
    opening = ready(all_.start(config, "mine"))
    all_.get(opening.key)
    assert not all_._let_go() and all_.get(opening.key) is opening
    opening.used -= IDLE_SECONDS
    assert all_._let_go() and all_.get(opening.key) is None


@pytest.mark.parametrize("key", ["", "../../../etc/passwd", "0123456789ab", "ABCDEF012345", "0" * 13])
def test_keys_that_name_nothing_open_nothing(tmp_path, key):
    assert Openings(tmp_path / "runs").resume(key, anything) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        json.dumps({"key": 1}),
        json.dumps({"config": {"inputs": []}}),
        "[" * 100_000,
        json.dumps({"key": "a", "title": "b", "config": []}),
    ],
)
def test_a_damaged_note_is_no_note(tmp_path, content):
    all_ = Openings(tmp_path / "runs")
    all_.folder.mkdir(parents=True)
    (all_.folder / "0123456789ab.json").write_text(content)
    assert all_.recent() == [] and all_.resume("0123456789ab", anything) is None


def test_near_copies_of_a_large_corpus_wait_to_be_asked_for(tmp_path, config, monkeypatch):
    monkeypatch.setattr(module, "COUNTED_AT_ONCE", 10)
    all_ = Openings(tmp_path / "runs")
    opening = ready(all_.start(config, "mine"))
    assert (opening.counting, opening.copies.exact, opening.copies.near) == (None, 0, None)
    all_.count_copies(opening)
    opening.wait(240)
    assert opening.counting.state == "done" and opening.copies.near is not None


def test_a_runs_folder_that_cannot_be_written_does_not_close_the_corpus(tmp_path, config, caplog):
    (tmp_path / "runs").write_text("a file where a folder is expected")
    opening = Openings(tmp_path / "runs").start(config, "mine")
    opening.wait(240)
    assert opening.ready and "not noted" in caplog.text


@pytest.mark.timeout(60)
def test_a_pipe_among_the_notes_is_no_note_and_blocks_nothing(tmp_path):
    held = openings(tmp_path)
    held.folder.mkdir(parents=True)
    os.mkfifo(held.folder / "0123456789ab.json")
    assert held.recent() == [] and held.resume("0123456789ab", check=lambda config: None) is None


@pytest.fixture
def slow(monkeypatch):
    """Reading waits for an event; every corpus is large enough for a first look."""
    may_end, inner = threading.Event(), SharedCorpora.get

    def waiting(self, config, work, **options):
        work.report(0.5, "reading")
        while not may_end.wait(0.005):
            work.poll()
        return inner(self, config, work, **options)

    monkeypatch.setattr(SharedCorpora, "get", waiting)
    monkeypatch.setattr(module, "LOOK_FROM_BYTES", 1)
    yield may_end
    may_end.set()


def first_of(opening):
    deadline = time.monotonic() + 240
    while opening.first is None and not opening.job.ended and time.monotonic() < deadline:
        time.sleep(0.01)
    return opening.first


def test_a_first_look_is_there_while_the_corpus_is_read_and_gone_after(tmp_path, config, slow):
    opening = Openings(tmp_path / "runs").start(config, "mine")
    first = first_of(opening)
    assert not opening.ready and len(first.look.sample) == 240
    assert first.job.wait(240) and first.job.state == "done", first.job.error
    assert opening.under_way and opening.first is first and first.parts == 2
    slow.set()
    assert len(ready(opening).corpus) == 240 and opening.first is None
    slow.clear()
    again = Openings(tmp_path / "runs").start(config, "mine")
    time.sleep(0.1)
    slow.set()
    assert ready(again).first is None, "what is open needs no first look"


def test_stopping_ends_the_pictures_of_the_first_look_too(tmp_path, config, slow):
    opening = Openings(tmp_path / "runs").start(config, "mine")
    first = first_of(opening)
    opening.stop()
    opening.wait(240)
    assert opening.job.state == "stopped" and opening.first is None
    assert first.job.wait(240)


def test_small_files_are_opened_without_a_first_look(tmp_path, config, monkeypatch):
    monkeypatch.setattr(module, "first_look", lambda *_, **__: pytest.fail("a look at a small corpus"))
    ready(Openings(tmp_path / "runs").start(config, "mine"))


def test_where_there_can_be_no_first_look_opening_goes_on_and_the_reason_is_kept(tmp_path, config, slow):
    both = CorpusConfig(config.inputs, features=config.inputs)
    opening = Openings(tmp_path / "runs").start(both, "mine")
    slow.set()
    assert ready(opening).first is None and "--features" in opening.unlooked
