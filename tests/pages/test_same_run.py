"""Which run a page opens on where its address names none: the same one on Map, Runs and Export."""

from __future__ import annotations

import pytest

from tests.making.runs import finish_run
from tests.pages.reading import ticked, titles


@pytest.fixture
def swept(opened, store):
    """Makes points of one sweep; the newest is its end, at quality alone."""

    def make(*lambdas: float) -> None:
        for lamb in lambdas:
            run = finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name=f"λ {lamb:g}", lamb=lamb)
            with run.writer() as writer:
                writer.update_facts(sweep="sweep-a")

    return make


def shown(page, opened, **parameters):
    """The name of the run that each page opens on, by a session of its own each."""
    at_map = page(corpus=opened.key, **parameters)
    at_runs = page("pages/runs.py", corpus=opened.key, **parameters)
    at_export = page("pages/export.py", corpus=opened.key, **parameters)
    (chosen,) = [menu for menu in at_export.selectbox if menu.label == "Run"]
    return [titles(at_map)[0].removeprefix("Selected by "), *ticked(at_runs), chosen.value]


def test_all_pages_open_on_one_run_and_on_no_end_of_a_sweep(page, opened, store, mapped, swept):
    swept(0.0, 0.4, 0.6, 1.0)
    by_name = {run.config.name: run.id for run in store.list()}
    assert shown(page, opened) == ["λ 0.6", "λ 0.6", by_name["λ 0.6"]]
    alone = finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name="alone", lamb=0.3)
    swept(0.1, 1.0)
    assert shown(page, opened) == ["alone", "alone", alone.id]
    # one that has found nothing yet is no run to open on while another has
    store.create(alone.config)
    assert shown(page, opened) == ["alone", "alone", alone.id]
    assert shown(page, opened, run=by_name["λ 1"]) == ["λ 1", "λ 1", by_name["λ 1"]]


def test_a_run_that_ends_meanwhile_does_not_take_the_place_of_the_one_that_is_shown(page, opened, store, mapped):
    finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name="before", lamb=0.3)
    app = page(corpus=opened.key)
    finish_run(store, opened.corpus, opened.config, -opened.corpus.quality, name="after", lamb=0.3)
    assert titles(app.run()) == ["Selected by before"]
    assert ticked(app.switch_page("pages/runs.py").run()) == ["before"]
    assert titles(app.switch_page("app.py").run()) == ["Selected by before"]
    (before,) = [run for run in store.list() if run.config.name == "before"]
    before.relabel(archived=True)
    assert titles(app.run()) == ["Selected by before"]
    assert titles(page(corpus=opened.key)) == ["Selected by after"]
