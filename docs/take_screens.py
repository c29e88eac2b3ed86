"""Take the pictures of the dashboard in docs/screens: every page on the demo corpus, and each empty and failed state.

    python docs/take_screens.py                      # all of them, some minutes: the runs and the layout are made first
    python docs/take_screens.py --keep /tmp/screens --only map-plain compare    # again, with the runs of the last time

It serves the dashboard on a free port of the loopback with a runs folder of its own, drives Debian's chromium (or
Chrome) through playwright, and ends the server by its process id. Wants requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import expect, sync_playwright
from stage import FLAGS, ROOT, SCREENS, SIZE, Stage, begin, find_browser, prepare, serve, wait


def data_empty(stage: Stage) -> None:
    stage.go("data", corpus=False)
    stage.shoot("data-empty")


def data_bad_file(stage: Stage) -> None:
    broken = stage.folder / "shards" / "part-0007.parquet"
    broken.parent.mkdir(exist_ok=True)
    broken.write_bytes((ROOT / "sample_data" / "tiny").glob("*.parquet").__next__().read_bytes()[:20_000])
    stage.go("data", corpus=False)
    stage.type_path(broken)
    stage.shoot("data-bad-file")


def data(stage: Stage) -> None:
    stage.go("data")
    expect(stage.page.get_by_text("exact duplicates").first).to_be_visible(timeout=120_000)
    stage.settle()
    stage.shoot("data")


def run_empty(stage: Stage) -> None:
    waiting = stage.folder / "runs-aside"
    stage.sample_key()
    runs = [run.path for run in stage.store.list()]
    waiting.mkdir(exist_ok=True)
    for path in runs:
        path.rename(waiting / path.name)
    try:
        stage.go("runs")
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
        stage.go("runs", "paper")
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
    stage.go("runs", "stopped")
    stage.shoot("run-stopped")


def run_failed(stage: Stage) -> None:
    stage.go("runs", "failed")
    stage.shoot("run-failed")


def run_done(stage: Stage) -> None:
    stage.go("runs", "proved")
    stage.shoot("run")


def run_settings(stage: Stage) -> None:
    stage.go("runs", "best")
    stage.page.get_by_text("More settings").click()
    stage.settle(1.5)
    stage.page.get_by_text("Method of Solve", exact=True).first.scroll_into_view_if_needed()
    stage.shoot("run-settings")


def map_plain(stage: Stage) -> None:
    stage.go("", "best")
    stage.map_is_there()
    stage.shoot("map")


def map_lasso(stage: Stage) -> None:
    stage.go("", "best")
    stage.map_is_there()
    stage.lasso(0, 0.5, 0.62, 0.16)
    # by an empty corner of the map: out of the outline itself, the label under the pointer would stay
    corner = stage.page.locator(".stage").first.bounding_box()
    stage.page.mouse.move(corner["x"] + corner["width"] - 12, corner["y"] + corner["height"] - 8, steps=8)
    stage.page.wait_for_timeout(1500)
    stage.shoot("map-lasso")


def compare(stage: Stage) -> None:
    stage.go("runs?view=compare", "best")
    stage.map_is_there()
    stage.shoot("compare")
    stage.page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 620)")
    stage.page.wait_for_timeout(1500)
    stage.shoot("compare-below")


def map_why(stage: Stage) -> None:
    stage.go("", "best")
    stage.map_is_there()
    chosen = stage.run("best").selection()["chunk_id"][40].as_py()
    stage.page.goto(f"{stage.page.url}&sample={quote(str(chosen))}")
    expect(stage.page.get_by_text("Nearest selected").first).to_be_visible(timeout=180_000)
    stage.map_is_there()
    stage.settle(2)
    stage.shoot("map-why")


def map_narrow(stage: Stage) -> None:
    stage.page.set_viewport_size({"width": 1000, "height": 800})
    try:
        stage.go("", "best")
        stage.map_is_there()
        stage.shoot("map-narrow")
    finally:
        stage.page.set_viewport_size(SIZE)


def frontier(stage: Stage) -> None:
    stage.go("runs?view=frontier", "best")
    expect(stage.page.locator(".js-plotly-plot")).to_be_visible()
    stage.settle(3)
    stage.shoot("frontier")


def sweep(stage: Stage) -> None:
    stage.go("runs?view=sweep&vary=single", "best")
    button = stage.page.get_by_role("button", name="Start the sweep")
    expect(button.or_(stage.page.get_by_text(re.compile(r"^All [0-9,]+ runs are stored"))).first).to_be_visible()
    if button.is_enabled():
        button.click()
    expect(stage.page.get_by_text(re.compile(r"^All [0-9,]+ runs are stored"))).to_be_visible(timeout=1_800_000)
    stage.settle(3)
    stage.shoot("sweep")


def ablation(stage: Stage) -> None:
    stage.go("evidence")
    if stage.page.get_by_test_id("stPlotlyChart").count() == 0:
        stage.page.get_by_role("button", name="Start").click()
    expect(stage.page.get_by_text("Only one proxy model has run.")).to_be_visible(timeout=1_800_000)
    stage.settle(3)
    stage.shoot("ablation")


def export(stage: Stage) -> None:
    stage.go("export", "best")
    stage.shoot("export")


def map_dark(stage: Stage) -> None:
    stage.page.emulate_media(color_scheme="dark")
    try:
        stage.go("", "best")
        stage.map_is_there()
        stage.shoot("map-dark")
    finally:
        stage.page.emulate_media(color_scheme="light")


PICTURES: tuple[Callable[[Stage], None], ...] = (
    data_empty,
    data_bad_file,
    data,
    run_empty,
    run_failed,
    map_plain,
    map_lasso,
    map_dark,
    run_learning,
    run_stopped,
    run_done,
    run_settings,
    compare,
    map_why,
    map_narrow,
    frontier,
    sweep,
    ablation,
    export,
)
"""In the order in which they are taken: what must not have happened yet comes first."""


def main() -> None:
    """Take all pictures, or those named."""
    names = [picture.__name__ for picture in PICTURES]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="work here and leave the runs for the next time")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=names,
        metavar="PICTURE",
        help=f"some of: {', '.join(names)}",
        type=lambda name: name.replace("-", "_"),
    )
    asked = parser.parse_args()
    browser_path = find_browser(parser)
    SCREENS.mkdir(exist_ok=True)
    with contextlib.ExitStack() as ending:
        folder = asked.keep or Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="datamask-")))
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder)
        address = ending.enter_context(serve(folder))
        browser = ending.enter_context(sync_playwright()).chromium.launch(
            executable_path=browser_path, args=list(FLAGS)
        )
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
