"""The eight tasks of a visitor, in as few clicks as were promised; what is taken home is what was pinned and solved."""

from __future__ import annotations

import re

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.runs.store import Run, RunStore
from tests.e2e.serving import STILL, served
from tests.e2e.steps import lasso, named, saved
from tests.e2e.test_one_selection import drag, expect_soon, followed, solved_along
from tests.e2e.test_walkthrough import without_umap
from tests.e2e.walkthrough import Walk, write_shards

TASKS = {"open": 4, "see": 0, "why": 1, "another λ": 1, "run": 1, "compare": 2, "pin and run": 3, "export": 1}
"""Clicks; dragging, drawing and choosing files are one each. By a path it is five, with its code."""

MARK = """map => {
  const held = map.held, { points, rows } = held.ground, box = held.panels[0].stage.getBoundingClientRect();
  const places = [...rows.keys()].map((i) => [held.toX(points[2 * i]), held.toY(points[2 * i + 1])]);
  const off = ([x, y]) => Math.hypot(x - held.width / 2, y - held.height / 2);
  const [x, y] = places.reduce((best, place) => off(place) < off(best) ? place : best);
  return [box.x + 1 + x, box.y + 1 + y];
}"""
"""Where the mark nearest to the middle of the map is drawn."""


@pytest.mark.timeout(900)
def test_the_eight_tasks(browser_page: Page, tmp_path):
    page, store, files = browser_page, RunStore(tmp_path / "runs"), write_shards(tmp_path / "shards")
    without_umap(open_corpus(CorpusConfig((str(files),))), store.cache_dir)
    clicks: dict[str, int] = {}

    def done(task: str) -> None:
        clicks[task] = walk.clicks - sum(clicks.values())

    def solved() -> Run:
        """Keep the selection as a run; the run, shown."""
        before = {run.id for run in store.list()}
        walk.click(page.get_by_role("button", name="Keep as run", exact=True))
        expect_soon(page, lambda: named(page) in {"", *before}, False)
        return store.get(named(page))

    with served(tmp_path) as address:
        walk = Walk(page)
        page.goto(address)
        walk.click(page.get_by_role("link", name="Data", exact=True).first)
        walk.click(walk.radio("Upload"))
        page.locator("input[type=file]").set_input_files(sorted(files.iterdir()))
        walk.clicks += 1
        expect(page.get_by_text("24 dimensions")).to_be_visible()
        walk.click(page.get_by_test_id("stButton").get_by_role("button", name="Open", exact=True))
        done("open")
        followed(page, 0.5)
        done("see")
        page.locator(".st-key-menu").get_by_role("link", name="Map").click()
        solved_along(page)
        solved()
        done("run")
        page.wait_for_function(STILL)
        page.mouse.click(*page.locator(".map").evaluate(MARK))
        walk.clicks += 1
        expect(page.get_by_text(re.compile("^Why is it (selected|not selected)"))).to_be_visible()
        expect(page.locator("code").first).to_contain_text(re.compile(", number [0-9]+"))
        done("why")
        drag(page, 0.8)
        walk.clicks += 1
        done("another λ")
        walk.click(page.get_by_role("button", name="Compare", exact=True))
        walk.click(page.get_by_role("link", name="Maps, texts and groups of both"))
        expect(page.get_by_test_id("stTable").first).to_be_visible()
        done("compare")
        page.locator(".st-key-menu").get_by_role("link", name="Map").click()
        followed(page, 0.8)
        lasso(page, 0, 1 / 8)
        walk.clicks += 1
        walk.click(page.get_by_role("button", name=re.compile("^Pin these ")))
        expect(page.get_by_role("button", name=re.compile("^Pinned "))).to_be_visible()
        run = solved()
        done("pin and run")
        kept = pq.read_table(saved(page, re.compile(r"^Download [\d,]+ ids$"), tmp_path))["chunk_id"].to_pylist()
        walk.clicks += 1
        done("export")
    pinned = pq.read_table(run.config.selection.pin)["chunk_id"].to_pylist()
    assert set(pinned) < set(kept) == set(run.selection()["chunk_id"].to_pylist()) and pinned
    assert clicks == TASKS
