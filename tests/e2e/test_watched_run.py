"""A run watched in a real browser until it ends: the address names it all the time, and a reload shows it again."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from datamask.dashboard.openings import openings
from datamask.runs.store import RunStore
from tests.dashboard.made_runs import finish_run, write_shard
from tests.e2e.serving import FAILED, served
from tests.e2e.test_walk import browser_page  # noqa: F401 - a fixture

LONG = 240_000


def named(page: Page) -> str:
    """The run in the address."""
    return parse_qs(urlsplit(page.url).query)["run"][0]


@pytest.mark.timeout(900)
def test_the_address_names_the_run_when_it_ends_and_a_reload_shows_it_again(tmp_path, browser_page: Page):  # noqa: F811
    opening = openings(tmp_path / "runs").start(write_shard(tmp_path / "shard.parquet"), "shard")
    opening.wait(LONG / 1000)
    store = RunStore(tmp_path / "runs")
    finish_run(store, opening.corpus, opening.config, opening.corpus.quality, name="another one")
    page = browser_page
    with served(tmp_path, DATAMASK_ROOTS=str(tmp_path)) as address:
        page.goto(f"{address}/run?corpus={opening.key}")
        page.get_by_role("button", name="Start", exact=True).click()
        menu = page.get_by_role("combobox", name="Run", exact=True)
        expect(page).to_have_url(re.compile("run="), timeout=LONG)
        run = next(run for run in store.list() if run.config.name != "another one")
        expect(menu).not_to_have_value(re.compile("another one"), timeout=LONG)
        expect(menu).to_have_value(re.compile("done"), timeout=LONG)
        expect(page.get_by_role("button", name="Copy to the form")).to_be_visible()
        # whatever the page sends next, it sends the words of the menu along
        page.get_by_role("radio", name="Diversity").or_(page.get_by_role("button", name="Diversity")).first.click()
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        assert named(page) == run.id
        page.reload()
        expect(menu).not_to_have_value(re.compile("another one"), timeout=LONG)
        expect(menu).to_have_value(re.compile("done"), timeout=LONG)
        assert named(page) == run.id
        expect(page.locator(FAILED)).to_have_count(0)
