"""The table of runs on the Run page: what a tick or a click shows, and what can be done with the ticked runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from datamask.analyses.curves.tables import SUBSET
from datamask.config import CorpusConfig, RunConfig
from tests.pages.reading import follow, runs_table, tick, ticked

pytestmark = pytest.mark.usefixtures("idle_queue")


def said(app) -> str:
    kinds = ("markdown", "caption", "error", "warning", "info")
    return " ".join(element.value for kind in kinds for element in app.get(kind)).replace("\u00a0", " ")


@pytest.fixture
def made(opened, finished):
    """Three finished runs, by name."""
    return {name: finished(name=name, lamb=lamb) for name, lamb in (("one", 0.2), ("two", 0.5), ("three", 0.8))}


def curve_of_several(app):
    """What the chart of several runs draws, by name; None: another chart, or none."""
    for chart in app.get("vega_lite_chart"):
        layers = json.loads(chart.proto.spec).get("layer", [])
        for layer in layers:
            scale = layer.get("encoding", {}).get("strokeDash", {}).get("scale", {})
            if SUBSET not in scale.get("domain", [SUBSET]):
                return scale["domain"]
    return None


def test_a_tick_shows_a_run_several_are_drawn_together_and_a_click_shows_one_again(page, opened, made, explained):
    app = page("pages/runs.py", corpus=opened.key)
    assert ticked(app) == ["three"] and curve_of_several(app) is None
    tick(app, "two")
    assert app.query_params["run"] == made["two"].id and "**two**" in said(app)
    tick(app, "two", "one")
    assert curve_of_several(app) == ["two", "one"] and app.query_params["run"] == made["two"].id
    assert "computed at λ" in said(app) and not app.metric
    explained(app, 15)
    tick(app, "two", "one", clicked="three")
    assert ticked(app) == ["three"] and app.query_params["run"] == made["three"].id and curve_of_several(app) is None


def test_another_run_in_the_address_is_the_ticked_one(page, opened, made):
    app = page("pages/runs.py", corpus=opened.key, run=made["one"].id)
    tick(app, "one", "two")
    app.query_params["run"] = made["three"].id  # as a press of Back does
    app.run()
    assert ticked(app) == ["three"] and "**three**" in said(app)


def test_nothing_ticked_shows_the_run_of_the_address(page, opened, made):
    app = page("pages/runs.py", corpus=opened.key, run=made["one"].id)
    tick(app)
    assert ticked(app) == [] and "**one**" in said(app) and app.query_params["run"] == made["one"].id


def test_runs_are_found_and_ticked_ones_stay(page, opened, made):
    made["one"].relabel(tags=["paper"])
    app = page("pages/runs.py", corpus=opened.key, run=made["three"].id)
    app.text_input(key="runs_find").set_value("PAPER").run()
    assert set(runs_table(app)["name"]) == {"one", "three"} and ticked(app) == ["three"]
    # its place in the table is another one now
    tick(app, "one")
    assert ticked(app) == ["one"] and app.query_params["run"] == made["one"].id
    app.run()
    assert runs_table(app)["name"].tolist() == ["one"] and ticked(app) == ["one"]


def test_compare_opens_with_the_ticked_ones(page, opened, made, mapped):
    app = page("pages/runs.py", corpus=opened.key)
    tick(app, "three", "one")
    compare = follow(page, app, "Compare", at=1)
    assert compare.title[0].value == "Compare"
    assert compare.multiselect(key="compare").value == [made["three"].id, made["one"].id]


def test_archived_runs_leave_the_table_and_come_back(page, opened, made):
    app = page("pages/runs.py", corpus=opened.key)
    tick(app, "three", "one")
    app.button(key="archive_ticked").click().run()
    assert not app.exception and runs_table(app)["name"].tolist() == ["two"] and ticked(app) == ["two"]
    assert made["one"].label().archived and made["three"].label().archived
    app.toggle(key="runs_archived").set_value(True).run()
    assert runs_table(app)["name"].tolist() == ["three", "two", "one"]
    tick(app, "one")
    assert app.button(key="archive_ticked").label == "Bring back"
    app.button(key="archive_ticked").click().run()
    assert not made["one"].label().archived and made["three"].label().archived


def test_where_all_runs_are_archived_they_can_be_listed_all_the_same(page, opened, made):
    for run in made.values():
        run.relabel(archived=True)
    app = page("pages/runs.py", corpus=opened.key)
    assert "No run on this corpus yet" in [heading.value for heading in app.subheader] and not app.dataframe
    app.toggle(key="runs_archived").set_value(True).run()
    assert set(runs_table(app)["name"]) == set(made) and not app.exception


def test_deleted_runs_are_gone_until_that_is_undone(page, opened, store, made):
    app = page("pages/runs.py", corpus=opened.key)
    tick(app, "three", "one")
    app.button(key="remove_run").click().run()
    assert not app.exception and {run.config.name for run in store.list()} == {"two"}
    assert runs_table(app)["name"].tolist() == ["two"] and ticked(app) == ["two"]
    app.button(key="undo_delete").click().run()
    assert not app.exception and {run.config.name for run in store.list()} == set(made)
    assert made["three"].status().state == "done" and not store.deleted()


def test_any_run_of_the_last_day_can_be_taken_back_by_name_even_if_it_was_the_only_one(page, opened, store, finished):
    run = finished(name="only")
    store.discard(run.id)
    app = page("pages/runs.py", corpus=opened.key)
    assert "No run on this corpus yet" in [heading.value for heading in app.subheader]
    app.multiselect(key="restore_runs").set_value([run.id]).run()
    app.button(key="restore").click().run()
    assert not app.exception and runs_table(app)["name"].tolist() == ["only"] and app.query_params["run"] == run.id


def test_what_is_at_work_cannot_be_deleted_and_one_that_was_taken_meanwhile_is_said(page, opened, store, made):
    app = page("pages/runs.py", corpus=opened.key, run=made["one"].id)
    with made["one"].writer() as writer:
        app.button(key="remove_run").click().run()
        assert "is running" in said(app) and len(store.list()) == 3
        writer.set_status("running")
        app = page("pages/runs.py", corpus=opened.key, run=made["one"].id)
        assert app.button(key="remove_run").disabled
        writer.finish("stopped")


def test_runs_of_all_corpora_name_theirs_and_a_damaged_one_says_what_is_wrong(page, opened, store, made):
    other = store.create(RunConfig(CorpusConfig(("elsewhere.parquet",)), name="of another corpus"))
    (other.path / "config.json").write_text("{")
    shutil.copytree(Path(__file__).parents[1] / "runs" / "version_0_3" / "earlier", store.root / "earlier")
    app = page("pages/runs.py", corpus=opened.key)
    assert other.id not in runs_table(app).index and "corpus" not in runs_table(app)
    app.toggle(key="runs_everywhere").set_value(True).run()
    assert "5 runs on all corpora" in said(app)
    frame = runs_table(app)
    assert frame.loc[made["one"].id, "corpus"] == "shard.parquet" and frame.loc[other.id, "state"] == "failed"
    assert frame.loc["earlier", "state"] == "made by another version of datamask"
    tick(app, other.id)
    assert any("its record is damaged" in error.value for error in app.error)
    tick(app, "earlier")
    assert any("it was made by another version of datamask" in error.value for error in app.error)


def test_two_hundred_runs_are_one_table(page, opened, store):
    for place in range(200):
        run = store.create(RunConfig(opened.config, name=f"run {place}"))
        with run.writer() as writer:
            writer.finish("stopped", step=place)
    app = page("pages/runs.py", corpus=opened.key)
    assert len(runs_table(app)) == 200
    tick(app, "run 7")
    assert "**run 7**" in said(app)
