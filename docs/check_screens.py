"""List what is wrong on the pages, and put them on one contact sheet per width: docs/screens/sheet-WIDTH.png.

    python docs/check_screens.py                               # all pages, widths, themes and corpora: some 20 minutes
    python docs/check_screens.py --corpora demo --widths 1440  # a part of them, which the sheet then shows alone

The demo, 30,000 made rows, no corpus, a corpus with failed runs, and one that is being learned on are looked at. Listed
are: text that is cut off, labels of drawings that overlap, numbers that stand twice in one window, pages of more than
60 controls, pages that failed, and at 1440 x 900 parts of the answer and of the trade-off below the window's edge.
Ends with 1 where something is listed. Needs requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, TimeoutError, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.pages import prepare  # noqa: E402 - after the path
from benchmarks.words import DRAWN, PAGES, VISIBLE  # noqa: E402
from datamask.runs.store import RunStore  # noqa: E402
from tests.e2e import browsing  # noqa: E402
from tests.e2e.overflow import OFFENDERS  # noqa: E402
from tests.e2e.serving import FAILED, STILL, served  # noqa: E402
from tests.e2e.walkthrough import write_shards  # noqa: E402

SCREENS = ROOT / "docs" / "screens"
WIDTHS = {1440: 900, 1000: 800, 400: 800}
"""Of each window its height, in pixels."""

THEMES = ("light", "dark")
CORPORA = ("demo", "large", "empty", "failed", "working")
LARGE = 30_000, 128
"""Rows and dimensions of the large corpus."""

MOST_CONTROLS = 59
COLUMNS, THUMB, GAP, COLORS = 7, {1440: 480, 1000: 360, 400: 200}, 6, 256
"""Of a sheet: pictures in a row, pixels of their widths, between them, and its colors."""

PATIENCE, ANSWERED, PAUSE = 180_000, 15_000, 1_500
"""Milliseconds that a page may take, that its answer is waited for, and that it is left alone before a look."""

FIRST = {
    "the answer": ".answer .size",
    "its meters": ".answer .meters",
    "its sentence": ".answer .sentence",
    "the button of the ids": "[class*=st-key-answer_download] button",
}
ON_MAP = {"the trade-off": ".tradeoff", "the slider of λ": "input[type=range]", "the map": ".map"}
"""What must stand in the first window of every page, and of the Map."""

NUMBER = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![-\w])")
DIGITS, FIGURE = 3, 10
"""Of a number that may stand in a window only once: its digits, for shorter ones mean several things, and the words
that stand with it at most, for a sentence may say again what it speaks of."""

TABLES = ".st-key-menu, [class*='st-key-line_']"
"""Where numbers are cells of a table, or name the corpus."""

OVERLAPPING = """() => {
    const boxes = [], found = [];
    const walk = (root) => {
        for (const element of root.querySelectorAll("*")) {
            if (element.shadowRoot) walk(element.shadowRoot);
            const label = element.matches(".name") || (element.tagName === "text" && element.closest("svg"));
            const box = label && element.getBoundingClientRect();
            if (!label || !box.width || getComputedStyle(element).visibility === "hidden") continue;
            if (box.top > window.innerHeight || box.bottom < 0 || +getComputedStyle(element).opacity < 0.1) continue;
            const of = element.closest(".js-plotly-plot, .stage, svg");
            for (const other of boxes) {
                if (other.of !== of) continue;
                const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
                const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
                if (wide > 2 && high > 3) found.push(`"${other.said}" and "${element.textContent.trim()}"`);
            }
            boxes.push({ box, of, said: element.textContent.trim() });
        }
    };
    walk(document.body);
    return [...new Set(found)];
}"""
"""Pairs of labels of one drawing that lie over each other."""

CONTROLS = """(lists) => {
    let count = 0;
    const seen = (each) => {
        for (let at = each; at; at = at.parentElement ?? at.getRootNode().host) {
            const style = getComputedStyle(at);
            if (style.visibility === "hidden" || +style.opacity === 0) return false;
        }
        return true;
    };
    const kinds = "button, a[href], input, select, textarea, summary, [role=slider], [role=radio], [role=tab], " +
        `[role=switch], [role=checkbox], [role=combobox], ${lists}`;
    const walk = (root) => {
        for (const element of root.querySelectorAll("*")) {
            if (element.shadowRoot) walk(element.shadowRoot);
            const within = element.parentElement?.closest(`button, a[href], [role=combobox], ${lists}`);
            if (!element.matches(kinds) || within) continue;
            const box = element.getBoundingClientRect();
            const part = element.closest("[data-baseweb=select], .react-aria-ComboBox") && element.tagName === "BUTTON";
            const folded = element.closest("details:not([open])") && !element.closest("summary");
            if (box.width > 2 && box.height > 2 && seen(element) && !folded && !part) count += 1;
        }
    };
    walk(document.body);
    return count;
}"""
"""How many controls a page shows, also below its window; all bars of a chart, rows of a list or names are one."""

LISTS = ".strips, .names, [class*='st-key-explore_extremes']"
"""Bars, names, and rows that are a list's."""

ELSEWHERE = """(tables) => {
    const pieces = [];
    for (const root of document.querySelectorAll(`button, a[href], ${tables}`)) {
        const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) pieces.push(texts.currentNode.textContent.trim());
    }
    return pieces;
}"""
"""The pieces of text of buttons and tables, which may say a number again."""


@contextlib.contextmanager
def corpus_at(name: str, work: Path) -> Iterator[tuple[str, str]]:
    """Serve a dashboard with one kind of corpus; gives its address and what its pages' addresses end in."""
    folder = work / name
    folder.mkdir()
    if name in ("demo", "empty"):
        with served(folder, DATAMASK_SAMPLE="on" if name == "demo" else "off") as address:
            yield address, ""
    elif name == "large":
        parent, key = prepare(work, *LARGE, runs=True)
        with served(parent, DATAMASK_ROOTS=str(work)) as address:
            yield address, f"?corpus={key}"
    else:
        shards = write_shards(folder / "shards")
        words = [sys.executable, "-m", "datamask", "select", str(shards), "--runs_dir", str(folder / "runs")]
        subprocess.run(words, check=True, capture_output=True)
        long = [*words, "--estimator", "reinforce", "--n_epochs", "1000000"]
        store = RunStore(folder / "runs")
        with subprocess.Popen(long, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as learner:
            try:
                while not len(store.list()[0].metrics().get("step", ())):
                    assert learner.poll() is None, "the run ended before it was looked at"
                if name == "failed":
                    learner.kill()
                    learner.wait()
                with served(folder) as address:
                    yield address, ""
            finally:
                learner.kill()


def wrong(page: Page, place: str, width: int) -> list[str]:
    """Return what is wrong in a page's window, in sentences."""
    found: list[str] = page.evaluate(OFFENDERS)
    found += [f"overlapping: {pair}" for pair in page.evaluate(OVERLAPPING)]
    if page.locator(FAILED).count():
        found.append("the page failed")
    if (controls := page.evaluate(CONTROLS, LISTS)) > MOST_CONTROLS:
        found.append(f"{controls} controls")
    figures = Counter(piece for piece in page.evaluate(VISIBLE, False) if len(piece.split()) < FIGURE)
    figures -= Counter(page.evaluate(ELSEWHERE, TABLES))
    numbers = Counter(number for piece in figures.elements() for number in set(NUMBER.findall(piece)))
    twice = [number for number, count in numbers.items() if count > 1 and sum(map(str.isdigit, number)) >= DIGITS]
    found += [f"{number} stands {numbers[number]} times" for number in twice]
    if width == max(WIDTHS) and page.locator(".answer").count():
        for part, where in (FIRST | (ON_MAP if place == "Map" else {})).items():
            element = page.locator(where).first
            box = element.bounding_box() if element.count() else None
            if box is None or box["y"] + min(box["height"], 300) > WIDTHS[width]:
                found.append(f"{part} is not in the first window")
    return found


def sheet_of(pictures: list[Image.Image], width: int) -> Image.Image:
    """Put pictures of one size beside and below each other."""
    height = round(THUMB[width] * WIDTHS[width] / width)
    rows = math.ceil(len(pictures) / COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * (THUMB[width] + GAP) + GAP, rows * (height + GAP) + GAP), "#888888")
    for k, picture in enumerate(pictures):
        row, column = divmod(k, COLUMNS)
        small = picture.resize((THUMB[width], height), Image.Resampling.LANCZOS)
        sheet.paste(small, (GAP + column * (THUMB[width] + GAP), GAP + row * (height + GAP)))
    # a hue of few pixels, as that of a meter, keeps its place among the colors
    return sheet.quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)


def look(
    page: Page, address: str, ending: str, name: str, asked: argparse.Namespace, sheets: dict[int, list[Image.Image]]
) -> int:
    """Look at all pages of one corpus; prints what is wrong and returns how much."""
    faults = 0
    for width in asked.widths:
        page.set_viewport_size({"width": width, "height": WIDTHS[width]})
        shown = []
        for place, path in sorted(PAGES.items()):
            page.emulate_media(color_scheme="light")
            page.goto(f"{address}/{path}{ending}")
            page.locator("[data-testid=stMain] [data-testid=stElementContainer]").first.wait_for(timeout=PATIENCE)
            for drawn in (DRAWN[path], *([FIRST["the answer"]] if name != "empty" else [])):
                with contextlib.suppress(TimeoutError):  # a page without an answer is looked at too
                    page.locator(drawn).first.wait_for(timeout=ANSWERED)
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                page.wait_for_timeout(PAUSE)
                found = []
                try:
                    page.wait_for_function(STILL, timeout=PATIENCE)
                except TimeoutError:
                    found.append("the page does not come to rest")
                shown.append((theme, Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide")))))
                found += wrong(page, place, width)
                faults += len(found)
                if found:
                    print(f"{name}, {place}, {width}, {theme}", *found, sep="\n    ", flush=True)
        sheets[width] += [picture for theme in THEMES for said, picture in shown if said == theme]
    return faults


def main() -> None:
    """Look at all of them, or at those named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=CORPORA)
    parser.add_argument("--widths", nargs="+", type=int, choices=tuple(WIDTHS), default=tuple(WIDTHS))
    parser.add_argument("--output", type=Path, default=SCREENS, metavar="FOLDER", help="of the sheets")
    asked, path = parser.parse_args(), browsing.installed_browser()
    if path is None:
        parser.error(browsing.NO_BROWSER)
    sheets: dict[int, list[Image.Image]] = {width: [] for width in asked.widths}
    faults = 0
    with tempfile.TemporaryDirectory(prefix="datamask-") as work, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*browsing.FLAGS, "--hide-scrollbars"])
        for name in asked.corpora:
            with corpus_at(name, Path(work)) as (address, ending):
                page = browser.new_page()
                faults += look(page, address, ending, name, asked, sheets)
                page.close()
        browser.close()
    for width, pictures in sheets.items():
        sheet_of(pictures, width).save(asked.output / f"sheet-{width}.png", optimize=True)
    print(f"{faults} faults")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
