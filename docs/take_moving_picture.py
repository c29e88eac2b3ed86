"""Take the moving picture of the README: lambda is dragged, a click on a sample answers why, the ids are exported.

    python docs/take_moving_picture.py [--keep FOLDER]

It serves the sample as take_screens.py does, with the same runs; --keep names the folder of the last time. Wants
requirements-dev.txt and a Chromium or Chrome.
"""

from __future__ import annotations

import argparse
import io
import math
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright
from stage import FLAGS, SCREENS, Stage, find_browser, prepare, serve

WINDOW = {"width": 1280, "height": 800}
WIDTH = 960
"""Of the picture, in pixels."""

SHADES = 200
TARGET = SCREENS / "datamask.gif"
MOST = 3_000_000
"""Bytes: what a page of a repository should have to load."""

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
"""A dot where the mouse is, which a picture of a page does not show."""


class Film:
    """Pictures of a page, each with how long it stands."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.stands: list[int] = []

    def take(self, milliseconds: int) -> None:
        """One more picture of the page as it is."""
        content = self.page.screenshot(animations="disabled", caret="hide")
        with Image.open(io.BytesIO(content)) as picture:
            height = round(WIDTH * picture.height / picture.width)
            self.frames.append(picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS))
        self.stands.append(milliseconds)

    def point(self, x: float, y: float) -> None:
        """Move the mouse, and the dot that stands for it."""
        self.page.mouse.move(x, y)
        self.page.evaluate(POINTER, [x, y])

    def save(self, path: Path) -> None:
        """All of it as one file, in the colors of its pictures together."""
        sheet = Image.new("RGB", (WIDTH, sum(frame.height for frame in self.frames[::6])))
        top = 0
        for frame in self.frames[::6]:
            sheet.paste(frame, (0, top))
            top += frame.height
        palette = sheet.quantize(SHADES, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in self.frames]
        few[0].save(path, save_all=True, append_images=few[1:], duration=self.stands, loop=0, optimize=True, disposal=1)
        size = path.stat().st_size
        print(f"{path.name}: {size / 1e6:.2f} MB, {len(few)} pictures, {sum(self.stands) / 1000:.0f} s")
        assert size <= MOST, f"{path} has {size:,} bytes, more than {MOST:,}: lower SHADES or WIDTH"


def record(stage: Stage) -> Film:
    """What is seen."""
    page, film = stage.page, Film(stage.page)
    stage.go(run="proved")
    stage.map_is_there()
    expect(page.locator(".name:not([hidden])").first).to_be_visible(timeout=240_000)
    slider = page.get_by_role("slider", name="λ")
    if page.get_by_role("button", name="Prepare λ").count():
        page.get_by_role("button", name="Prepare λ").click()
    expect(page.get_by_role("button", name="Prepare λ")).to_have_count(0, timeout=240_000)
    expect(slider).to_be_enabled(timeout=240_000)
    stage.settle(2)
    film.take(1600)

    # lambda: to more diversity, to more quality, and a little back
    def point_at(lamb: float) -> None:
        # asked anew: what stands beside the slider changes its width. The middle of the knob is 8 pixels from the ends.
        box = slider.bounding_box()
        film.point(box["x"] + 8 + lamb * (box["width"] - 16), box["y"] + box["height"] / 2)

    point_at(0.5)
    page.mouse.down()
    way = [0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0, 1.0, 0.95, 0.9]
    for lamb in way:
        point_at(lamb)
        page.wait_for_timeout(150)
        film.take(220)
    page.mouse.up()
    page.wait_for_timeout(4000)
    film.take(1600)

    # why: a row near the middle of the map, where the pointer is on a mark and on no name
    area = page.locator(".stage").first.bounding_box()
    for step in range(200):
        turn, far = 2.4 * step, 0.02 * step**0.5
        x = area["x"] + (0.5 + far * math.cos(turn)) * area["width"]
        y = area["y"] + (0.6 + far * math.sin(turn)) * area["height"]
        film.point(x, y)
        page.wait_for_timeout(100)
        on_name = page.evaluate("([x, y]) => Boolean(document.elementFromPoint(x, y)?.closest('.name'))", [x, y])
        if page.locator(".tip").first.is_visible() and not on_name:
            break
    film.take(900)
    page.mouse.click(x, y)
    expect(page.get_by_text("Why is it", exact=False).first).to_be_visible(timeout=240_000)
    expect(page.get_by_test_id("stProgress")).to_have_count(0, timeout=240_000)
    stage.settle(4)
    film.point(x, y)
    film.take(2600)

    # the ids
    page.get_by_role("link", name="Export").click()
    expect(page.get_by_role("button", name="Ids").or_(page.get_by_text("Ids")).first).to_be_visible(timeout=240_000)
    stage.settle(2)
    film.take(2600)
    return film


def main() -> None:
    """Serve, record, keep."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", type=Path, help="folder of runs and sample, made where it is not there")
    asked, browser_path = parser.parse_args(), find_browser(parser)
    with tempfile.TemporaryDirectory() as emptied:
        folder = asked.keep or Path(emptied)
        folder.mkdir(exist_ok=True)
        prepare(folder)
        with sync_playwright() as playwright, serve(folder) as address:
            browser = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
            page = browser.new_page(viewport=WINDOW, color_scheme="light")
            page.set_default_timeout(240_000)
            record(Stage(folder, address, page)).save(TARGET)
            browser.close()


if __name__ == "__main__":
    main()
