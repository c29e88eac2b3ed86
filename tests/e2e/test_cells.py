"""A press on a cell of the heat-map of clusters shows the samples of its clusters alone."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from datamask.dashboard.linked import topics
from datamask.runs.store import RunStore
from tests.e2e.serving import STILL, served
from tests.e2e.test_axe import stored

CLUSTERS = 12


@pytest.mark.timeout(400)
def test_a_pressed_cell_opens_its_texts(tmp_path, browser_page: Page):
    page = browser_page
    opening, run = stored(tmp_path)
    codes = (np.arange(len(opening.corpus)) % CLUSTERS).astype(np.int32)
    names = tuple(f"topic {number}" for number in range(CLUSTERS))
    topics.stored_topics(opening.corpus, RunStore(tmp_path / "runs").cache_dir).keep(topics.Topics(codes, names))
    with served(tmp_path) as address:
        page.goto(f"{address}/?corpus={opening.key}&run={run.id}")
        main = page.get_by_test_id("stMain")
        main.get_by_role("tab", name="Under- and over-represented", exact=True).click()
        cells = page.locator(".st-key-explore_heat .point")
        expect(cells).to_have_count(4)
        page.wait_for_function(STILL)
        words = page.locator(".st-key-explore_heat .js-plotly-plot").evaluate("chart => chart.data[0].hovertext[0]")
        count = re.search(r"rows: ([\d,]+)", words).group(1)
        shown = main.get_by_text(re.compile(rf"^{count} of 240 rows shown"))
        # by its place: the words on a cell lie over it; what is drawn above may still move it, also while it is pressed
        for attempt in range(20):
            cells.first.scroll_into_view_if_needed()
            place = cells.first.bounding_box()
            page.mouse.move(place["x"] + 8 + attempt % 2, place["y"] + 8)
            with contextlib.suppress(AssertionError):
                expect(page.locator(".st-key-explore_heat .hoverlayer .hovertext")).to_be_visible(timeout=3_000)
                page.mouse.down()
                page.mouse.up()
                expect(shown).to_be_visible(timeout=12_000)
                break
        expect(shown).to_be_visible()
