"""The Map in a real browser: how its places are sized, by keyboard to a sample and its reasons, rules that are kept."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from playwright.sync_api import Locator, Page, expect

from datamask.analyses.explanation.compute.explained_run import explainer_of
from datamask.dashboard.data.openings import Opening, openings
from datamask.dashboard.linked.facets import number_facet
from datamask.dashboard.map.regions import Region, inside
from datamask.runs.store import RunStore
from tests.e2e.overflow import OFFENDERS
from tests.e2e.serving import STILL, served
from tests.e2e.steps import lasso, saved
from tests.making.maps import lay_out
from tests.making.runs import execute_run, write_shard

LONG = 240_000
FOCUSED = """() => {
    let here = document.activeElement;
    while (here?.shadowRoot?.activeElement) here = here.shadowRoot.activeElement;
    const look = getComputedStyle(here);
    return {name: here.getAttribute("aria-label") ?? here.innerText ?? "", kind: here.className.toString(),
            seen: look.outlineStyle !== "none" || look.boxShadow !== "none" || here.tagName === "INPUT"};
}"""
"""Who has the focus, in whatever shadow, and whether one sees it; text fields show it by their frame."""
BARS = """table => [...table.rows].map((row) => {
    const [zero, bar] = ["b", "i"].map((kind) => row.querySelector(kind).getBoundingClientRect());
    return [bar.left - zero.left, bar.right - zero.left];
})"""
"""Where the bars of a row's score begin and end, from the first one on, in pixels from the threshold."""

PLACE = """(root, row) => {
    const map = root.held, at = 2 * map.ground.rows.indexOf(row), [x, y] = map.ground.points.subarray(at, at + 2);
    return [map.toX(x) / map.width, map.toY(y) / map.width];
}"""
"""Where a row lies on a map, as shares of its width."""

TYPES_AT_ONCE = """() => {
    window.typedInto = {};
    new MutationObserver(() => {
        for (const [name, text] of [["Search the texts", "sample 11"], ["Page", ""]]) {
            const box = document.querySelector(`input[aria-label="${name}"]`);
            if (!box || name in window.typedInto) continue;
            window.typedInto[name] = box;
            if (!text) continue;
            Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(box, text);
            box.dispatchEvent(new Event("input", {bubbles: true}));
        }
    }).observe(document, {childList: true, subtree: true});
}"""
"""Types into the search box as soon as it is there, as fast hands do, and remembers which boxes were there first."""


@pytest.fixture
def opening(tmp_path) -> Opening:
    """A corpus of 240 rows, its layout and crowding there already."""
    found = openings(tmp_path / "runs").start(write_shard(tmp_path / "shard.parquet"), "shard")
    found.wait(LONG / 1000)
    corpus, cache_dir = found.corpus, RunStore(tmp_path / "runs").cache_dir
    lay_out(corpus, cache_dir, corpus.features[:, :2], np.zeros(len(corpus)))
    return found


def tab_to(page: Page, name: str, most: int = 60) -> list[str]:
    """Press Tab until a control of that name has the focus; the names on the way. Each of them must be seen."""
    passed: list[str] = []
    for _ in range(most):
        page.keyboard.press("Tab")
        here = page.evaluate(FOCUSED)
        passed.append(here["name"].rsplit("\n", 1)[-1])  # without the icon's name
        if passed[-1].startswith(name):
            page.wait_for_function(f"({FOCUSED})().seen")
            return passed
    raise AssertionError(f"{name} is not reached by Tab; on the way: {passed}")


def map_share(page: Page) -> float:
    """The share of the window that the map's canvases take."""
    return page.locator(".stage").evaluate_all(
        "all => all.reduce((sum, stage) => sum + stage.clientWidth * stage.clientHeight, 0)"
        " / (window.innerWidth * window.innerHeight)"
    )


def in_window(page: Page, target: Locator) -> bool:
    """Whether all of it stands in the window."""
    box, size = target.bounding_box(), page.viewport_size
    return box["y"] >= 0 and box["y"] + box["height"] <= size["height"] and box["x"] + box["width"] <= size["width"]


def large_answered_beside_and_whole(page: Page, points: np.ndarray) -> None:
    """The map is as large as it should be, a click on it is answered beside it, and nothing is cut off.

    Args:
        points: of the samples on the map.
    """
    expect(page.locator(".map[data-drawn='1']")).to_be_visible()
    page.wait_for_function(STILL)
    assert map_share(page) >= 0.4
    assert page.evaluate(OFFENDERS) == []
    page.get_by_role("button", name="Hide colors and filters").click()
    expect(page.get_by_role("button", name="Colors and filters")).to_be_visible()
    expect(page.get_by_role("button", name="More colors, maps, layout")).not_to_be_visible()
    page.wait_for_function(STILL)
    assert map_share(page) >= 0.5

    # a click on the sample that stands most alone
    view, area = json.loads(page.locator(".map").get_attribute("data-view")), page.locator(".stage")
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    inside = np.abs(points - [view["x"], view["y"]]).max(axis=1) * view["scale"] < 250
    row = int(np.argmax(np.where(inside, apart.min(axis=1), 0)))
    middle = [area.evaluate(f"stage => stage.client{side} / 2") for side in ("Width", "Height")]
    x, y = (points[row] - [view["x"], view["y"]]) * [view["scale"], -view["scale"]] + middle
    box = area.bounding_box()
    page.mouse.click(box["x"] + 1 + x, box["y"] + 1 + y)
    text, question = page.locator("code").first, page.get_by_text(re.compile("^Why is it (selected|not selected)"))
    expect(text).to_contain_text(f"sample {row} of clump")
    expect(question).to_be_visible()
    bars = page.locator("[aria-label='What each term adds to the row\\'s score, up to score minus threshold']")
    expect(bars).to_be_visible()
    page.wait_for_function(STILL)
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollTop") == 0
    assert in_window(page, text) and in_window(page, question) and in_window(page, bars)
    for width in (1440, 1000):
        page.set_viewport_size({"width": width, "height": 800})
        page.get_by_role("button", name="Next", exact=True).click()
        page.wait_for_function(STILL)
        expect(question).to_be_visible()
        assert page.evaluate(OFFENDERS) == [] and in_window(page, text)
    # opened, the rail stands beside the other two in a narrow window too
    page.get_by_role("button", name="Colors and filters").click()
    expect(page.get_by_role("button", name="More colors, maps, layout")).to_be_visible()
    page.wait_for_function(STILL)
    assert page.evaluate(OFFENDERS) == []
    # three maps lie below each other here; with more room two of them, half as wide, show the picture of the first
    page.get_by_role("button", name="More colors, maps, layout").click()
    maps = page.locator(".st-key-maps")
    maps.get_by_role("radio", name="3").or_(maps.get_by_role("button", name="3")).first.click()
    expect(page.locator(".map[data-drawn='3']")).to_be_visible()
    page.wait_for_function(STILL)
    assert len({stage.bounding_box()["x"] for stage in page.locator(".stage").all()}) == 1
    page.set_viewport_size({"width": 1920, "height": 900})
    page.wait_for_function(STILL)
    large, upper, lower = (stage.bounding_box() for stage in page.locator(".stage").all())
    assert upper["x"] == lower["x"] > large["x"] and large["width"] == pytest.approx(2 * upper["width"], abs=2)
    assert lower["y"] + lower["height"] == pytest.approx(page.locator(".lambda").bounding_box()["y"], abs=2)
    assert page.evaluate(OFFENDERS) == []
    # a small map is pointed at in its own pixels
    spot = page.locator(".map").evaluate(PLACE, row)
    page.mouse.move(upper["x"] + spot[0] * upper["width"], upper["y"] + spot[1] * upper["width"])
    expect(page.locator(".tip")).to_contain_text(f"sample {row} of clump")


@pytest.mark.timeout(900)
def test_the_map_is_large_and_keys_lead_to_a_sample_and_why(tmp_path, opening, browser_page: Page):
    corpus, store = opening.corpus, RunStore(tmp_path / "runs")
    run = execute_run(store, opening.config, objective="pairwise", estimator="relaxed")
    with served(tmp_path) as address:
        page = browser_page
        page.goto(f"{address}/?corpus={opening.key}&run={run.id}")
        large_answered_beside_and_whole(page, corpus.features[:, :2].astype(float))
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(f"{address}/?corpus={opening.key}&run={run.id}")
        expect(page.locator(".map[data-drawn='1']")).to_be_visible()
        expect(page.locator(".map")).to_have_attribute("data-clear", str(len(corpus)))
        page.wait_for_function(STILL)
        passed = tab_to(page, "Search the texts")
        wanted = ["Map", "Data", "Selected by", "Selection", "Search the texts"]
        places = [next(k for k, name in enumerate(passed) if name.endswith(each)) for each in wanted]
        assert places == sorted(places)
        row = 137  # of the words that are typed, this sample alone has all
        page.keyboard.type(f"sample {row} of clump")
        page.keyboard.press("Enter")
        expect(page.get_by_text(re.compile(r"^1 of 240 rows shown"))).to_be_visible()
        # the words come before the map is dimmed, and M marks what is bright there
        expect(page.locator(".map")).to_have_attribute("data-clear", "1")
        page.wait_for_function(STILL)
        tab_to(page, "Map: Selected by")
        # the map's own key: nothing else is bright, so this is the sample nearest to the middle
        page.keyboard.press("m")
        expect(page.get_by_text(re.compile("^Why is it (selected|not selected)"))).to_be_visible()
        expect(page).to_have_url(re.compile(f"sample={re.escape(corpus.ids[row].as_py())}$"))
        expect(page.locator("code").first).to_contain_text(f"sample {row} of clump")

        # the bars are the explainer's parts, and they add up to score minus threshold
        told = explainer_of(run)
        one = told.explain([row])[0]
        bars = page.locator("[aria-label='What each term adds to the row\\'s score, up to score minus threshold']")
        expect(bars).to_be_visible()
        page.wait_for_function(STILL)
        ends = np.cumsum([0.0, *(part.value for part in one.parts)])
        expected = np.sort([*pairwise(ends), (0.0, one.score - one.threshold)], axis=1)
        drawn = np.array(bars.evaluate(BARS))
        assert drawn == pytest.approx(expected * np.ptp(drawn) / np.ptp(expected), abs=1.5)


def test_what_is_typed_while_the_first_selection_is_solved_stays(tmp_path: Path, opening, browser_page: Page):
    """The first to open a corpus sees the page before its selection: what comes then must not move the controls."""
    page = browser_page
    page.add_init_script(f"({TYPES_AT_ONCE})()")
    with served(tmp_path) as address:
        page.goto(f"{address}/?corpus={opening.key}")
        expect(page.get_by_role("button", name=re.compile("Download 72 ids"))).to_be_visible(timeout=LONG)
        page.wait_for_function(STILL)
        for name in ("Search the texts", "Page"):
            assert page.evaluate("name => window.typedInto[name].isConnected", name), f"{name} was drawn anew"
        box = page.get_by_role("textbox", name="Search the texts")
        expect(box).to_have_value("sample 11")
        box.press("Enter")
        expect(page.get_by_role("button", name="Pin these 12", exact=True)).to_be_visible()


def test_a_lasso_a_range_and_a_group_show_their_rows(tmp_path: Path, opening, browser_page: Page):
    corpus, page = opening.corpus, browser_page
    points, ids = corpus.features[:, :2].astype(float), np.array(corpus.ids.to_pylist())
    headline = page.locator(".st-key-explore_headline")

    def shown() -> np.ndarray:
        count = re.match(r"([\d,]+) of", headline.inner_text())[1]
        # by its number: a button from before has no file behind it any more
        table = pyarrow.csv.read_csv(saved(page, f"Download {count} ids (CSV)", tmp_path))
        assert table.num_rows == int(count)
        return np.isin(ids, table["chunk_id"].to_pylist())

    with served(tmp_path) as address:
        page.goto(f"{address}/?corpus={opening.key}")
        expect(page.locator(".map[data-drawn='1']")).to_be_visible()
        expect(page.locator(".signs .solved")).to_have_count(22)
        expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
        page.wait_for_function(STILL)
        plot, facet = page.locator('.facet[data-name="quality"] .plot').first, number_facet("", "", corpus.quality)
        corners = lasso(page, 0)
        expect(headline).to_contain_text(re.compile("rows shown.*all rows"))
        region, middle = shown(), corners[:-1].mean(axis=0)
        # a pixel's rounding may decide at the edge
        less, more = (inside(points, Region.lasso(*(middle + size * (corners - middle)).T)) for size in (0.97, 1.03))
        assert less.any() and not more.all() and (less <= region).all() and (region <= more).all()

        page.wait_for_function(STILL)
        box = plot.bounding_box()
        first, last = facet.bars // 2, facet.bars - 8
        across = [box["x"] + (bar + 0.5) * box["width"] / facet.bars for bar in (first, last)]
        page.mouse.move(across[0], box["y"] + 20)
        page.mouse.down()
        page.mouse.move(across[1], box["y"] + 20, steps=4)
        page.mouse.up()
        chip = page.get_by_role("button", name=re.compile("^quality score .* to "))
        expect(chip).to_be_visible()
        page.wait_for_function(STILL)
        both = region & (first <= facet.bins) & (facet.bins <= last)
        assert (shown() == both).all() and 0 < both.sum() < region.sum()

        page.get_by_role("button", name="Show all rows").click()
        expect(chip).to_have_count(0)
        group = page.locator(".st-key-explore_few_groups").get_by_role("button").first
        selected, rows = re.search(r"([\d,]+) of ([\d,]+) selected", group.get_attribute("title")).groups()
        group.click()
        expect(headline).to_have_text(re.compile(f"^{rows} of .*{selected} selected"))
