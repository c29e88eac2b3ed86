"""docs/walkthrough.md, replayed in a real browser; what is taken home is compared with the package's own answer."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from datamask.analyses.frontier.panel import HEIGHT
from datamask.config import CorpusConfig
from datamask.corpus import Corpus, open_corpus
from datamask.corpus.projections import pca
from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.linked.facets import codes_of
from datamask.runs.store import RunStore
from tests.e2e.serving import STILL, served
from tests.e2e.walkthrough import DOMAINS, Walk, place_of, write_shards

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "walkthrough.md"


def without_umap(corpus: Corpus, cache_dir: Path) -> None:
    """A layout on disk: UMAP's compilation would take longer than the whole walk."""
    stored_layout(corpus, cache_dir).keep(Layout(pca(corpus.features), 0.5, len(corpus)))


PLACE = """([chart, run]) => {
    const {xaxis, yaxis} = chart._fullLayout, box = chart.getBoundingClientRect();
    const trace = chart.data.find((one) => one.customdata?.length === 11), place = trace.customdata.indexOf(run);
    return [box.left + xaxis._offset + xaxis.l2p(trace.x[place]), box.top + yaxis._offset + yaxis.l2p(trace.y[place])];
}"""
"""Where the point of a run lies, of a curve over eleven λ."""


def a_point_tells_its_price(page: Page, run_id: str) -> None:
    """A click on the point of λ 0.2 chooses it; in a narrow window the picture keeps its place, loaded or not."""
    # the chart is mounted anew with every point, so for a moment there may be two
    page.wait_for_function(
        """() => {
        const charts = document.querySelectorAll('.js-plotly-plot');
        return charts.length === 1 && charts[0].data?.some(trace => trace.customdata?.length === 11);
    }"""
    )
    page.wait_for_function(STILL)
    page.mouse.click(*page.evaluate(PLACE, [page.locator(".js-plotly-plot").element_handle(), run_id]))
    expect(page.get_by_text("costs 0.25 % diversity")).to_be_visible()
    expect(page).to_have_url(re.compile(f"run={run_id}"))
    link = page.locator(".st-key-menu").get_by_role("link", name="Map", exact=True)
    expect(link).to_have_attribute("href", re.compile(f"run={run_id}"))
    page.set_viewport_size({"width": 1000, "height": 800})
    assert page.locator(".st-key-frontier_place").evaluate("place => place.clientHeight") == HEIGHT
    page.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.timeout(900)
def test_the_walkthrough(tmp_path, monkeypatch, browser_page: Page):
    shards = write_shards(tmp_path / "shards")
    monkeypatch.setenv("DATAMASK_ROOTS", str(tmp_path))
    store, corpus = RunStore(tmp_path / "runs"), open_corpus(CorpusConfig((str(shards),)))
    without_umap(corpus, store.cache_dir)
    codes, names = codes_of(corpus.metadata["domain"])

    def selected(run_id: str) -> np.ndarray:
        return store.get(run_id).rows()["selected"].to_numpy(zero_copy_only=False)

    with served(tmp_path) as address:
        walk = Walk(browser_page)
        walk.open_shards(address, shards)
        assert walk.clicks + 2 <= 5, "with pasting the path, and a code where one is asked for"
        walk.sweep()
        a_point_tells_its_price(
            browser_page, next(run.id for run in store.list() if run.config.selection.lamb == pytest.approx(0.2))
        )
        lamb = walk.keep()
        walk.smallest_domain(lambda run_id: place_of("recipes", shards, store.root, run_id))
        run_id = re.search("run=([a-z0-9-]+)", browser_page.url).group(1)
        smallest = codes == names.index("recipes")
        dropped = int((smallest & ~selected(run_id)).sum())
        assert int(smallest.sum()) == DOMAINS["recipes"]
        expect(walk.main.get_by_role("button", name=f"Download {dropped} ids (CSV)")).to_be_visible()
        ids, report = walk.take_home(tmp_path)

    run = store.get(run_id)
    assert run.config.selection.lamb == lamb and run.config.selection.estimator == "relaxed"
    kept = run.status().to_dict()["summary"]["calibrated"]["quality"]
    assert kept == pytest.approx(0.95, abs=0.01)
    # the smallest one: the neighbouring point of the sweep keeps less
    coarser = [other for other in store.list() if other.config.selection.lamb < lamb]
    assert (
        all(other.status().to_dict()["summary"]["calibrated"]["quality"] < 0.95 for other in coarser)
        and len(coarser) > 3
    )
    chosen = set(pq.read_table(ids)["chunk_id"].to_pylist())
    assert (
        chosen
        == set(run.selection()["chunk_id"].to_pylist())
        == set(pc.filter(corpus.ids, selected(run_id)).to_pylist())
    )
    page = report.read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html") and run_id in page and "<script" not in page
    # the document promises as many clicks
    assert walk.clicks == int(re.search(r"(\d+) clicks", DOCUMENT.read_text(encoding="utf-8")).group(1)) <= 15
