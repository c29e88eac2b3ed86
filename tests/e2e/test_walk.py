"""One walk in a real browser: open the demo, run, watch, lasso, compare, download, and open what was downloaded."""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, expect

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.projections import pca
from datamask.dashboard.data import demo
from tests.e2e.serving import FAILED, STILL, served, slide

ROWS = 1500


@pytest.fixture(scope="module")
def small_sample(tmp_path_factory) -> Path:
    """The first rows of the demo, which lie in random order."""
    folder = tmp_path_factory.mktemp("sample") / "few"
    folder.mkdir()
    pq.write_table(pq.read_table(demo.CORPUS)[:ROWS], folder / "few.parquet")
    return folder


@pytest.fixture
def dashboard(small_sample, tmp_path):
    """The address of a dashboard of its own, whose demo is the small one."""
    with served(tmp_path, small_sample) as address:
        yield address


def go(page: Page, label: str, question: str) -> None:
    """To another page by the menu."""
    page.locator(".st-key-menu").get_by_role("link", name=label).click()
    expect(page.get_by_role("heading", level=1, name=question, exact=True)).to_be_visible()
    expect(page.locator(FAILED)).to_have_count(0)


def choose(page: Page, menu: str, entry: str) -> None:
    """An entry of a menu. What ends in the background draws the page anew, which closes an open menu: open it again."""
    for _ in range(20):
        page.get_by_role("combobox", name=menu).click()
        with contextlib.suppress(PlaywrightError):
            page.get_by_role("option", name=entry).click(timeout=12_000)
            return
    raise AssertionError(f"the menu {menu} never gave {entry}")


def lasso(page: Page, panel: int) -> np.ndarray:
    """Draw a star in the middle of a panel; its corners in the map's own coordinates, by the map's stated view."""
    area = page.locator(".stage").nth(panel)
    box, view = area.bounding_box(), json.loads(page.locator(".map").get_attribute("data-view"))
    width, height = (area.evaluate(f"stage => stage.client{side}") for side in ("Width", "Height"))
    edge = (box["width"] - width) / 2
    turn = np.linspace(0, 2 * np.pi, 31)
    reach = width / 4 * np.where(np.arange(31) % 2, 0.7, 1.3)
    xs, ys = width / 2 + reach * np.cos(turn), height / 2 + reach * np.sin(turn)
    page.mouse.move(box["x"] + edge + xs[0], box["y"] + edge + ys[0])
    page.mouse.down()
    for x, y in zip(xs[1:], ys[1:]):
        page.mouse.move(box["x"] + edge + x, box["y"] + edge + y)
    page.mouse.up()
    return np.column_stack(
        [view["x"] + (xs - width / 2) / view["scale"], view["y"] - (ys - height / 2) / view["scale"]]
    )


def distance_inside(points: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each point is inside, by the winding angle, and how far each is from the nearest edge."""
    ends = np.roll(corners, -1, axis=0)
    angles = [np.angle(np.divide(*(complex_(corner - points) for corner in pair[::-1]))) for pair in zip(corners, ends)]
    along = ends - corners
    part = np.clip(
        np.einsum("nkd,kd->nk", points[:, None] - corners, along) / np.maximum((along**2).sum(axis=1), 1e-30), 0, 1
    )
    nearest = np.linalg.norm(points[:, None] - (corners + part[..., None] * along), axis=2).min(axis=1)
    return np.abs(np.sum(angles, axis=0)) > np.pi, nearest


def complex_(pairs: np.ndarray) -> np.ndarray:
    return pairs[:, 0] + 1j * pairs[:, 1]


def saved(page: Page, name: str | re.Pattern, folder: Path) -> Path:
    """Press a download button and keep the file."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name).first.click()
    target = folder / waiting.value.suggested_filename
    waiting.value.save_as(target)
    return target


def named(page: Page) -> str:
    """The run in the address."""
    return parse_qs(urlsplit(page.url).query)["run"][0]


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.timeout(900)
def test_the_whole_walk(dashboard, browser_page, small_sample, tmp_path):
    page = browser_page
    page.goto(dashboard)
    page.get_by_role("button", name="Open the demo").click()
    expect(page.locator(".st-key-menu").get_by_text(re.compile(r"[\d,]+ rows"))).to_be_visible(timeout=240_000)

    # run twice: the defaults, watched, and a balance further towards diversity
    go(page, "Runs", "Runs")
    page.get_by_role("button", name="Solve", exact=True).click()
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible(timeout=240_000)
    expect(page.get_by_text(re.compile(r"^facility, λ 0\.5, 30 %\s+·\s+done"))).to_be_visible(timeout=240_000)
    expect(page.get_by_text("0 % random, 100 % best found").first).to_be_visible()
    slide(page.get_by_role("slider").first, 0.2)
    expect(page.get_by_test_id("stSliderThumbValue").first).to_contain_text("0.2")
    page.get_by_role("button", name="Solve", exact=True).click()
    expect(page.get_by_text(re.compile(r"^facility, λ 0\.2, 30 %\s+·\s+done"))).to_be_visible(timeout=240_000)
    expect(page).to_have_url(re.compile("run="))
    run = named(page)

    # the map, and a lasso in it
    go(page, "Map", "Map")
    page.get_by_role("button", name="Layout and marks").click()
    page.get_by_role("radio", name="PCA").or_(page.get_by_role("button", name="PCA")).first.click()
    page.keyboard.press("Escape")
    expect(page.locator(".map[data-drawn='1']")).to_be_visible(timeout=240_000)
    expect(page.get_by_text("waits for the neighbors")).to_have_count(0, timeout=240_000)
    # what ends in the background draws the page anew, and the map may move beneath the lasso: UMAP, whose first fit
    # compiles for half a minute, is stopped, the names of the regions come, and then nothing for a while
    under_way, calm, deadline = page.get_by_test_id("stProgress"), 0, time.monotonic() + 300
    while calm < 4:
        calm = 0 if under_way.count() else calm + 1
        # between looking and pressing it may have ended by itself, or be drawn anew
        with contextlib.suppress(PlaywrightError):
            page.get_by_test_id("stMain").get_by_role("button", name="Stop UMAP").click(timeout=500)
        page.wait_for_function(STILL)
        assert time.monotonic() < deadline, f"still under way: {under_way.all_inner_texts()}"
    page.wait_for_function(STILL)
    corners = lasso(page, 0)
    said = page.locator(".st-key-explore_headline")
    expect(said).to_contain_text(re.compile("rows shown.*all rows"))
    inside = number(re.search(r"([\d,]+) of [\d,]+ rows shown", said.inner_text()).group(1))
    assert 0 < inside < ROWS
    # by its number: a button from before the lasso has no file behind it any more
    table = pyarrow.csv.read_csv(saved(page, f"Download {inside:,} ids (CSV)", tmp_path))
    downloaded = set(table["chunk_id"].to_pylist())
    assert table.num_rows == inside == len(downloaded)
    # all samples inside the polygon, by another rule than the dashboard's; a pixel's rounding may decide at its edge
    corpus = open_corpus(CorpusConfig((str(small_sample),)))
    within, edge = distance_inside(pca(corpus.features).astype(float), corners)
    ids = np.array(corpus.ids.to_pylist())
    pixel = 1.5 / json.loads(page.locator(".map").get_attribute("data-view"))["scale"]
    assert set(ids[within & (edge > pixel)]) <= downloaded <= set(ids[within | (edge <= pixel)])
    # the region, the place and the zoom outlive other colours
    stands = page.locator(".map").get_attribute("data-view")
    choose(page, "Color by", "source")
    expect(page.locator(".panel .title").first).to_have_text("source")
    assert page.locator(".map").get_attribute("data-view") == stands
    expect(said).to_have_text(re.compile(f"^{inside:,} of"))

    # brush a histogram: the list follows, and holds just the samples of the region whose quality lies in the range
    plot = page.locator(".st-key-explore_rail").get_by_role("group", name=re.compile("^Quality score,")).bounding_box()
    page.mouse.move(plot["x"] + 0.5 * plot["width"], plot["y"] + 20)
    page.mouse.down()
    page.mouse.move(plot["x"] + 0.8 * plot["width"], plot["y"] + 20, steps=4)
    page.mouse.up()
    chip = page.get_by_role("button", name=re.compile("^quality score [0-9.]+ to [0-9.]+"))
    expect(chip).to_be_visible()
    expect(said).not_to_have_text(re.compile(f"^{inside:,} of"))
    left = re.match(r"([\d,]+) of", said.inner_text()).group(1)
    fewer = pyarrow.csv.read_csv(saved(page, f"Download {left} ids (CSV)", tmp_path)).to_pandas()
    low, high = map(float, re.search("quality score ([0-9.]+) to ([0-9.]+)", chip.inner_text()).groups())
    quality = table.to_pandas().set_index("chunk_id")["quality"]
    kept = quality[quality.between(fewer["quality"].min(), fewer["quality"].max())]
    assert set(fewer["chunk_id"]) == set(kept.index) and 0 < len(fewer) < inside
    # the chip's four digits may hide a row at the very end
    assert set(quality[quality.between(low + 0.002, high - 0.002)].index) <= set(kept.index)
    assert set(kept.index) <= set(quality[quality.between(low - 0.002, high + 0.002)].index)
    page.get_by_role("button", name="Show all rows").click()
    expect(chip).to_have_count(0)
    # press a group beside the map: its samples alone are listed, as many as its bar says
    bar = page.locator(".st-key-explore_few_groups").get_by_role("button").first
    kept_of = re.search(r"([\d,]+) of ([\d,]+) selected", bar.get_attribute("title"))
    bar.click()
    expect(said).to_have_text(re.compile(f"^{kept_of[2]} of .*{kept_of[1]} selected"))
    page.get_by_role("button", name="Show all rows").click()
    expect(said).not_to_contain_text("all rows")

    # two runs beside each other
    assert named(page) == run
    go(page, "Runs", "Runs")
    page.get_by_role("tab", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Compare", exact=True)).to_be_visible()
    expect(page.locator(".map[data-drawn='3']")).to_be_visible()
    expect(page.get_by_text("by chance 18")).to_be_visible()
    expect(page.get_by_text("Balance λ", exact=False).first).to_be_attached()

    # take the selection home and open it
    assert named(page) == run
    go(page, "Export", "Export")
    selection = pq.read_table(saved(page, re.compile("ids .Parquet"), tmp_path))
    config = json.loads(selection.schema.metadata[b"datamask"])["config"]["selection"]
    rows = number(re.search(r"([\d,]+) rows", page.locator(".st-key-menu").inner_text()).group(1))
    assert selection.num_rows == math.floor(0.3 * rows + 0.5)
    assert config["lamb"] == 0.2 and config["estimator"] == "relaxed"
    assert selection["rank"].to_pylist() == list(range(1, selection.num_rows + 1))
    assert len(set(selection["chunk_id"].to_pylist())) == selection.num_rows
