"""A page that turns dark while it is open draws its figures again, as a page that was opened dark has them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from datamask.dashboard.drawing import palette
from tests.e2e.serving import served
from tests.e2e.test_axe import stored, turn

FIGURES = ("data", "runs?view=frontier", "evidence")
LETTERS = "() => [...document.querySelectorAll('.js-plotly-plot')].map(figure => figure._fullLayout?.font.color)"
"""The color of the letters of every figure of Plotly's."""


@pytest.mark.timeout(900)
def test_figures_follow_a_page_that_turns_dark(tmp_path, browser_page: Page):
    page = browser_page
    opening, run = stored(tmp_path)
    page.emulate_media(color_scheme="light")
    with served(tmp_path) as address:
        for path in FIGURES:
            page.goto(f"{address}/{path}{'&' if '?' in path else '?'}corpus={opening.key}&run={run.id}")
            for theme in ("light", "dark", "light"):
                turn(page, theme)
                page.wait_for_function(
                    f"letters => ({LETTERS})().length > 0 && ({LETTERS})().every(color => color === letters)",
                    arg=palette.shades(theme == "dark").text,
                )
