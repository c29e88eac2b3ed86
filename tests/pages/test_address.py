"""A copied address brings the view back, also as the first request; what is wrong in it is left out."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.dashboard.frame import address
from datamask.dashboard.frame.frame import PAGES
from datamask.dashboard.map import canvas_map, shared_view
from datamask.dashboard.map.filters import Among, Between
from datamask.dashboard.map.regions import Region
from datamask.dashboard.shell.view import view_of
from tests.making.runs import finish_run
from tests.pages.reading import map_data

SCRIPTS = {title: script for script, title, _ in PAGES if title in address.PARTS}


@pytest.fixture
def runs(store, opened, mapped):
    corpus = opened.corpus
    return [
        finish_run(store, corpus, opened.config, scores, name=name, objective="pairwise", lamb=lamb)
        for name, scores, lamb in (("one", corpus.quality, 0.9), ("two", -corpus.quality, 0.1))
    ]


def test_explore_comes_back(page, opened, runs):
    asked = {"maps": "3", "second": "source", "third": "length", "layout": "PCA", "marks": "hexagons"}
    asked["tab"] = "Under- and over-represented"
    app = page(corpus=opened.key, run=runs[0].id, **asked)
    assert app.selectbox(key="explore_second").value == "source"
    assert app.session_state["explore_layout"] == "PCA" and app.session_state["explore_tab"] == asked["tab"]
    app.run()
    assert {name: app.query_params[name] for name in asked} == asked
    # from then on the address follows
    app.selectbox(key="explore_second").set_value("quality").run()
    assert "second" not in app.query_params and app.query_params["third"] == "length"


def count_shown(app):
    return next(text.value for text in app.markdown if "rows shown" in text.value).split("**")[1]


def test_filters_words_and_region_come_back_and_show_the_same_samples(page, opened, runs, mapped):
    corpus = opened.corpus
    app = page(corpus=opened.key, run=runs[0].id)
    plain = dict(app.query_params)
    app.text_input(key="explore_search").set_value("sample clump").run()
    low = float(np.quantile(corpus.quality, 0.3))
    linked_now = app.session_state["explore_filters"][1].taking(Between("quality", low, 1e9))
    app.session_state["explore_filters"] = (corpus.fingerprint, linked_now.taking(Among("source", ("web", "code"))))
    drawn = Region.lasso([-5, 5, 0.123], [-5, -5, 0.456])  # through the middle of a clump
    app.session_state["explore_map_memory"].regions = (shared_view.rounded(drawn),)
    app.run()
    asked = {name: app.query_params[name] for name in ("where", "search", "region")}
    assert one(asked["search"]) == "sample clump"
    text = corpus.metadata.to_pandas()
    expected = (
        text["source"].isin(["web", "code"]).to_numpy()
        & (corpus.quality >= low)
        & text["text"].str.contains("clump").to_numpy()
    )
    assert 0 < int(count_shown(app)) < expected.sum()

    again = page(**{name: one(value) for name, value in app.query_params.items()})
    assert count_shown(again) == count_shown(app)
    assert [button.label for button in again.button if button.key.startswith("chip_")] == [
        button.label for button in app.button if button.key.startswith("chip_")
    ]
    assert again.text_input(key="explore_search").value == "sample clump"
    again.run()
    assert {name: again.query_params[name] for name in asked} == asked
    # so they do where another page was opened in between, and of another page the address has them too
    elsewhere = page("pages/runs.py", **{name: one(app.query_params[name]) for name in (*asked, "corpus", "run")})
    elsewhere.run()
    assert {name: elsewhere.query_params[name] for name in asked} == asked
    elsewhere.switch_page("app.py")
    assert count_shown(elsewhere.run()) == count_shown(app)
    # a region on another projection means nothing, and nothing filtered leaves a plain address
    other = page(corpus=opened.key, layout="PCA", region=one(asked["region"]))
    assert not [button for button in other.button if button.key == "chip_region"]
    again.button(key="clear_all").click().run()
    assert {name: one(value) for name, value in again.query_params.items()} == {
        name: one(value) for name, value in plain.items()
    }


def test_where_the_map_stood_comes_back_on_its_own_ground(page, opened, runs, mapped):
    fingerprint = opened.corpus.fingerprint
    app = page(corpus=opened.key, run=runs[0].id, at="UMAP.1.5,-2,8")
    assert map_data(app)["sight"] == [1.5, -2.0, 8.0]
    assert one(app.run().query_params["at"]) == "UMAP.1.5,-2,8"
    # what the browser says of a later move takes its place, and nonsense does not
    for told, stands in (("UMAP.2,0,3", "UMAP.2,0,3"), ("UMAP.2,0,nan", "UMAP.2,0,3"), (7, "UMAP.2,0,3"), ("", None)):
        state = {"explore_map_sight": app.session_state["explore_map_sight"]}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(canvas_map.st, "session_state", state)
            canvas_map.take_sight("explore_map", fingerprint, told)
        if stands is None:
            assert "explore_map_sight" not in state
            del app.session_state["explore_map_sight"]
        else:
            app.session_state["explore_map_sight"] = state["explore_map_sight"]
        app.run()
        assert one(app.query_params.get("at")) == stands
    # another projection than that of the address waits with it, another corpus forgets it
    other = page(corpus=opened.key, run=runs[0].id, at="UMAP.1.5,-2,8", layout="PCA")
    assert map_data(other)["sight"] is None and one(other.query_params["at"]) == "UMAP.1.5,-2,8"
    other.session_state["explore_map_sight_of"] = "another corpus"
    other.run()
    assert "at" not in other.run().query_params


def test_the_grouping_comes_back(page, opened, runs):
    app = page(corpus=opened.key, run=runs[0].id, tab="Under- and over-represented", group="length band")
    assert app.selectbox(key="explore_group_by").value == "length band"
    app.selectbox(key="explore_group_by").set_value("source").run()
    assert one(app.query_params["group"]) == "source"


def one(value):
    """What stands in the address under a name; the test's own browser keeps lists."""
    return value[0] if isinstance(value, list) else value


def test_compare_comes_back_with_its_runs(page, opened, runs):
    second, first = (run.id for run in runs)
    asked = {"runs": f"{first},{second}", "draw": "selected", "tab": "Values"}
    app = page("pages/compare.py", corpus=opened.key, **asked)
    assert app.multiselect(key="compare").value == [first, second]
    app.run()
    assert {name: app.query_params[name] for name in asked} == asked


def test_a_sweep_comes_back(page, opened, runs):
    app = page("pages/frontier.py", corpus=opened.key, vary="parts", ratio="0.2")
    assert app.number_input(key="frontier_ratio").value == 0.2 and app.selectbox(key="frontier_vary").value == "parts"
    app.run()
    assert app.query_params["vary"] == "parts" and app.query_params["ratio"] == "0.2"


@pytest.mark.parametrize("name", SCRIPTS)
def test_whatever_stands_in_the_address_the_page_is_drawn(page, opened, runs, name):
    nonsense = dict.fromkeys(set(address.PARTS[name]) - {"search"}, "<b>nan</b>")  # any words can be searched for
    app = page(SCRIPTS[name], corpus=opened.key, run=runs[0].id, **nonsense)
    app.run()
    assert not app.exception and not any("nan" in value for kept in app.query_params.values() for value in [str(kept)])


@pytest.mark.parametrize("text", ["", "a", "nan", "inf", "-0.1", "1.1", "0.5;"])
def test_a_number_out_of_range_is_none(text):
    assert view_of({"lambda": text}).lamb is None
