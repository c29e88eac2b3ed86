"""Look for overflow on every page: 1000 to 1920 pixels wide, light and dark, with and without a corpus.

    python docs/check_layout.py                       # makes the runs that docs/take_screens.py makes, some minutes
    python docs/check_layout.py --keep /tmp/screens   # with those of the last time

A page offends where the window scrolls sideways, where an element sticks out of the window, and where text is cut off
without a way to read it. Tables, code, text boxes and drawings are left out. Prints the
offenders, and ends with 1 where there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))

from stage import FLAGS, Stage, find_browser, prepare, serve

from tests.e2e.overflow import OFFENDERS

WIDTHS = (1000, 1280, 1440, 1600, 1920)
HEIGHT = 900

VIEWS: tuple[tuple[str, str, str | None, tuple[str, ...]], ...] = (
    (
        "map",
        "",
        "best",
        ("Distributions", "Under- and over-represented"),
    ),
    ("runs", "runs", "proved", ("All runs", "Frontier", "Sweep")),
    ("runs, failed", "runs", "failed", ()),
    ("compare", "runs?view=compare", "best", ("Texts", "Where", "Values")),
    ("evidence", "evidence", "best", ("What helps", "Independent metrics", "Stability")),
    ("data", "data", None, ()),
    ("export", "export", "best", ()),
)
"""What is looked at: its name, path, run, and the tabs or views to go through one by one."""

BARE = ("", "runs", "runs?view=frontier", "evidence", "data", "export")
"""The pages as they stand before any corpus is open."""


def look(page: Page, name: str) -> int:
    """Print what offends at every width; how many there are."""
    seen: dict[str, list[int]] = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.wait_for_timeout(700)
        for offender in page.evaluate(OFFENDERS):
            seen.setdefault(offender, []).append(width)
    for offender, widths in seen.items():
        print(f"{name}, at {', '.join(map(str, widths))}: {offender}", flush=True)
    return len(seen)


def check(stage: Stage, theme: str, only: list[str] | None) -> int:
    """All pages in one theme, or those named; how many offenders."""
    page, count = stage.page, 0
    page.emulate_media(color_scheme=theme)
    for path in BARE if only is None else ():
        stage.go(path, corpus=False)
        count += look(page, f"{path or 'map'}, nothing open, {theme}")
    for name, path, run, parts in VIEWS:
        if only is not None and name not in only:
            continue
        stage.go(path, run)
        stage.settle(2)
        for part in parts or ("",):
            if part:
                page.get_by_test_id("stMain").get_by_role("tab", name=part, exact=True).or_(
                    page.get_by_test_id("stMain").get_by_role("radio", name=part, exact=True)
                ).first.click()
                stage.settle(2)
            count += look(page, f"{name}{f', {part}' if part else ''}, {theme}")
    return count


def main() -> int:
    """Check everything; 1 where something offends."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="work here and leave the runs for the next time")
    parser.add_argument("--only", nargs="+", metavar="VIEW", help=f"of: {', '.join(view[0] for view in VIEWS)}")
    parser.add_argument("--themes", nargs="+", default=["light", "dark"], choices=("light", "dark"))
    asked = parser.parse_args()
    with contextlib.ExitStack() as ending:
        folder = asked.keep or Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="datamask-")))
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder)
        address = ending.enter_context(serve(folder))
        browser = ending.enter_context(sync_playwright()).chromium.launch(
            executable_path=find_browser(parser), args=list(FLAGS)
        )
        ending.callback(browser.close)
        page = browser.new_page(viewport={"width": WIDTHS[0], "height": HEIGHT})
        page.set_default_timeout(120_000)
        expect.set_options(timeout=120_000)
        count = sum(check(Stage(folder, address, page), theme, asked.only) for theme in asked.themes)
    print(f"{count:,} places offend" if count else "nothing offends")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
