"""What the dashboard is for, line by line in one browser: shards uploaded, four settings tuned, masks learned in the
background with live curves, the map by quality, diversity and selection, export, two runs side by side."""

from __future__ import annotations

import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.projections import pca
from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.map import map_layout
from datamask.runs.store import RunStore
from tests.e2e.serving import FAILED, STILL, served, slide
from tests.e2e.test_canvas import colours
from tests.e2e.test_walk import choose, go, saved
from tests.making.runs import write_shard

N = 480
MANY, FEW = 1_000_000, 300
"""Steps: so many that the learner is at work until it is stopped, and so few that it ends by itself."""


def typed(page: Page, name: str, value: str) -> None:
    """A number into a field of the form."""
    field = page.get_by_role("spinbutton", name=re.compile(f"^{re.escape(name)}"))
    field.fill(value)
    field.press("Enter")
    page.wait_for_function(STILL)


def points_drawn(page: Page) -> str:
    """The lines of the live curve as they are drawn now."""
    lines = page.locator(".st-key-live_run").get_by_test_id("stVegaLiteChart").locator("path[d]")
    return " ".join(lines.evaluate_all("all => all.map((line) => line.getAttribute('d'))"))


@pytest.mark.timeout(600)
def test_line_by_line(tmp_path, browser_page: Page):
    page, store = browser_page, RunStore(tmp_path / "runs")
    write_shard(tmp_path / "all.parquet", N)
    whole = pq.read_table(tmp_path / "all.parquet")
    shards = [tmp_path / "part-0.parquet", tmp_path / "part-1.parquet"]
    for place, path in enumerate(shards):
        pq.write_table(whole.slice(place * N // 2, N // 2), path)
    corpus = open_corpus(CorpusConfig(tuple(map(str, shards))))
    # of the same rows: UMAP itself is another test's business
    stored_layout(corpus, store.cache_dir).keep(Layout(pca(corpus.features), 0.5, N))
    map_layout.stored_crowding(corpus, store.cache_dir).keep(np.random.default_rng(0).random(N).astype(np.float32))

    with served(tmp_path) as address:
        # upload shards
        page.goto(f"{address}/data")
        page.get_by_role("radio", name="Upload").or_(page.get_by_role("button", name="Upload")).first.click()
        page.locator("input[type='file']").set_input_files([str(path) for path in shards])
        expect(page.get_by_text("8 dimensions")).to_be_visible()
        page.wait_for_function(STILL)
        # lists of columns have a button of that name too
        page.get_by_test_id("stButton").get_by_role("button", name="Open", exact=True).click()
        expect(page.get_by_text("Quality scores", exact=True)).to_be_visible()
        expect(page.locator(".st-key-menu").get_by_text(f"{N} rows")).to_be_visible()

        # tune lambda, ratio, objective and G; a press that meets the page being drawn anew is lost on a busy machine
        page.wait_for_function(STILL)
        go(page, "Runs", "Runs")
        slide(page.get_by_role("slider", name=re.compile("Balance λ")), 0.3)
        expect(page.get_by_test_id("stSliderThumbValue").first).to_contain_text("0.3")
        page.wait_for_function(STILL)
        typed(page, "Select ratio", "0.25")
        choose(page, "Diversity objective", "Pair-wise similarity")
        page.wait_for_function(STILL)
        typed(page, "Masks per step (G)", "8")
        page.get_by_text("Settings of Learn masks").click()
        typed(page, "Maximum steps", str(MANY))

        # learn in the background: another page is used meanwhile; and the curve grows by itself
        page.get_by_role("button", name="Learn masks", exact=True).click()
        expect(
            page.locator(".st-key-live_run").get_by_test_id("stVegaLiteChart").locator("path[d]").first
        ).to_be_visible()
        # the curve is whole on the screen, without scrolling
        curve = page.locator(".st-key-live_run").get_by_test_id("stVegaLiteChart").first
        scrolled = page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
        box = curve.bounding_box()
        assert box["y"] + scrolled + box["height"] <= 900, (box, scrolled)
        (run,) = store.list()
        seen = {points_drawn(page)}
        while len(seen) < 2:
            assert run.status().state == "running", "it ended before its curve had grown"
            page.wait_for_timeout(300)
            seen.add(points_drawn(page))
        go(page, "Data", "Data")
        step = run.status().step
        while run.status().step == step:
            assert run.status().state == "running", "it did not learn on while another page was used"
            page.wait_for_timeout(300)
        go(page, "Runs", "Runs")
        page.locator(".st-key-live_run").get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_text(re.compile("This run was stopped"))).to_be_visible()

        # and so few that it comes to its end
        page.get_by_text("Settings of Learn masks").click()  # folded again on a page one comes back to
        typed(page, "Maximum steps", str(FEW))
        page.get_by_role("button", name="Learn masks", exact=True).click()
        while len(store.list()) < 2 or store.list()[0].status().active:
            page.wait_for_timeout(200)
        run = store.list()[0]
        expect(page.get_by_text(re.compile(r"λ 0.3.*·\s+done"))).to_be_visible()
        selection = run.config.selection
        assert (selection.lamb, selection.select_ratio, selection.objective) == (0.3, 0.25, "pairwise")
        assert (selection.n_rollout, selection.n_epochs, selection.estimator) == (8, FEW, "counterfactual")
        assert {shard.rpartition("/")[2] for shard in run.facts()["files"]} == {path.name for path in shards}

        # UMAP by selection, quality and diversity
        go(page, "Map", "Map")
        expect(page.locator(".map[data-drawn='1']")).to_be_visible()
        expect(page.get_by_text(re.compile("UMAP keeps [0-9.]+ of"))).to_be_visible()
        title, pictures = page.locator(".panel .title"), set()
        for colour, heading in (
            ("selected", "Selected by "),
            ("quality", "Quality"),
            ("marginal diversity in this run", "Marginal diversity in this run"),
        ):
            choose(page, "Color by", colour)
            expect(title).to_have_text(re.compile(f"^{heading}"))
            page.wait_for_function(STILL)
            assert len(colours(page, 0)) > 2
            pictures.add(page.locator(".stage canvas").first.evaluate("canvas => canvas.toDataURL()"))
        assert len(pictures) == 3

        # export
        go(page, "Export", "Export")
        table = pq.read_table(saved(page, re.compile("ids .Parquet"), tmp_path))
        kept = run.rows()["selected"].to_numpy().astype(bool)
        assert set(table["chunk_id"].to_pylist()) == {corpus.ids[row].as_py() for row in np.flatnonzero(kept)}
        assert kept.sum() == table.num_rows == N // 4

        # two runs side by side
        go(page, "Runs", "Runs")
        page.get_by_role("button", name="Solve", exact=True).click()
        while len(store.list()) < 3 or store.list()[0].status().active:
            page.wait_for_timeout(200)
        page.get_by_role("tab", name="Compare", exact=True).click()
        expect(page.get_by_role("heading", level=1, name="Compare", exact=True)).to_be_visible()
        expect(page.locator(".map[data-drawn='3']")).to_be_visible()
        solved = store.list()[0].rows()["selected"].to_numpy().astype(bool)
        overlap = (kept & solved).sum() / (kept | solved).sum()
        expect(page.get_by_test_id("stMetric").filter(has_text="Overlap")).to_contain_text(f"{100 * overlap:.0f}")
        for place, letter in enumerate("AB"):
            expect(page.locator(".panel .title").nth(place)).to_have_text(re.compile(f"^{letter} · "))
        expect(page.locator(FAILED)).to_have_count(0)
