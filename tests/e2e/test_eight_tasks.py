"""Eight tasks of a first walk, in few clicks and few changes of page, nothing of it below the window."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Download, Locator, Page, expect

from datamask.corpus import Corpus
from datamask.corpus.projections import pca
from datamask.corpus.projections.layouts import Layout, keep_layout
from datamask.dashboard.data.openings import openings
from datamask.dashboard.map import map_layout
from datamask.runs.store import RunStore
from tests.dashboard.made_runs import write_shard
from tests.e2e.serving import FAILED, STILL, served
from tests.e2e.test_walk import lasso

N, WINDOW = 600, 900
LONG = 240.0


class Hand:
    """What a person presses and reads, counted; each must stand in the window without scrolling.

    Attributes:
        clicks: presses of the mouse. pages: changes of page by the menu.
    """

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.pages = page, 0, 0

    def reads(self, target: Locator) -> Locator:
        """Something that is to be read: it is there, whole, and in the window."""
        expect(target).to_be_visible()
        self.page.wait_for_function(STILL)
        box = target.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= WINDOW, (target, box)
        assert self.page.get_by_test_id("stMain").evaluate("main => main.scrollTop") == 0
        return target

    def presses(self, target: Locator) -> None:
        """One click."""
        self.reads(target).click()
        self.clicks += 1

    def to_page(self, name: str, heading: str) -> None:
        """By the menu: one click, and one change of page."""
        self.presses(self.page.locator(".st-key-menu").get_by_role("link", name=name, exact=True))
        self.pages += 1
        expect(self.page.get_by_role("heading", name=heading)).to_be_visible()
        expect(self.page.locator(FAILED)).to_have_count(0)

    def downloads(self, target: Locator) -> Download:
        """One click that gives a file."""
        with self.page.expect_download() as waiting:
            self.presses(target)
        return waiting.value

    def draws(self, stroke) -> None:
        """One stroke of the mouse, from press to release: a click too."""
        stroke()
        self.clicks += 1


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    """Opened before, its layout there: UMAP is another test's business."""
    opening = openings(tmp_path / "runs").start(write_shard(tmp_path / "shard.parquet", N), "shard.parquet")
    opening.wait(LONG)
    made, store = opening.corpus, RunStore(tmp_path / "runs")
    keep_layout(Layout(pca(made.features), 0.5, N), made, store.cache_dir)
    map_layout.keep_crowding(np.random.default_rng(0).random(N).astype(np.float32), made, store.cache_dir)
    return made


def selected(run) -> np.ndarray:
    return run.rows()["selected"].to_numpy().astype(bool)


@pytest.mark.timeout(600)
def test_eight_tasks_in_twelve_clicks_and_three_pages(tmp_path, corpus, browser_page: Page):
    page, store = browser_page, RunStore(tmp_path / "runs")
    with served(tmp_path) as address:
        page.goto(address)
        hand = Hand(page)
        solve, title = page.get_by_role("button", name="Solve", exact=True), page.locator(".panel .title")

        # 1: open
        hand.presses(page.get_by_role("button", name=re.compile("shard.parquet")))
        expect(page.locator(".map[data-drawn='1']")).to_be_visible()
        hand.reads(page.locator(".map"))
        stop = page.get_by_role("button", name="Stop", exact=True)
        expect(stop).to_have_count(0)  # while regions get their names, what stands below is a line lower

        # 2: see what is kept
        hand.presses(solve)
        expect(title).to_have_text(re.compile("^Selected by "))
        hand.reads(page.get_by_text(re.compile(rf"of {N} samples shown.* of them selected, 30")))
        (first,) = store.list()
        expect(stop).to_have_count(0)

        # 3: why this sample
        view, stage = json.loads(page.locator(".map").get_attribute("data-view")), page.locator(".stage")
        points = pca(corpus.features).astype(float)
        apart = np.linalg.norm(points[:, None] - points[None], axis=2) + 1e9 * np.eye(N)
        inside = np.abs(points - [view["x"], view["y"]]).max(axis=1) * view["scale"] < 200
        row = int(np.argmax(np.where(inside, apart.min(axis=1), 0)))
        box = hand.reads(stage).bounding_box()
        middle = [stage.evaluate(f"stage => stage.client{side} / 2") for side in ("Width", "Height")]
        x, y = (points[row] - [view["x"], view["y"]]) * [view["scale"], -view["scale"]] + middle
        hand.draws(lambda: page.mouse.click(box["x"] + 1 + x, box["y"] + 1 + y))
        word = "kept" if selected(first)[row] else "left out"
        hand.reads(page.get_by_text(f"Why is it {word}?"))
        hand.reads(page.locator("code", has_text=f"sample {row} of clump"))
        hand.reads(
            page.locator("[aria-label='What each part adds to the sample\\'s score, up to score minus threshold']")
        )

        # 4: another lambda
        slider = page.get_by_role("slider", name=re.compile("^Balance λ"))
        expect(page.locator(".signs .solved")).to_have_count(22)
        track = hand.reads(slider).bounding_box()

        def dragged() -> None:
            page.mouse.move(track["x"] + track["width"] / 2, track["y"] + track["height"] / 2)
            page.mouse.down()
            page.mouse.move(track["x"] + 8 + (track["width"] - 16) * 0.9, track["y"] + track["height"] / 2, steps=8)
            page.mouse.up()

        hand.draws(dragged)
        expect(title).to_have_text("Selected at λ 0.9")
        hand.reads(page.locator(".lambda .numbers"))

        # 5: a second run, there
        page.wait_for_function(STILL)
        hand.presses(solve)
        expect(title).to_have_text(re.compile("^Selected by .*0.9"))
        second = store.list()[0]
        assert second.id != first.id and second.config.selection.lamb == pytest.approx(0.9, abs=0.01)

        # 6: compare the two
        hand.to_page("Runs", "How does the learner choose?")
        hand.presses(page.get_by_role("tab", name="Compare", exact=True))
        expect(page.get_by_role("heading", name="What changes between these runs?")).to_be_visible()
        a, b = selected(first), selected(second)
        overlap = 100 * (a & b).sum() / (a | b).sum()
        hand.reads(page.get_by_test_id("stMetric").filter(has_text="Overlap").get_by_text(f"{overlap:.0f}"))
        assert (a & ~b).sum() == (b & ~a).sum()  # whichever of the two is A
        hand.reads(page.get_by_test_id("stMetric").filter(has_text="Gained").get_by_text(str((b & ~a).sum())))

        # 7: pin what a lasso holds, and run again
        hand.to_page("Map", "Which samples are kept")
        expect(page.locator(".map[data-drawn='1']")).to_be_visible()
        expect(title).to_have_text(re.compile("^Selected by .*0.9"))  # the last run, as before the comparison
        page.wait_for_function(STILL)
        hand.draws(lambda: lasso(page, 0))
        headline = hand.reads(page.get_by_text(re.compile(r"samples shown.* of them selected.*everywhere")))
        count = int(re.match(r"([\d,]+) of", headline.inner_text())[1])
        hand.presses(page.get_by_role("button", name=f"Pin these {count}", exact=True))
        hand.reads(page.get_by_role("button", name=re.compile(f"^Pinned {count}")))
        hand.presses(solve)
        expect(title).to_have_text(re.compile("rule"))
        third = store.list()[0]

        # 8: take the ids home; the map's title comes before what stands below it, of which Solve is the first
        expect(solve).to_be_visible()
        page.wait_for_function(STILL)
        ids = hand.downloads(page.get_by_role("button", name=re.compile("^Download [0-9,]+ ids of ")))
        ids.save_as(tmp_path / "ids.parquet")
        expect(page.locator(FAILED)).to_have_count(0)

    chosen = pq.read_table(tmp_path / "ids.parquet")["chunk_id"].to_pylist()
    assert set(chosen) == {corpus.ids[row].as_py() for row in np.flatnonzero(selected(third))} and len(chosen) == 180
    assert third.config.selection.pin is not None and 0 < count < 180
    assert hand.clicks <= 12 and hand.pages <= 3
