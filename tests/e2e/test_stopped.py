"""A page whose server has stopped says so in one sentence, in the program's own words."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.serving import STILL, served


@pytest.mark.timeout(600)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])  # Streamlit's own words differ
def test_a_server_that_stopped_is_said_in_one_sentence(tmp_path, browser_page: Page, host):
    page = browser_page
    with served(tmp_path) as address:
        page.goto(f"{address.replace('127.0.0.1', host)}/data")
        expect(page.get_by_test_id("stMain").get_by_text("Source", exact=True)).to_be_visible()
        page.wait_for_function(STILL)
    said = page.get_by_role("dialog")
    expect(said).to_contain_text(re.compile("server does not answer.*reload this page"))
    expect(said).not_to_contain_text("Streamlit")
    expect(said.locator("pre")).not_to_be_visible()
