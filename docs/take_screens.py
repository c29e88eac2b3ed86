"""Take the pictures of the dashboard in docs/screens: every page on the sample corpus, and each empty and failed state.

    python docs/take_screens.py                      # all of them, some minutes: the runs and the layout are made first
    python docs/take_screens.py --keep /tmp/screens --only explore compare    # again, with the runs of the last time

It serves the dashboard on a free port of the loopback with a runs folder of its own, drives Debian's chromium (or
Chrome) through playwright, and ends the server by its process id. Wants requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from datamask.config import CorpusConfig, RunConfig, SelectionConfig  # noqa: E402 - after the path
from datamask.dashboard import sample  # noqa: E402
from datamask.dashboard.views.outcome import proposed_name  # noqa: E402
from datamask.runs import jobs, varying  # noqa: E402
from datamask.runs.store import Run, RunStore  # noqa: E402
from datamask.runs.sweep import sweep  # noqa: E402
from tests.e2e.serving import served  # noqa: E402

SCREENS = ROOT / "docs" / "screens"
SIZE = {"width": 1440, "height": 900}
COLOURS = 256
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--use-gl=swiftshader", "--enable-unsafe-swiftshader",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
         "--hide-scrollbars")

RUNS = {
    "best": {"lamb": 0.5},
    "diverse": {"lamb": 0.2},
    "proved": {"objective": "pairwise", "estimator": "relaxed"},
    "top": {"estimator": "top-quality"},
    "paper": {"estimator": "reinforce", "n_epochs": 300},
    "stopped": {"estimator": "reinforce", "n_epochs": 300, "seed": 1},
    "failed": {"device": "cuda:63"},
}
"""The runs in the pictures, by what they are needed for; oldest first."""


class Stage:
    """A served dashboard with its runs, and a page of a browser to look at it.

    Attributes:
        folder: everything made for the pictures: the sample, the runs. store: the runs. address: of the server.
        page: of the browser. key: of the opened sample in the page's address; None before it was opened.
    """

    def __init__(self, folder: Path, address: str, page: Page) -> None:
        self.folder, self.address, self.page = folder, address, page
        self.store = RunStore(folder / "runs")
        self.key: str | None = None

    def run(self, purpose: str) -> Run:
        """The run made for a purpose, created but not begun where there is none."""
        return run_for(self.folder, purpose)

    def go(self, path: str = "", run: str | None = None, *, corpus: bool = True) -> None:
        """Open a page anew, as by its address, and wait until it stands still."""
        asked = [f"run={self.run(run).id}"] if run else []
        if corpus:
            asked.append(f"corpus={self.sample_key()}")
        self.page.goto(f"{self.address}/{path}?{'&'.join(asked)}")
        self.settle()

    def sample_key(self) -> str:
        """Open the sample once by its button, and answer what the address calls it from then on."""
        if self.key is None:
            self.page.goto(self.address)
            self.page.get_by_role("button", name="Open the sample").click()
            expect(self.page.get_by_text("How is quality spread?")).to_be_visible(timeout=180_000)
            self.key = self.page.url.partition("corpus=")[2].partition("&")[0]
        return self.key

    def settle(self, seconds: float = 1.0) -> None:
        """Wait until the server has answered and nothing is drawn any more."""
        self.page.get_by_test_id("stMain").get_by_role("heading").first.wait_for()
        expect(self.page.get_by_test_id("stSkeleton")).to_have_count(0)
        expect(self.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        self.page.wait_for_timeout(int(1000 * seconds))

    def type_path(self, path: Path) -> None:
        """Give a path in the Path tab of Home."""
        self.page.get_by_text("Path", exact=True).click()
        box = self.page.get_by_role("textbox", name="Files, folders or globs")
        box.fill(str(path))
        box.press("Control+Enter")
        self.settle()

    def map_is_there(self) -> None:
        """Wait until UMAP and crowding have come, however long they take, and the map is drawn."""
        expect(self.page.get_by_text("The map is PCA for now")).to_have_count(0, timeout=400_000)
        expect(self.page.locator(".stage").nth(2)).to_be_visible()
        self.settle(3)

    def lasso(self, panel: int, x: float, y: float, radius: float) -> None:
        """Draw a circle in a panel of the map; centre and radius as shares of the panel."""
        area = self.page.locator(".stage").nth(panel).bounding_box()
        centre, size = (area["x"] + x * area["width"], area["y"] + y * area["height"]), radius * area["width"]
        self.page.mouse.move(centre[0] + size, centre[1])
        self.page.mouse.down()
        for k in range(1, 41):
            self.page.mouse.move(centre[0] + size * math.cos(k * math.pi / 20),
                                 centre[1] + size * math.sin(k * math.pi / 20))
        self.page.mouse.up()
        expect(self.page.get_by_text("samples shown")).to_be_visible()
        self.settle()

    def shoot(self, name: str) -> None:
        """A picture of the page as it stands, with the mouse out of the way and in few colours."""
        self.page.mouse.move(1, SIZE["height"] - 1)
        self.page.wait_for_timeout(400)
        target = SCREENS / f"{name}.png"
        self.page.screenshot(path=str(target), animations="disabled", caret="hide")
        with Image.open(target) as picture:
            small = picture.convert("RGB").quantize(COLOURS, kmeans=4, dither=Image.Dither.NONE)
        small.save(target, optimize=True)
        print(f"{name}: {target.stat().st_size / 1024:.0f} kB", flush=True)


def run_for(folder: Path, purpose: str) -> Run:
    """The run of a purpose: of the last time, or a new one that has not begun."""
    store = RunStore(folder / "runs")
    for run in store.list():
        if run.id == purpose:
            return run
    options = {"collapse": "exact", **RUNS[purpose]}
    settings = SelectionConfig.from_options(**options)
    name = proposed_name(settings.objective, settings.lamb, settings.select_ratio, settings.estimator)
    return store.create(RunConfig(CorpusConfig((str(folder / "sample"),)), settings, name), run_id=purpose)


def begin(run: Run) -> None:
    """Queue a run with the workers of this process; the server sees it as it would one of the command line."""
    office = jobs.office(run.path.parent)
    if run.status().state == "queued":
        office.submit(run.id)
    else:
        office.resume(run.id)


def wait(run: Run, steps: int | None = None) -> None:
    """Until a run has ended, or has taken so many steps."""
    while run.status().active and (steps is None or len(run.metrics().get("step", ())) < steps):
        time.sleep(0.2)


def prepare(folder: Path) -> None:
    """The sample and the finished runs; what is there from the last time is kept."""
    if not (folder / "sample").exists():
        sample.build_in_child(lambda share, what: None, lambda: False)
        shutil.copytree(sample.BUILT, folder / "sample")
    for purpose in RUNS:
        # these two are watched while they learn, and must not wait in the menu of every other picture
        if purpose in ("paper", "stopped"):
            continue
        run = run_for(folder, purpose)
        ending = "failed" if purpose == "failed" else "done"
        if run.status().state != ending:
            print(f"run {purpose}", flush=True)
            begin(run)
            wait(run)
        assert run.status().state == ending, run.status().error
    sweep_lambda(folder)


def sweep_lambda(folder: Path) -> None:
    """The runs of the frontier: two objectives over eleven lambdas; those that are stored are not made again."""
    corpus = CorpusConfig((str(folder / "sample"),))
    for objective in ("pairwise", "facility"):
        points = varying.points({"objective": objective, "estimator": "relaxed", "collapse": "exact"},
                                [varying.parse_vary("lamb=0:1:11")])
        sweep(RunStore(folder / "runs"), varying.Plan(corpus, points, "frontier"))


def home_empty(stage: Stage) -> None:
    stage.go(corpus=False)
    stage.shoot("home-empty")


def home_bad_file(stage: Stage) -> None:
    broken = stage.folder / "shards" / "part-0007.parquet"
    broken.parent.mkdir(exist_ok=True)
    broken.write_bytes((ROOT / "sample_data" / "tiny").glob("*.parquet").__next__().read_bytes()[:20_000])
    stage.go(corpus=False)
    stage.type_path(broken)
    stage.shoot("home-bad-file")


def home(stage: Stage) -> None:
    stage.go()
    expect(stage.page.get_by_text("exact copies")).to_be_visible(timeout=120_000)
    stage.settle()
    stage.shoot("home")


def explore_empty(stage: Stage) -> None:
    stage.go("explore", corpus=False)
    stage.shoot("explore-empty")


def run_empty(stage: Stage) -> None:
    waiting = stage.folder / "runs-aside"
    stage.sample_key()
    runs = [run.path for run in stage.store.list()]
    waiting.mkdir(exist_ok=True)
    for path in runs:
        path.rename(waiting / path.name)
    try:
        stage.go("run")
        stage.shoot("run-empty")
    finally:
        for path in runs:
            (waiting / path.name).rename(path)
        waiting.rmdir()


def run_learning(stage: Stage) -> None:
    run = stage.run("paper")
    if run.status().state != "done":
        begin(run)
        wait(run, steps=120)
        stage.go("run", "paper")
        expect(stage.page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
        stage.settle(2)
        stage.shoot("run-learning")
        wait(run)


def run_stopped(stage: Stage) -> None:
    run = stage.run("stopped")
    if run.status().state != "stopped":
        begin(run)
        wait(run, steps=40)
        run.request_stop()
        wait(run)
    stage.go("run", "stopped")
    stage.shoot("run-stopped")


def run_failed(stage: Stage) -> None:
    stage.go("run", "failed")
    stage.shoot("run-failed")


def run_done(stage: Stage) -> None:
    stage.go("run", "proved")
    stage.shoot("run")


def run_settings(stage: Stage) -> None:
    stage.go("run", "best")
    stage.page.get_by_text("More settings").click()
    stage.settle(1.5)
    stage.page.get_by_text("Estimator", exact=True).first.scroll_into_view_if_needed()
    stage.shoot("run-settings")


def explore(stage: Stage) -> None:
    stage.go("explore", "best")
    stage.map_is_there()
    stage.shoot("explore")


def explore_lasso(stage: Stage) -> None:
    stage.go("explore", "best")
    stage.map_is_there()
    stage.lasso(2, 0.5, 0.5, 0.2)
    # by an empty corner of the map: out of the outline itself, the label under the pointer would stay
    corner = stage.page.locator(".stage").nth(2).bounding_box()
    stage.page.mouse.move(corner["x"] + corner["width"] - 12, corner["y"] + corner["height"] - 8, steps=8)
    stage.page.wait_for_timeout(500)
    stage.page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 130)")
    stage.page.wait_for_timeout(1000)
    stage.shoot("explore-lasso")


def compare(stage: Stage) -> None:
    stage.go("compare", "best")
    stage.map_is_there()
    stage.shoot("compare")
    stage.page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 620)")
    stage.page.wait_for_timeout(1500)
    stage.shoot("compare-below")


def explore_why(stage: Stage) -> None:
    stage.go("explore", "best")
    stage.map_is_there()
    chosen = stage.run("best").selection()["chunk_id"][40].as_py()
    stage.page.goto(f"{stage.page.url}&sample={quote(str(chosen))}")
    expect(stage.page.get_by_text("Nearest selected").first).to_be_visible(timeout=180_000)
    stage.map_is_there()
    stage.page.get_by_text("Nearest selected").first.scroll_into_view_if_needed()
    stage.settle(2)
    stage.shoot("explore-why")


def frontier(stage: Stage) -> None:
    stage.go("frontier", "best")
    expect(stage.page.locator(".js-plotly-plot")).to_be_visible()
    stage.settle(3)
    stage.shoot("frontier")


def frontier_live(stage: Stage) -> None:
    stage.go("frontier", "best")
    stage.page.get_by_text("Live λ", exact=True).click()
    expect(stage.page.get_by_text("Preparing the live λ")).to_have_count(0, timeout=400_000)
    expect(stage.page.locator(".stage").first).to_be_visible(timeout=400_000)
    stage.settle(8)
    stage.shoot("frontier-live")


def which_lambda(stage: Stage) -> None:
    stage.go("which_lambda")
    if stage.page.get_by_test_id("stVegaLiteChart").count() == 0:
        stage.page.get_by_role("button", name="Start").click()
    expect(stage.page.get_by_text("A second opinion: ")).to_be_visible(timeout=600_000)
    stage.settle(3)
    stage.shoot("which-lambda")


def export(stage: Stage) -> None:
    stage.go("export", "best")
    stage.shoot("export")


def explore_dark(stage: Stage) -> None:
    stage.page.emulate_media(color_scheme="dark")
    try:
        stage.go("explore", "best")
        stage.map_is_there()
        stage.shoot("explore-dark")
    finally:
        stage.page.emulate_media(color_scheme="light")


PICTURES: tuple[Callable[[Stage], None], ...] = (
    home_empty, home_bad_file, explore_empty, home, run_empty, run_failed, explore,
    explore_lasso, explore_dark, run_learning, run_stopped, run_done, run_settings, compare, explore_why,
    frontier, frontier_live, which_lambda, export)
"""In the order in which they are taken: what must not have happened yet comes first."""


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The dashboard on a free port; the sample lies in the folder too, so that no picture shows where the code lies."""
    with served(folder, folder / "sample", DATAMASK_ROOTS=str(folder)) as address:
        yield address


def find_browser(parser: argparse.ArgumentParser) -> str:
    """The first browser there is; ends the program with a sentence where there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        parser.error(f"needs a browser ({', '.join(BROWSERS)}); on Debian: apt-get install chromium")
    return found


def main() -> None:
    """Take all pictures, or those named."""
    names = [picture.__name__ for picture in PICTURES]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="work here and leave the runs for the next time")
    parser.add_argument("--only", nargs="+", choices=names, metavar="PICTURE", help=f"some of: {', '.join(names)}",
                        type=lambda name: name.replace("-", "_"))
    asked = parser.parse_args()
    browser_path = find_browser(parser)
    SCREENS.mkdir(exist_ok=True)
    with contextlib.ExitStack() as ending:
        folder = asked.keep or Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="datamask-")))
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder)
        address = ending.enter_context(serve(folder))
        browser = ending.enter_context(sync_playwright()).chromium.launch(executable_path=browser_path,
                                                                          args=list(FLAGS))
        ending.callback(browser.close)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        stage = Stage(folder, address, page)
        for picture in PICTURES:
            if not asked.only or picture.__name__ in asked.only:
                picture(stage)


if __name__ == "__main__":
    main()
