"""Explore: what it shows without a corpus, without a run, with one, and with a region drawn on the map."""

from __future__ import annotations

import io
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask.dashboard import grounds, tasks
from datamask.dashboard.parcels import ground_parcel
from datamask.dashboard.places import place
from datamask.dashboard.regions import Region
from datamask.dashboard.ui import canvas_map, region_panel
from tests.dashboard.made_runs import NASTY, finish_run
from tests.pages.reading import captions, map_data, parcels, titles


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
    assert map_data(app) is None


def test_without_a_run_the_right_panel_waits(page, opened, waiting, explained):
    app = page("pages/explore.py", corpus=opened.key)
    assert titles(app) == ["Quality", "Similarity to neighbours", "Selected"]
    notes = [parcel.get("text") for parcel in parcels(app).values()]
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
    assert titles(app) == ["Quality", "Similarity to neighbours", "Selected by <b>mine</b>"]
    said = captions(app)
    assert "all 240 samples" in said and "UMAP keeps 7.5 of each sample's 15 nearest neighbours" in said
    assert "mean nothing" in said and "2nd and 98th percentile" in said
    assert not app.get("progress")
    sent = parcels(app)
    letters, ends = sent["ground"]["letters"].tobytes(), sent["ground"]["ends"]
    first = int(np.flatnonzero(sent["ground"]["rows"] == 0)[0])
    # foreign words travel as text, and the map shows them as text
    assert letters[ends[first]:ends[first + 1]].decode().split("\n")[::2] == ["doc-0000", NASTY]
    selected = run.rows()["selected"].to_numpy(zero_copy_only=False)
    assert np.array_equal(sent["2"]["codes"] == 1, selected[sent["ground"]["rows"]])
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
    memory = app.session_state["explore_map_memory"]
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
    ground = parcels(app)["ground"]["id"]
    app.selectbox(key="explore_left").select("source").run()
    assert map_data(app)["regions"] == [["box", [-5, 5, 5, -5], [-5, -5, 5, 5]]]
    assert parcels(app)["ground"]["id"] == ground, "other colours must not move anything"
    assert "in the region" in " ".join(text.value for text in app.markdown)
    before = map_data(app)["cleared"]
    app.button(key="explore_map_clear").click().run()
    assert "in the region" not in " ".join(text.value for text in app.markdown)
    assert map_data(app)["regions"] == [] and map_data(app)["cleared"] > before and "Draw around" in captions(app)


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


def test_what_the_browser_answers_counts_only_for_what_it_saw(monkeypatch):
    """An answer about another projection, or from before the server forgot the regions, is no region."""
    answers, told = iter([]), []

    def component(name, parts):
        return lambda **given: told.append(given["data"]) or next(answers) if name == "map" else None

    monkeypatch.setattr(canvas_map.st, "session_state", {})
    monkeypatch.setattr(canvas_map, "_component", component)
    places = place(np.random.default_rng(0).normal(size=(30, 2)))
    ground = ground_parcel(places, ["x"] * 30)
    shape = [["lasso", [0, 1, 1], [0, 0, 1]]]

    def show(answer, scope="pca"):
        nonlocal answers
        answers = iter([answer])
        found = canvas_map.canvas_map("m", scope, ground, places, [None], alt="")
        return len(found.regions), found.picked

    drawn = {"drawn": {"scope": "pca", "cleared": 0, "regions": shape}}
    assert show({}) == (0, None) and show(drawn) == (1, None)
    # a page that was left and opened again has no answer yet: what is remembered goes to the browser
    assert show({}) == (1, None) and told[-1]["regions"] == [["lasso", [0, 1, 1], [0, 0, 1]]]
    assert show(drawn, scope="umap") == (0, None)
    assert show(drawn) == (1, None)
    canvas_map.clear("m")
    assert show(drawn) == (0, None) and told[-1]["cleared"] == 1
    for picked, row in ((7, 7), (30, None), (-1, None), ("7", None), (None, None)):
        assert show({"picked": picked}) == (0, row)
