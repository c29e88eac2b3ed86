"""Pages that are to be seen at once: nothing of them lies below the window of 1440 x 900 at rest."""

from __future__ import annotations

from playwright.sync_api import expect

from datamask.runs.store import RunStore
from tests.e2e.serving import STILL, served
from tests.e2e.test_map import opening  # noqa: F401 (a fixture)
from tests.making.runs import finish_run

BELOW = "(main => main.scrollHeight - main.clientHeight)(document.querySelector('[data-testid=stMain]'))"


def test_export_fits_one_screen(tmp_path, opening, browser_page):  # noqa: F811
    run = finish_run(RunStore(tmp_path / "runs"), opening.corpus, opening.config, opening.corpus.quality, name="one")
    browser_page.set_viewport_size({"width": 1440, "height": 900})
    with served(tmp_path) as address:
        browser_page.goto(f"{address}/export?corpus={opening.key}&run={run.id}")
        expect(browser_page.get_by_text("Provenance and command line")).to_be_visible()
        browser_page.wait_for_function(STILL)
        assert browser_page.evaluate(BELOW) <= 0
        expect(browser_page.get_by_role("button", name="Download report (HTML)")).to_be_in_viewport()
