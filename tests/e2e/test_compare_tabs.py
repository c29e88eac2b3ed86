"""Compare as a user walks it: numbers, groups, a scoreboard to its end; an end amid work."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus.projections import pca
from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.data.openings import openings
from datamask.dashboard.drawing import words
from datamask.evaluation import optimised_by, scoreboard
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.runs.stored_measures import stored_board
from datamask.work.context import Work
from tests.e2e.serving import serving

TINY = str(Path(__file__).resolve().parents[2] / "sample_data" / "tiny")

ENDS = ("value", "low", "high")


def cells(page: Page, alt: str) -> list[list[str]]:
    """The rows of a table that are on the screen, as its text for screen readers has them."""
    frame = page.get_by_test_id("stDataFrame").filter(
        has=page.locator(f"[aria-label$={json.dumps(alt, ensure_ascii=False)}]")
    )
    frame.locator("[role='gridcell']").first.wait_for(state="attached")
    return [row.locator("[role='gridcell']").all_inner_texts() for row in frame.locator("tbody [role='row']").all()]


@pytest.mark.timeout(900)
def test_groups_scoreboard_and_results_say_what_the_package_says(tmp_path, browser_page: Page):
    store, corpus_config = RunStore(tmp_path / "runs"), CorpusConfig((TINY,))
    runs = []
    for name, lamb in (("first", 0.3), ("second", 0.7), ("third", 0.9)):
        selection = SelectionConfig.from_options(objective="pairwise", estimator="relaxed", select_ratio=0.2, lamb=lamb)
        runs.append(store.create(RunConfig(corpus_config, selection, name)))
        execute(runs[-1], Work(threads=1))
    opening = openings(store.root).start(corpus_config, "tiny")
    opening.wait(240)
    corpus, pair = opening.corpus, runs[:2]
    # a layout that is there already: UMAP is another test's business
    stored_layout(corpus, store.cache_dir).keep(Layout(pca(corpus.features), 0.5, len(corpus)))
    a, b = (run.rows()["selected"].to_numpy(zero_copy_only=False).astype(bool) for run in pair)
    with serving(tmp_path) as (address, server):
        page = browser_page
        page.goto(f"{address}/runs?view=compare&corpus={opening.key}&runs={','.join(run.id for run in pair)}")
        for label, mask in (("Kept", a & b), ("Gained", b & ~a), ("Lost", a & ~b)):
            number = page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue")
            expect(number).to_have_text(words.count(mask.sum()))

        page.get_by_role("tab", name="Where").click()
        sources = np.array(corpus.metadata["source"].to_pylist())
        shown = cells(page, "What changes in each source, the clearest change first")
        assert len(shown) > 8
        for source, *_, n, kept, gained, lost in shown:
            here = sources == source
            assert [int(count) for count in (n, kept, gained, lost)] == [
                int((here & mask).sum()) for mask in (here, a & b, b & ~a, a & ~b)
            ], source

        page.get_by_role("link", name="Independent metrics").click()
        expect(page.get_by_role("tab", name="Independent metrics")).to_have_attribute("aria-selected", "true")
        page.get_by_role("button", name="Measure these runs").click()
        # the first measures already bring this sentence, with how many are ready before it
        expect(page.get_by_text(re.compile("measures (that none|is one)"))).to_be_visible()
        expect(page.get_by_text("measures are ready")).to_have_count(0)
        stored = stored_board(pair, corpus.fingerprint, store.cache_dir).find()
        own = scoreboard(
            corpus,
            {run.id: mask.nonzero()[0] for run, mask in zip(pair, (a, b), strict=True)},
            store.cache_dir,
            cut=True,
            calibrate=False,
            device="cpu",
            optimised={run.id: optimised_by(run.config.selection) for run in pair},
        )
        assert stored["left"] == [] and len(stored["measures"]) == len(own["measures"])
        for measured, expected in zip(stored["measures"], own["measures"], strict=True):
            assert (measured["measure"], measured["best"]) == (expected["measure"], expected["best"])
            for name, cell in expected["selections"].items():
                there = measured["selections"][name]
                assert [there[end] for end in ENDS] == [
                    None if cell[end] is None else pytest.approx(cell[end], rel=1e-5, abs=1e-9) for end in ENDS
                ]
            value = measured["selections"][pair[0].id]["value"]
            if value is not None:
                drawn = page.locator(f".score img[alt^={json.dumps(measured['label'] + ': ')}]")
                assert f"first: {words.value(value)}" in drawn.get_attribute("alt")
        expect(page.locator(".st-key-menu").get_by_text("Independent metrics of 2 runs")).to_have_count(0)

        page.goto(f"{address}/evidence?view=scoreboard&corpus={opening.key}&runs={runs[1].id},{runs[2].id}")
        page.get_by_role("button", name="Measure these runs").click()
        # the work is under way; on a very fast machine it may be done before one sees that
        page.locator(".st-key-menu").get_by_text("Independent metrics of 2 runs").or_(
            page.get_by_text(re.compile("measures (that none|is one)"))
        ).first.wait_for()
        server.terminate()
        # by itself, or by the signal that it was sent once everything has ended; an abort is neither
        assert server.wait(120) in (0, -signal.SIGTERM)
    assert "terminate called" not in (tmp_path / "server.log").read_text()
