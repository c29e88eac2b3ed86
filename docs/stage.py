"""What the pictures are taken of: a served dashboard with its runs, and a page of a browser to look at it.

`take_screens`, `take_walkthrough` and `check_layout` stand on it.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from datamask.config import CorpusConfig, RunConfig, SelectionConfig  # noqa: E402 - after the path
from datamask.dashboard.runs.outcome import proposed_name  # noqa: E402
from datamask.runs import run_queue, varying  # noqa: E402
from datamask.runs.store import Run, RunStore  # noqa: E402
from datamask.runs.sweep import sweep  # noqa: E402
from tests.e2e import browsing  # noqa: E402
from tests.e2e.serving import served  # noqa: E402

SCREENS = ROOT / "docs" / "screens"
SIZE = {"width": 1440, "height": 900}
COLOURS = 256
FLAGS = (*browsing.FLAGS, "--hide-scrollbars")

RUNS = {
    "best": {"lamb": 0.5},
    "diverse": {"lamb": 0.2},
    "proved": {"objective": "pairwise", "estimator": "relaxed"},
    "top": {"estimator": "top-quality"},
    "paper": {"estimator": "reinforce", "n_epochs": 1500},
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
        self.page.goto(f"{self.address}/{path}{'&' if '?' in path else '?'}{'&'.join(asked)}")
        self.settle()

    def sample_key(self) -> str:
        """Open the sample once by its button, and answer what the address calls it from then on."""
        if self.key is None:
            self.page.goto(f"{self.address}/data")
            self.page.get_by_role("button", name="Open the demo").click()
            expect(self.page.get_by_text("Semantic duplicates").first).to_be_visible(timeout=180_000)
            self.key = self.page.url.partition("corpus=")[2].partition("&")[0]
        return self.key

    def settle(self, seconds: float = 1.0) -> None:
        """Wait until the server has answered and nothing is drawn any more."""
        self.page.get_by_test_id("stMain").get_by_role("heading").first.wait_for()
        expect(self.page.get_by_test_id("stSkeleton")).to_have_count(0)
        expect(self.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        self.page.wait_for_timeout(int(1000 * seconds))

    def type_path(self, path: Path) -> None:
        """Give a path in the Path tab of the Data page."""
        self.page.get_by_text("Path", exact=True).click()
        box = self.page.get_by_role("textbox", name="Files, folders or globs")
        box.fill(str(path))
        box.press("Control+Enter")
        self.settle()

    def map_is_there(self) -> None:
        """Wait until UMAP and crowding have come, however long they take, and the map is drawn."""
        expect(self.page.get_by_text("The map shows PCA for now")).to_have_count(0, timeout=400_000)
        expect(self.page.locator(".stage").first).to_be_visible()
        self.settle(3)

    def lasso(self, panel: int, x: float, y: float, radius: float) -> None:
        """Draw a circle in a panel of the map; centre and radius as shares of the panel."""
        area = self.page.locator(".stage").nth(panel).bounding_box()
        centre, size = (area["x"] + x * area["width"], area["y"] + y * area["height"]), radius * area["width"]
        self.page.mouse.move(centre[0] + size, centre[1])
        self.page.mouse.down()
        for k in range(1, 41):
            self.page.mouse.move(
                centre[0] + size * math.cos(k * math.pi / 20), centre[1] + size * math.sin(k * math.pi / 20)
            )
        self.page.mouse.up()
        expect(self.page.get_by_text("rows shown")).to_be_visible()
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
    queue = run_queue.run_queue(run.path.parent)
    if run.status().state == "queued":
        queue.submit(run.id)
    else:
        queue.resume(run.id)


def wait(run: Run, steps: int | None = None) -> None:
    """Until a run has ended, or has taken so many steps."""
    while run.status().active and (steps is None or len(run.metrics().get("step", ())) < steps):
        time.sleep(0.2)


def prepare(folder: Path) -> None:
    """The sample and the finished runs; what is there from the last time is kept."""
    if not (folder / "sample").exists():
        (folder / "sample").mkdir()
        shutil.copy(ROOT / "sample_data" / "demo" / "demo.parquet", folder / "sample")
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
        points = varying.points(
            {"objective": objective, "estimator": "relaxed", "collapse": "exact"}, [varying.parse_vary("lamb=0:1:11")]
        )
        sweep(RunStore(folder / "runs"), varying.Plan(corpus, points, "frontier"))


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The dashboard on a free port; the sample lies in the folder too, so that no picture shows where the code lies."""
    with served(folder, folder / "sample", DATAMASK_ROOTS=str(folder)) as address:
        yield address


def find_browser(parser: argparse.ArgumentParser) -> str:
    """The first browser there is; ends the program with a sentence where there is none."""
    path = browsing.installed_browser()
    if path is None:
        parser.error(browsing.NO_BROWSER)
    return path
