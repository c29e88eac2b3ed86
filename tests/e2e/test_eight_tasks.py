"""Eight tasks of a first walk, in few clicks and changes of page, nothing of it below the window; and by the keyboard.

At the keyboard a click is a press on what has the focus, however many keys lead there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Download, Locator, Page, expect

from datamask.corpus import Corpus
from datamask.corpus.projections import pca
from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.data.openings import openings
from datamask.dashboard.map import map_layout
from datamask.runs.store import Run, RunStore
from tests.e2e.serving import FAILED, STILL, served
from tests.e2e.test_walk import lasso
from tests.making.runs import write_shard

N, WINDOW = 600, 900
LONG = 240.0
MOST_CLICKS, MOST_LOADS = 10, 2
MOST_TABS = 150
CLOSER = 8
"""Steps of the zoom after which fewer samples are in view than are selected."""


class Hand:
    """What a person presses and reads, counted; each must stand in the window without scrolling.

    Attributes:
        clicks: presses of the mouse. loads: pages that the browser was sent to, by address or by the menu.
    """

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.loads = page, 0, 0
        self.stage = page.locator(".stage")

    def opens(self, address: str) -> None:
        """A page by its address."""
        self.page.goto(address)
        self.loads += 1

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

    def downloads(self, target: Locator) -> Download:
        """One click that gives a file."""
        with self.page.expect_download() as waiting:
            self.presses(target)
        return waiting.value

    def seen(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where points of the map lie on the screen, from the middle of the map: CSS pixels."""
        view = json.loads(self.page.locator(".map").get_attribute("data-view"))
        x, y = (points - [view["x"], view["y"]]).T * [[view["scale"]], [-view["scale"]]]
        return x, y

    def marks(self, points: np.ndarray) -> int:
        """One click on a sample that stands alone; its row."""
        apart = np.linalg.norm(points[:, None] - points[None], axis=2) + 1e9 * np.eye(N)
        x, y = self.seen(points)
        row = int(np.argmax(np.where(np.maximum(abs(x), abs(y)) < 200, apart.min(axis=1), 0)))
        box = self.reads(self.stage).bounding_box()
        self.page.mouse.click(box["x"] + box["width"] / 2 + x[row], box["y"] + box["height"] / 2 + y[row])
        self.clicks += 1
        return row

    def drags(self, slider: Locator, to: float) -> None:
        """One stroke along a slider."""
        track = self.reads(slider).bounding_box()
        y = track["y"] + track["height"] / 2
        self.page.mouse.move(track["x"] + 8 + (track["width"] - 16) * float(slider.input_value()), y)
        self.page.mouse.down()
        self.page.mouse.move(track["x"] + 8 + (track["width"] - 16) * to, y, steps=8)
        self.page.mouse.up()
        self.clicks += 1

    def takes_a_region(self) -> None:
        """One stroke around samples of the map."""
        lasso(self.page, 0)
        self.clicks += 1


class Keyboard(Hand):
    """The same without a mouse: Tab leads to everything that is pressed."""

    def reaches(self, target: Locator) -> None:
        """Tab until the target has the focus."""
        element = self.reads(target).element_handle()
        for _ in range(MOST_TABS):
            focused = element.evaluate("target => target.isConnected ? target.matches(':focus') : null")
            if focused is None:
                # drawn anew; to look for it after every key would take longer than the key
                element = target.element_handle()
                continue
            if focused:
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {target}")

    def presses(self, target: Locator) -> None:
        self.reaches(target)
        self.page.keyboard.press("Enter")
        self.clicks += 1

    def marks(self, points: np.ndarray) -> int:
        self.reaches(self.stage)
        x, y = self.seen(points)
        self.page.keyboard.press("m")
        self.clicks += 1
        return int(np.argmin(np.hypot(x, y)))

    def drags(self, slider: Locator, to: float) -> None:
        self.reaches(slider)
        for _ in range(round((to - float(slider.input_value())) * 100)):
            self.page.keyboard.press("ArrowRight")
        self.clicks += 1

    def takes_a_region(self) -> None:
        self.reaches(self.stage)
        for _ in range(CLOSER):
            self.page.keyboard.press("+")
        self.page.keyboard.press("Enter")
        self.clicks += 1


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    """Opened before, its layout there: UMAP is another test's business."""
    opening = openings(tmp_path / "runs").start(write_shard(tmp_path / "shard.parquet", N), "shard.parquet")
    opening.wait(LONG)
    made, store = opening.corpus, RunStore(tmp_path / "runs")
    stored_layout(made, store.cache_dir).keep(Layout(pca(made.features), 0.5, N))
    map_layout.stored_crowding(made, store.cache_dir).keep(np.random.default_rng(0).random(N).astype(np.float32))
    return made


def selected(run: Run) -> np.ndarray:
    return run.rows()["selected"].to_numpy().astype(bool)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("person", [Hand, Keyboard])
def test_eight_tasks_in_ten_clicks_and_two_pages(person: type[Hand], tmp_path: Path, corpus, browser_page: Page):
    page, store, hand = browser_page, RunStore(tmp_path / "runs"), person(browser_page)
    strip = page.locator(".st-key-strip")
    solve, stop = (page.get_by_role("button", name=name, exact=True) for name in ("Solve", "Stop"))
    with served(tmp_path, DATAMASK_SAMPLE="") as address:
        # 1: open; the corpus of the last time, at λ 0.5
        hand.opens(address)
        expect(page.locator(".map[data-drawn='1']")).to_be_visible()
        hand.reads(page.locator(".map"))
        expect(page.locator(".signs .solved")).to_have_count(22)
        expect(stop).to_have_count(0)  # while regions get their names, what stands below is a line lower

        # 2: see what is kept
        expect(page.locator(".panel .title")).to_have_text("Selected at λ 0.5")
        headline = page.locator(".st-key-explore_headline")
        expect(hand.reads(headline)).to_contain_text(re.compile(rf"of {N} rows shown.* selected, 30"))
        hand.reads(page.locator(".panel .key").get_by_text("selected 180", exact=True))

        # 3: why this sample; a run has scores that tell
        hand.presses(solve)
        expect(strip).to_contain_text("run facility, λ 0.5")
        (first,) = store.list()
        expect(stop).to_have_count(0)
        row = hand.marks(pca(corpus.features).astype(float))
        word = "selected" if selected(first)[row] else "not selected"
        hand.reads(page.get_by_text(f"Why is it {word}?"))
        hand.reads(page.locator("code", has_text=f"sample {row} of clump"))
        hand.reads(page.locator("[aria-label='What each term adds to the row\\'s score, up to score minus threshold']"))

        # 4: another λ
        hand.drags(page.get_by_role("slider", name=re.compile("^Balance λ")), 0.9)
        expect(page.locator(".panel .title")).to_have_text("Selected at λ 0.9")
        hand.reads(page.locator(".lambda .numbers"))
        expect(strip).to_contain_text("λ 0.9 · ")

        # 5: a second run, there
        page.wait_for_function(STILL)
        hand.presses(solve)
        expect(strip).to_contain_text("run facility, λ 0.9")
        second = store.list()[0]
        assert second.id != first.id and second.config.selection.lamb == pytest.approx(0.9, abs=0.01)
        expect(stop).to_have_count(0)

        # 6: compare the two
        hand.presses(page.get_by_role("button", name="Compare", exact=True))
        a, b = selected(first), selected(second)
        counts = {"Kept": a & b, "Lost": a & ~b, "Gained": b & ~a}
        shown = {"Overlap": f"{100 * (a & b).sum() / (a | b).sum():.0f}"}
        for name, number in (shown | {name: str(rows.sum()) for name, rows in counts.items()}).items():
            hand.reads(page.get_by_test_id("stMetric").filter(has_text=name).get_by_text(number))
        for name, rows in counts.items():
            hand.reads(page.locator(".panel .key").get_by_text(f"{name.lower()} {rows.sum()}", exact=True))

        # 7: pin what a lasso holds, and run again
        hand.takes_a_region()
        expect(headline).to_contain_text(re.compile(r"rows shown.* selected.*all rows"))
        count = int(re.match(r"([\d,]+) of", hand.reads(headline).inner_text())[1])
        hand.presses(page.get_by_role("button", name=f"Pin these {count}", exact=True))
        hand.reads(page.get_by_role("button", name=re.compile(f"^Pinned {count}")))
        hand.presses(solve)
        expect(strip).to_contain_text(re.compile("run facility.*rule"))
        third = store.list()[0]

        # 8: take the ids home
        page.wait_for_function(STILL)
        ids = hand.downloads(page.get_by_role("button", name=re.compile(r"^Download [0-9,]+ ids \(λ")))
        ids.save_as(tmp_path / "ids.parquet")
        expect(page.locator(FAILED)).to_have_count(0)

    chosen = pq.read_table(tmp_path / "ids.parquet")["chunk_id"].to_pylist()
    assert set(chosen) == {corpus.ids[row].as_py() for row in np.flatnonzero(selected(third))} and len(chosen) == 180
    assert third.config.selection.pin is not None and 0 < count < 180
    assert hand.clicks <= MOST_CLICKS and hand.loads <= MOST_LOADS
