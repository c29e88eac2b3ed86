"""Without an address: what the command line named, the corpus of the newest run that can be read, the demo."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from datamask.config import CorpusConfig, RunConfig
from datamask.corpus import open_corpus
from datamask.dashboard.data import demo
from datamask.dashboard.data.allowed import Allowed
from datamask.dashboard.data.inputs import UPLOADS
from datamask.dashboard.shell import session
from datamask.runs.store import Run
from tests.making.runs import finish_run, write_shard

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def server(tmp_path, monkeypatch) -> Allowed:
    """A server that may read one folder, with a small demo; what it was allowed."""
    shutil.copytree(ROOT / "sample_data" / "tiny", tmp_path / "small")
    monkeypatch.setattr(demo, "CORPUS", tmp_path / "small")
    monkeypatch.setenv("DATAMASK_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("DATAMASK_ROOTS", str(tmp_path / "mine"))
    monkeypatch.delenv("DATAMASK_SAMPLE", raising=False)
    allowed = Allowed()
    monkeypatch.setattr(session, "allowed", lambda: allowed)
    return allowed


def run_on(path: Path) -> Run:
    """A finished run as the command line makes one, on a shard of its own: the dashboard has noted no opening."""
    path.parent.mkdir(exist_ok=True, parents=True)
    config = write_shard(path)
    corpus = open_corpus(config)
    return finish_run(session.store(), corpus, config, corpus.quality)


def shown() -> CorpusConfig | None:
    """What is opened first."""
    opening = session.first_opening()
    if opening is not None:
        opening.wait(240)
        assert opening.ready and session.first_opening() is opening
    return None if opening is None else opening.config


def test_the_corpus_of_the_newest_run_comes_before_the_demo_and_the_command_line_before_both(server, tmp_path):
    assert shown() == demo.config()
    runs = [run_on(tmp_path / "mine" / f"{name}.parquet") for name in ("first", "second")]
    assert shown() == runs[1].config.corpus
    # an opening that somebody noted since is not what somebody worked with
    other = write_shard(tmp_path / "mine" / "other.parquet")
    session.all_openings().start(other, "other").wait(240)
    assert shown() == runs[1].config.corpus
    server.corpus = other
    assert shown() == other


def test_a_run_that_cannot_be_shown_is_passed_over(tmp_path):
    runs = [run_on(tmp_path / "mine" / f"{name}.parquet") for name in ("good", "archived", "moved")]
    runs[1].relabel(archived=True)
    Path(runs[2].config.corpus.inputs[0]).unlink()
    run_on(tmp_path / "elsewhere" / "shard.parquet")
    session.store().create(RunConfig(write_shard(tmp_path / "mine" / "waiting.parquet")))
    assert shown() == runs[0].config.corpus


def test_other_machines_are_shown_nothing_that_a_visitor_uploaded(tmp_path, monkeypatch):
    run = run_on(tmp_path / "mine" / "shard.parquet")
    upload = run_on(session.runs_dir() / UPLOADS / "upload.parquet")
    assert shown() == upload.config.corpus
    monkeypatch.setattr(session, "on_loopback", lambda: False)
    assert shown() == run.config.corpus
    monkeypatch.delenv("DATAMASK_ROOTS")
    assert shown() == demo.config()


def test_nothing_is_open_where_the_demo_is_switched_off_and_there_is_no_run(tmp_path, monkeypatch):
    monkeypatch.setenv(session.SAMPLE, "off")
    assert shown() is None
    run = run_on(tmp_path / "mine" / "shard.parquet")
    assert shown() == run.config.corpus


def test_a_runs_folder_that_cannot_be_listed_leaves_the_demo(tmp_path):
    (tmp_path / "runs").write_text("a file where a folder is expected")
    assert session.first_opening().config == demo.config()
