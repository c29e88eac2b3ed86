"""Take the pictures that README.md, docs/tour.md and docs/walkthrough.md show, from a fresh demo.

    python docs/take_pictures.py                                  # all of them, some minutes
    python docs/take_pictures.py --keep /tmp/demo --only export   # with the runs of the last time

It serves the dashboard on a free port of the loopback, looks at it with Debian's chromium (or Chrome) through
playwright, and ends the server by its process id. What is cut off or sticks out of the window is printed below the name
of its picture. Needs requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from datamask.runs.store import Run, RunStore  # noqa: E402 - after the path
from tests.e2e import browsing  # noqa: E402
from tests.e2e.overflow import OFFENDERS  # noqa: E402
from tests.e2e.serving import STILL, served  # noqa: E402
from tests.e2e.walkthrough import Walk, place_of, write_shards  # noqa: E402

SCREENS = ROOT / "docs" / "screens"
DEMO = ROOT / "sample_data" / "demo" / "demo.parquet"
PATIENCE = 180_000
"""Milliseconds that something on a page may take."""

COLORS, FILM_COLORS = 256, 200
FILM_WINDOW, FILM_WIDTH = {"width": 1280, "height": 800}, 960
FILM_BYTES = 3_000_000
"""What the page of a repository should have to load, at most."""

POINTER = """([x, y]) => {
    let dot = document.getElementById("pointer");
    if (!dot) {
        dot = Object.assign(document.createElement("div"), {id: "pointer"});
        dot.style.cssText = "position:fixed;z-index:10000000;width:18px;height:18px;margin:-9px;border-radius:50%;" +
            "background:rgba(213,94,0,.55);border:2px solid #fff;pointer-events:none";
        document.body.append(dot);
    }
    dot.style.left = x + "px";
    dot.style.top = y + "px";
}"""
"""Draws a dot where the mouse is, which a picture of a page does not show."""


class Stage:
    """A served dashboard with the demo, and the page of a browser that looks at it.

    Attributes:
        store: its runs. page: of the browser. key: of the demo in addresses; empty before it was opened.
    """

    def __init__(self, folder: Path, address: str, page: Page) -> None:
        self.store, self.page, self._address, self.key = RunStore(folder / "runs"), page, address, ""

    def run(self, objective: str = "facility", estimator: str = "relaxed") -> Run:
        """Return the newest run of these settings at lambda 0.5."""
        wanted = (objective, estimator, 0.5)
        runs = ((run, run.config.selection) for run in self.store.list() if run.status().state == "done")
        return next(run for run, asked in runs if (asked.objective, asked.estimator, asked.lamb) == wanted)

    def go(self, path: str = "", run: Run | None = None) -> None:
        """Open a page of the demo by its address."""
        if not self.key:
            self.page.goto(f"{self._address}/data")
            expect(self.page.get_by_text("Semantic duplicates").first).to_be_visible()
            self.key = self.page.url.partition("corpus=")[2].partition("&")[0]
        asked = f"corpus={self.key}" + (f"&run={run.id}" if run else "")
        self.page.goto(f"{self._address}/{path}{'&' if '?' in path else '?'}{asked}")
        self.settle()

    def go_to_map(self, run: Run) -> None:
        """Open the map of a run."""
        self.go("", run)
        expect(self.page.locator(".stage").first).to_be_visible()
        expect(self.page.locator(".stage .name").filter(visible=True).first).to_be_visible()
        expect(self.page.get_by_text("solving λ")).to_have_count(0)
        self.settle(3)

    def settle(self, seconds: float = 1.0) -> None:
        """Wait until the page stands still, and so long."""
        self.page.get_by_test_id("stMain").get_by_role("heading").first.wait_for()
        self.page.wait_for_function(STILL)
        self.page.wait_for_timeout(int(1000 * seconds))

    def shoot(self, name: str) -> None:
        """Take a picture of the page, with the mouse out of the way and in few colors."""
        self.page.mouse.move(1, self.page.viewport_size["height"] - 1)
        expect(self.page.get_by_test_id("stSkeleton")).to_have_count(0)
        self.page.wait_for_timeout(400)
        target = SCREENS / f"{name}.png"
        self.page.screenshot(path=str(target), animations="disabled", caret="hide")
        with Image.open(target) as picture:
            small = picture.convert("RGB").quantize(COLORS, kmeans=4, dither=Image.Dither.NONE)
        small.save(target, optimize=True)
        print(f"{target.name}: {target.stat().st_size / 1024:.0f} kB", flush=True)
        for offender in self.page.evaluate(OFFENDERS):
            print(f"  {offender}", flush=True)


def data(stage: Stage) -> None:
    stage.go("data")
    expect(stage.page.get_by_text("exact duplicates").first).to_be_visible()
    stage.settle()
    stage.shoot("data")


def map_lasso(stage: Stage) -> None:
    stage.go_to_map(stage.run())
    area, mouse = stage.page.locator(".stage").first.bounding_box(), stage.page.mouse
    x, y, radius = area["x"] + 0.5 * area["width"], area["y"] + 0.62 * area["height"], 0.16 * area["width"]
    mouse.move(x + radius, y)
    mouse.down()
    for step in range(1, 41):
        mouse.move(x + radius * math.cos(step * math.pi / 20), y + radius * math.sin(step * math.pi / 20))
    mouse.up()
    expect(stage.page.get_by_text("rows shown")).to_be_visible()
    stage.settle()
    # by an empty corner of the map: out of the outline itself, the label under the pointer would stay
    mouse.move(area["x"] + area["width"] - 12, area["y"] + area["height"] - 8, steps=8)
    stage.page.wait_for_timeout(1500)
    stage.shoot("map-lasso")


def map_why(stage: Stage) -> None:
    run = stage.run()
    stage.go_to_map(run)
    stage.page.goto(f"{stage.page.url}&sample={quote(str(run.selection()['chunk_id'][40].as_py()))}")
    expect(stage.page.get_by_text("Nearest selected").first).to_be_visible()
    stage.settle(4)
    stage.shoot("map-why")


def map_narrow(stage: Stage) -> None:
    stage.page.set_viewport_size({"width": 1000, "height": 800})
    stage.go_to_map(stage.run())
    stage.shoot("map-narrow")
    stage.page.set_viewport_size(browsing.VIEWPORT)


def map_dark(stage: Stage) -> None:
    stage.page.emulate_media(color_scheme="dark")
    stage.go_to_map(stage.run())
    stage.shoot("map-dark")
    stage.page.emulate_media(color_scheme="light")


def frontier(stage: Stage) -> None:
    stage.go("frontier", stage.run())
    expect(stage.page.locator(".js-plotly-plot")).to_be_visible()
    stage.settle(3)
    stage.shoot("frontier")


def sweep(stage: Stage) -> None:
    stage.go("frontier?vary=Paper: single metrics", stage.run())
    button = stage.page.get_by_role("button", name="Start the sweep")
    stored = stage.page.get_by_text(re.compile(r"^All [0-9,]+ runs are stored"))
    expect(button.or_(stored).first).to_be_visible()
    if button.is_enabled():
        button.click()
    expect(stored).to_be_visible(timeout=3 * PATIENCE)
    stage.settle(3)
    stage.shoot("sweep")


def ablation(stage: Stage) -> None:
    stage.go("evidence")
    expect(stage.page.get_by_test_id("stPlotlyChart").first).to_be_visible()
    stage.settle(3)
    stage.shoot("ablation")


def compare(stage: Stage) -> None:
    stage.go("compare", stage.run())
    expect(stage.page.locator(".stage").first).to_be_visible()
    stage.settle(3)
    stage.shoot("compare")


def export(stage: Stage) -> None:
    stage.go("export", stage.run())
    stage.shoot("export")


def run_learning(stage: Stage) -> None:
    words = command(stage, "select", "--estimator", "reinforce", "--n_epochs", "1500")
    before = {run.id for run in stage.store.list()}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as learner:
        while (run := stage.store.list()[0]).id in before or len(run.metrics().get("step", ())) < 120:
            assert learner.poll() is None, "the run ended before a picture of it was taken"
            time.sleep(0.2)
        stage.go("runs", run)
        expect(stage.page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
        stage.settle(2)
        stage.shoot("run-learning")


def film(stage: Stage) -> None:
    """Drag lambda, click on a row to see why it is kept or left out, and go to the ids."""
    page, frames, lengths = stage.page, [], []

    def take(milliseconds: int) -> None:
        with Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide"))) as picture:
            height = round(FILM_WIDTH * picture.height / picture.width)
            frames.append(picture.convert("RGB").resize((FILM_WIDTH, height), Image.Resampling.LANCZOS))
        lengths.append(milliseconds)

    def point(x: float, y: float) -> None:
        page.mouse.move(x, y)
        page.evaluate(POINTER, [x, y])

    def point_at(lamb: float) -> None:
        # measured every time: the text next to the slider changes its width. A knob's middle is 8 pixels from the ends.
        box = slider.bounding_box()
        point(box["x"] + 8 + lamb * (box["width"] - 16), box["y"] + box["height"] / 2)

    page.set_viewport_size(FILM_WINDOW)
    stage.go_to_map(stage.run())
    slider = page.get_by_role("slider", name="λ")
    expect(slider).to_be_enabled()
    take(1600)
    point_at(0.5)
    page.mouse.down()
    for lamb in (0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0, 1.0, 0.95, 0.9):
        point_at(lamb)
        page.wait_for_timeout(150)
        take(220)
    page.mouse.up()
    page.wait_for_timeout(4000)
    take(1600)
    # a row near the middle of the map, where the pointer is on a mark and on no name
    area = page.locator(".stage").first.bounding_box()
    for step in range(200):
        turn, far = 2.4 * step, 0.02 * step**0.5
        x = area["x"] + (0.5 + far * math.cos(turn)) * area["width"]
        y = area["y"] + (0.6 + far * math.sin(turn)) * area["height"]
        point(x, y)
        page.wait_for_timeout(100)
        on_name = page.evaluate("([x, y]) => Boolean(document.elementFromPoint(x, y)?.closest('.name'))", [x, y])
        if page.locator(".tip").first.is_visible() and not on_name:
            break
    take(900)
    page.mouse.click(x, y)
    expect(page.get_by_text("Why is it", exact=False).first).to_be_visible()
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    stage.settle(4)
    point(x, y)
    take(2600)
    page.get_by_role("link", name="Export").click()
    expect(page.get_by_role("heading", level=1, name="Export", exact=True)).to_be_visible()
    stage.settle(2)
    take(2600)
    page.set_viewport_size(browsing.VIEWPORT)
    write_film(frames, lengths, SCREENS / "datamask.gif")


def write_film(frames: list[Image.Image], lengths: list[int], path: Path) -> None:
    """Write pictures as one that moves, in colors that they share.

    Args:
        lengths: milliseconds that each stands.
    """
    some = frames[::6]
    sheet = Image.new("RGB", (FILM_WIDTH, sum(frame.height for frame in some)))
    for place, frame in enumerate(some):
        sheet.paste(frame, (0, place * frame.height))
    palette = sheet.quantize(FILM_COLORS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    few[0].save(path, save_all=True, append_images=few[1:], duration=lengths, loop=0, optimize=True, disposal=1)
    size = path.stat().st_size
    print(f"{path.name}: {size / 1024:.0f} kB, {len(few)} pictures, {sum(lengths) / 1000:.0f} s", flush=True)
    assert size <= FILM_BYTES, f"{path} has {size:,} bytes, more than {FILM_BYTES:,}: lower FILM_COLORS or FILM_WIDTH"


TOUR = (data, film, map_lasso, map_why, map_narrow, map_dark, frontier, sweep, ablation, compare, export, run_learning)


def command(stage: Stage, name: str, *words: str) -> list[str]:
    """Return a command on the demo that writes its runs where the dashboard looks for them."""
    return [sys.executable, "-m", "datamask", name, str(DEMO), "--runs_dir", str(stage.store.root), *words]


def take_tour(folder: Path, browser: Browser, pictures: list[Callable[[Stage], None]]) -> None:
    """Take pictures of the demo, with the frontier of two objectives stored."""
    with served(folder, DATAMASK_SAMPLE="on") as address:
        stage = Stage(folder, address, new_page(browser))
        for objective in ("pairwise", "facility"):
            print(f"a sweep of {objective} …", flush=True)
            words = ("--objective", objective, "--estimator", "relaxed", "--vary", "lamb=0:1:11")
            subprocess.run(command(stage, "sweep", *words), check=True, capture_output=True)
        for picture in pictures:
            print(f"{picture.__name__} …", flush=True)
            picture(stage)


def take_walk(folder: Path, browser: Browser) -> None:
    """Replay docs/walkthrough.md in an empty folder, whose name stands in the pictures."""
    shards = write_shards(folder / "shards")
    with served(folder, DATAMASK_ROOTS=str(folder)) as address:
        page = new_page(browser)
        stage = Stage(folder, address, page)

        def seen(name: str) -> None:
            # map and clusters come by themselves
            expect(page.get_by_test_id("stProgress")).to_have_count(0)
            stage.settle(3)
            stage.shoot(name)

        walk = Walk(page, seen)
        walk.open_shards(address, shards)
        walk.sweep()
        walk.keep()
        walk.smallest_domain(lambda run_id: place_of("recipes", shards, folder / "runs", run_id))
        walk.take_home(folder)


def new_page(browser: Browser) -> Page:
    """Return a page in which everything may take long."""
    page = browser.new_page(viewport=browsing.VIEWPORT, color_scheme="light", accept_downloads=True)
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    return page


def main() -> None:
    """Take all pictures, or those named."""
    tour = {picture.__name__.replace("_", "-"): picture for picture in TOUR}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="work here, and leave the runs for the next time")
    parser.add_argument("--only", nargs="+", choices=(*tour, "walk"), default=[*tour, "walk"], metavar="NAME")
    asked, path = parser.parse_args(), browsing.installed_browser()
    if path is None:
        parser.error(browsing.NO_BROWSER)
    with contextlib.ExitStack() as ending:
        folder = asked.keep or Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="datamask-")))
        folder.mkdir(parents=True, exist_ok=True)
        flags = [*browsing.FLAGS, "--hide-scrollbars"]
        browser = ending.enter_context(sync_playwright()).chromium.launch(executable_path=path, args=flags)
        ending.callback(browser.close)
        if pictures := [tour[name] for name in tour if name in asked.only]:
            take_tour(folder, browser, pictures)
        if "walk" in asked.only:
            shutil.rmtree(folder / "walk", ignore_errors=True)
            take_walk(folder / "walk", browser)


if __name__ == "__main__":
    main()
