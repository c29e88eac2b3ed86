"""The sections of pages: each has a heading and an address, and the address and the open tab follow each other."""

from __future__ import annotations

import pytest

from datamask.dashboard.frame import sections
from datamask.dashboard.frame.frame import PAGES
from datamask.dashboard.frame.sections import SECTIONS
from datamask.dashboard.runs import objective_help
from tests.making.runs import finish_run
from tests.pages.reading import menu

EVERY = [(title, section) for title, listed in SECTIONS.items() for section in listed]


def script_of(title: str) -> str:
    return next(script for script, label, _ in PAGES if label == title)


def asked(app) -> dict[str, str]:
    """What stands in the address; the test's own browser keeps lists."""
    return {name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()}


@pytest.mark.parametrize(("title", "section"), EVERY, ids=[section.name for _, section in EVERY])
def test_each_has_its_heading_before_a_corpus_is_open_and_after(page, opened, mapped, title, section, explained):
    for link in ({}, {"corpus": opened.key}):
        app = page(script_of(title), **section.link, **link)
        assert app.title[0].value == sections.heading(title, section.name) and not app.error
        assert asked(app).get("view", "") == section.word
        explained(app)


def test_the_help_of_the_objective_menu_shows_what_each_objective_sees(page, opened):
    app = page("pages/runs.py", corpus=opened.key)
    assert app.selectbox(key="form_objective").help == objective_help.text()


def test_names_and_words_are_told_apart():
    for listed in SECTIONS.values():
        assert listed[0].word == "" and len({section.word for section in listed}) == len(listed)
    names = [section.name for _, section in EVERY]
    assert len(set(names)) == len(names)


def test_the_address_follows_a_tab_and_holds_nothing_of_the_one_before(page, opened, store, mapped):
    runs = [finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name=str(k)) for k in range(2)]
    compared = ",".join(run.id for run in runs)
    app = page("pages/runs.py", view="compare", corpus=opened.key, run=runs[0].id, runs=compared, tab="Values")
    app.session_state["runs_section"] = "Frontier"
    app.run()
    assert asked(app) == {"view": "frontier", "corpus": opened.key, "run": runs[0].id}
    assert app.title[0].value == "Frontier"
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
    assert app.title[0].value == "Runs" and "view" not in menu(app)["Runs"]
    app.query_params["view"] = "sweep"
    app.run()
    assert app.session_state["runs_section"] == "Sweep"


def test_a_word_that_no_section_has_is_taken_off(page, opened):
    app = page("pages/runs.py", view="<b>", corpus=opened.key)
    assert app.title[0].value == "Runs" and "view" not in asked(app)
