"""A run watched in a real browser until it ends: its address, a reload, and a curve that grows by itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from datamask.dashboard.data.openings import openings
from datamask.dashboard.shell.tables import ROW
from datamask.runs.store import RunStore
from tests.e2e.serving import FAILED, STILL, served
from tests.e2e.steps import named
from tests.making.runs import finish_run, write_shard

LONG = 240_000
LINES = '.st-key-live_run [data-testid="stVegaLiteChart"] path[d]'
DRAWN = "lines => lines.map(line => line.getAttribute('d')).join(' ')"
"""The lines of a chart, as they are drawn."""


@pytest.mark.timeout(900)
def test_the_address_names_the_run_when_it_ends_and_a_reload_shows_it_again(tmp_path, browser_page: Page):
    opening = openings(tmp_path / "runs").start(write_shard(tmp_path / "shard.parquet"), "shard")
    opening.wait(LONG / 1000)
    store = RunStore(tmp_path / "runs")
    other = finish_run(store, opening.corpus, opening.config, opening.corpus.quality, name="another one")
    page = browser_page
    with served(tmp_path, DATAMASK_ROOTS=str(tmp_path)) as address:
        page.goto(f"{address}/runs?corpus={opening.key}")
        page.get_by_role("button", name="Solve", exact=True).click()
        done = page.locator("[data-testid=stCaptionContainer]").filter(has_text=re.compile("of the rows")).last
        expect(done).not_to_contain_text("another one", timeout=LONG)
        run = next(run for run in store.list() if run.config.name != "another one")
        expect(done).to_contain_text(run.config.name, timeout=LONG)
        expect(page.get_by_role("button", name="Copy settings to the form")).to_be_visible()
        page.get_by_role("radio", name="Diversity").or_(page.get_by_role("button", name="Diversity")).first.click()
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        # watched first; within a second of its end it is the current selection
        expect(page).to_have_url(re.compile(rf"[?&]run={run.id}"), timeout=LONG)
        page.reload()
        expect(done).to_contain_text(run.config.name, timeout=LONG)
        assert named(page) == run.id

        # a click on a row shows that run, a tick draws both, and a run is a step of Back
        table = page.get_by_test_id("stDataFrame").first
        page.wait_for_function(STILL)
        steps = page.evaluate("history.length")
        table.click(position={"x": 120, "y": 2.5 * ROW})
        expect(done).to_contain_text("another one", timeout=LONG)
        assert named(page) == other.id and page.evaluate("history.length") == steps + 1
        page.wait_for_function(STILL)
        table.click(position={"x": 18, "y": 1.5 * ROW})
        expect(page.get_by_test_id("stMain").get_by_role("link", name="Compare").last).to_be_visible(timeout=LONG)
        expect(page.get_by_text("another one has no curve")).to_be_visible()
        page.wait_for_function(STILL)
        page.go_back()
        expect(done).to_contain_text(run.config.name, timeout=LONG)
        assert named(page) == run.id
        expect(page.locator(FAILED)).to_have_count(0)

        # a run that learns until it is stopped
        page.get_by_text("Settings of Learn masks").click()
        steps = page.get_by_role("spinbutton", name=re.compile("^Maximum steps"))
        steps.fill("1000000")
        steps.press("Enter")
        page.wait_for_function(STILL)
        page.get_by_role("button", name="Learn masks", exact=True).click()
        expect(page.locator(LINES).first).to_be_visible()
        before = page.locator(LINES).evaluate_all(DRAWN)
        page.wait_for_function(f"before => ({DRAWN})([...document.querySelectorAll({LINES!r})]) !== before", arg=before)
        assert store.list()[0].status().state == "running"
        page.locator(".st-key-live_run").get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_text(re.compile("This run was stopped"))).to_be_visible()
