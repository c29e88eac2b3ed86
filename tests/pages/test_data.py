"""Data: open a corpus by path, upload or sample, and see what is in it, or why it cannot be opened."""

import os
import shutil
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus.shared_corpora import shared_corpora
from datamask.dashboard.data import demo, preparing
from datamask.dashboard.data import openings as openings_module
from datamask.dashboard.data.looks_ahead import look_ahead
from datamask.dashboard.data.openings import openings
from datamask.work.worker import worker
from tests.corpus.embedders.tiny import WORDS, write_model
from tests.making.runs import NASTY, write_shard
from tests.pages.conftest import ROOT
from tests.pages.reading import captions

DATA = "pages/data.py"


def choose_path(app, text):
    app.get("segmented_control")[0].set_value("path").run()
    app.text_area(key="corpus_paths").set_value(str(text)).run()
    return app


def button(app, label):
    return next(b for b in app.button if b.label == label)


def open_and_wait(app, runs_dir, label="Open"):
    button(app, label).click().run()
    assert not app.exception
    opening = openings(runs_dir).get(app.query_params["corpus"])
    opening.wait(240)
    return app.run(), opening


def said(app):
    return " ".join([*(e.value for e in app.markdown), *(e.value for e in app.caption), *(e.value for e in app.error)])


def test_nothing_open_says_what_to_do(page, explained):
    app = page(DATA)
    assert button(app, "Open the demo")
    assert "No corpus open yet" in [m.value for m in app.markdown]
    explained(app, 2)


def test_a_path_is_inspected_mapped_and_opened(page, runs_dir, shard, explained):
    app = choose_path(page(DATA), shard)
    assert "240 rows" in said(app) and "8 dimensions" in said(app)
    explained(app, 8)
    app, opening = open_and_wait(app, runs_dir)
    assert opening.config == CorpusConfig((str(shard),)), "guesses that were kept must not lengthen the configuration"
    values = {metric.label: metric.value for metric in app.metric}
    assert "–" not in values["Semantic duplicates"]
    assert "shard\\.parquet" in " ".join(m.value for m in app.markdown)


def test_a_corpus_that_the_form_names_is_looked_at_and_the_open_one_gives_way(page, opened, tmp_path):
    other = tmp_path / "others" / "other.parquet"
    other.parent.mkdir()
    write_shard(other, n=300, seed=3)
    app = page(DATA, corpus=opened.key)
    assert app.metric and any("Select from" in link.proto.label for link in app.get("page_link"))
    choose_path(app, other)
    assert not app.exception and not app.metric and "Not open yet" in said(app)
    assert not any("Select from" in link.proto.label for link in app.get("page_link")), (
        "it would select from the corpus that is open"
    )
    look = look_ahead(CorpusConfig((str(other),)))
    assert look.job.wait(240) and look.job.state == "done", look.job.error
    assert look.picture.job.wait(240)
    app.run()
    assert "First look: the first 300 rows" in said(app).replace("\\", "") and len(app.get("plotly_chart")) == 1
    assert app.query_params["corpus"] == opened.key, "nothing was opened"
    app.text_area(key="corpus_paths").set_value("").run()
    assert app.metric and "240 rows" in said(app)


def test_folders_of_the_roots_are_browsed_and_fill_in_the_path(page, tmp_path, shard):
    (tmp_path / "inner").mkdir()
    write_shard(tmp_path / "inner" / "a.parquet")
    (tmp_path / "inner" / "notes.txt").write_text("no corpus")
    app = page(DATA)
    app.get("segmented_control")[0].set_value("path").run()
    app.selectbox(key="browse_into").set_value(str(tmp_path)).run()
    assert app.selectbox(key="browse_file").options == ["shard.parquet"]
    app.selectbox(key="browse_into").set_value("inner").run()
    assert app.selectbox(key="browse_file").options == ["a.parquet"]
    app.selectbox(key="browse_file").set_value("a.parquet").run()
    assert app.text_area(key="corpus_paths").value == str(tmp_path / "inner" / "a.parquet")
    app.selectbox(key="browse_into").set_value("..").run()
    app.button(key="browse_use").click().run()
    assert app.text_area(key="corpus_paths").value == str(tmp_path) and not app.exception
    assert button(app, "Open") and " rows**" in said(app)


def test_texts_are_shown_as_data_and_never_as_markup(page, opened):
    app = page(DATA, corpus=opened.key)
    assert not any(NASTY in element.value for kind in ("markdown", "caption") for element in app.get(kind))
    table = next(frame.value for frame in app.dataframe if "chunk_id" in frame.value.columns)
    assert table["text"][0] == NASTY
    assert not any(getattr(element.proto, "allow_html", False) for element in app.markdown)


@pytest.mark.parametrize(
    "path",
    [
        "~nobody-of-that-name/x.parquet",
        "x" * 5000,
        "/" + "y/" * 3000,
        "a\x00b.parquet",
        "~nobody-of-that-name",
        "[" * 300,
    ],
)
def test_what_is_no_path_is_a_sentence(page, path):
    app = choose_path(page(DATA), path)
    assert len(app.error) == 1 and not app.exception and not any(b.label == "Open" for b in app.button)


def test_a_missing_column_is_said_and_another_can_be_chosen(page, tmp_path, runs_dir):
    n = 40
    features = pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(0).normal(size=n * 4)), 4)
    pq.write_table(
        pa.table(
            {
                "name": [f"n{i}" for i in range(n)],
                "first": np.arange(n) * 1.5,
                "second": np.arange(n) * 0.5,
                "vec": features,
            }
        ),
        tmp_path / "odd.parquet",
    )
    app = choose_path(page(DATA), tmp_path / "odd.parquet")
    assert "several columns" in app.error[0].value and button(app, "Open").disabled
    assert "--" not in app.error[0].value.replace("\\", ""), "on a page an option is a control"
    app.multiselect[0].set_value(["first", "second"]).run()
    assert not app.error and not button(app, "Open").disabled
    app, opening = open_and_wait(app, runs_dir)
    assert [(q.name, q.transform) for q in opening.config.quality_columns] == [("first", "z"), ("second", "z")]
    assert opening.ready


def test_texts_alone_become_a_corpus(page, runs_dir, tmp_path, explained):
    write_model(tmp_path / "tiny", np.random.default_rng(1).normal(size=(len(WORDS), 4)).astype(np.float32))
    rng = np.random.default_rng(0)
    pq.write_table(
        pa.table({"title": ["x"] * 60, "text": [" ".join(rng.choice(WORDS[1:], 5)) for _ in range(60)]}),
        tmp_path / "texts.parquet",
    )
    app = choose_path(page(DATA), tmp_path / "texts.parquet")
    explained(app, 6)
    assert app.selectbox(key="prepare_text").value == "text"
    # the card is the only way on: no command of a terminal, no disabled button
    assert not app.error and not any(b.label == "Open" for b in app.button) and "datamask prepare" not in said(app)
    embedders = next(c for c in app.get("segmented_control") if c.key == "prepare_embedder")
    # a function of one's own is for the command line
    assert list(embedders.options) == ["TF-IDF (seconds)", "Model (folder)"]
    embedders.set_value("model").run()
    assert button(app, "Create scores and embeddings").disabled
    for path, said_of_it in (("/etc", "outside the folders"), ("os:system", "must name a folder")):
        app.text_input(key="prepare_model").set_value(path).run()
        assert any(said_of_it in error.value for error in app.error)
        assert button(app, "Create scores and embeddings").disabled
    app.text_input(key="prepare_model").set_value(str(tmp_path / "tiny")).run()
    button(app, "Create scores and embeddings").click().run()
    config = CorpusConfig((str(tmp_path / "texts.parquet"),))
    job = worker().find(preparing.key(runs_dir, config, "text", tmp_path / "tiny"))
    assert job.wait(240) and job.state == "done", job.error
    app.run()
    openings(runs_dir).get(app.query_params["corpus"]).wait(240)
    app.run()
    assert openings(runs_dir).get(app.query_params["corpus"]).corpus.dim == 4 and not app.exception
    assert "Features by tiny (model2vec" in said(app).replace("\\", "")


def test_files_without_texts_or_embeddings_say_what_to_add(page, tmp_path):
    (tmp_path / "numbers.csv").write_text("\n".join(["a,b", *(f"{i},{i / 7}" for i in range(40))]))
    app = choose_path(page(DATA), tmp_path / "numbers.csv")
    assert len(app.error) == 1 and "no text column" in app.error[0].value and "datamask prepare" not in said(app)


def test_a_row_budget_takes_a_sample_and_says_so(page, runs_dir, shard):
    app = choose_path(page(DATA), shard)
    next(n for n in app.number_input if n.label == "Rows to open").set_value(100).run()
    app, opening = open_and_wait(app, runs_dir)
    assert opening.config.rows == 100 and len(opening.corpus) == 100
    assert "of 240" in said(app)


def test_invalid_rows_refuse_the_corpus_or_are_counted(page, runs_dir, tmp_path):
    write_shard(tmp_path / "nan.parquet")
    table = pq.read_table(tmp_path / "nan.parquet")
    values = table["feature_arr"].combine_chunks().flatten().to_numpy().copy()
    values[8:16] = np.nan
    broken = table.set_column(
        table.schema.get_field_index("feature_arr"),
        "feature_arr",
        pa.FixedSizeListArray.from_arrays(pa.array(values), 8),
    )
    pq.write_table(broken, tmp_path / "nan.parquet")
    app, opening = open_and_wait(choose_path(page(DATA), tmp_path / "nan.parquet"), runs_dir)
    assert opening.job.state == "failed"
    assert any("could not be opened" in heading.value for heading in app.subheader) and "NaN" in said(app)
    assert any(b.label == "Try again" for b in app.button)
    app.checkbox(key="corpus_drop_invalid").check().run()
    app, opening = open_and_wait(app, runs_dir)
    assert opening.ready and len(opening.corpus) == 239
    problems = next(frame.value for frame in app.dataframe if "problem" in frame.value.columns)
    assert problems["rows"].sum() == 1


def test_uploads_that_nothing_reads_can_be_removed(page, runs_dir, shard):
    app = page(DATA)
    app.get("segmented_control")[0].set_value("upload").run()
    assert not any(button.key == "remove_uploads" for button in app.button)
    app.file_uploader[0].upload("read.parquet", shard.read_bytes()).run()
    open_and_wait(app, runs_dir)
    (read,) = (runs_dir / ".uploads").rglob("*.parquet")
    stray = runs_dir / ".uploads" / "0123456789abcdef" / "stray.parquet"
    stray.parent.mkdir()
    stray.write_bytes(bytes(2500))
    for path in (read, stray):
        os.utime(path, (1e9, 1e9))
    app = page(DATA)
    app.get("segmented_control")[0].set_value("upload").run()
    button = app.button(key="remove_uploads")
    assert button.label == "Remove 1 uploaded file without a run, 2.5\N{NO-BREAK SPACE}kB"
    button.click().run()
    assert read.is_file() and not stray.parent.exists() and not app.exception
    assert not any(button.key == "remove_uploads" for button in app.button)


def test_the_demo_is_offered_with_the_number_of_its_rows(page):
    rows = pq.read_metadata(demo.CORPUS).num_rows
    assert f"{rows:,} docstrings" in said(page(DATA))


def test_the_demo_opens_with_one_click(page, runs_dir, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "sample_data" / "tiny", tmp_path / "small")
    monkeypatch.setattr(demo, "CORPUS", tmp_path / "small")
    app, opening = open_and_wait(page(DATA), runs_dir, "Open the demo")
    assert len(opening.corpus) == 1200
    assert "Demo corpus" in " ".join(m.value for m in app.markdown)
    # what is open is not offered, also where it is come back to
    app.run()
    assert "The demo is open." in said(app) and not any(button.key == "open_sample" for button in app.button)


def test_a_link_from_before_a_restart_opens_the_corpus_anew(page, opened, runs_dir):
    openings(runs_dir)._by_key.clear()
    app = page(DATA, corpus=opened.key)
    openings(runs_dir).get(opened.key).wait(240)
    assert "240 rows" in said(app.run())


@pytest.mark.parametrize("name", ["*" + "a" * 300, "[b]/*", "loop"])
def test_no_path_outside_takes_the_page_down(page, tmp_path_factory, monkeypatch, name):
    monkeypatch.setattr("datamask.dashboard.shell.loopback.on_loopback", lambda: True)
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "loop").symlink_to(folder / "loop")
    app = choose_path(page(DATA), folder / name)
    assert not app.exception
    assert any("outside the folders" in message.value for message in app.error)


def test_opening_is_drawn_with_progress_and_can_be_stopped(page, runs_dir, shard, monkeypatch):
    def slow(self, config, work):
        work.report(0.4, "Reading rows")
        while True:
            work.poll()
            time.sleep(0.01)

    # the class of the holder that is in use: a test of hot reload may have left another one in the module
    monkeypatch.setattr(type(shared_corpora()), "get", slow)
    app = choose_path(page(DATA), shard)
    button(app, "Open").click().run()
    assert any("Opening shard" in heading.value for heading in app.subheader)
    assert app.button(key="stop_opening") and "opening continues" in captions(app)
    deadline = time.monotonic() + 240  # the opening's thread may not have spoken yet
    while not any("Reading rows" in bar.proto.text for bar in app.get("progress")) and time.monotonic() < deadline:
        time.sleep(0.05)
        app.run()
    assert any("Reading rows" in bar.proto.text for bar in app.get("progress"))
    button(app, "Stop").click().run()
    openings(runs_dir).get(app.query_params["corpus"]).wait(120)
    app.run()
    assert any("Opening was stopped" in heading.value for heading in app.subheader)
    assert any(b.label == "Open it again" for b in app.button)


def test_earlier_corpora_are_offered(page, opened):
    app = page(DATA)
    recent = [b for b in app.button if "240 rows" in b.label]
    assert len(recent) == 1
    recent[0].click().run()
    assert app.query_params["corpus"] == opened.key


def test_a_first_look_is_shown_and_labelled_while_the_corpus_is_read(page, runs_dir, tmp_path, monkeypatch):
    may_end, inner = threading.Event(), type(shared_corpora()).get

    def waiting(self, config, work, **options):
        work.report(0.4, "Reading rows")
        while not may_end.wait(0.01):
            work.poll()
        return inner(self, config, work, **options)

    monkeypatch.setattr(type(shared_corpora()), "get", waiting)
    monkeypatch.setattr(openings_module, "LOOK_FROM_BYTES", 1)
    (tmp_path / "shards").mkdir()
    for shard in range(3):
        ids = pa.array([f"{shard}-{row}" for row in range(240)])
        write_shard(tmp_path / "shards" / f"{shard}.parquet", seed=shard)
        table = pq.read_table(tmp_path / "shards" / f"{shard}.parquet")
        place = table.schema.get_field_index("chunk_id")
        pq.write_table(table.set_column(place, "chunk_id", ids), tmp_path / "shards" / f"{shard}.parquet")
    try:
        app = choose_path(page(DATA), tmp_path / "shards")
        button(app, "Open").click().run()
        opening = openings(runs_dir).get(app.query_params["corpus"])
        deadline = time.monotonic() + 240
        while opening.first is None and not opening.job.ended and time.monotonic() < deadline:
            time.sleep(0.02)
        assert opening.first.job.wait(240) and opening.first.job.state == "done", opening.first.job.error
        app.run()
        assert not app.exception
        text = said(app)
        assert "First look: up to 2,000 rows from each of 3 of 3 shards, not a uniform sample" in text.replace("\\", "")
        assert "The first 720 rows of the shards" in text and len(app.get("plotly_chart")) == 1
        assert any("Reading rows" in bar.proto.text for bar in app.get("progress"))
        # the Map shows it too, until it has the corpus's own
        assert "First look: up to 2,000 rows from each of 3" in said(page(corpus=opening.key)).replace("\\", "")
    finally:
        may_end.set()
    opening.wait(240)
    app.run()
    assert "First look" not in said(app) and "720 rows" in said(app)
