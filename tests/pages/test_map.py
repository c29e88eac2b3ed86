"""The Map: what it shows without a corpus, without a run, with one, and with a region drawn on the map."""

from __future__ import annotations

import io
import json
import threading
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from datamask import memo
from datamask.config import CorpusConfig
from datamask.corpus.projections import PROJECTIONS
from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.data.openings import openings
from datamask.dashboard.drawing import words
from datamask.dashboard.linked import (
    best_rows,
    brushing,
    distribution_panel,
    groups_panel,
    names_panel,
)
from datamask.dashboard.linked.facets import class_facet
from datamask.dashboard.map import canvas_map, map_layout, scene, shared_view
from datamask.dashboard.map.filters import Among, Between, Filters, Holding, Rows
from datamask.dashboard.map.parcels import ground_parcel
from datamask.dashboard.map.places import place
from datamask.dashboard.map.regions import Region
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import kept_points, lambda_points, live
from datamask.dashboard.workspace import current as currently
from datamask.runs.stored_measures import stored_agreement
from datamask.work import result_file
from datamask.work.lanes import Priority
from datamask.work.worker import worker
from tests.making.runs import execute_run, finish_run, write_shard
from tests.pages.conftest import REGIONS
from tests.pages.reading import brush, captions, map_data, mixture, parcels, titles, view


@pytest.fixture
def waiting(opened):
    """A map in preparation that never ends by itself."""
    corpus = opened.corpus

    def work(job):
        job.report(0.25, "finding neighbours")
        deadline = time.monotonic() + 280
        while not job.work.stopping() and time.monotonic() < deadline:
            time.sleep(0.02)

    before = worker().find(map_layout.key_of(corpus))
    if before is not None:  # of another test on the same rows
        before.stop()
        before.wait(120)
    job = worker().start(map_layout.key_of(corpus), work, about="UMAP")
    yield job
    job.stop()


def test_without_a_run_the_map_shows_quality_until_there_is_one(page, opened, finished, waiting, explained):
    app = page(corpus=opened.key, maps="2")
    assert titles(app) == ["Similarity to neighbors", "Quality score"]  # the second map is of quality already
    notes = [parcel.get("text") for parcel in parcels(app).values()]
    assert "waits for the neighbors" in notes and "selected" not in [
        facet["name"] for facet in strips(app)[0]["facets"]
    ]
    assert [facet["name"] for facet in strips(app)[0]["facets"]] == ["quality", "length", "source"]
    assert "Start a run to see its selection" in [link.proto.label for link in app.get("page_link")]
    assert app.selectbox(key="explore_run_none").disabled
    assert "PCA: it shows" in captions(app)
    assert preparing(app) == ["UMAP"]
    explained(app, 6)
    finished(name="mine")
    assert titles(app.run()) == ["Selected by mine", "Quality score"]
    # who chose a colour keeps it
    app.selectbox(key="colour").select("quality").run()
    assert titles(app.run())[0] == "Quality score"


def preparing(app) -> list[str]:
    """What is being prepared, of each bar on the page."""
    return [bar.proto.text.split("**")[1].removeprefix("Preparing ") for bar in app.get("progress")]


def test_the_first_minute_has_one_line_with_one_bar(page, opened, live_of_its_own, monkeypatch):
    """There were three kinds of waiting at once, and beside them "Start a run to see its selection"."""
    monkeypatch.setattr(lambda_points, "NEEDED", 45.0)
    over = threading.Event()
    busy = worker().start("busy", lambda job: over.wait(240), device="cpu", priority=Priority.LIVE)
    app = page(corpus=opened.key)
    (behind,) = live._holder().sessions.values()
    layout = worker().find(map_layout.key_of(opened.corpus))
    try:
        assert preparing(app) == ["λ 0.5"]
        assert "solving λ 0.5" in captions(app) and "waiting" not in captions(app) + said_by(app)
        assert "Start a run to see its selection" not in [link.proto.label for link in app.get("page_link")]
        assert (parcels(app)["slider"]["words"], parcels(app)["slider"]["press"]) == ("", "")
        app.button(key="stop_preparing").click().run()
        assert layout.wait(240) and behind.job.wait(240)
        assert (layout.state, behind.job.state) == ("stopped", "stopped")
        app.run()
        assert not app.get("progress") and app.button(key="answer_solve") and app.button(key="layout")
    finally:
        over.set()
        busy.wait(240)


def test_one_map_of_the_selection_unless_more_are_asked_for(page, opened, finished, mapped):
    run = finished(name="mine")
    app = page(corpus=opened.key, run=run.id)
    assert titles(app) == ["Selected by mine"] and "maps" not in app.query_params
    app.get_by_key("maps").set_value("2").run()
    assert titles(app) == ["Selected by mine", "Quality score"]
    app.selectbox(key="second").select("source").run()
    app.get_by_key("maps").set_value("1").run()
    app.get_by_key("maps").set_value("3").run()
    assert titles(app) == ["Selected by mine", "source", "Similarity to neighbors"]
    again = page(corpus=opened.key, run=run.id, maps="3", second="length")
    assert titles(again) == ["Selected by mine", "Length", "Similarity to neighbors"]


def test_a_drawing_finds_each_thing_once_and_sends_no_script(page, opened, store, finished, mapped, monkeypatch):
    """λ was looked up five times, a stored layout was read three times, and components brought their scripts."""
    run = finished(name="mine", objective="pairwise")
    monkeypatch.setattr(memo, "SETTLED_SECONDS", -1.0)
    app, calls = page(corpus=opened.key, run=run.id), Counter()
    for module, name in (
        (currently, "known"),
        (kept_points, "key_of"),
        (live, "key_of"),
        (result_file, "_check_digest"),
    ):
        made = getattr(module, name)
        counted = lambda *given, name=name, made=made, **more: calls.update([name]) or made(*given, **more)  # noqa: E731
        monkeypatch.setattr(module, name, counted)
    app.run()
    # of the problem's name: for the page, and for the solver that is begun
    assert calls["known"] == 1 and calls["key_of"] <= 2 and not calls["_check_digest"]
    sent = [component.proto for component in app.get("bidi_component")]
    assert len(sent) > 2 and all(len(proto.js_content) < 200 and not proto.css_content for proto in sent)


def test_the_map_is_coloured_by_what_the_proof_settles(page, opened, store, mapped):
    options = {"objective": "pairwise", "estimator": "relaxed", "select_ratio": 0.25}
    run = execute_run(store, opened.config, "proved", **options)
    counts = run.status().to_dict()["summary"]["settled"]
    assert counts["inside"] and counts["outside"], "a corpus of which nothing is settled shows nothing"
    app = page(corpus=opened.key, run=run.id, colour="rows by proof")
    drawn = parcels(app)["0"]
    assert titles(app) == ["Rows by proof"]
    assert [said for _, _, said in drawn["key"]] == [
        f"required {counts['inside']:,}",
        f"excluded {counts['outside']:,}",
        f"interchangeable {counts['open']:,}",
    ]
    assert "required rows are in every" in app.selectbox(key="colour").help
    app.get_by_key("marks").set_value("hexagons").run()
    assert titles(app) == ["Share interchangeable"]


def test_the_map_is_coloured_by_how_often_parts_of_the_corpus_select_a_sample(page, opened, store, finished, mapped):
    run = finished(name="mine", objective="facility")
    app = page(corpus=opened.key, run=run.id, colour="stability across subsets", maps="2", second="rows by proof")
    reasons = [parcels(app)[place]["text"] for place in ("0", "1")]
    assert reasons == [
        "not computed yet; see Stability on the Evidence page",
        "the proof of facility classifies no row; the proof of pair-wise similarity does",
    ]
    n = len(opened.corpus)
    selected = np.full(n, 5, np.int32)
    selected[:50], selected[50:60], selected[60:63] = 10, 0, 2
    stored_agreement(run, opened.corpus.fingerprint, store.cache_dir).keep((np.full(n, 10, np.int32), selected))
    app.run()
    assert [said for _, _, said in parcels(app)["0"]["key"]] == [
        "stable, selected 50",
        "stable, not selected 10",
        f"unstable {n - 63}",
        "between 3",
    ]


def test_the_rail_folds_and_nothing_in_it_is_forgotten(page, opened, finished, mapped):
    run = finished(name="mine")
    app = page(corpus=opened.key, run=run.id, colour="source")
    app.text_input(key="explore_search").set_value("sample 11").run()
    app.button(key="explore_fold_button").click().run()
    app.run()
    assert app.session_state["explore_rail"] == "folded"
    assert titles(app) == ["source"] and "**12** of 240 rows shown" in said_by(app)
    app.button(key="explore_unfold_button").click().run()
    assert app.text_input(key="explore_search").value == "sample 11"
    assert app.selectbox(key="explore_run").value == run.id


def test_a_run_without_a_selection_says_why_another_one_is_shown(page, opened, store, finished, mapped):
    done = finished(name="mine")
    failed = store.create(done.config)
    with failed.writer() as writer:
        writer.set_status("failed", error="no room")
    app = page(corpus=opened.key, run=failed.id)
    assert titles(app)[0] == "Selected by mine"
    assert "mine** is not shown: it failed; the Runs page says why. Shown instead: **mine**" in captions(app)


def test_a_column_of_one_value_is_said_in_one_sentence(page, runs_dir, tmp_path):
    write_shard(tmp_path / "shard.parquet")
    table = pq.read_table(tmp_path / "shard.parquet")
    for name, value in (("batch", "only one"), ("level", 1.5)):
        table = table.append_column(name, pa.array([value] * len(table)))
    pq.write_table(table, tmp_path / "shard.parquet")
    opening = openings(runs_dir).start(CorpusConfig((str(tmp_path / "shard.parquet"),)), "constant")
    opening.wait(240)
    app = page(corpus=opening.key)
    assert "is the same in all rows" not in captions(app)
    for name in ("batch", "level"):
        app.selectbox(key="colour").select(name).run()
        said = captions(app).replace("\\", "")
        assert f"{name} is the same in all rows, so it cannot color, filter or group them." in said
        assert not app.exception


def test_every_projection_is_offered_and_one_that_is_kept_is_drawn(page, opened, store, mapped):
    points = np.random.default_rng(1).normal(size=(len(opened.corpus), 2)).astype(np.float32)
    stored_layout(opened.corpus, store.cache_dir, "t-SNE").keep(Layout(points, 0.2, len(opened.corpus)))
    app = page(corpus=opened.key, projection="t-SNE")
    control = app.get_by_key("projection")
    assert [option.content for option in control.proto.options] == list(PROJECTIONS) and control.value == "t-SNE"
    assert all(kind.about in control.proto.help for kind in PROJECTIONS.values())
    assert "t-SNE keeps 3.0 of 15 nearest neighbors" in captions(app)
    assert np.array_equal(parcels(app)["ground"]["rows"], place(points, False).drawn)


def test_another_projection_waits_for_the_one_under_way_and_can_be_stopped(page, opened, waiting):
    app = page(corpus=opened.key, projection="t-SNE")
    assert preparing(app) == ["UMAP"]
    app.button(key="stop_preparing").click().run()
    waiting.wait(120)
    app.run()  # what was stopped is UMAP, so t-SNE begins by itself
    begun = worker().find(waiting.key)
    assert (
        begun is not waiting and begun.about == "t-SNE" and "**Preparing t-SNE**" in app.get("progress")[0].proto.text
    )
    begun.stop()
    begun.wait(120)


def chips(app) -> list[str]:
    return [button.label for button in app.button if (button.key or "").startswith("chip_")]


def said_by(app) -> str:
    return " ".join(text.value for text in app.markdown)


def draw_region(app, region: Region):
    view(app, region=shared_view.region_text("UMAP", [region]))


def reopened(shard, runs_dir, **columns):
    """The shard opened with more columns: ids, quality and features, and so the fingerprint, stay as they were."""
    table = pq.read_table(shard)
    for name, values in columns.items():
        table = table.append_column(name, values)
    pq.write_table(table, shard)
    opening = openings(runs_dir).start(CorpusConfig((str(shard),)), "shard.parquet")
    opening.wait(240)
    assert opening.ready, opening.job.error
    return opening


def strips(app) -> list[dict]:
    """What each of the page's groups of distributions was told: beside the map, the groups there, below the map."""
    return [
        json.loads(component.proto.json)
        for component in app.get("bidi_component")
        if component.proto.component_name == "datamask_strips"
    ]


def key_lines(app, panel: int) -> list[str]:
    """What a panel of the map says its colours mean."""
    return [line[2] for line in parcels(app)[str(panel)]["key"]]


@pytest.mark.parametrize("name", ["search", "region"])
def test_a_column_may_be_called_as_a_view_is(page, shard, runs_dir, name):
    source = pq.read_table(shard)["source"]
    opening = reopened(shard, runs_dir, **{name: source})
    app = page(corpus=opening.key, where=json.dumps([[f"{name} (column)", ["web"]]]))
    count = pc.sum(pc.equal(source.cast("string"), "web")).as_py()
    assert chips(app) == [words.plain(f"{name} (column): web")] and f"**{count}** of 240 rows" in said_by(app)
    app.button(key=f"chip_{name} (column)").click().run()
    assert chips(app) == [] and "of 240 rows" not in said_by(app)


def test_shards_opened_again_with_another_column_show_it(page, opened, store, mapped, shard, runs_dir):
    app = page(corpus=opened.key, maps="2", second="source", tab="Distributions")
    assert titles(app)[1] == "source" and "grade" not in app.selectbox(key="second").options
    before = opened.corpus
    grades = np.array(["low", "high"])[np.arange(240) % 2]
    table = pq.read_table(shard)
    sources = pa.array(np.where(np.arange(240) % 3, "web", "forum"))
    pq.write_table(table.set_column(table.column_names.index("source"), "source", sources), shard)
    opening = reopened(shard, runs_dir, grade=pa.array(grades), weight=pa.array(np.arange(240.0)))
    assert opening.corpus.fingerprint == before.fingerprint and opening.corpus.identity != before.identity
    app = page(corpus=opening.key, maps="3", second="grade", third="source", tab="Distributions")
    assert titles(app)[1:] == ["grade", "source"]
    assert {line.split()[0] for line in key_lines(app, 2)} == {"web", "forum"}
    drawn = {facet["name"]: facet for place in (0, -1) for facet in strips(app)[place]["facets"]}
    assert {"grade", "weight"} <= set(drawn) and set(drawn["source"]["labels"]) == {"web", "forum"}
    app = page(corpus=opening.key, where=json.dumps([["source", ["forum"]]]))
    assert "**80** of 240 rows" in said_by(app)


def test_regions_are_named_and_a_press_on_a_name_shows_its_rows_alone(page, opened, finished, mapped):
    run = finished(name="mine")
    app = page(corpus=opened.key, run=run.id)
    selected = run.rows()["selected"].to_numpy(zero_copy_only=False)
    corners = ((0, 0), (10, 0), (0, 10))
    assert [(code, label) for code, label, *_ in map_data(app)["names"]] == list(enumerate(REGIONS))
    for code, _, x, y, sentence in map_data(app)["names"]:
        assert (x, y) == corners[code]
        kept = f"{words.percent(selected[mapped == code].mean())} of them selected (all rows: "
        assert f"{(mapped == code).sum()} rows, {kept}{words.percent(selected.mean())})" in sentence
    # a press is a filter like any other
    brush(app, Among("UMAP region", REGIONS[1:2]))
    app.run()
    assert map_data(app)["opened"] == [1] and f"**{(mapped == 1).sum()}** of 240 rows" in said_by(app)
    # regions of another layout stay a filter, and are not on its map
    app.get_by_key("projection").set_value("PCA").run()
    assert map_data(app)["opened"] == [] and f"**{(mapped == 1).sum()}** of 240 rows" in said_by(app)


def test_a_press_on_a_name_toggles_its_filter(opened, monkeypatch):
    corpus, ground = opened.corpus, SimpleNamespace(kind="UMAP")
    rows = Rows(240, classes={"UMAP region": ((np.arange(240) % 2).astype(np.int32), ("a", "b"))})
    state: dict[str, object] = {}
    monkeypatch.setattr("streamlit.session_state", state)
    for code, expected in ((1, ("b",)), (0, ("a",)), (0, None)):
        view = brushing.Linked(corpus, rows, brushing.kept(), "key")
        names_panel.press(view, ground, code)
        condition = brushing.kept().of("UMAP region")
        assert (condition.names if condition is not None else None) == expected


def test_a_column_called_as_what_every_corpus_has_is_shown_beside_it(page, opened, store, mapped, shard, runs_dir):
    halves = np.array(["old", "new"])[np.arange(240) % 2]
    opening = reopened(
        shard,
        runs_dir,
        **{"UMAP region": pa.array(halves)},
        selected=pa.array(np.arange(240) % 3 == 0),
        quality=pa.array(np.arange(240.0)),
        length=pa.array(np.where(np.arange(240) % 4, "short", "long")),
    )
    corpus = opening.corpus
    run = finish_run(store, corpus, opening.config, corpus.quality, name="mine")
    app = page(
        "app.py",
        corpus=opening.key,
        run=run.id,
        maps="3",
        second="UMAP region",
        third="UMAP region (column)",
        tab="Distributions",
    )
    offered = app.selectbox(key="second").options
    assert {"quality score", "length", "UMAP region"} <= set(offered)
    assert {f"{name} (column)" for name in ("UMAP region", "selected", "quality", "length")} <= set(offered)
    assert titles(app)[1:] == ["UMAP region", "UMAP region (column)"]
    assert {line.split()[0] for line in key_lines(app, 2)} == {"old", "new"}
    assert any(line.startswith(REGIONS[0]) for line in key_lines(app, 1))
    conditions = (("UMAP region (column)", ("old",)), ("UMAP region", REGIONS[2:]), ("selected", ("selected",)))
    brush(app, *(Among(*condition) for condition in conditions))
    app.selectbox(key="second").select("quality").run()
    app.selectbox(key="third").select("quality (column)").run()
    selected = run.rows()["selected"].to_numpy(zero_copy_only=False)
    expected = np.flatnonzero((mapped == 2) & (halves == "old") & selected)
    assert f"**{len(expected)}** of 240 rows" in said_by(app)
    listed = app.dataframe[0].value.set_index("chunk_id").sort_index()
    assert listed["quality (column)"].tolist() == expected.tolist()
    assert listed["quality"].tolist() == pytest.approx(corpus.quality[expected].tolist())
    assert listed["selected"].all()
    # a quota is on the column of the shards, under its own name
    assert app.selectbox(key="mixture_column_UMAP region").value == "UMAP region", "what is filtered by is first"
    assert set(mixture(app).value["group"]) == {"old", "new"}


def test_views_filter_each_other_on_all_rows(page, opened, finished, mapped):
    corpus = opened.corpus
    run = finished(name="mine")
    app = page(corpus=opened.key, run=run.id)
    assert chips(app) == [] and "of 240 rows" not in said_by(app)
    app.text_input(key="explore_search").set_value("sample clump").run()
    brush(app, Holding("sample clump"), Between("quality", 5.0, 9.0), Among("source", ("web", "code")))
    draw_region(app, Region.box([-5, 5], [-5, 20]))
    table = corpus.metadata.to_pandas()
    others = (
        table["text"].str.contains("sample")
        & table["text"].str.contains("clump")
        & pd.Series(corpus.quality).between(5, 9)
        & table["source"].isin(["web", "code"])
    ).to_numpy()
    inside = others & np.isin(mapped, (0, 2))
    said = ("text contains sample and clump", "quality score 5 to 9", "source: web, code", "region on the map")
    assert chips(app) == [words.plain(label) for label in said]
    assert f"**{inside.sum()}** of 240 rows" in said_by(app)
    run_selected = run.rows()["selected"].to_numpy(zero_copy_only=False)
    # the region dims by itself in the browser; the rest travels
    assert f"**{(inside & run_selected).sum()}** selected" in said_by(app)
    sent = parcels(app)
    assert np.array_equal(sent["dimming"]["bright"] == 255, others[sent["ground"]["rows"]])
    listed = app.dataframe[0].value
    assert sorted(listed["chunk_id"]) == [f"doc-{row:04d}" for row in np.flatnonzero(inside)][:100]
    app.button(key="chip_source").click().run()
    assert "source: web, code" not in chips(app) and len(chips(app)) == 3
    app.button(key="clear_all").click().run()
    assert chips(app) == [] and "of 240 rows" not in said_by(app) and "dimming" not in parcels(app)
    assert app.text_input(key="explore_search").value == ""


def test_distributions_show_what_the_others_let_through(page, opened, finished, mapped):
    run = finished(name="mine")
    app = page(corpus=opened.key, run=run.id)
    app.session_state["tab"] = "Distributions"
    brush(app, Among("source", ("web",)))
    app.run()
    beside, below = ([facet["name"] for facet in strips(app)[place]["facets"]] for place in (0, -1))
    # none of them is drawn twice
    assert beside == ["quality", "length", "similarity to neighbors"] and not set(beside) & set(below)
    drawn = {facet["name"]: facet for place in (0, -1) for facet in strips(app)[place]["facets"]}
    assert {"source", "selected", "score", "marginal diversity in this run"} <= set(below)
    # a number without a unit is told by its percentiles
    ends = [span.removeprefix("percentile ").split(" to ") for span in drawn["score"]["spans"]]
    scores = run.rows()["score"].to_numpy(zero_copy_only=False)
    assert ends[0][0] == "0" and ends[-1][1] == "100" and drawn["score"]["ends"] == ["lowest", "highest"]
    counts = np.cumsum(drawn["score"]["all"])
    assert [float(end) for _, end in ends] == pytest.approx(100 * counts / len(scores), abs=0.5)
    web = mapped == 0
    selected = run.rows()["selected"].to_numpy(zero_copy_only=False)
    assert sum(drawn["quality"]["shown"]) == web.sum() and sum(drawn["quality"]["all"]) == 240
    assert sum(drawn["quality"]["chosen"]) == (web & selected).sum()
    # beside the map are the shares of the groups too
    (shares,) = strips(app)[1]["facets"]
    assert shares["ratio"] == selected.mean() and [shares["labels"][k] for k in shares["brush"]] == ["web"]
    # its own condition does not narrow a distribution
    source = drawn["source"]
    assert sum(source["shown"]) == 240 and [source["labels"][k] for k in source["brush"]] == ["web"]


def test_groups_follow_the_filter_and_the_lasso(page, opened, finished, mapped):
    corpus = opened.corpus
    run = finished(name="mine")
    app = page(corpus=opened.key, run=run.id, tab="Under- and over-represented", group="source")
    low, high = np.quantile(corpus.quality, [0.3, 0.9])
    brush(app, Between("quality", low, high))
    draw_region(app, Region.box([-5, 5], [-5, 20]))
    inside = np.isin(mapped, (0, 2)) & (corpus.quality >= low) & (corpus.quality <= high)
    table = pd.DataFrame(
        {
            "source": corpus.metadata.to_pandas()["source"].astype(str),
            "selected": run.rows()["selected"].to_numpy(zero_copy_only=False),
        }
    )
    expected = table[inside].groupby("source")["selected"].agg(["size", "sum"])
    listed = next(frame.value for frame in app.dataframe if "verdict" in frame.value).set_index("group")
    assert listed["n"].to_dict() == expected["size"].to_dict()
    assert listed["selected"].to_dict() == expected["sum"].to_dict()
    (shares,) = strips(app)[1]["facets"]
    assert dict(zip(shares["labels"], shares["n"])) == expected["size"].to_dict()
    assert shares["ratio"] == table["selected"].mean(), "they are compared with the share of all rows"
    assert f"Counts the {inside.sum():,} rows that the filter shows" in captions(app)
    assert "does not apply" not in captions(app)


def test_a_range_without_a_unit_is_told_by_percentiles(page, opened, finished, mapped):
    run = finished(name="mine")
    scores = run.rows()["score"].to_numpy(zero_copy_only=False).astype(float)
    low, high = np.sort(scores)[[60, 179]]
    app = page(corpus=opened.key, run=run.id)
    brush(app, Between("score", low, high))
    assert chips(app.run()) == [words.plain("score: percentile 25 to 75")]


def test_what_the_browser_brushed_is_checked(page, opened, store, mapped, monkeypatch):
    taken = []
    monkeypatch.setattr(distribution_panel.brushing, "take", lambda condition, name: taken.append(condition))
    facet = class_facet("source", "source", np.array([0, 1, 1]), ("a", "b"))
    view = distribution_panel.Linked(opened.corpus, Rows(3), Filters(), "")
    for answer in (None, "x", {}, {"name": "source"}, {"name": "gone", "bars": [0]}, {"name": "source", "bars": "0"}):
        distribution_panel.brushed(view, [facet], answer)
    assert taken == []
    distribution_panel.brushed(view, [facet], {"name": "source", "bars": [0]})
    distribution_panel.brushed(view, [facet], {"name": "source", "bars": []})
    assert taken == [Among("source", ("b",)), None]


def test_what_the_browser_pressed_among_the_groups_is_checked(opened, monkeypatch):
    taken, read = [], []
    monkeypatch.setattr(groups_panel.brushing, "take", lambda condition, name="": taken.append(condition))
    monkeypatch.setattr(groups_panel.chosen, "choose", lambda corpus, row: read.append(row))
    for answer in (None, "x", {}, {"bars": "0"}, {"bars": None}):
        groups_panel.pressed(opened.corpus, "source", ["web", "code"], answer)
    assert taken == [] and read == []
    groups_panel.pressed(opened.corpus, "source", ["web", "code"], {"bars": [1]})
    groups_panel.pressed(opened.corpus, "source", ["web", "code"], {"bars": []})
    groups_panel.pressed(opened.corpus, "source", ["web", "code"], {"bars": [7, -1, "0"]})
    # a sample that was read makes room for the list of the group
    assert taken == [Among("source", ("code",)), None, None] and read == [None]


@pytest.mark.parametrize("lamb", ["", "0.5"])
def test_rows_are_colored_by_what_each_end_of_lambda_selects_at_every_lambda(page, opened, finished, mapped, lamb):
    corpus = opened.corpus
    diverse, unlike = corpus.features[:, 0], {"objective": "pairwise", "estimator": "relaxed"}
    finished(diverse, lamb=0.0, **unlike)
    run = finished(np.arange(240.0), lamb=0.3, **unlike)
    shown = {"corpus": opened.key, "run": run.id, "colour": best_rows.NAME, **({"lambda": lamb} if lamb else {})}
    assert "needs the selections at λ 0 and λ 1" in parcels(page(**shown))["0"]["text"]
    finished(lamb=1.0, **unlike)
    app = page(**shown)
    sent = parcels(app)["0"]
    table = pd.DataFrame({"quality": corpus.quality, "diverse": diverse})
    best, spread = (table.index.isin(table.nlargest(72, column).index) for column in table)
    counts = table.groupby([best, spread]).size()
    assert [words for _, _, words in sent["key"]] == [
        f"best by quality {counts[True, False]}",
        f"best by diversity {counts[False, True]}",
        f"both {counts[True, True]}",
        f"neither {counts[False, False]}",
    ]
    assert np.array_equal(sent["codes"], (best + 2 * spread)[parcels(app)["ground"]["rows"]])


def test_the_chosen_sample_is_read_beside_the_list_and_kept_in_the_address(page, opened, store, finished, mapped):
    run = finished(name="mine")
    app = page(corpus=opened.key, run=run.id, sample="doc-0007")
    assert app.session_state["view"].sample == "doc-0007"
    assert "doc\\-0007" in said_by(app) and "sample 7 of clump" in app.code[0].value
    points = map_layout.layout(opened.corpus, store.cache_dir).points
    assert map_data(app)["marked"] == [pytest.approx(points[7].tolist())]
    assert "selected · " in captions(app) and "source " in captions(app)
    app.button(key="sample_close").click().run()
    assert not app.code and map_data(app)["marked"] == [] and "sample" not in app.query_params
    other = page(corpus=opened.key, sample="nobody").run()
    assert not other.code and "sample" not in other.query_params


def lists(app) -> list[list[str]]:
    """The ids of each list of samples; other tables stand beside a sample that is read."""
    return [table.value["chunk_id"].tolist() for table in app.dataframe if "chunk_id" in table.value]


def test_one_reads_on_in_the_order_of_the_list_and_from_neighbour_to_neighbour(page, opened, finished, mapped):
    corpus = opened.corpus
    run = finished(np.arange(240.0), name="mine")
    selected = run.rows()["selected"].to_numpy(zero_copy_only=False)
    order = np.argsort(-corpus.quality, kind="stable")
    order = order[selected[order]]
    first, second, third = (f"doc-{row:04d}" for row in order[:3])
    app = page(corpus=opened.key, run=run.id, show="selected", sample=second)
    assert lists(app) == [] and "2 of 72" in captions(app)
    app.button(key="sample_next").click().run()
    assert app.session_state["view"].sample == third and third in str(app.query_params["sample"])
    for _ in range(2):
        app.button(key="sample_previous").click().run()
    assert app.session_state["view"].sample == first and app.button(key="sample_previous").disabled
    # what the filter leaves out can be read as well; the list comes next
    out = int(np.flatnonzero(~selected)[0])
    app = page(corpus=opened.key, run=run.id, show="selected", sample=f"doc-{out:04d}")
    assert "not in the list" in captions(app) and app.button(key="sample_previous").disabled
    near = [button for button in app.button if button.key.startswith("nearest_")]
    near[3].click().run()
    assert app.session_state["view"].sample == f"doc-{int(near[3].key.rpartition('_')[2]):04d}"
    app.button(key="sample_close").click().run()
    assert lists(app)[0][:3] == [first, second, third]
    # the list is left and found again on the page it was opened at
    app.get_by_key("explore_map_which").set_value("all").run()
    app.number_input(key="explore_map_page_3").set_value(2).run()
    (before,) = lists(app)
    app.query_params["sample"] = before[7]
    app.run()
    assert lists(app) == [] and "108 of 240" in captions(app)
    app.button(key="sample_close").click().run()
    assert lists(app) == [before]


def test_downloads_hold_every_row(opened, store):
    corpus = opened.corpus
    selected = np.zeros(len(corpus), bool)
    selected[3] = True
    rows = np.arange(2, 9)
    table = pq.read_table(io.BytesIO(scene.id_file(corpus, rows, ".parquet", selected)))
    assert table.column_names == ["chunk_id", "quality", "selected", "source_file", "source_row"]
    assert table["chunk_id"].to_pylist() == [f"doc-{row:04d}" for row in rows]
    assert table["source_row"].to_pylist() == rows.tolist() and table["selected"].to_pylist().count(True) == 1
    lines = scene.id_file(corpus, rows, ".csv", selected).decode().splitlines()
    assert len(lines) == 8 and lines[1].startswith('"doc-0002",')


def test_what_the_browser_answers_counts_only_for_what_it_saw(monkeypatch, opened):
    """An answer about another projection is no region, and one of another corpus neither."""
    state, told = {}, []
    monkeypatch.setattr(canvas_map.st, "session_state", state)
    monkeypatch.setattr(canvas_map, "component", lambda name, parts: lambda **given: told.append(given))
    places = place(np.random.default_rng(0).normal(size=(30, 2)))
    ground = ground_parcel(places, ["x"] * 30)
    shape = [["lasso", [0, 1, 1], [0, 0, 1]]]

    def show(scope="rows pca"):
        canvas_map.canvas_map("m", opened.corpus, scope, ground, places, [], alt="")
        return len(canvas_map.regions(scope))

    def drawn(scope="rows pca"):
        state["m"] = {"drawn": {"scope": "rows pca", "number": 7, "regions": shape}}
        told[-1]["on_drawn_change"]()
        return show(scope)

    assert show("others pca") == 0 and told[-1]["data"]["heard"] == 0
    assert drawn("others pca") == 0
    assert show() == 0 and drawn() == 1
    # a page that was left and opened again has no answer yet: what the view holds goes to the browser
    assert show() == 1 and told[-1]["data"]["regions"] == [["lasso", [0, 1, 1], [0, 0, 1]]]
    assert told[-1]["data"]["heard"] == 7
    assert show("rows umap") == 0 and told[-1]["data"]["regions"] == []
    # a map of rows that are not open, such as a first look, shows what is drawn on it, and nothing of the view
    before, state["m"] = views.now(), {"drawn": {"scope": "look pca", "number": 8, "regions": shape[:1] * 2}}
    canvas_map.canvas_map("m", opened.corpus, "look pca", ground, places, [], alt="", of_view=False)
    assert len(told[-1]["data"]["regions"]) == 2 and told[-1]["data"]["at"] == ""
    told[-1]["on_drawn_change"]()
    assert views.now() is before


def test_without_a_mark_the_rows_at_the_ends_of_the_selection_are_a_click_away(page, opened, finished, mapped):
    corpus = opened.corpus
    run = finished(np.arange(240.0), name="mine")
    disk = run.rows().to_pandas()
    app = page(corpus=opened.key, run=run.id)
    shown = [int(button.key.removeprefix("extreme_")) for button in app.button if str(button.key).startswith("extreme")]
    left_out = disk[~disk.selected & disk.eligible].score.nlargest(5).index
    assert shown == [*left_out, *disk[disk.selected].score.nsmallest(5).index]
    label = app.button(key=f"extreme_{shown[0]}").label
    assert float(label.split()[1].rstrip("]").replace("\\", "")) == pytest.approx(corpus.quality[shown[0]], rel=0.01)
    app.button(key=f"extreme_{shown[0]}").click().run()
    assert app.session_state["view"].sample == corpus.ids[shown[0]].as_py() and app.code
    # of filtered rows the list comes first
    app = page(corpus=opened.key, run=run.id, search="clump")
    assert not [button for button in app.button if str(button.key).startswith("extreme")]


def test_more_like_a_lasso_shows_the_rows_nearest_to_its_mean_and_can_be_pinned(page, opened, finished, mapped):
    unit = opened.corpus.features.astype(np.float64)
    app = page(corpus=opened.key, run=finished(name="mine").id)
    draw_region(app, Region.box([-5, 5], [-5, 5]))
    app.button(key="more_like").click().run()
    mean = unit[mapped == 0].mean(axis=0)
    cosines = unit @ mean / np.linalg.norm(mean)
    least = app.slider(key="like_least").value
    assert least == np.floor(100 * np.sort(cosines)[-100]) / 100 and "region" not in app.query_params
    for wanted in (least, 0.9):
        app.slider(key="like_least").set_value(wanted).run()
        count = (cosines >= wanted).sum()
        assert f"**{count}** of 240 rows" in said_by(app)
        assert chips(app) == [words.plain(f"cosine {wanted:.2f} or more to {(mapped == 0).sum()} rows")]
    app.button(key="rule_pin").click().run()
    assert app.session_state["view"].rules and f"Pinned {count}" in " ".join(button.label for button in app.button)
    # a link shows the same rows, and nonsense shows all
    again = page(corpus=opened.key, like=app.session_state["view"].like)
    assert f"**{count}** of 240 rows" in said_by(again)
    for text in ("0.9", "2 row doc-0001", "x row doc-0001", "0.9 row nobody", "0.9 region UMAP.x", "0.9 region PCA."):
        assert not chips(page(corpus=opened.key, like=text))
    # of one row
    app = page(corpus=opened.key, sample="doc-0007")
    app.button(key="more_like").click().run()
    assert chips(app)[0].endswith(words.plain("to row doc-0007")) and not app.code
    app.button(key="chip_like").click().run()
    assert chips(app) == []
