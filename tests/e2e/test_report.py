"""The report in a real browser: it opens without a network; the server ends amid work."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from datamask.analyses.report import sentence
from datamask.config import CorpusConfig
from datamask.dashboard.data.openings import openings
from datamask.runs.store import RunStore
from tests.e2e.serving import STILL, serving
from tests.making.runs import execute_run

TINY = str(Path(__file__).resolve().parents[2] / "sample_data" / "tiny")
LONG = 240_000
EVIL = "<script>document.title='run'</script>"


@pytest.mark.timeout(900)
def test_the_report_opens_without_a_network_and_the_server_ends_amid_work(tmp_path, browser_page: Page):
    store, corpus = RunStore(tmp_path / "runs"), CorpusConfig((TINY,))
    runs = []
    for name, lamb in ((f"A {EVIL}", 0.3), (f"B {EVIL}", 0.7)):
        options = {"objective": "pairwise", "estimator": "relaxed", "select_ratio": 0.2}
        runs.append(execute_run(store, corpus, name, lamb=lamb, **options))
    opening = openings(tmp_path / "runs").start(corpus, "tiny")
    opening.wait(LONG / 1000)
    with serving(tmp_path) as (address, server):
        page = browser_page
        # what there is to download is seen at once
        page.goto(f"{address}/export?corpus={opening.key}&run={runs[1].id}")
        page.wait_for_function(STILL)
        expect(page.get_by_role("button", name="Download report")).to_be_in_viewport()
        with page.expect_download(timeout=LONG) as download:
            page.get_by_role("button", name="Download report").click(timeout=LONG)
        download.value.save_as(tmp_path / "report.html")

        chosen = f"corpus={opening.key}&runs={runs[0].id},{runs[1].id}"
        page.goto(f"{address}/evidence?evidence_tab=Independent metrics&{chosen}")
        page.get_by_role("button", name="Measure these runs").click()
        # the work is under way; on a very fast machine it may be done before one sees that
        page.locator(".st-key-menu").get_by_text("Independent metrics of 2 runs").or_(
            page.get_by_text(re.compile("measures (that none|is one)"))
        ).first.wait_for()
        server.terminate()
        # by itself, or by the signal that it was sent once everything has ended; an abort is neither
        assert server.wait(120) in (0, -signal.SIGTERM)
    assert "terminate called" not in (tmp_path / "server.log").read_text()

    page.goto("about:blank")  # the page before asks for its server, which has ended
    said, asked = [], []
    offline = page.context.browser.new_context(offline=True)
    sheet = offline.new_page()
    sheet.on("console", lambda message: said.append(message.text))
    sheet.on("pageerror", lambda error: said.append(str(error)))
    sheet.on("request", lambda request: asked.append(request.url))
    sheet.goto((tmp_path / "report.html").as_uri())
    expect(sheet.get_by_text(sentence(runs[1]))).to_be_visible()
    assert sheet.title().startswith(f"B {EVIL}") and sheet.get_by_role("heading", level=1).inner_text() == f"B {EVIL}"
    assert not said and asked == [(tmp_path / "report.html").as_uri()], "nothing is fetched, nothing goes wrong"
    assert sheet.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert sheet.locator("img").count() == 1 and sheet.locator("table").count() >= 3
    assert re.search(opening.corpus.fingerprint, sheet.locator("main").inner_text())
    assert sheet.evaluate("document.body.scrollWidth <= innerWidth")
    offline.close()
