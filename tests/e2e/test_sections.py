"""Sections of a page in a real browser: their addresses, Back and a reload."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from datamask.dashboard.data.openings import openings
from datamask.runs.store import RunStore
from tests.e2e.serving import FAILED, STILL, served
from tests.e2e.steps import choose
from tests.making.runs import finish_run, write_shard

LONG = 240_000
RUNS, FRONTIER = "Runs", "Frontier"
MAP = "Map"


def at(page: Page, question: str, path: str, **asked: str) -> None:
    """Wait until the page with that question stands still, and look at its address."""
    expect(page.get_by_role("heading", level=1, name=question, exact=True)).to_be_visible()
    page.wait_for_function(STILL)
    there = urlsplit(page.url)
    assert there.path == path and dict(parse_qsl(there.query)) == asked
    expect(page.locator(FAILED)).to_have_count(0)


@pytest.mark.timeout(900)
def test_back_and_a_reload_find_the_section(tmp_path, browser_page: Page):
    opening = openings(tmp_path / "runs").start(write_shard(tmp_path / "shard.parquet"), "shard")
    opening.wait(LONG / 1000)
    store, corpus = RunStore(tmp_path / "runs"), opening.corpus
    run, other = (finish_run(store, corpus, opening.config, corpus.quality, name=name) for name in ("one", "two"))
    page, here = browser_page, {"corpus": opening.key, "run": run.id}
    tab = lambda name: page.get_by_role("tab", name=name, exact=True)  # noqa: E731 - short, and used on every line
    menu = page.locator(".st-key-menu")
    with served(tmp_path, DATAMASK_ROOTS=str(tmp_path)) as address:
        page.goto(f"{address}/runs?view=frontier&corpus={opening.key}&run={run.id}")
        at(page, FRONTIER, "/runs", view="frontier", **here)
        tab("All runs").click()
        at(page, RUNS, "/runs", **here)
        page.go_back()
        at(page, FRONTIER, "/runs", view="frontier", **here)
        expect(tab("Frontier")).to_have_attribute("aria-selected", "true")
        page.reload()
        at(page, FRONTIER, "/runs", view="frontier", **here)
        # by the menu elsewhere and back: the section is the one that was open; a button beside the picture leads away
        menu.get_by_role("link", name="Export").click()
        at(page, "Export", "/export", **here)
        menu.get_by_role("link", name="Runs").click()
        at(page, FRONTIER, "/runs", view="frontier", **here)
        page.get_by_role("button", name="Open the run").click()
        at(page, RUNS, "/runs", **here)
        expect(tab("All runs")).to_have_attribute("aria-selected", "true")
        page.go_back()
        at(page, FRONTIER, "/runs", view="frontier", **here)

        # a colour or a search is no step of Back, another run is one
        menu.get_by_role("link", name="Map").click()
        expect(page).to_have_url(re.compile("marks=points"))
        at(page, MAP, "/", marks="points", **here)
        steps, chosen = page.evaluate("history.length"), {"marks": "points", "colour": "quality", "search": "text"}
        choose(page, "Color by", "quality score")
        expect(page).to_have_url(re.compile("colour=quality"))
        page.get_by_role("textbox", name="Search the texts").fill("text")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("search=text"))
        at(page, MAP, "/", **chosen, **here)
        assert page.evaluate("history.length") == steps
        choose(page, "Selected by", "two")
        expect(page).to_have_url(re.compile(f"run={other.id}"))
        at(page, MAP, "/", **chosen, **{**here, "run": other.id})
        page.go_back()
        expect(page).to_have_url(re.compile(f"run={run.id}"))
        at(page, MAP, "/", **chosen, **here)
        page.go_back()
        # the search is a condition of all pages
        at(page, FRONTIER, "/runs", view="frontier", search="text", **here)
