"""A rule in a real browser: a pinned search is in the next run."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.data.openings import openings
from datamask.dashboard.map import map_layout
from datamask.runs.store import RunStore
from tests.e2e.serving import served
from tests.making.runs import finish_run, write_shard

LONG = 240_000


@pytest.mark.timeout(900)
def test_a_pin_is_in_the_next_run(tmp_path, browser_page: Page):
    opening = openings(tmp_path / "runs").start(write_shard(tmp_path / "shard.parquet"), "shard")
    opening.wait(LONG / 1000)
    corpus, store = opening.corpus, RunStore(tmp_path / "runs")
    # a layout that is there already: UMAP is another test's business
    stored_layout(corpus, store.cache_dir).keep(Layout(corpus.features[:, :2].astype(np.float32), 0.5, len(corpus)))
    map_layout.stored_crowding(corpus, store.cache_dir).keep(np.zeros(len(corpus), np.float32))
    first = finish_run(store, corpus, opening.config, corpus.quality, objective="pairwise", estimator="top-quality")
    with served(tmp_path) as address:
        page = browser_page
        page.goto(f"{address}/?corpus={opening.key}&run={first.id}")
        box = page.get_by_role("textbox", name="Search the texts")
        box.fill("sample 11")
        box.press("Enter")
        page.get_by_role("button", name="Pin these 12").click(timeout=LONG)
        page.get_by_role("link", name="Start a run under these rules").click(timeout=LONG)
        expect(page.get_by_role("button", name="Learn masks", exact=True)).to_be_visible(timeout=LONG)
        page.reload()
        expect(page.get_by_role("button", name=re.compile("Pinned 12"))).to_be_visible(timeout=LONG)
        page.get_by_role("button", name="Solve", exact=True).click()
        expect(page.get_by_text("under the same rules")).to_be_visible(timeout=LONG)
    run = store.list()[0]
    selected = run.rows()["selected"].to_numpy().astype(bool)
    pinned = np.array([all(word in text for word in ("sample", "11")) for text in corpus.metadata["text"].to_pylist()])
    assert pinned.sum() == 12 and selected[pinned].all() and selected.sum() == 72
