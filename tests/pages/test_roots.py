"""A run folder or a note naming a corpus outside the roots: nothing of it is read, what stands in the run is shown."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.dashboard.data.openings import Openings, openings
from datamask.dashboard.frame.frame import PAGES
from tests.making.runs import finish_run, write_shard
from tests.pages.reading import runs_table

WORDS = "outside the folders"


@pytest.fixture
def foreign(tmp_path_factory, store):
    """A finished run on a shard outside the roots, as somebody else's command line leaves one."""
    folder = tmp_path_factory.mktemp("elsewhere")
    config = write_shard(folder / "secret-name.parquet", seed=9)
    corpus = open_corpus(config)
    return finish_run(store, corpus, config, corpus.quality, name="from elsewhere")


def told(app) -> list[str]:
    return [element.value.replace("\\", "") for kind in ("warning", "error", "info") for element in app.get(kind)]


@pytest.mark.parametrize("script", [script for script, *_ in PAGES])
def test_no_page_opens_it_by_the_run(page, foreign, runs_dir, script):
    app = page(script, run=foreign.id)
    assert openings(runs_dir).all() == []
    assert any(WORDS in text and "DATAMASK_ROOTS" in text for text in told(app))
    assert not any("secret-name" in text for text in told(app))


def test_no_page_opens_it_by_a_note_of_before(page, foreign, runs_dir):
    before = Openings(runs_dir)
    opening = before.start(foreign.config.corpus, "before")
    opening.wait(240)
    assert opening.ready and openings(runs_dir).all() == []
    app = page(corpus=opening.key)
    assert openings(runs_dir).all() == [] and any(WORDS in text for text in told(app))
    app = page("pages/data.py")
    app.button(key=f"recent_{opening.key}").click().run()
    assert openings(runs_dir).all() == [] and any("outside the folders" in text for text in told(app))


def test_what_could_not_be_opened_is_not_tried_again_once_it_lies_outside(page, runs_dir, tmp_path, monkeypatch):
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    opening = openings(runs_dir).start(CorpusConfig((str(tmp_path / "broken.parquet"),)), "broken.parquet")
    opening.wait(240)
    app = page(corpus=opening.key)
    again = app.button(key="reopen")
    monkeypatch.setenv("DATAMASK_ROOTS", str(tmp_path / "elsewhere"))
    again.click().run()
    assert openings(runs_dir).all() == [opening] and any(WORDS in text for text in told(app))


def test_the_values_of_the_run_are_shown_all_the_same(page, foreign):
    app = page("pages/runs.py", run=foreign.id)
    assert runs_table(app)[["quality", "diversity"]].notna().all(axis=None)
    assert app.get("vega_lite_chart")


def test_its_ids_can_be_taken_home_and_its_rows_not(page, foreign):
    app = page("pages/export.py", run=foreign.id)
    keys = {element.proto.id.rsplit("-", 1)[-1] for element in app.get("download_button")}
    assert "ids" in keys and not keys & {"rows", "mask"}
    assert not any(button.key and button.key.startswith(("rows-", "masks-")) for button in app.button)


def test_it_is_not_opened_beside_another_and_not_gone_on_with(page, foreign, opened, store, runs_dir):
    app = page("pages/runs.py", corpus=opened.key, run=foreign.id)
    app.button(key="open_other").click().run()
    assert openings(runs_dir).all() == [opened] and any(WORDS in text for text in told(app))
    stopped = store.create(foreign.config)
    with stopped.writer() as writer:
        writer.finish("stopped", message="stopped")
    app = page("pages/runs.py", corpus=opened.key, run=stopped.id)
    app.button(key="resume_run").click().run()
    assert stopped.status().state == "stopped" and any(WORDS in text for text in told(app))


def test_rows_that_a_run_folder_claims_from_elsewhere_are_not_read(page, opened, finished, foreign):
    mine = finished(name="mine")
    rows = pq.read_table(mine.path / "rows.parquet")
    place = rows.column_names.index("source_file")
    names = pa.array([foreign.config.corpus.inputs[0]] * len(rows)).dictionary_encode()
    pq.write_table(rows.set_column(place, "source_file", names), mine.path / "rows.parquet")
    app = page("pages/export.py", corpus=opened.key, run=mine.id)
    assert sum(WORDS in text for text in told(app)) == 2


@pytest.fixture
def in_a_bucket(tmp_path_factory, store, monkeypatch):
    """A finished run on a shard of a bucket that nobody allowed; whoever asks a store fails the test."""

    def asked(*args, **more):
        raise AssertionError("a store was asked")

    monkeypatch.setattr("datamask.storage.remote.ask", asked)
    corpus = open_corpus(write_shard(tmp_path_factory.mktemp("bucket") / "shard.parquet", seed=9))
    return finish_run(store, corpus, CorpusConfig(("s3://secret-name/shard.parquet",)), corpus.quality, name="remote")


@pytest.mark.parametrize("script", ["app.py", "pages/data.py", "pages/runs.py", "pages/export.py"])
def test_no_page_asks_a_store_that_nobody_allowed(page, in_a_bucket, runs_dir, script):
    app = page(script, run=in_a_bucket.id)
    assert openings(runs_dir).all() == [] and any(WORDS in text for text in told(app))
    assert not any("secret-name" in text for text in told(app))


def test_an_address_that_nobody_allowed_is_refused_in_the_form(page, in_a_bucket, runs_dir):
    app = page("pages/data.py")
    app.segmented_control(key="corpus_place").set_value("path").run()
    app.text_area(key="corpus_paths").set_value("s3://bucket/shards").run()
    assert any("below no address that this server may read" in text for text in told(app))
    app.text_area(key="corpus_paths").set_value("s3://user:hunter2@bucket/shards").run()
    assert any("must hold no secret" in text for text in told(app)) and not any("hunter2" in text for text in told(app))
    assert openings(runs_dir).all() == []


def test_a_page_waits_for_a_silent_store_for_a_while_only(page, monkeypatch):
    silent, mine = threading.Event(), SimpleNamespace(is_folder=lambda address: False)
    mine.open = lambda address: silent.wait()
    monkeypatch.setattr("datamask.storage.remote.store_of", lambda address: mine)
    monkeypatch.setattr("datamask.dashboard.data.form_panel.LOOK_SECONDS", 0.3)
    monkeypatch.setenv("DATAMASK_ROOTS", "s3://bucket/shards")
    app = page("pages/data.py")
    app.segmented_control(key="corpus_place").set_value("path").run()
    app.text_area(key="corpus_paths").set_value("s3://bucket/shards/a.parquet").run()
    silent.set()
    assert any("reading the first rows took longer than 0.3 s" in text.lower() for text in told(app))
