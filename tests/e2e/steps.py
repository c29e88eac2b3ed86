"""What visitors of a page do: open another page, choose from a menu, draw a lasso, save a file."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, expect

from tests.e2e.serving import FAILED, STILL


def go(page: Page, label: str, question: str) -> None:
    """To another page by the menu."""
    page.locator(".st-key-menu").get_by_role("link", name=label).click()
    expect(page.get_by_role("heading", level=1, name=question, exact=True)).to_be_visible()
    expect(page.locator(FAILED)).to_have_count(0)


def choose(page: Page, menu: str, entry: str) -> None:
    """An entry of a menu. What ends in the background draws the page anew, which closes an open menu: open it again."""
    for _ in range(20):
        page.get_by_role("combobox", name=menu).click()
        with contextlib.suppress(PlaywrightError):
            page.get_by_role("option", name=entry).click(timeout=12_000)
            return
    raise AssertionError(f"the menu {menu} never gave {entry}")


def lasso(page: Page, panel: int, share: float = 1 / 4) -> np.ndarray:
    """Draw a star in the middle of a panel; its corners in the map's own coordinates, by the map's stated view.

    Args:
        share: its radius, of the panel's width.
    """
    page.wait_for_function(STILL)  # or the map moves away from under the star
    area = page.locator(".stage").nth(panel)
    box, view = area.bounding_box(), json.loads(page.locator(".map").get_attribute("data-view"))
    width, height = (area.evaluate(f"stage => stage.client{side}") for side in ("Width", "Height"))
    edge = (box["width"] - width) / 2
    turn = np.linspace(0, 2 * np.pi, 31)
    reach = share * width * np.where(np.arange(31) % 2, 0.7, 1.3)
    xs, ys = width / 2 + reach * np.cos(turn), height / 2 + reach * np.sin(turn)
    page.mouse.move(box["x"] + edge + xs[0], box["y"] + edge + ys[0])
    page.mouse.down()
    for x, y in zip(xs[1:], ys[1:]):
        page.mouse.move(box["x"] + edge + x, box["y"] + edge + y)
    page.mouse.up()
    return np.column_stack(
        [view["x"] + (xs - width / 2) / view["scale"], view["y"] - (ys - height / 2) / view["scale"]]
    )


def saved(page: Page, name: str | re.Pattern, folder: Path) -> Path:
    """Press a download button and keep the file."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name).first.click()
    target = folder / waiting.value.suggested_filename
    waiting.value.save_as(target)
    return target


def named(page: Page) -> str:
    """The run in the address; empty: none is."""
    return parse_qs(urlsplit(page.url).query).get("run", [""])[0]
