"""Explore: what it shows without a corpus, without a run, with one, and with a region drawn on the map."""

from __future__ import annotations

import io
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask.dashboard import grounds, tasks
from datamask.dashboard.regions import Region
from datamask.dashboard.ui import region_panel, render_map
from tests.dashboard.made_runs import NASTY, finish_run
from tests.pages.reading import captions, spec, titles


@pytest.fixture
def waiting(opened):
    """A map in preparation that never ends by itself."""
    corpus = opened.corpus

    def work(report, should_stop):
        report(0.25, "finding neighbours")
        deadline = time.monotonic() + 60
        while not should_stop() and time.monotonic() < deadline:
            time.sleep(0.02)

    task = tasks.start(grounds.key_of(corpus), work)
    yield task
    task.stop()


def test_without_a_corpus_it_says_what_to_do(page):
    app = page("pages/explore.py")
    assert "No corpus is open" in [heading.value for heading in app.subheader]
    assert not app.get("plotly_chart")


def test_without_a_run_the_right_panel_waits(page, opened, waiting, explained):
    app = page("pages/explore.py", corpus=opened.key)
    assert titles(app) == ["Quality", "Similarity to neighbours", "Selected"]
    notes = [note["text"] for note in spec(app)["layout"]["annotations"]]
    assert "no finished run on this corpus yet" in notes and "waits for the neighbours" in notes
    assert app.selectbox(key="explore_run").disabled
    assert "PCA shows" in captions(app)
    assert any("finding neighbours" in bar.proto.text for bar in app.get("progress"))
    explained(app, 6)


def test_the_layout_can_be_stopped_and_is_offered_again(page, opened, waiting):
    app = page("pages/explore.py", corpus=opened.key)
    app.button(key="stop_layout").click().run()
    for _ in range(100):
        if waiting.state != "working":
            break
        time.sleep(0.05)
    tasks.find(waiting.key).state = "stopped"
    app.run()
    assert not app.exception
    assert "was stopped" in captions(app) and app.button(key="start_layout")


def test_three_panels_and_their_captions(page, opened, store, mapped, explained):
    run = finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name="<b>mine</b>")
    app = page("pages/explore.py", corpus=opened.key, run=run.id)
    assert titles(app) == ["Quality", "Similarity to neighbours", "Selected by &lt;b&gt;mine&lt;/b&gt;"]
    said = captions(app)
    assert "all 240 samples" in said and "UMAP keeps 7.5 of each sample's 15 nearest neighbours" in said
    assert "mean nothing" in said and "2nd and 98th percentile" in said
    assert not app.get("progress")
    traces = [trace for trace in spec(app)["data"] if trace["type"] == "scattergl"]
    label = next(text for text in traces[0]["hovertext"] if "doc-0000" in text)
    assert "<b>bold" not in label and "&lt;b&gt;bold" in label and NASTY not in label
    explained(app, 5)


def test_panels_take_other_colours_and_marks(page, opened, store, mapped):
    finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name="mine")
    app = page("pages/explore.py", corpus=opened.key)
    app.selectbox(key="explore_left").select("source").run()
    app.selectbox(key="explore_middle").select("marginal diversity in this run").run()
    assert titles(app)[:2] == ["source", "Marginal diversity in this run"]
    app.get_by_key("explore_marks").set_value("hexagons").run()
    assert not app.exception
    assert "Hexagons of all 240 samples" in captions(app)
    app.get_by_key("explore_layout").set_value("PCA").run()
    assert "PCA shows" in captions(app)


def draw_region(app, region: Region):
    memory = app.session_state["explore_map_regions"]
    memory.regions = (region,)
    app.run()
    assert not app.exception


def test_a_region_lists_all_rows_inside(page, opened, store, mapped):
    run = finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name="mine")
    app = page("pages/explore.py", corpus=opened.key, run=run.id)
    draw_region(app, Region.box([-5, 5], [-5, 5]))
    expected = np.flatnonzero(mapped == 0)
    said = " ".join(text.value for text in app.markdown)
    selected = run.rows()["selected"].to_numpy(zero_copy_only=False)[expected]
    assert f"**{len(expected)}** of 240 samples in the region" in said
    assert f"**{selected.sum()}** of them selected" in said
    table = app.dataframe[0].value
    ids = [f"doc-{row:04d}" for row in expected]
    assert sorted(table["chunk_id"]) == ids[:100]
    assert table["quality"].is_monotonic_decreasing
    app.get_by_key("explore_map_which").set_value("selected").run()
    assert len(app.dataframe[0].value) == selected.sum() and app.dataframe[0].value["selected"].all()


def test_a_region_outlives_other_colours_and_can_be_cleared(page, opened, store, mapped):
    app = page("pages/explore.py", corpus=opened.key)
    draw_region(app, Region.box([-5, 5], [-5, 5]))
    app.selectbox(key="explore_left").select("source").run()
    assert {shape["xref"] for shape in spec(app)["layout"]["shapes"]} == {"x", "x2", "x3"}
    assert "in the region" in " ".join(text.value for text in app.markdown)
    app.button(key="explore_map_clear").click().run()
    assert "in the region" not in " ".join(text.value for text in app.markdown)
    assert "shapes" not in spec(app)["layout"] and "Draw around" in captions(app)


def test_a_region_means_nothing_on_another_projection(page, opened, store, mapped):
    app = page("pages/explore.py", corpus=opened.key)
    draw_region(app, Region.box([-5, 5], [-5, 5]))
    app.get_by_key("explore_layout").set_value("PCA").run()
    assert "in the region" not in " ".join(text.value for text in app.markdown)


def test_downloads_hold_every_row_and_no_formula(opened, store):
    corpus = opened.corpus
    selected = np.zeros(len(corpus), bool)
    selected[3] = True
    rows = np.arange(2, 9)
    table = pq.read_table(io.BytesIO(region_panel.file_of(corpus, rows, selected, "Parquet")))
    assert table.column_names == ["chunk_id", "quality", "selected", "source_file", "source_row"]
    assert table["chunk_id"].to_pylist() == [f"doc-{row:04d}" for row in rows]
    assert table["source_row"].to_pylist() == rows.tolist() and table["selected"].to_pylist().count(True) == 1
    lines = region_panel.file_of(corpus, rows, selected, "CSV").decode().splitlines()
    assert len(lines) == 8 and lines[1].startswith('"doc-0002",')


def test_selection_state_is_read_once_per_figure(monkeypatch):
    """A figure's empty state at birth keeps carried regions; after it answered, empty means deselected."""
    state, charts = {}, []

    class Event:
        def __init__(self, selection):
            self.selection = selection

    lasso = {"lasso": [{"x": [0, 1, 1], "y": [0, 0, 1]}]}
    answers = iter([{}, lasso, {}, lasso, {}, {}])
    monkeypatch.setattr(render_map.st, "session_state", state)
    monkeypatch.setattr(render_map.st, "plotly_chart",
                        lambda figure, key, **_: charts.append(key) or Event(next(answers)))

    def show(version, scope="pca"):
        return len(render_map.render_map("m", scope, version, lambda outlines: len(outlines), alt=""))

    assert [show("a"), show("a"), show("a")] == [0, 1, 0]
    assert charts[0] == charts[1] == charts[2], "the figure must not follow its own selection"
    assert [show("a"), show("b")] == [1, 1]
    assert charts[4] != charts[3], "another colour is another figure, with the region outlined"
    assert show("b", scope="umap") == 0
