"""No page, light or dark, holds what axe calls a serious or critical barrier: contrast, names, roles. A cell opens.

axe is the library axe-core, carried by axe-playwright-python, so nothing is fetched. What it cannot see is held beside
it: that icons keep silent, and that a map is called by what it shows.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from datamask.dashboard.data.openings import Opening, openings
from datamask.dashboard.drawing import palette
from datamask.dashboard.map.named_regions import NamedRegions, stored_regions
from datamask.runs import ablation_results
from datamask.runs.store import Run, RunStore
from tests.e2e.serving import FAILED, QUIET, STILL, served
from tests.making.ablations import ROBUST, made_result
from tests.making.maps import lay_out
from tests.making.runs import finish_run, write_shard

LONG, REGIONS = 240_000, 12
VIEWS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("", ".map[data-drawn='1']", ("Under- and over-represented",)),
    ("?sample=doc-0003", "[data-testid='stHtml'] .why", ()),
    ("data", ".js-plotly-plot .main-svg .trace", ()),
    ("runs", "[data-testid='stVegaLiteChart'] .marks", ()),
    ("frontier", ".js-plotly-plot .main-svg .trace", ()),
    ("frontier?vary=Select ratio", "[data-testid='stMain'] h3", ()),
    ("compare", ".map[data-drawn='3']", ("Curves",)),
    ("evidence", ".js-plotly-plot .main-svg .trace", ()),
    ("export", "[data-testid='stDownloadButton'] button", ()),
)
"""Of each page its path, what must stand before it is looked at, and of its other tabs those made of other things."""

SERIOUS = ("serious", "critical")
TRIES = 3
OPTIONS = {"resultTypes": ["violations"], "preload": False}
COLOURS = {**OPTIONS, "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""A page that turns dark keeps its elements, names and roles: only the rules about colours may answer anew."""

SHOWN = "[class*='_tab_panel']"
GROUND = """() => getComputedStyle(document.querySelector("[data-testid='stApp']")).backgroundColor"""
FADED = """() => Promise.race([new Promise(done => setTimeout(done, 5000)), Promise.all(document.getAnimations()
    .filter(each => each instanceof CSSTransition).map(each => each.finished.catch(() => null)))])"""
"""Colours change by transitions: until none is left, or halves of them would be measured."""

GROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 28)"}
SURFACE = """ground => [...document.querySelectorAll(".js-plotly-plot")]
    .every(figure => figure._fullLayout?.paper_bgcolor === ground)"""
"""Whether every figure of Plotly's stands on a color."""


def stored(folder: Path) -> tuple[Opening, Run]:
    """A corpus of 240 rows with its map, five runs along lambda and an ablation: nothing is computed."""
    store = RunStore(folder / "runs")
    opening = openings(store.root).start(write_shard(folder / "shard.parquet"), "shard")
    opening.wait(LONG / 1000)
    corpus = opening.corpus
    assert corpus is not None, opening.job.error
    lay_out(corpus, store.cache_dir, corpus.features[:, :2], corpus.features[:, 0])
    codes = (np.arange(len(corpus)) % REGIONS).astype(np.int32)
    names = tuple(f"some, words {number}" for number in range(REGIONS))
    regions = NamedRegions(codes, names, corpus.features[:REGIONS, :2].astype(np.float32))
    stored_regions(corpus, store.cache_dir, "UMAP").keep(regions)
    result = made_result(ROBUST, fingerprint=corpus.fingerprint, n=len(corpus), rows=100)
    assert ablation_results.save(store.cache_dir, result)
    for lamb in (0.0, 0.25, 0.75, 1.0, 0.5):
        length = math.hypot(lamb, 1 - lamb)
        run = finish_run(
            store,
            corpus,
            opening.config,
            lamb * corpus.quality - (1 - lamb) * corpus.features[:, 0],
            name=f"balance {lamb:g}",
            lamb=lamb,
            objective="pairwise",
            estimator="relaxed",
            shares={"quality": lamb / length, "diversity": (1 - lamb) / length},
        )
    return opening, run


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory) -> Iterator[tuple[str, str]]:
    """The address of a dashboard, and what in an address names the corpus and one of its runs."""
    folder = tmp_path_factory.mktemp("dashboard")
    opening, run = stored(folder)
    with served(folder) as address:
        yield address, f"corpus={opening.key}&run={run.id}"


def turn(page: Page, theme: str) -> None:
    """Make the page light or dark, as the reader's system asks for it, and wait until it is."""
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.wait_for_function(f"({GROUND})() === {GROUNDS[theme]!r}")
    page.wait_for_function(STILL)
    page.evaluate(FADED)


def barriers(page: Page, where: str, part: str | None = None, *, colours: bool = False) -> list[str]:
    """What axe calls serious or critical on the page: rule, page, element, and what is wrong with it.

    Args:
        part: a selector of what is looked at; None: the whole page. colours: ask the rules about colours alone.
    """
    for _ in range(TRIES):
        page.wait_for_function(STILL)
        answer = Axe().run(page, part, COLOURS if colours else OPTIONS).response
        # what was drawn anew meanwhile was pale
        if page.evaluate(QUIET):
            break
    rules = {rule["id"] for outcome in ("passes", "violations", "incomplete") for rule in answer[outcome]}
    assert rules >= {"color-contrast"} if colours else len(rules) > 4, f"axe looked at nothing: {where}"
    lines = []
    for rule in answer["violations"]:
        if rule["impact"] in SERIOUS:
            for node in rule["nodes"]:
                wrong = "; ".join(check["message"] for check in (*node["any"], *node["all"], *node["none"]))
                lines.append(f"{rule['id']} on {where}: {node['html'][:200]} at {node['target'][-1]}: {wrong[:200]}")
    return lines


@pytest.mark.timeout(400)
def test_the_map_without_a_corpus_has_no_serious_barrier(tmp_path: Path, browser_page: Page):
    with served(tmp_path) as address:
        browser_page.goto(address)
        expect(browser_page.get_by_test_id("stMain").get_by_text("No corpus is open")).to_be_visible()
        turn(browser_page, "dark")
        assert not barriers(browser_page, "Map without a corpus, dark")


@pytest.mark.timeout(900)
def test_no_page_has_a_serious_barrier(dashboard, browser_page: Page):
    page, (address, named) = browser_page, dashboard
    found: list[str] = []
    for path, ready, parts in VIEWS:
        page.goto(f"{address}/{path}{'&' if '?' in path else '?'}{named}")
        page.locator(ready).first.wait_for(state="attached")
        for theme in GROUNDS:
            turn(page, theme)
            if "js-plotly" in ready:
                page.wait_for_function(SURFACE, arg=palette.shades(theme == "dark").ground)
            found += barriers(page, f"{path or 'map'}, {theme}", colours=theme == "dark")
        if path in ("", "compare"):
            for name, title in zip(
                page.get_by_role("application").evaluate_all("all => all.map(e => e.ariaLabel)"),
                page.locator(".panel .title").all_inner_texts(),
                strict=True,
            ):
                assert name == f"Map: {title}"
        main = page.get_by_test_id("stMain")
        for part in parts:
            main.get_by_role("radio", name=part, exact=True).click()
            page.wait_for_function(STILL)
            page.evaluate(FADED)
            found += barriers(page, f"{path or 'map'}, {part}, {theme}", SHOWN)
        # an icon among words is read aloud by its name
        expect(page.locator("[role='img'][aria-label$=' icon']")).to_have_count(0)
        expect(page.locator(FAILED)).to_have_count(0)
    assert not found, "\n".join(found)


@pytest.mark.timeout(400)
def test_a_pressed_cell_opens_its_texts(dashboard, browser_page: Page):
    page, (address, named) = browser_page, dashboard
    page.goto(f"{address}/?{named}")
    main = page.get_by_test_id("stMain")
    main.get_by_role("radio", name="Under- and over-represented", exact=True).click()
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
