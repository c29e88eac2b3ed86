"""The walkthrough of docs/walkthrough.md, click by click: for the test that replays it and the pictures of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Locator, Page, expect

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.dashboard.linked import groups
from datamask.dashboard.linked.facets import codes_of
from datamask.dashboard.shell.tables import ROW
from datamask.runs.store import RunStore
from tests.e2e.serving import FAILED, STILL

DOMAINS = {"web": 420, "code": 200, "papers": 120, "recipes": 60}
"""Rows of each; the last one is the smallest."""

SUBJECTS = {
    "web": "a page about travel and weather",
    "code": "a function that sorts and searches",
    "papers": "a study of proteins and cells",
    "recipes": "a dish with beans and pepper",
}


def write_shards(folder: Path) -> Path:
    """Two shards with id, score, features, tokens, text and domain; 800 rows in four domains."""
    rng = np.random.default_rng(4)
    domain = rng.permutation(np.repeat(np.arange(len(DOMAINS)), list(DOMAINS.values())))
    centres = rng.normal(size=(12, 24))
    features = centres[3 * domain + rng.integers(0, 3, len(domain))] + 0.7 * rng.normal(size=(len(domain), 24))
    names = np.array(list(DOMAINS))[domain]
    table = pa.table(
        {
            "chunk_id": [f"doc-{row:04d}" for row in range(len(domain))],
            "quality_score": (np.array([0.6, 0.3, 0.2, -0.2])[domain] + rng.normal(size=len(domain))).astype(
                np.float32
            ),
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.astype(np.float32).ravel()), 24),
            "n_tokens": rng.integers(40, 900, len(domain)).astype(np.int32),
            "text": [f"{SUBJECTS[name]}, number {row}" for row, name in enumerate(names)],
            "domain": pa.array(names).dictionary_encode(),
        }
    )
    folder.mkdir(parents=True)
    pq.write_table(table.slice(0, 400), folder / "part-0000.parquet")
    pq.write_table(table.slice(400), folder / "part-0001.parquet")
    return folder


def place_of(domain: str, shards: Path, runs: Path, run_id: str) -> int:
    """Where a domain stands in the table of under- and over-represented ones, from 0, by the package's own count."""
    corpus = open_corpus(CorpusConfig((str(shards),)))
    selected = RunStore(runs).get(run_id).rows()["selected"].to_numpy(zero_copy_only=False)
    table = groups.shares(*codes_of(corpus.metadata["domain"]), selected, corpus.lengths)
    return table["group"].tolist().index(domain)


class Walk:
    """The clicks, counted.

    Attributes:
        page: of the browser. clicks: so far. seen: called with a name where the walkthrough has a picture.
    """

    def __init__(self, page: Page, seen: Callable[[str], None] = lambda name: None) -> None:
        self.page, self.clicks, self.seen = page, 0, seen
        self.main = page.get_by_test_id("stMain")

    def click(self, target: Locator) -> None:
        """One click of the user's, on a page that stands still: what is drawn above a button still moves it."""
        target.wait_for()
        self.page.wait_for_function(STILL)
        target.click()
        self.clicks += 1

    def radio(self, name: str) -> Locator:
        """One of the choices that lie side by side."""
        return self.main.get_by_role("radio", name=name).or_(self.main.get_by_role("button", name=name)).first

    def open_shards(self, address: str, folder: Path) -> None:
        """Open my shards."""
        self.page.goto(address)
        self.click(self.page.get_by_role("link", name="Data", exact=True).first)
        self.click(self.radio("Path"))
        box = self.page.get_by_role("textbox", name="Files, folders or globs")
        box.fill(str(folder))
        box.press("Control+Enter")
        expect(self.main.get_by_text("24 dimensions")).to_be_visible()
        self.seen("walk-open")
        self.click(self.main.get_by_test_id("stButton").get_by_role("button", name="Open", exact=True))
        expect(self.main.get_by_text("Quality scores", exact=True)).to_be_visible()

    def sweep(self) -> None:
        """Draw the frontier of the current selection's objective."""
        self.click(self.main.get_by_role("link", name="Show the frontier"))
        expect(self.page.get_by_role("heading", level=1, name="Frontier", exact=True)).to_be_visible()
        expect(self.main.get_by_text(re.compile("^11 runs")).first).to_be_visible()
        self.click(self.main.get_by_role("button", name="Start the sweep"))
        expect(self.main.get_by_text("All 11 runs are stored")).to_be_visible()

    def keep(self) -> float:
        """Find the smallest lambda that keeps 95 % of the attainable quality, and keep it as a run; gives it."""
        self.settle()
        box = self.main.locator(".st-key-live_frontier").get_by_test_id("stDataFrame").bounding_box()
        before = self.page.url
        # the ninth row is that of λ 0.8
        self.page.mouse.click(box["x"] + ROW / 2, box["y"] + 9.5 * ROW)
        self.clicks += 1
        # the chart has a label of that name before the run is the page's
        expect(self.page).not_to_have_url(before)
        self.settle()
        self.seen("walk-keep")
        self.click(self.main.get_by_role("link", name="Show on the map"))
        expect(self.page.get_by_role("heading", level=1, name="Map", exact=True)).to_be_visible()
        lamb = self.slide()
        # the browser shows it at once; the page is drawn for it a moment later, and a press before that is lost
        expect(self.main.locator(".answer:not(.moved) .head b")).to_have_text(f"λ {lamb:g}")
        before = self.page.url
        self.click(self.main.get_by_role("button", name="Keep as run"))
        run_of = re.compile("run=([a-z0-9-]+)")
        expect(self.page).not_to_have_url(re.compile(run_of.search(before).group(0)))
        expect(self.main.get_by_role("button", name="Keep as run")).to_have_count(0)
        return lamb

    def slide(self) -> float:
        """Drag the slider of the map down until less than 95 % of the quality are kept, and a step back."""
        slider = self.page.get_by_role("slider", name=re.compile("^Balance λ"))
        expect(slider).to_be_enabled()
        self.page.wait_for_function(STILL)
        slider.focus()
        kept = self.page.locator(".answer .meter").first
        lamb, quality = round(100 * float(slider.input_value())), 100.0
        while quality >= 95:
            lamb -= 1
            slider.press("ArrowLeft")
            expect(self.page.locator(f".lambda[data-shown='{lamb / 100:g}']")).to_be_visible()
            quality = float(re.search(r"Quality ([0-9.]+)", kept.get_attribute("title")).group(1))
        slider.press("ArrowRight")
        expect(self.page.locator(f".lambda[data-shown='{(lamb + 1) / 100:g}']")).to_be_visible()
        self.clicks += 1  # by hand it is one drag
        return (lamb + 1) / 100

    def smallest_domain(self, place: Callable[[str], int]) -> None:
        """See which texts of the smallest domain are dropped.

        Args:
            place: of the domain in the table, from 0, by the run's id.
        """
        self.click(self.main.get_by_role("radio", name="Under- and over-represented"))
        table = self.main.get_by_test_id("stDataFrame").last
        expect(self.main.get_by_text("Choose a group to see its texts")).to_be_visible()
        table.scroll_into_view_if_needed()
        self.settle()
        self.seen("walk-domains")
        row = place(re.search("run=([a-z0-9-]+)", self.page.url).group(1))
        # the boxes of the rows are drawn on a canvas: the first column, below a header of the same height
        table.click(position={"x": 18, "y": 35 * (row + 1) + 17})
        self.clicks += 1
        expect(self.main.get_by_text("rows shown")).to_be_visible()
        self.click(self.radio("not selected"))
        expect(self.main.get_by_role("button", name=re.compile(r"ids \(CSV\)"))).to_be_visible()
        self.settle()
        self.seen("walk-dropped")

    def take_home(self, folder: Path) -> tuple[Path, Path]:
        """Export the ids, and make the report; gives the two files."""
        self.to("Export", "Export")
        expect(self.main.get_by_role("button", name="Download report")).to_be_visible()
        self.settle()
        self.seen("walk-export")
        files = []
        for name in ("Download selected ids", "Download report"):
            with self.page.expect_download() as waiting:
                self.click(self.main.get_by_role("button", name=name).first)
            files.append(folder / waiting.value.suggested_filename)
            waiting.value.save_as(files[-1])
        return files[0], files[1]

    def to(self, label: str, question: str) -> None:
        """To another page by the menu."""
        self.click(self.page.locator(".st-key-menu").get_by_role("link", name=label, exact=True))
        expect(self.page.get_by_role("heading", level=1, name=question, exact=True)).to_be_visible()
        expect(self.page.locator(FAILED)).to_have_count(0)

    def settle(self) -> None:
        """Wait until the page stands still."""
        self.page.wait_for_function(STILL)
