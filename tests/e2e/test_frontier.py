"""The frontier in a real browser: a sweep is started, its points are the package's own answer, and a point opens."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from datamask.analyses.frontier.panel import HEIGHT
from datamask.config import CorpusConfig, SelectionConfig
from datamask.dashboard.data.openings import openings
from datamask.evaluation.frontier import frontier
from datamask.evaluation.pool import Pool
from datamask.runs.store import RunStore
from tests.e2e.serving import served

TINY = str(Path(__file__).resolve().parents[2] / "sample_data" / "tiny")
LONG = 240_000

# those of the curve; what stands at the edge for a far-off point can be clicked too
POINTS = """chart => chart.data.filter(trace => trace.customdata?.length === 5).flatMap(trace =>
    trace.customdata.map((run, i) => ({run: String(run), x: trace.x[i], y: trace.y[i]})))"""
PLACE = """([chart, x, y]) => {
    const {xaxis, yaxis} = chart._fullLayout, box = chart.getBoundingClientRect();
    return [box.left + xaxis._offset + xaxis.l2p(x), box.top + yaxis._offset + yaxis.l2p(y)];
}"""


@pytest.mark.timeout(900)
def test_a_sweep_in_the_browser_is_the_packages_own_frontier(tmp_path, browser_page: Page):
    opening = openings(tmp_path / "runs").start(CorpusConfig((TINY,)), "tiny")
    opening.wait(LONG / 1000)
    with served(tmp_path) as address:
        page = browser_page
        page.goto(f"{address}/frontier?corpus={opening.key}")
        expect(page.get_by_text("No run on this corpus yet")).to_be_visible(timeout=LONG)
        # pair-wise similarity in place of facility location, and five values of lambda
        for objective in ("Pair-wise similarity", "Facility location"):
            page.get_by_role("button", name=objective).click()
        values = page.get_by_role("textbox", name="Values")
        values.fill("0:1:5")
        values.press("Enter")
        expect(page.get_by_text(re.compile(r"^5 runs")).first).to_be_visible(timeout=LONG)
        page.get_by_role("button", name="Start the sweep").click()
        expect(page.get_by_text("All 5 runs are stored")).to_be_visible(timeout=LONG)
        # the chart is mounted anew with every point, so for a moment there may be two
        page.wait_for_function(
            """() => {
            const charts = document.querySelectorAll('.js-plotly-plot');
            return charts.length === 1 && charts[0].data?.some(trace => trace.customdata?.length === 5);
        }""",
            timeout=LONG,
        )
        chart = page.locator(".js-plotly-plot")
        points = chart.evaluate(POINTS)

        store = RunStore(tmp_path / "runs")
        lambdas = {point["run"]: store.get(point["run"]).config.selection.lamb for point in points}
        assert sorted(lambdas.values()) == [0, 0.25, 0.5, 0.75, 1]
        settings = SelectionConfig.from_options(objective="pairwise", estimator="relaxed")
        pool = Pool(opening.corpus, torch.device("cpu"), tmp_path / "cache")
        answers = {answer.lamb: answer for answer in frontier(pool, settings, np.linspace(0, 1, 5))}
        for point in points:
            lamb = lambdas[point["run"]]
            answer = answers[lamb]
            joint = lamb * point["x"] + (1 - lamb) * point["y"]
            # both are within their gaps of one optimum
            assert joint == pytest.approx(answer.joint, abs=2 * answer.gap + 1e-3)
            assert point["x"] == pytest.approx(answer.quality, abs=0.03)

        # a click chooses the point, tells its price, and opens its map
        chosen = next(point for point in points if lambdas[point["run"]] == 0.25)
        page.mouse.click(*page.evaluate(PLACE, [chart.element_handle(), chosen["x"], chosen["y"]]))
        expect(page.get_by_text("costs 0.33 % diversity")).to_be_visible(timeout=LONG)
        expect(page).to_have_url(re.compile(f"run={chosen['run']}"), timeout=LONG)
        link = page.locator(".st-key-menu").get_by_role("link", name="Map", exact=True)
        expect(link).to_have_attribute("href", re.compile(f"run={chosen['run']}"))
        # on a narrow window its numbers are whole, and the picture's place is as high as the picture, loaded or not
        page.set_viewport_size({"width": 1000, "height": 800})
        page.wait_for_function(
            """() => [...document.querySelectorAll('[data-testid="stMetricValue"] div')]
                .every(value => value.scrollWidth <= value.clientWidth)"""
        )
        assert page.get_by_test_id("stMetricValue").count() == 2
        assert page.locator(".st-key-frontier_place").evaluate("place => place.clientHeight") == HEIGHT
        page.set_viewport_size({"width": 1440, "height": 900})
        page.get_by_role("link", name="Show on the map").click()
        expect(page.get_by_role("heading", name="Map", level=1, exact=True)).to_be_visible(timeout=LONG)
        assert f"run={chosen['run']}" in page.url and urlsplit(page.url).path == "/"
