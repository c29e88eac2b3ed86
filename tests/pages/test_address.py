"""A copied address brings the view back, also as the first request; what is wrong in it is left out."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.dashboard.frame.frame import PAGES
from datamask.dashboard.map import shared_view
from datamask.dashboard.map.filters import Among, Between, Holding
from datamask.dashboard.map.regions import Region
from datamask.dashboard.shell.view import view_of
from tests.pages.reading import brush, view

SCRIPTS = [script for script, *_ in PAGES]


@pytest.fixture
def runs(finished, opened, mapped):
    corpus = opened.corpus
    return [
        finished(scores, name=name, objective="pairwise", lamb=lamb)
        for name, scores, lamb in (("one", corpus.quality, 0.9), ("two", -corpus.quality, 0.1))
    ]


def test_explore_comes_back(page, opened, runs):
    asked = {"maps": "3", "second": "source", "third": "length", "projection": "PCA", "marks": "hexagons"}
    asked["tab"] = "Under- and over-represented"
    app = page(corpus=opened.key, run=runs[0].id, **asked)
    assert {name: app.session_state[name] for name in asked} == asked


def count_shown(app):
    return next(text.value for text in app.markdown if "rows shown" in text.value).split("**")[1]


def test_filters_words_and_region_come_back_and_show_the_same_samples(page, opened, runs, mapped):
    corpus = opened.corpus
    app = page(corpus=opened.key, run=runs[0].id).run()
    plain = dict(app.query_params)
    app.text_input(key="explore_search").set_value("sample clump").run()
    low = float(np.quantile(corpus.quality, 0.3))
    brush(app, Holding("sample clump"), Between("quality", low, 1e9), Among("source", ("web", "code")))
    drawn = Region.lasso([-5, 5, 0.123], [-5, -5, 0.456])  # through the middle of a clump
    view(app, region=shared_view.region_text("UMAP", [drawn]))
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
    other = page(corpus=opened.key, projection="PCA", region=one(asked["region"]))
    assert not [button for button in other.button if button.key == "chip_region"]
    again.button(key="clear_all").click().run()
    assert {name: one(value) for name, value in again.query_params.items()} == {
        name: one(value) for name, value in plain.items()
    }


def one(value):
    """What stands in the address under a name; the test's own browser keeps lists."""
    return value[0] if isinstance(value, list) else value


@pytest.mark.parametrize("script", SCRIPTS)
def test_whatever_stands_in_the_address_the_page_is_drawn(page, opened, runs, script):
    names = ("maps", "second", "marks", "where", "region", "at", "runs", "vary", "ratio", "select_ratio")
    nonsense = dict.fromkeys(names, "<b>nan</b>")
    app = page(script, corpus=opened.key, run=runs[0].id, **nonsense)
    app.run()
    assert not app.exception and not [chip for chip in app.button if chip.key.startswith("chip_")]


@pytest.mark.parametrize("text", ["", "a", "nan", "inf", "-0.1", "1.1", "0.5;"])
def test_a_number_out_of_range_is_none(text):
    assert view_of({"lambda": text}).lamb is None
