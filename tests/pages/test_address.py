"""A copied address brings the view back, also as the first request; what is wrong in it is left out."""

from __future__ import annotations

import pytest

from datamask.dashboard.ui import address
from tests.dashboard.made_runs import finish_run

SCRIPTS = {"Explore": "pages/explore.py", "Frontier": "pages/frontier.py", "Compare": "pages/compare.py"}


@pytest.fixture
def runs(store, opened, mapped):
    corpus = opened.corpus
    return [finish_run(store, corpus, opened.config, scores, name=name, objective="pairwise", lamb=lamb)
            for name, scores, lamb in (("one", corpus.quality, 0.9), ("two", -corpus.quality, 0.1))]


def test_explore_comes_back(page, opened, runs):
    asked = {"left": "source", "middle": "length", "layout": "PCA", "marks": "hexagons", "tab": "Distributions"}
    app = page(SCRIPTS["Explore"], corpus=opened.key, run=runs[0].id, **asked)
    assert app.selectbox(key="explore_left").value == "source"
    assert app.session_state["explore_layout"] == "PCA" and app.session_state["explore_tab"] == "Distributions"
    app.run()
    assert {name: app.query_params[name] for name in asked} == asked
    # from then on the address follows
    app.selectbox(key="explore_left").set_value("quality").run()
    assert "left" not in app.query_params and app.query_params["middle"] == "length"


def test_compare_comes_back_with_its_runs(page, opened, runs):
    second, first = (run.id for run in runs)
    asked = {"runs": f"{first},{second}", "draw": "selected", "tab": "Values"}
    app = page(SCRIPTS["Compare"], corpus=opened.key, **asked)
    assert app.multiselect(key="compare").value == [first, second]
    app.run()
    assert {name: app.query_params[name] for name in asked} == asked


def test_frontier_comes_back(page, opened, runs):
    app = page(SCRIPTS["Frontier"], corpus=opened.key, view="Transfer", ratio="0.2")
    assert app.session_state["frontier_view"] == "Transfer" and app.number_input(key="frontier_ratio").value == 0.2
    app.run()
    assert app.query_params["view"] == "Transfer" and app.query_params["ratio"] == "0.2"


@pytest.mark.parametrize("name", SCRIPTS)
def test_whatever_stands_in_the_address_the_page_is_drawn(page, opened, runs, name):
    nonsense = dict.fromkeys(address.PARTS[name], "<b>nan</b>")
    app = page(SCRIPTS[name], corpus=opened.key, run=runs[0].id, **nonsense)
    app.run()
    assert not app.exception and not any("nan" in value for kept in app.query_params.values() for value in [str(kept)])


@pytest.mark.parametrize("text", ["", "a", "nan", "inf", "-0.1", "1.1", "0.5;"])
def test_a_number_out_of_range_is_none(text):
    with pytest.raises(ValueError):
        address.PARTS["Frontier"]["lambda"].read(text)
