"""Texts prepared behind the Data page: kept as an upload, opened, gone on with; models only below the roots."""

import os
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.dashboard.data import preparing
from datamask.dashboard.data.inputs import UPLOADS, confined_model
from datamask.dashboard.data.openings import opening_key, openings
from datamask.errors import InputError
from datamask.files import OutsideRoots
from datamask.work.job import Job
from tests.corpus.embedders.tiny import WORDS, write_model

LONG = 240.0


@pytest.fixture
def texts(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"text": [" ".join(rng.choice(WORDS[1:], 5)) for _ in range(400)]}), path)
    return CorpusConfig((str(path),))


@pytest.fixture
def model(tmp_path):
    return write_model(tmp_path / "tiny", np.random.default_rng(1).normal(size=(len(WORDS), 4)).astype(np.float32))


def test_what_is_made_is_an_upload_that_is_opened_and_noted(texts, model, tmp_path):
    runs_dir = tmp_path / "runs"
    job = preparing.start(runs_dir, texts, "text", model)
    assert job.wait(LONG) and job.state == "done", job.error
    (made,) = (runs_dir / UPLOADS).rglob("*.parquet")
    assert job.result == CorpusConfig((str(made),)) and made.name == "texts-tiny.parquet"
    opening = openings(runs_dir).get(opening_key(job.result))
    opening.wait(LONG)
    assert len(opening.corpus) == 400 and opening.corpus.dim == 4
    assert any(note.startswith("Features by tiny (model2vec") for note in opening.corpus.provenance.notes)
    assert not list((runs_dir / preparing.FOLDER).iterdir())


def test_a_stopped_one_keeps_its_embeddings_for_a_day(texts, model, tmp_path, monkeypatch):
    runs_dir = tmp_path / "runs"
    report = Job.report

    def reporting(job, share, what):
        report(job, share, what)
        if what.startswith("Embedding") and "(0 of" not in what:
            job.stop()

    monkeypatch.setattr("datamask.corpus.text_survey.BATCH_ROWS", 100)
    monkeypatch.setattr(Job, "report", reporting)
    job = preparing.start(runs_dir, texts, "text", model)
    assert job.wait(LONG) and job.state == "stopped"
    (kept,) = (runs_dir / preparing.FOLDER).iterdir()
    assert kept.name.endswith(".embeddings") and not (runs_dir / UPLOADS).exists()
    monkeypatch.setattr(Job, "report", report)
    stale = kept.with_name(".0123456789abcdef.parquet.embeddings")
    stale.write_bytes(b"old")
    os.utime(stale, (time.time() - 2 * preparing.KEPT_SECONDS,) * 2)
    job = preparing.start(runs_dir, texts, "text", model)
    assert job.wait(LONG) and job.state == "done", job.error
    assert len(open_corpus(job.result)) == 400 and not list((runs_dir / preparing.FOLDER).iterdir())


def test_a_model_lies_below_a_root_with_all_its_files(model, tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    own = model.rename(inside / "own")
    assert confined_model(str(own), [inside]) == own
    (inside / "linked").symlink_to(own)
    assert confined_model(str(inside / "linked"), [inside]) == inside / "linked"
    (own / "tokenizer.json").rename(outside / "tokenizer.json")
    (own / "tokenizer.json").symlink_to(outside / "tokenizer.json")
    for path in (own, outside, tmp_path / "missing", "/etc", f"{inside}/../outside", "~nobody-of-that-name", "a\x00b"):
        with pytest.raises(OutsideRoots, match="outside the folders this server may read"):
            confined_model(str(path), [inside])
    with pytest.raises(OutsideRoots, match="reads no files by path"):
        confined_model(str(own), [])
    with pytest.raises(InputError, match="nothing is downloaded"):
        confined_model("hf://minishlab/potion-base-8M", [inside])
