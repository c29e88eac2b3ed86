"""The sample opens by itself where nothing was opened before, and only there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from datamask.config import CorpusConfig, RunConfig
from datamask.dashboard.data import ready_sample, sample
from datamask.dashboard.data.allowed import allowed
from datamask.dashboard.data.openings import Openings
from datamask.dashboard.data.sample_work import NOTE, Note
from datamask.runs.store import RunStore
from tests.dashboard.made_runs import write_shard

ROOT = Path(__file__).resolve().parents[3]
LONG = 240.0


@pytest.fixture(autouse=True)
def small_sample(tmp_path, monkeypatch) -> None:
    """The sample is the committed one of 1,200 rows; it is not switched off."""
    shutil.copytree(ROOT / "sample_data" / "tiny", tmp_path / "built")
    monkeypatch.setattr(sample, "BUILT", tmp_path / "built")
    monkeypatch.delenv(ready_sample.SWITCH, raising=False)


@pytest.fixture(autouse=True)
def started(monkeypatch) -> list[Path]:
    """The runs folders in which something would have been made; nothing is."""
    folders = []
    monkeypatch.setattr(ready_sample, "start", lambda runs_dir, opening: folders.append(runs_dir))
    return folders


@pytest.fixture
def openings(tmp_path) -> Openings:
    return Openings(tmp_path / "runs")


def test_the_sample_opens_once_where_nothing_was_opened(openings, started):
    first = ready_sample.begin(openings)
    first.wait(LONG)
    assert first.ready and first.sample and len(first.corpus) == 1200
    assert ready_sample.opening(openings) is first and started == [openings.runs_dir]


def test_visitors_do_not_open_it_where_the_server_did_not_begin(openings):
    assert ready_sample.wanted(openings) and ready_sample.opening(openings) is None


def test_it_opens_again_after_a_restart_although_runs_were_made(openings):
    ready_sample.begin(openings).wait(LONG)
    RunStore(openings.runs_dir).create(RunConfig(sample.config()))
    again = ready_sample.begin(Openings(openings.runs_dir))
    again.wait(LONG)
    assert again.sample and again.ready


def test_not_where_there_are_runs_already(openings, started):
    RunStore(openings.runs_dir).create(RunConfig(CorpusConfig(("mine.parquet",))))
    assert ready_sample.begin(openings) is None and openings.all() == []
    assert started == [] and Note.read(openings.runs_dir) is None


@pytest.mark.parametrize("note", [Note(done=True), Note(stopped=True)])
def test_what_was_made_or_stopped_is_not_started_again(openings, started, note):
    note.write(openings.runs_dir)
    opening = ready_sample.begin(openings)
    opening.wait(LONG)
    assert opening.ready and started == []


def test_not_where_another_corpus_was_opened(openings, tmp_path):
    ready_sample.begin(openings).wait(LONG)
    own = openings.start(write_shard(tmp_path / "mine.parquet"), "mine")
    assert ready_sample.opening(openings) is None
    own.wait(LONG)
    assert ready_sample.begin(Openings(openings.runs_dir)) is None


def test_not_where_the_command_line_names_a_corpus(openings, monkeypatch):
    monkeypatch.setattr(allowed(), "corpus", CorpusConfig(("mine.parquet",)))
    assert ready_sample.begin(openings) is None and openings.all() == []


def test_not_where_it_is_switched_off(openings, monkeypatch, started):
    monkeypatch.setenv(ready_sample.SWITCH, "off")
    assert ready_sample.begin(openings) is None and openings.all() == []


def test_a_runs_folder_that_cannot_be_read_opens_nothing(tmp_path):
    (tmp_path / "runs").write_text("a file where a folder is expected")
    assert ready_sample.begin(Openings(tmp_path / "runs")) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000])
def test_a_damaged_note_is_one_all_the_same(openings, started, content):
    openings.runs_dir.mkdir()
    (openings.runs_dir / NOTE).write_text(content)
    RunStore(openings.runs_dir).create(RunConfig(sample.config()))
    opening = ready_sample.begin(openings)
    opening.wait(LONG)
    assert opening.ready and started == []
