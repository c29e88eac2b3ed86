"""Take the pictures of docs/walkthrough.md while its clicks are replayed; the corpus is the one of the test.

    python docs/take_walkthrough.py [FOLDER]

FOLDER is made for it and removed afterwards, and stands in the pictures; without it a temporary one. Wants
requirements-dev.txt and a Chromium or Chrome.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from stage import FLAGS, SIZE, Stage, find_browser

from tests.e2e.serving import served
from tests.e2e.walkthrough import Walk, place_of, write_shards


def main() -> None:
    """Walk once, and take a picture wherever the walkthrough has one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path)
    folder, browser_path = parser.parse_args().folder, find_browser(parser)
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="datamask-"))
    else:
        folder.mkdir()
    try:
        walk(folder, browser_path)
    finally:
        shutil.rmtree(folder)


def walk(folder: Path, browser_path: str) -> None:
    """The walk itself, in an empty folder."""
    with sync_playwright() as playwright:
        shards = write_shards(folder / "shards")
        browser = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
        page = browser.new_page(viewport=SIZE, color_scheme="light", accept_downloads=True)
        page.set_default_timeout(240_000)
        expect.set_options(timeout=240_000)
        with served(folder, DATAMASK_ROOTS=str(folder)) as address:
            stage = Stage(folder, address, page)

            def seen(name: str) -> None:
                # pictures wait for what comes by itself, map and clusters
                expect(stage.page.get_by_test_id("stProgress")).to_have_count(0)
                stage.settle(3)
                stage.shoot(name)

            walk = Walk(page, seen)
            walk.open_shards(address, shards)
            walk.sweep()
            walk.keep()
            walk.smallest_domain(lambda run_id: place_of("recipes", shards, folder / "runs", run_id))
            walk.take_home(folder)
        browser.close()
        print(f"{walk.clicks} clicks")


if __name__ == "__main__":
    main()
