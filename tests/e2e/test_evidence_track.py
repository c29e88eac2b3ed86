"""Evidence on the lambda slider in a real browser: its marks, an offer that is taken, a cell that opens the Map."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from datamask.corpus import open_corpus
from datamask.runs import ablation_results
from datamask.runs.store import RunStore
from tests.e2e.serving import STILL, served
from tests.making.ablations import ROBUST, made_result
from tests.making.maps import lay_out
from tests.making.runs import execute_run, write_shard

N = 600
LONG = 60_000


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A run at lambda 0.5 and a confirmed ablation, on a corpus whose layout is there."""
    tmp_path = tmp_path_factory.mktemp("dashboard")
    config = write_shard(tmp_path / "shard.parquet", N)
    corpus, store = open_corpus(config), RunStore(tmp_path / "runs")
    run = execute_run(store, config, "first", objective="facility", estimator="relaxed")
    lay_out(corpus, store.cache_dir)
    result = made_result(ROBUST, fingerprint=corpus.fingerprint, n=N, rows=100)
    second = replace(result, losses=result.losses[:3], judge="transformer", question=result.question.by("transformer"))
    for each in (result, second):
        assert ablation_results.save(store.cache_dir, each)
    with served(tmp_path) as address:
        yield address, run.id, result


@pytest.mark.timeout(600)
def test_marks_stand_at_tried_lambdas_and_a_link_leads_to_evidence(ready, browser_page: Page):
    address, run_id, result = ready
    page = browser_page
    page.set_default_timeout(LONG)
    page.goto(f"{address}/?run={run_id}")
    expect(page.locator(".map[data-drawn='1']")).to_be_visible()
    marks = page.locator(".lambda .signs :is(.better, .worse)")
    places = {method.lamb: place for place, method in enumerate(result.methods) if method.along_lambda}
    expect(marks).to_have_count(len(places))
    expect(page.locator(".signs .solved").nth(20)).to_be_visible()
    page.wait_for_function(STILL)
    box = page.get_by_role("slider", name=re.compile("^Balance λ")).bounding_box()
    # looked at in one go: they are made anew with each λ that is solved or proved meanwhile
    seen = marks.evaluate_all(
        """marks => marks.map(mark => {
            const box = mark.getBoundingClientRect(), { clipPath, background } = getComputedStyle(mark);
            return [box.x + box.width / 2, mark.className, clipPath, background];
        })"""
    )
    for (middle, kind, *_), (lamb, place) in zip(seen, sorted(places.items()), strict=True):
        assert abs(middle - (box["x"] + 8 + (box["width"] - 16) * lamb)) < 1.5
        verdicts = [result.to_random(place, at).verdict for at in range(3)]
        assert kind == max(set(verdicts) - {"level"}, key=verdicts.count)
    # shapes differ, and colors do too
    assert len({shape for *_, shape, _ in seen}) == len({color for *_, color in seen}) == 2
    page.get_by_role("link", name="Evidence: better than random at λ 0.7").click()
    expect(page.get_by_test_id("stMain").get_by_text("For an unknown target, Facility location")).to_be_visible()


@pytest.mark.timeout(600)
def test_a_pressed_cell_opens_its_selection_on_the_map(ready, browser_page: Page):
    address, run_id, _ = ready
    page = browser_page
    page.set_default_timeout(LONG)
    page.goto(f"{address}/evidence?run={run_id}")
    page.get_by_text("All targets and numbers").click()
    figure = page.locator(".st-key-ablation_targets .js-plotly-plot")
    expect(figure).to_be_visible()
    page.wait_for_function(STILL)
    figure.scroll_into_view_if_needed()
    cells = figure.evaluate(
        """plot => { const size = plot._fullLayout._size, place = plot.getBoundingClientRect();
        return { x: place.x + size.l, y: place.y + size.t, width: size.w, height: size.h,
            names: plot._fullLayout.yaxis.ticktext,
            columns: plot._fullLayout.xaxis.ticktext.length } }"""
    )
    row = cells["names"].index("Facility location λ 0.7")
    # near the left end of the cell of the second target
    across, down = (1 + 0.1) / cells["columns"], (row + 0.5) / len(cells["names"])
    at = cells["x"] + cells["width"] * across, cells["y"] + cells["height"] * down
    page.mouse.move(*at)
    page.mouse.click(*at)
    expect(page.locator(".map[data-drawn='1']")).to_be_visible()
    expect(page).to_have_url(re.compile("objective=facility.*lambda=0.7"))
