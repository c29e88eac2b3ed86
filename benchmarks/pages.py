"""How long the pages take with a large corpus open, in a real browser, and what the server holds in memory.

    python -m benchmarks.pages --work FOLDER [--sizes 20000x128 200000x128 1000000x128] [--live 100000x384]
                               [--explored 1000000x128] [--slid 63666x384 1000000x128] [--stored 20000x128]
                               [--starts 5]

Makes a synthetic corpus per size in the folder, and a few runs on it; serves the dashboard; then, for every page: the
time from a click in the menu until the page's answer (map, chart, table) stands, the first time and again, and the time
from a typed address. Three tabs on one corpus show whether the features are held once. The live lambda is measured from
the released slider to the new values and to the redrawn map; the map's own slider from the released thumb to that
lambda's own selection and values, and what was sent while it was dragged. What is done on the Map (other colours, a
search, a lasso, why a sample is kept) is measured from the act to the page that stands still with the answer. Compare
is opened with 2 and with 200 stored runs, in the same session, since only their ratio says what stored runs cost. A
warm start is measured from the server's command to the sample's map with what a run selected, once everything that the
first start makes of the sample is there. What is made stays in the folder for the next time.
"""

from __future__ import annotations

import argparse
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
from urllib.parse import urlencode

from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright

from benchmarks.clustered import WORDS, build
from benchmarks.corpus import machine
from benchmarks.million import commit
from datamask.config import CorpusConfig
from datamask.dashboard.analyses.frontier.form_panel import LIVE
from datamask.dashboard.data import sample
from datamask.dashboard.data.openings import openings
from datamask.dashboard.data.sample_work import Note
from datamask.runs.store import Run, RunStore
from tests.e2e.browsing import FLAGS, NO_BROWSER, installed_browser
from tests.e2e.serving import STILL, serving

SIZES = ("20000x128", "200000x128", "1000000x128")
AT = "100000x384"
SLID_AT = "63666x384", "1000000x128"
LETTING_GO = (0.31, 0.72, 0.44, 0.91, 0.16, 0.58, 0.66, 0.23, 0.83)
"""Values of lambda, in no order, of which none was solved beforehand."""

EXPLORED_AT, EXPLORED = "1000000x128", {"pairwise": 0.3, "facility": 0.1}
"""The objectives of the runs whose samples are explained, and the share that each selects."""

STORED_AT, STORED = "20000x128", (2, 200)
PATIENCE = 600_000
DRAWN = ".map:not([data-drawn='0'])[data-drawn]"
"""How many maps a page draws is its own affair; one must be there."""

ANSWERS = {
    "Data": ("data?", "Which corpus?", ".js-plotly-plot .main-svg .trace"),
    "Runs": ("runs?", "How does the learner choose?", "[data-testid='stMetricValue']"),
    "Map": ("?", "Which samples are kept, and where do they lie?", DRAWN),
    "Frontier": ("runs?view=frontier&", "What does lambda cost?", ".js-plotly-plot .main-svg .trace"),
    "Evidence": (
        "evidence?",
        "Does it help, and which lambda?",
        "[data-testid='stMain'] button[kind='primary']",
    ),
    "Compare": ("runs?view=compare&", "What changes between these runs?", DRAWN),
    "Lab": ("lab?", "What does each objective see?", ".js-plotly-plot .main-svg"),
    "Export": ("export?", "What do you take home?", "[data-testid='stDownloadButton'] button"),
}
"""Of each page its address, the question on top, and what must stand before it counts as answered."""

TABS = {"Runs": "All runs", "Frontier": "Frontier", "Compare": "Compare"}
"""The sections of the page Runs, by their name here."""

WANTED = {
    "first_paint_20000": 3.0,
    "first_paint_1000000": 5.0,
    "slider_to_values": 0.5,
    "slider_to_map": 2.0,
    "explored_again": 2.0,
    "released_63666": 1.0,
    "released_1000000": 2.0,
    "warm_start": 6.0,
}
"""Seconds, at most, on two quiet cores."""

WATCH = """map => {
    const metrics = "[data-testid='stMetricValue']";
    const said = () => [...document.querySelectorAll(metrics)].map(one => one.textContent).join();
    window.changed = {values: 0, map: 0};
    window.addEventListener('pointerup', () => {
        const before = said();
        window.released = performance.now();
        const look = () => {
            if (said() === before) requestAnimationFrame(look);
            else window.changed.values = performance.now();
        };
        look();
    }, true);
    new MutationObserver(() => window.changed.map = performance.now()).observe(
        map, {attributeFilter: ['data-milliseconds']});
}"""


HEADLINE = """() => [...document.querySelectorAll("[data-testid='stMarkdownContainer'] p")]
    .map(line => line.textContent).find(text => / samples shown/.test(text)) ?? ''"""
"""The sentence of the Map that says how many samples are shown, and how many of them are selected."""

PARTS = "[aria-label='What each part adds to the sample\\'s score, up to score minus threshold']"


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


def answered(page: Page, name: str) -> None:
    """Wait until a page has drawn its answer."""
    _, question, selector = ANSWERS[name]
    page.get_by_role("heading", name=question).first.wait_for()
    page.locator(selector).first.wait_for()


def clicked(page: Page, name: str) -> float:
    """Seconds from a click in the menu to the answer."""
    start = time.perf_counter()
    go(page, name)
    answered(page, name)
    return time.perf_counter() - start


def go(page: Page, name: str) -> None:
    """To a page by the menu; of a page with sections to one of them, by its tab where another was open there."""
    page.locator(".st-key-menu").get_by_role("link", name="Runs" if name in TABS else name, exact=True).click()
    if name in TABS:
        tab = page.get_by_role("tab", name=TABS[name], exact=True)
        if tab.get_attribute("aria-selected") != "true":
            tab.click()


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
    changed = f"before => {{ const now = ({HEADLINE})(); return now && now !== before; }}"
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
    page.get_by_role("combobox", name="Colour by").click()
    option = page.get_by_role("option", name=name, exact=True)
    option.wait_for()
    title = page.locator(".map .title").first
    return until_still(
        page, option.click, lambda: title.filter(has_text=re.compile(f"^{name}$", re.IGNORECASE)).wait_for()
    )


def why(page: Page, step: int) -> Took:
    """From marking a sample on the map to the answer why it is kept or not; it is let go of again.

    Args:
        step: which sample: so many steps to the right from the middle of the map.
    """
    page.get_by_role("application").first.focus()
    for key in ("0", *["ArrowRight"] * step):
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    question = page.get_by_text(re.compile("^Why is it (kept|left out)"))

    def answers() -> None:
        question.wait_for()
        page.locator(PARTS).wait_for()

    took = until_still(page, lambda: page.keyboard.press("m"), answers)
    page.get_by_role("button", name="Close", exact=True).click()
    question.wait_for(state="hidden")
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
        page.get_by_role("button", name="Show all again"),
    )
    for number in range(1 + rounds):
        note("map", opened("Map"))
        note("other colours", other_colours(page, "length" if number % 2 else "domain"))
        other_colours(page, "quality")
        search.fill(WORDS[number])
        note("search", until_counted(page, lambda: search.press("Enter")))
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
    shutil.copytree(source / ".cache", target / ".cache", dirs_exist_ok=True)
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


def drag(page: Page, slider: Locator, share: float) -> None:
    """Take the slider's thumb to a share of its track and let go."""
    thumb, track = slider.bounding_box(), slider.locator("xpath=ancestor::*[@data-testid='stSlider']").bounding_box()
    assert thumb is not None and track is not None, "the slider must be on the page"
    page.mouse.move(thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] * share, thumb["y"] + thumb["height"] / 2, steps=5)
    page.mouse.up()


def measure_live(browser: Browser, address: str, pid: int, key: str, objective: str) -> dict:
    """From the released slider to the new values and to the map, for some values of lambda in no order."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(PATIENCE)
    start = time.perf_counter()
    page.goto(f"{address}/runs?{urlencode({'corpus': key, 'view': 'live', 'objective': objective})}")
    slider = page.locator(".st-key-live_values").get_by_role("slider")
    slider.wait_for()
    page.locator(".map[data-drawn='2']").wait_for()
    prepared = time.perf_counter() - start
    still(pid)
    page.locator(".map").evaluate(WATCH)
    moves = []
    for share in (0.31, 0.72, 0.44, 0.9, 0.15, 0.58, 0.66, 0.23, 0.83):
        page.evaluate("window.changed = {values: 0, map: 0}")
        drag(page, slider, share)
        page.wait_for_function("window.changed.values && window.changed.map > window.released")
        page.wait_for_timeout(1500)
        seen = page.evaluate("[window.changed.values - window.released, window.changed.map - window.released]")
        moves.append({"values": round(seen[0] / 1000, 3), "map": round(seen[1] / 1000, 3)})
    page.close()
    return {
        "prepared": round(prepared, 1),
        "moves": moves,
        **{
            what: {
                "median": statistics.median(move[what] for move in moves),
                "worst": max(move[what] for move in moves),
            }
            for what in ("values", "map")
        },
    }


RELEASED = """slider => {
    window.addEventListener('pointerup', () => window.released = performance.now(), true);
    new MutationObserver(() => window.shown = {lamb: slider.dataset.shown, at: performance.now()}).observe(
        slider, {attributeFilter: ['data-shown']});
}"""


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
    moves = []
    for lamb in LETTING_GO:
        track = slider.bounding_box()
        assert track is not None, "the slider must be on the page"
        # the middle of the thumb moves along the track less its own width
        along = [track["x"] + 8 + (track["width"] - 16) * each for each in (float(slider.input_value()), lamb)]
        height = track["y"] + track["height"] / 2
        page.mouse.move(along[0], height)
        page.mouse.down()
        sent.clear()
        page.mouse.move(along[1], height, steps=20)
        asked = len(sent)
        page.mouse.up()
        page.wait_for_function(
            "lamb => window.shown?.lamb === lamb && window.shown.at > window.released", arg=f"{lamb:g}"
        )
        seconds = page.evaluate("window.shown.at - window.released") / 1000
        numbers = page.locator(".lambda .numbers").inner_text()
        moves.append({"lamb": lamb, "sent_while_dragged": asked, "seconds": round(seconds, 3), "numbers": numbers})
        print(f"released at {lamb:g}: {seconds:.2f} s, {asked} sent while dragged", flush=True)
        page.wait_for_function(STILL)
        still(pid)
    page.close()
    return {"prepared": round(prepared, 1), "moves": moves, "memory_mb": memory(pid), **conditions(began)}


def measure_starts(browser: Browser, work: Path, starts: int) -> dict:
    """Seconds from the server's command to the sample's map with a selection, on the page that the server names.

    The first start builds the sample, makes everything of it that comes by itself, and is not measured here.
    """
    folder = work / "pages-sample"
    built, runs = folder / "built", folder / "runs"
    if not built.exists():
        sample.build_in_child(lambda share, what: None, lambda: False)
        shutil.copytree(sample.BUILT, built)
    while not ((note := Note.read(runs)) and note.done):
        assert note is None or not note.stopped, "what is made of the sample was stopped"
        with serving(folder, built, DATAMASK_SAMPLE="") as (_, server):
            while server.poll() is None and not ((note := Note.read(runs)) and (note.done or note.stopped)):
                time.sleep(1.0)
    began, seconds, answers = os.getloadavg()[0], [], []
    for _ in range(starts):
        start = time.perf_counter()
        with serving(folder, built, DATAMASK_SAMPLE="") as (address, server):
            answers.append(time.perf_counter() - start)
            key = re.search(r"/\?corpus=(\w+)", (folder / "server.log").read_text())
            assert key is not None, "the server must say where the sample's map is"
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(PATIENCE)
            page.goto(f"{address}{key[0]}", wait_until="commit")
            page.locator(".map[data-drawn='1']").wait_for()
            page.get_by_text(re.compile(r"\d of them selected")).first.wait_for()
            page.wait_for_function(STILL)
            seconds.append(time.perf_counter() - start)
            print(f"warm start: {seconds[-1]:.2f} s, load {os.getloadavg()[0]:.1f}", flush=True)
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


def table(results: dict) -> str:
    """The results as Markdown."""
    sizes = [size for size in results["sizes"] if "pages" in results["sizes"][size]]
    lines = (
        []
        if not sizes
        else [
            "| seconds to the answer: first, again, by address | " + " | ".join(sizes) + " |",
            "|---|" + "---|" * len(sizes),
        ]
    )
    for name in ANSWERS if sizes else ():
        cells = [results["sizes"][size]["pages"].get(name, {}) for size in sizes]
        lines.append(
            f"| {name} | " + " | ".join(f"{c.get('first')}, {c.get('again')}, {c.get('address')}" for c in cells) + " |"
        )
    memories = [results["sizes"][size]["memory_mb"] for size in sizes]
    for name in ("corpus_open", "all_pages_seen", "three_more_tabs", "peak") if sizes else ():
        lines.append(
            f"| memory, MB: {name.replace('_', ' ')} | " + " | ".join(f"{m[name]:,.0f}" for m in memories) + " |"
        )
    for size, measured in results["sizes"].items():
        for objective, live in measured.get("live", {}).items():
            values, drawn = live["values"], live["map"]
            lines += [
                "",
                f"Live lambda at {size}, {objective}: values after {values['median']} s (at most "
                f"{values['worst']}), map after {drawn['median']} s (at most {drawn['worst']}); prepared in "
                f"{live['prepared']} s.",
            ]
        for objective, slid in measured.get("slid", {}).items():
            seconds = [move["seconds"] for move in slid["moves"]]
            lines += [
                "",
                f"The map's slider at {size}, {objective}: {sum(move['sent_while_dragged'] for move in slid['moves'])} "
                f"messages while it was dragged {len(seconds)} times; a released lambda's own selection after "
                f"{statistics.median(seconds):.2f} s (at most {max(seconds):.2f}); prepared in {slid['prepared']} s "
                f"({conditions_in_words(slid)}; peak {slid['memory_mb']['peak']:,.0f} MB).",
            ]
        if "explored" in measured:
            explored = measured["explored"]
            lines += [
                "",
                f"Map and Compare at {size}, seconds from the act to the page that stands still with the answer "
                f"({conditions_in_words(explored)}; peak {explored['memory_mb']['peak']:,.0f} MB):",
                "",
                "| act | first | then least | median | most | CPU of server and browser, median |",
                "|---|---|---|---|---|---|",
            ]
            for name, times in explored["acts"].items():
                again, cpu = times["again"], statistics.median(times["cpu_again"])
                lines.append(
                    f"| {name} | {times['first']} | {min(again)} | {statistics.median(again):.2f} | {max(again)} | "
                    f"{cpu:.2f} |"
                )
        if "stored" in measured:
            lines += [
                "",
                f"Compare at {size}: "
                + "; ".join(
                    f"with {count} stored runs {stored['click']} s after a click "
                    f"({stored['server_cpu']} s of the server's CPU), "
                    f"{stored['address']} s by address"
                    for count, stored in measured["stored"].items()
                )
                + ".",
            ]
    if "starts" in results:
        starts = results["starts"]
        seconds, answers = starts["seconds"], starts["server_answers"]
        lines += [
            "",
            "Warm start of the sample, from the server's command to its map with a selection: "
            f"{min(seconds)} s at least, {statistics.median(seconds):.2f} s in the median, {max(seconds)} s at most; "
            f"the server answers after {statistics.median(answers):.2f} s ({conditions_in_words(starts)}).",
        ]
    return "\n".join(
        [
            *lines,
            "",
            f"All the rest: load {results['load'][0]} before and {results['load'][-1]} after, {results['date']}.",
            "",
        ]
    )


def write(results: dict, output: Path) -> None:
    """Store the results, and print and store their table."""
    output.write_text(json.dumps(results, indent=1) + "\n")
    output.with_suffix(".md").write_text(table(results))
    print(table(results), flush=True)


def conditions_in_words(measured: dict) -> str:
    """Under what something was measured, in words."""
    before, after = measured["load"]
    machine_and_load = f"{measured['machine']}, load {before} before and {after} after"
    return f"{machine_and_load}, commit {measured['commit']}, {measured['date']}"


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="corpora and runs are made here, and kept")
    parser.add_argument("--sizes", nargs="*", default=SIZES, metavar="ROWSxDIM")
    parser.add_argument("--live", nargs="*", default=[AT], metavar="ROWSxDIM", help="for the live lambda")
    parser.add_argument("--explored", nargs="*", default=[EXPLORED_AT], metavar="ROWSxDIM", help="for acts on the Map")
    parser.add_argument("--slid", nargs="*", default=SLID_AT, metavar="ROWSxDIM", help="for the map's own slider")
    parser.add_argument("--stored", nargs="*", default=[STORED_AT], metavar="ROWSxDIM", help="for 200 stored runs")
    parser.add_argument("--starts", type=int, default=5, help="warm starts of the sample; 0: none")
    parser.add_argument("--rounds", type=int, default=3, help="further visits of every page")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "pages.json")
    options = parser.parse_args()
    browser_path = installed_browser()
    if browser_path is None:
        parser.error(NO_BROWSER)
    results = json.loads(options.output.read_text()) if options.output.exists() else {"sizes": {}}
    kept, load = results["sizes"], [round(os.getloadavg()[0], 1)]
    results["wanted"] = WANTED
    # acts on the Map say their own machine, load and day
    names_the_rest = bool(options.sizes or options.live or options.stored) or "date" not in results
    if names_the_rest:
        results |= {"date": datetime.date.today().isoformat(), "machine": machine(), "load": load}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
        for size in dict.fromkeys((*options.sizes, *options.live, *options.explored, *options.slid, *options.stored)):
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
                if size in options.live:
                    kept[size] = kept.get(size, {}) | {
                        "live": {
                            objective: measure_live(browser, address, server.pid, key, objective) for objective in LIVE
                        }
                    }
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
            write(results, options.output)
        browser.close()


if __name__ == "__main__":
    main()
