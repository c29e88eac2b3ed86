"""How long the pages take with a large corpus open, in a real browser, and what the server holds in memory.

    python -m benchmarks.pages --work FOLDER [--sizes 20000x128 200000x128 1000000x128]
                               [--explored 1000000x128] [--slid 63666x384 1000000x128] [--stored 20000x128]
                               [--starts 5] [--against JSON]

Makes a synthetic corpus per size in the folder, and a few runs on it; serves the dashboard; then, for every page: the
time from a click in the menu until the page's answer (map, chart, table) stands, the first time and again, and the time
from a typed address. Three tabs on one corpus show whether the features are held once. The map's slider is measured
from the released thumb to that lambda's own selection and values, and what was sent while it was dragged. What is done
on the Map (other colors, a search, a lasso, why a sample is kept) is measured from the act to the page that stands
still with the answer. Compare is opened with 2 and with 200 stored runs, in the same session, since only their ratio
says what stored runs cost. A first start is measured from the first request to the demo's map with what a run selected,
in a new folder of runs. What is made stays in the folder for the next time.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import datetime
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright

import datamask
from benchmarks.clustered import WORDS, build
from benchmarks.corpus import machine
from benchmarks.million import commit
from benchmarks.pages_table import paired_table, table
from datamask.config import CorpusConfig
from datamask.dashboard.data.openings import openings
from datamask.runs.store import Run, RunStore
from datamask.work.cache import FOLDER
from tests.e2e.browsing import FLAGS, NO_BROWSER, installed_browser
from tests.e2e.serving import STILL, serving

SIZES = ("20000x128", "200000x128", "1000000x128")
SLID_AT = "63666x384", "1000000x128"
LETTING_GO = (0.31, 0.72, 0.44, 0.91, 0.16, 0.58, 0.66, 0.23, 0.83)
"""Values of lambda, in no order, of which none was solved beforehand."""

AMOUNTS = (27, 33, 24, 36, 29)
"""Percent of the demo's rows to keep, of which none was solved beforehand."""

EXPLORED_AT, EXPLORED = "1000000x128", {"pairwise": 0.3, "facility": 0.1}
"""The objectives of the runs whose samples are explained, and the share that each selects."""

STORED_AT, STORED = "20000x128", (2, 200)
PATIENCE = 120_000
LOOK = 10
"""Milliseconds from one look at what is waited for to the next."""

DRAWN = ".map:not([data-drawn='0'])[data-drawn]"
"""How many maps a page draws is its own affair; one must be there."""

ANSWERS = {
    "Data": ("data?", ".js-plotly-plot .main-svg .trace"),
    "Runs": ("runs?", "[data-testid='stDataFrame'] canvas"),
    "Map": ("?", DRAWN),
    "Frontier": ("frontier?", ".js-plotly-plot .main-svg .trace"),
    "Evidence": ("evidence?", ".st-key-ablation_start button"),
    "Compare": ("compare?", DRAWN),
    "Export": ("export?", "[data-testid='stDownloadButton'] button"),
}
"""Of each page, by its heading, its address and what must stand before it counts as answered."""

WANTED = {
    "first_paint_20000": 3.0,
    "first_paint_1000000": 5.0,
    "slider_to_values": 0.5,
    "slider_to_map": 2.0,
    "explored_again": 2.0,
    "row": 0.5,
    "released_63666": 1.0,
    "released_1000000": 2.0,
    "warm_start": 6.0,
}
"""Seconds, at most, on two quiet cores."""

ROW_BOX, ROW_PIXELS = 18, 35
"""Of a table in pixels: where the box of a row lies, and how high a row is."""

HEADLINE = """() => [...document.querySelectorAll("[data-testid='stMarkdownContainer'] p")]
    .map(line => line.textContent).find(text => / rows shown/.test(text)) ?? ''"""
"""The sentence of the Map that says how many samples are shown, and how many of them are selected."""

PARTS = "[aria-label='What each term adds to the row\\'s score, up to score minus threshold']"


def parse(size: str) -> tuple[int, int]:
    """Rows and dimensions of ``rows x dim``."""
    rows, dim = size.split("x")
    return int(rows), int(dim)


def prepare(work: Path, rows: int, dim: int, runs: bool) -> tuple[Path, str]:
    """Corpus, its opening noted, and the runs that the pages show; gives the folder of the runs' parent and the key."""
    shards = build(work, rows, dim)
    folder = work / f"pages-{rows}-{dim}"
    config = CorpusConfig((str(shards),), rows=rows)
    store = RunStore(folder / "runs")
    opening = openings(store.root).start(config, shards.name)
    opening.wait()
    assert opening.ready, opening.job.error
    if runs and not any(run.status().state == "done" for run in store.list()):
        for options in (
            ["--vary", "lamb=0.3:0.7:3", "--estimator", "relaxed", "--n_epochs", "10"],
            ["--vary", "estimator=top-quality,random"],
        ):
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "datamask",
                    "sweep",
                    str(shards),
                    "--rows",
                    str(rows),
                    "--objective",
                    "pairwise",
                    "--runs_dir",
                    str(store.root),
                    *options,
                ],
                check=True,
            )
    return folder, opening.key


def explored_runs(work: Path, rows: int, dim: int) -> list[Run]:
    """The newest solved run of each objective whose samples are explained, made where there is none."""
    folder, shards = work / f"pages-{rows}-{dim}", work / f"clustered-{rows}-{dim}"
    store = RunStore(folder / "runs")
    runs = []
    for objective, ratio in EXPLORED.items():

        def solved(objective: str = objective) -> Run | None:
            """Such a run, where there is one."""
            done = [run for run in store.list() if run.status().state == "done"]
            chosen = [run for run in done if run.config.selection.objective == objective]
            return next((run for run in chosen if run.config.selection.estimator == "relaxed"), None)

        if solved() is None:
            words = [
                *("--output", str(folder / f"{objective}.parquet"), "--estimator", "relaxed", "--objective", objective),
                *("--select_ratio", str(ratio), "--rows", str(rows), "--runs_dir", str(store.root)),
            ]
            subprocess.run([sys.executable, "-m", "datamask", "select", str(shards), *words], check=True)
        run = solved()
        assert run is not None, f"the run by {objective} must have ended"
        runs.append(run)
    return runs


def memory(pid: int) -> dict[str, float]:
    """MB that a process holds now and has held at most, by Linux's own count."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return {name: round(int(lines[key].split()[0]) / 1024, 1) for name, key in (("now", "VmRSS"), ("peak", "VmHWM"))}


def busy_seconds(pid: int) -> float:
    """CPU seconds a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family_seconds() -> float:
    """CPU seconds that the processes begun by this one have used: server and browser together, by Linux's own count."""
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        children: list[int] = []
        with contextlib.suppress(OSError):  # it may end meanwhile
            for task in Path(f"/proc/{waiting.pop()}/task").iterdir():
                children += map(int, (task / "children").read_text().split())
        for child in children:
            with contextlib.suppress(OSError):
                total += busy_seconds(child)
        waiting += children
    return total


def still(pid: int, limit: float = 900.0) -> None:
    """Wait until the server computes nothing: caches that fill in the background are not the page's time."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        used = busy_seconds(pid)
        time.sleep(2.0)
        if busy_seconds(pid) - used < 0.4:
            return


def seen(locator: Locator) -> None:
    """Wait until something is visible. Playwright's own waits look at it after 0.02, 0.07, 0.17, 0.27 s, and then every
    half of a second: what they measure is one of these numbers."""
    end = time.monotonic() + PATIENCE / 1000
    while not locator.is_visible():
        if time.monotonic() > end:
            raise TimeoutError(f"not visible after {PATIENCE / 1000:.0f} s: {locator}")
        locator.page.wait_for_timeout(LOOK)


def answered(page: Page, name: str) -> None:
    """Wait until a page has drawn its answer."""
    seen(page.get_by_role("heading", name=name, exact=True).first)
    seen(page.locator(ANSWERS[name][1]).first)


def clicked(page: Page, name: str) -> float:
    """Seconds from a click in the menu to the answer."""
    start = time.perf_counter()
    go(page, name)
    answered(page, name)
    return time.perf_counter() - start


def go(page: Page, name: str) -> None:
    """To a page by the menu."""
    page.locator(".st-key-menu").get_by_role("link", name=name, exact=True).click()


def addressed(context: BrowserContext, address: str, key: str, name: str) -> tuple[Page, float]:
    """A new tab at a page's address, and the seconds to its answer."""
    page = context.new_page()
    start = time.perf_counter()
    page.goto(f"{address}/{ANSWERS[name][0]}corpus={key}", wait_until="commit")
    answered(page, name)
    return page, time.perf_counter() - start


def settled(page: Page) -> None:
    """Wait until the script has ended."""
    page.locator("[data-testid='stApp'][data-test-script-state='notRunning']").wait_for()


def measure_pages(browser: Browser, address: str, pid: int, key: str, rounds: int) -> dict:
    """First paint of every page and the server's memory, from one tab to three."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{address}/data?corpus={key}")
    answered(page, "Data")
    still(pid)
    opened = memory(pid)
    entries: dict[str, dict] = {}
    # every other page lies between two visits, so that a visit is a change of page
    for visit in range(1 + rounds):
        for name in (*list(ANSWERS)[1:], "Data"):
            seconds = clicked(page, name)
            settled(page)
            entry = entries.setdefault(name, {"again": []})
            if visit:
                entry["again"].append(round(seconds, 2))
            else:
                entry["first"] = round(seconds, 2)
                print(f"{name}: first {seconds:.2f} s", flush=True)
                still(pid)
    for name, entry in entries.items():
        entry["again"] = statistics.median(entry["again"]) if rounds else None
        tab, entry["address"] = addressed(context, address, key, name)
        entry["address"] = round(entry["address"], 2)
        settled(tab)
        tab.close()
    used = memory(pid)
    tabs = [addressed(context, address, key, "Map")[0] for _ in range(3)]
    for tab in tabs:
        settled(tab)
    three = memory(pid)
    context.close()
    return {
        "pages": entries,
        "memory_mb": {
            "corpus_open": opened["now"],
            "all_pages_seen": used["now"],
            "three_more_tabs": three["now"],
            "peak": three["peak"],
        },
    }


@dataclass(frozen=True)
class Took:
    """What an act took: seconds on the clock, and CPU seconds of server and browser together."""

    seconds: float
    cpu: float


def until_still(page: Page, act: Callable[[], object], answers: Callable[[], object]) -> Took:
    """From an act until its answer is there and the whole page stands still."""
    used, start = family_seconds(), time.perf_counter()
    act()
    answers()
    page.wait_for_function(STILL)
    seconds = time.perf_counter() - start
    return Took(round(seconds, 2), round(family_seconds() - used, 2))


def until_counted(page: Page, act: Callable[[], object]) -> Took:
    """From an act that changes which samples are shown until the page shows them and stands still."""
    before = page.evaluate(HEADLINE)
    changed = f"before => ({HEADLINE})() !== before"
    return until_still(page, act, lambda: page.wait_for_function(changed, arg=before))


def outline(page: Page) -> None:
    """Draw a circle on the last map, but for letting go of it."""
    box = page.locator(".stage").last.bounding_box()
    assert box is not None, "the map must be on the page"
    x, y, radius = box["x"] + 0.7 * box["width"], box["y"] + 0.7 * box["height"], 0.2 * box["width"]
    for corner in range(25):
        page.mouse.move(x + radius * math.cos(corner / 4), y + radius * math.sin(corner / 4))
        if not corner:
            page.mouse.down()


def other_colours(page: Page, name: str) -> Took:
    """From choosing what colours the map until it is drawn so."""
    menu = page.get_by_role("combobox", name="Color by")
    if not menu.is_visible():
        page.get_by_role("button", name="More colors").click()
    menu.click()
    option = page.get_by_role("option", name=name, exact=True)
    option.wait_for()
    title = page.locator(".map .title").first
    return until_still(page, option.click, lambda: seen(title.filter(has_text=re.compile(f"^{name}$", re.IGNORECASE))))


def why(page: Page, step: int) -> Took:
    """From marking a sample on the map to the answer why it is kept or not; it is let go of again.

    Args:
        step: which sample: so many steps to the right from the middle of the map.
    """
    page.get_by_role("application").first.focus()
    for key in ("0", *["ArrowRight"] * step):
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    question = page.get_by_text(re.compile("^Why is it (selected|not selected)"))

    def answers() -> None:
        seen(question)
        seen(page.locator(PARTS))

    took = until_still(page, lambda: page.keyboard.press("m"), answers)
    page.get_by_role("button", name="Close", exact=True).click()
    question.wait_for(state="hidden")
    page.wait_for_function(STILL)
    return took


def read_row(page: Page, row: int) -> Took:
    """From a click on a row of the Map's list until the reader shows that row; it is let go of again.

    Args:
        row: which one, from 0.
    """
    rows = page.get_by_test_id("stDataFrame").last
    rows.scroll_into_view_if_needed()
    close = page.get_by_role("button", name="Close", exact=True)
    # the box of the row, below the header
    below = ROW_PIXELS * (row + 1.5)
    took = until_still(page, lambda: rows.click(position={"x": ROW_BOX, "y": below}), lambda: seen(close))
    close.click()
    close.wait_for(state="hidden")
    page.wait_for_function(STILL)
    return took


def measure_explored(browser: Browser, address: str, pid: int, key: str, runs: list[Run], rounds: int) -> dict:
    """What it takes to see the map, colour it, search, lasso, show all again, compare, and be told why.

    The first time and again, each until the page stands still.
    """
    began = os.getloadavg()[0]
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(PATIENCE)
    acts: dict[str, list[Took]] = {}

    def note(name: str, took: Took) -> None:
        acts.setdefault(name, []).append(took)
        print(f"{name}: {took.seconds} s, {took.cpu} s of CPU, load {os.getloadavg()[0]:.1f}", flush=True)

    def opened(name: str) -> Took:
        return until_still(page, lambda: go(page, name), lambda: answered(page, name))

    page.goto(f"{address}/data?corpus={key}&run={runs[0].id}")
    answered(page, "Data")  # by a first look; the corpus opens behind it
    still(pid)
    page.wait_for_function(STILL)
    search, everything = (
        page.get_by_role("textbox", name="Search the texts"),
        page.get_by_role("button", name="Show all rows"),
    )
    for number in range(1 + rounds):
        note("map", opened("Map"))
        note("other colors", other_colours(page, "length" if number % 2 else "domain"))
        other_colours(page, "quality score")
        search.fill(WORDS[number])
        note("search", until_counted(page, lambda: search.press("Enter")))
        note("row", read_row(page, number % 4))
        note("show all again", until_counted(page, everything.click))
        outline(page)
        note("lasso", until_counted(page, page.mouse.up))
        note("show all again", until_counted(page, everything.click))
        note("compare", opened("Compare"))
        if not number:
            still(pid)
    for run in runs:
        page.goto(f"{address}/?corpus={key}&run={run.id}")
        answered(page, "Map")
        page.wait_for_function(STILL)
        for number in range(1 + rounds):
            note(f"why, {run.config.selection.objective}", why(page, number))
            if not number:
                still(pid)
    page.close()
    return {
        "acts": {
            name: {
                "first": times[0].seconds,
                "again": [each.seconds for each in times[1:]],
                "cpu_again": [each.cpu for each in times[1:]],
            }
            for name, times in acts.items()
        },
        "memory_mb": memory(pid),
        **conditions(began),
    }


def many(folder: Path, count: int) -> Path:
    """A folder beside this one with its caches and so many runs, copies of those there are."""
    source, target = folder / "runs", folder.with_name(f"{folder.name}-{count}-runs") / "runs"
    shutil.copytree(source / FOLDER, target / FOLDER, dirs_exist_ok=True)
    done = [run for run in RunStore(source).list() if run.status().state == "done"]
    for number in range(count):
        if not (target / f"copy-{number:03d}").exists():
            shutil.copytree(done[number % len(done)].path, target / f"copy-{number:03d}")
    return target.parent


def measure_stored(browser: Browser, address: str, pid: int, key: str, rounds: int) -> dict:
    """Medians of opening Compare: seconds after a click and by address, and CPU seconds of the server for a click."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{address}/data?corpus={key}")
    answered(page, "Data")
    clicked(page, "Compare")
    still(pid)
    clicks, busy, addresses = [], [], []
    for _ in range(rounds):
        clicked(page, "Data")
        settled(page)
        still(pid)
        used = busy_seconds(pid)
        clicks.append(clicked(page, "Compare"))
        settled(page)
        busy.append(busy_seconds(pid) - used)
        tab, seconds = addressed(context, address, key, "Compare")
        settled(tab)
        tab.close()
        addresses.append(seconds)
    context.close()
    return {
        name: round(statistics.median(times), 2)
        for name, times in (("click", clicks), ("address", addresses), ("server_cpu", busy))
    }


RELEASED = """slider => {
    window.addEventListener('pointerup', () => window.released = performance.now(), true);
    new MutationObserver(() => window.shown = {lamb: slider.dataset.shown, at: performance.now()}).observe(
        slider, {attributeFilter: ['data-shown']});
}"""


FOLLOWED = """bar => {
    window.addEventListener('pointerup', () => { window.released = performance.now(); window.followed = null; }, true);
    new MutationObserver(() => {
        if (window.followed === null && !bar.matches('.moved'))
            window.followed = {words: bar.textContent, at: performance.now()};
    }).observe(bar, {attributes: true, childList: true, subtree: true});
}"""
"""Notes when the answer bar says what is solved, for the first time since the pointer let go."""

KEEP = "Keep, in percent of all"
"""The name of the slider of the amount."""

PAINTED = """() => {
    window.painted = [];
    const note = at => { window.painted.push(at); requestAnimationFrame(note); };
    requestAnimationFrame(note);
}"""
"""Notes the time of every frame that the page paints."""


def measure_slider(browser: Browser, address: str, pid: int, key: str, run: Run) -> dict:
    """The map's own lambda slider: what is sent while it is dragged, and when a released lambda's selection stands."""
    began, sent = os.getloadavg()[0], list[int]()
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(len(data))))
    page.goto(f"{address}/?corpus={key}&run={run.id}")
    answered(page, "Map")
    prepare = page.get_by_role("button", name="Prepare λ")
    solved = page.locator(".signs .solved")
    prepare.or_(solved.nth(20)).first.wait_for()
    still(pid)
    start = time.perf_counter()
    if prepare.count():
        prepare.click()
    solved.nth(20).wait_for(timeout=10 * PATIENCE)
    prepared = time.perf_counter() - start
    # until every lambda is proved, the page asks each second how far they are
    before = -1
    while before != len(sent):
        before = len(sent)
        page.wait_for_timeout(3000)
    still(pid)
    page.wait_for_function(STILL)
    slider, strip = page.get_by_role("slider", name=re.compile("^Balance λ")), page.locator(".lambda")
    strip.evaluate(RELEASED)
    page.evaluate(PAINTED)
    moves = []
    for lamb in LETTING_GO:
        frames, asked = dragged(page, slider, (float(slider.input_value()), lamb), sent)
        page.mouse.up()
        page.wait_for_function(
            "lamb => window.shown?.lamb === lamb && window.shown.at > window.released", arg=f"{lamb:g}"
        )
        seconds = page.evaluate("window.shown.at - window.released") / 1000
        numbers = page.locator(".answer").inner_text()
        moves.append(
            {
                "lamb": lamb,
                "sent_while_dragged": asked,
                "seconds": round(seconds, 3),
                "numbers": numbers,
                "frames": frames,
            }
        )
        print(
            f"released at {lamb:g}: {seconds:.2f} s, {asked} sent while dragged, {frames:.0f} frames a second",
            flush=True,
        )
        page.wait_for_function(STILL)
        still(pid)
    slid = {"prepared": round(prepared, 1), "moves": moves, "memory_mb": memory(pid)}
    if (keep := page.get_by_role("slider", name=KEEP)).count():
        # and back: to solve other amounts of so many rows is measured elsewhere
        there = [dragged(page, keep, shares, sent)[0] for shares in ((0.3, 0.4), (0.4, 0.3))]
        page.mouse.up()
        slid["keep_frames"] = round(statistics.mean(there), 1)
    page.close()
    return {**slid, **conditions(began)}


def dragged(page: Page, slider: Locator, shares: tuple[float, float], sent: list[int]) -> tuple[float, int]:
    """Drag a slider from one share of its track to another, and hold it.

    Returns:
        frames a second that the page painted, and the messages that it sent.
    """
    track = slider.bounding_box()
    assert track is not None, "the slider must be on the page"
    # the middle of the thumb moves along the track less its own width
    along = [track["x"] + 8 + (track["width"] - 16) * share for share in shares]
    height = track["y"] + track["height"] / 2
    page.mouse.move(along[0], height)
    page.mouse.down()
    sent.clear()
    start = page.evaluate("() => { window.painted.length = 0; return performance.now(); }")
    page.mouse.move(along[1], height, steps=60)
    frames = page.evaluate("from => 1000 * window.painted.length / (performance.now() - from)", start)
    return round(frames, 1), len(sent)


def measure_amounts(browser: Browser, work: Path) -> dict:
    """On the demo: frames while *Keep* is dragged, and seconds from letting go to the solved answer bar."""
    folder, sent, moves = work / "pages-amounts", list[int](), []
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = os.getloadavg()[0]
    with serving(folder, DATAMASK_SAMPLE="") as (address, server):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        answered(page, "Map")
        page.evaluate(PAINTED)
        page.locator(".answer").evaluate(FOLLOWED)
        keep = page.get_by_role("slider", name=KEEP)
        for percent in AMOUNTS:
            still(server.pid)
            page.wait_for_function(STILL)
            shares = (int(keep.input_value()) - 1) / 98, (percent - 1) / 98
            frames, _ = dragged(page, keep, shares, sent)
            page.mouse.up()
            page.wait_for_function("() => window.followed")
            words, seconds = page.evaluate("[window.followed.words, (window.followed.at - window.released) / 1000]")
            assert re.search(rf"keep {percent}\s%", words, re.IGNORECASE), words
            seconds = round(seconds, 2)
            moves.append({"percent": percent, "seconds": seconds, "frames": frames})
            print(f"keep {percent} %: {seconds:.2f} s, {frames:.0f} frames a second", flush=True)
        page.close()
    return {"moves": moves, **conditions(began)}


def measure_starts(browser: Browser, work: Path, starts: int) -> dict:
    """Seconds from the first request to the demo's map with a selection, each time in a new folder of runs."""
    folder = work / "pages-demo"
    began, seconds, answers = os.getloadavg()[0], [], []
    for _ in range(starts):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        start = time.perf_counter()
        with serving(folder, DATAMASK_SAMPLE="") as (address, server):
            answers.append(time.perf_counter() - start)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(PATIENCE)
            start = time.perf_counter()
            page.goto(address, wait_until="commit")
            seen(page.locator(".map[data-drawn='1']"))
            seen(page.locator(".answer .size").first)
            page.wait_for_function(STILL)
            seconds.append(time.perf_counter() - start)
            print(f"first map: {seconds[-1]:.2f} s, load {os.getloadavg()[0]:.1f}", flush=True)
            page.close()
            still(server.pid)
    return {
        "seconds": [round(each, 2) for each in seconds],
        "server_answers": [round(each, 2) for each in answers],
        **conditions(began),
    }


def conditions(load_before: float) -> dict:
    """Under what something was measured."""
    return {
        "load": [round(load_before, 1), round(os.getloadavg()[0], 1)],
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
    }


def write(results: dict, output: Path) -> None:
    """Store the results, and print and store their table."""
    output.write_text(json.dumps(results, indent=1) + "\n")
    output.with_suffix(".md").write_text(table(results))
    print(table(results), flush=True)


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="corpora and runs are made here, and kept")
    parser.add_argument("--sizes", nargs="*", default=SIZES, metavar="ROWSxDIM")
    parser.add_argument("--explored", nargs="*", default=[EXPLORED_AT], metavar="ROWSxDIM", help="for acts on the Map")
    parser.add_argument("--slid", nargs="*", default=SLID_AT, metavar="ROWSxDIM", help="for the map's slider")
    parser.add_argument("--stored", nargs="*", default=[STORED_AT], metavar="ROWSxDIM", help="for 200 stored runs")
    parser.add_argument("--starts", type=int, default=5, help="first starts with the demo; 0: none")
    parser.add_argument("--rounds", type=int, default=3, help="further visits of every page")
    parser.add_argument("--against", type=Path, metavar="JSON", help="results of another commit: a table of both")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "pages.json")
    options = parser.parse_args()
    browser_path = installed_browser()
    if browser_path is None:
        parser.error(NO_BROWSER)
    # as pip does: no visitor waits for that
    compileall.compile_dir(datamask.__path__[0], quiet=1)
    results = json.loads(options.output.read_text()) if options.output.exists() else {"sizes": {}}
    kept, load = results["sizes"], [round(os.getloadavg()[0], 1)]
    results["wanted"] = WANTED
    # acts on the Map say their own machine, load and day
    names_the_rest = bool(options.sizes or options.stored) or "date" not in results
    if names_the_rest:
        results |= {"date": datetime.date.today().isoformat(), "machine": machine(), "load": load, "commit": commit()}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
        for size in dict.fromkeys((*options.sizes, *options.explored, *options.slid, *options.stored)):
            rows, dim = parse(size)
            folder, key = prepare(options.work, rows, dim, runs=size in (*options.sizes, *options.stored))
            explored = explored_runs(options.work, rows, dim) if size in (*options.explored, *options.slid) else []
            with serving(folder, DATAMASK_ROOTS=str(options.work.absolute())) as (address, server):
                if size in options.sizes:
                    kept[size] = kept.get(size, {}) | measure_pages(browser, address, server.pid, key, options.rounds)
                if size in options.explored:
                    acts = measure_explored(browser, address, server.pid, key, explored, options.rounds)
                    kept[size] = kept.get(size, {}) | {"explored": acts}
                for run in explored if size in options.slid else ():
                    slid = measure_slider(browser, address, server.pid, key, run)
                    entry = kept.setdefault(size, {})
                    entry["slid"] = entry.get("slid", {}) | {run.config.selection.objective: slid}
                    write(results, options.output)
            for count in STORED if size in options.stored else ():
                with serving(many(folder, count), DATAMASK_ROOTS=str(options.work.absolute())) as (address, server):
                    stored = measure_stored(browser, address, server.pid, key, options.rounds)
                entry = kept.setdefault(size, {})
                entry["stored"] = entry.get("stored", {}) | {str(count): stored}
            if names_the_rest:
                results["load"] = [*load, round(os.getloadavg()[0], 1)]
            write(results, options.output)
        if options.starts:
            results["starts"] = measure_starts(browser, options.work.absolute(), options.starts)
            results["amounts"] = measure_amounts(browser, options.work.absolute())
            write(results, options.output)
        browser.close()
    if options.against is not None:
        paired = paired_table(json.loads(options.against.read_text()), results)
        options.output.with_name(f"{options.output.stem}-against.md").write_text(paired)
        print(paired)


if __name__ == "__main__":
    main()
