"""Count the words on each page of the dashboard at rest, with the demo corpus open, in a real browser.

    python -m benchmarks.words [--text]

Counts the text that can be read in a window of 1440 x 900 pixels before anything is pressed or scrolled, and beside it
the text of the whole page. A word is a run of characters without a space that holds a letter. Not counted: text in
drawings (canvas, SVG, histograms and bars, names of regions on the map), cells of tables, texts of rows, and code.
Folded text and help behind "?" are not visible. With ``--text`` the text itself is printed.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.e2e.browsing import FLAGS, NO_BROWSER, VIEWPORT, installed_browser
from tests.e2e.serving import STILL, served

PAGES = {name: name.lower() for name in ("Frontier", "Runs", "Compare", "Evidence", "Data", "Export")} | {"Map": ""}
"""The address of each page."""

DRAWN = {
    "": ".map[data-drawn='1']",
    "frontier": "[data-testid='stMain'] .js-plotly-plot",
    "compare": "[data-testid='stMain'] h3",
    "runs": "[data-testid='stMain'] [data-testid='stDataFrame']",
    "evidence": "[data-testid='stMain'] .js-plotly-plot",
    "data": "[data-testid='stMain'] .js-plotly-plot",
    "export": "[data-testid='stMain'] [data-testid='stDownloadButton']",
}
"""What stands on each page once its answer is drawn."""

LONG, PAUSE = 120_000, 1_500
"""Milliseconds that a page may take, and between two looks at what it says."""

MOST = 150
"""Words of a page at rest."""

VISIBLE = """(whole) => {
    const out = [], bottom = whole ? Infinity : window.innerHeight;
    const skip = ["canvas", "svg", "table", "pre", "code", "script", "style", "textarea", ".sr-only", ".strips",
        ".names", "[class*='st-key-explore_extremes']",
        "[data-testid='stDataFrame']", "[data-testid='stIconMaterial']", "[data-testid='stVegaLiteChart']",
        ".js-plotly-plot", ".st-key-unseen_title", ".visually-hidden"].join();
    const clipped = (element) => {
        if (element.closest("details:not([open])") && !element.closest("summary")) return true;
        for (let each = element; each; each = each.parentElement ?? each.getRootNode().host) {
            const style = getComputedStyle(each);
            if (style.visibility === "hidden" || style.opacity === "0" || style.display === "none") return true;
            const box = each.getBoundingClientRect();
            const small = box.width <= 1 || box.height <= 1;
            if (small && ["hidden", "clip"].includes(style.overflowX)) return true;
        }
        return false;
    };
    const walk = (root) => {
        for (const node of root.childNodes) {
            if (node.nodeType === 1) {
                if (node.matches(skip)) continue;
                if (node.shadowRoot) walk(node.shadowRoot);
                walk(node);
            } else if (node.nodeType === 3 && node.textContent.trim()) {
                const range = document.createRange();
                range.selectNodeContents(node);
                const box = range.getBoundingClientRect();
                const parent = node.parentElement ?? node.getRootNode().host;
                const seen = box.width && box.height && box.top < bottom && box.bottom > 0 && !clipped(parent);
                if (seen) out.push(node.textContent.trim());
            }
        }
    };
    walk(document.querySelector("[data-testid='stApp']"));
    return out;
}"""
"""The visible pieces of text of a page, in the order of the document."""


def count(pieces: list[str]) -> int:
    """Count the words of some text: what holds a letter between two spaces."""
    return sum(bool(re.search(r"[^\W\d_]", word)) for piece in pieces for word in piece.split())


def visible(page: Page, address: str, path: str, whole: bool = False) -> list[str]:
    """Open a page with the demo corpus and return its visible pieces of text, once it stands still.

    Args:
        whole: also what lies below the window's lower edge.
    """
    page.goto(f"{address}/{path}")
    page.locator(DRAWN[path]).first.wait_for(timeout=LONG)
    before: list[str] | None = None
    for _ in range(60):
        page.wait_for_function(STILL, timeout=LONG)
        pieces = page.evaluate(VISIBLE, whole)
        # twice the same: nothing is being drawn any more; and no work is under way, which every page could stop
        if pieces == before and "Stop" not in pieces:
            break
        before = pieces
        page.wait_for_timeout(PAUSE)
    return pieces


def main() -> None:
    """Print the words of each page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", action="store_true", help="print the text too")
    wanted = parser.parse_args()
    browser_path = installed_browser()
    if browser_path is None:
        raise SystemExit(NO_BROWSER)
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder), DATAMASK_SAMPLE="on") as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
        page = browser.new_page(viewport=VIEWPORT)
        for name, path in PAGES.items():
            pieces = visible(page, address, path)
            print(f"{name:10} {count(pieces):4} words, {count(page.evaluate(VISIBLE, True)):4} on the whole page")
            if wanted.text:
                print(*(f"    {piece}" for piece in pieces), sep="\n")
        browser.close()


if __name__ == "__main__":
    main()
