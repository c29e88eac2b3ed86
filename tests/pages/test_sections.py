"""The sections of pages: each has a question and an address, and the address and the open tab follow each other."""

from __future__ import annotations

import pytest

from datamask.dashboard.analyses.toy import solving as toy
from datamask.dashboard.drawing import words
from datamask.dashboard.frame.frame import PAGES
from datamask.dashboard.frame.sections import SECTIONS
from tests.dashboard.made_runs import finish_run
from tests.pages.reading import menu

EVERY = [(title, section) for title, sections in SECTIONS.items() for section in sections]


def script_of(title: str) -> str:
    return next(script for script, label, _ in PAGES if label == title)


def asked(app) -> dict[str, str]:
    """What stands in the address; the test's own browser keeps lists."""
    return {name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()}


@pytest.fixture
def solved(store):
    """The toy of the Lab, so that no page begins to solve it."""
    toy.start(store.cache_dir).wait(240)
    assert toy.load(store.cache_dir) is not None


@pytest.mark.parametrize(("title", "section"), EVERY, ids=[section.name for _, section in EVERY])
def test_each_has_its_question_before_a_corpus_is_open_and_after(
    page, opened, mapped, title, section, explained, request
):
    if section.name == "Objectives":
        request.getfixturevalue("solved")
    for link in ({}, {"corpus": opened.key}):
        app = page(script_of(title), **section.link, **link)
        assert app.title[0].value == section.question and not app.error
        assert asked(app).get("view", "") == section.word
        explained(app)


def test_what_each_objective_sees_is_drawn_without_a_corpus(page, store, solved):
    app = page("pages/lab.py")
    assert len(app.get("plotly_chart")) == 1 and "Selected share of each group" in app.caption[-1].value
    planted, table = toy.load(store.cache_dir), app.dataframe[0].value
    for name, title in toy.TITLES.items():
        shares = [planted.masks[name][planted.group == group].mean() for group in range(planted.group.max() + 1)]
        assert table[title].tolist() == [words.percent(share) for share in shares]


def test_names_and_words_are_told_apart():
    for sections in SECTIONS.values():
        assert sections[0].word == "" and len({section.word for section in sections}) == len(sections)
    names = [section.name for _, section in EVERY]
    assert len(set(names)) == len(names)


def test_the_address_follows_a_tab_and_holds_nothing_of_the_one_before(page, opened, store, mapped):
    runs = [finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name=str(k)) for k in range(2)]
    compared = ",".join(run.id for run in runs)
    app = page("pages/runs.py", view="compare", corpus=opened.key, run=runs[0].id, runs=compared, tab="Values")
    app.session_state["runs_section"] = "Frontier"
    app.run()
    assert asked(app) == {"view": "frontier", "corpus": opened.key, "run": runs[0].id}
    assert app.title[0].value == "What does lambda cost?"
    app.session_state["runs_section"] = "Compare"
    app.run()
    assert asked(app)["view"] == "compare" and asked(app)["tab"] == "Values" and asked(app)["runs"] == compared


def test_a_link_leads_where_its_address_says_whatever_was_open(page, opened):
    app = page("pages/runs.py", view="frontier", corpus=opened.key)
    assert f"corpus={opened.key}" in menu(app)["Runs"] and "view=frontier" in menu(app)["Runs"]
    assert "view" not in menu(app)["Map"]
    # as a link to the first section, or a step back to it
    del app.query_params["view"]
    app.run()
    assert app.title[0].value == SECTIONS["Runs"][0].question and "view" not in menu(app)["Runs"]
    app.query_params["view"] = "live"
    app.run()
    assert app.session_state["runs_section"] == "Live λ"


def test_a_word_that_no_section_has_is_taken_off(page, opened):
    app = page("pages/runs.py", view="<b>", corpus=opened.key)
    assert app.title[0].value == SECTIONS["Runs"][0].question and "view" not in asked(app)
