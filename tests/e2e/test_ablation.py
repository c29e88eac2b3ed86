"""What helps, in a real browser: stopped, continued and answered."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, Route, expect

from datamask.ablation import wording
from datamask.ablation.question import METHODS, AblationQuestion
from datamask.analyses.ablation.compute.kept import ABLATION, StudyCache
from datamask.config import CorpusConfig
from datamask.config.target import Target, texts_of
from datamask.dashboard.data.openings import openings
from datamask.runs import ablation_results
from datamask.runs.store import RunStore
from tests.e2e.serving import STILL, served
from tests.e2e.steps import choose
from tests.making.planted import planted_corpus

LONG = 900_000


def written(folder: Path) -> tuple[Path, Path]:
    """A corpus whose best lambda for a target is known, as a shard, and the target's texts as a file."""
    corpus, _, texts = planted_corpus(3, n=2200)
    folder.mkdir()
    pq.write_table(
        pa.table(
            {
                "chunk_id": corpus.ids,
                "quality_score": corpus.quality,
                "text": corpus.metadata["text"],
                "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(corpus.features.ravel()), corpus.dim),
            }
        ),
        folder / "part.parquet",
    )
    target = folder / "wanted.txt"
    target.write_text("\n".join(texts), encoding="utf-8")
    return folder / "part.parquet", target


@pytest.mark.timeout(900)
def test_an_ablation_is_stopped_continued_and_answered(tmp_path, browser_page: Page):
    """The second time Start is pressed while the target's texts are on their way."""
    shard, target = written(tmp_path / "corpus")
    opening = openings(tmp_path / "runs").start(CorpusConfig((str(shard),)), "planted")
    opening.wait(LONG / 1000)
    cache = RunStore(tmp_path / "runs").cache_dir
    kept = StudyCache(cache, opening.corpus.fingerprint, ABLATION)
    with served(tmp_path) as address:
        page = browser_page
        page.set_default_timeout(LONG)
        expect.set_options(timeout=LONG)
        main, menu = page.get_by_test_id("stMain"), page.locator(".st-key-menu")
        page.goto(f"{address}/evidence?corpus={opening.key}")
        expect(main.get_by_text("No ablation of this corpus")).to_be_visible()

        main.get_by_role("button", name="Start").click()
        expect(main.get_by_text("Comparing methods")).to_be_visible()
        expect(main.get_by_text(re.compile(r"Selecting by .*, seed \d+ of 10"))).to_be_visible()
        expect(menu.get_by_text("Ablation", exact=True).last).to_be_visible()
        expect(main.get_by_role("button", name="Start")).to_be_disabled()
        deadline = time.monotonic() + LONG / 1000
        while not kept.names():
            assert time.monotonic() < deadline, "no selection is kept"
            time.sleep(0.05)
        menu.get_by_role("button", name="Stop").first.click()
        expect(main.get_by_text(re.compile("Finished selections are kept"))).to_be_visible()
        expect(menu.get_by_role("button", name="Stop")).to_have_count(0)
        done = set(kept.names())
        assert done, "what was selected before the stop is kept"
        main.get_by_role("button", name="Continue").click()
        expect(main.get_by_text("Comparing methods")).to_be_visible()
        main.get_by_role("button", name="Stop").last.click()
        expect(main.get_by_role("button", name="Continue")).to_be_visible()
        assert done <= set(kept.names())
        main.get_by_role("button", name="Dismiss").click()
        expect(main.get_by_role("button", name="Continue")).to_have_count(0)

        # a page opened anew has the first choices again; its texts are held back on their way
        uploads: list[Route] = []
        page.route("**/_stcore/upload_file/**", lambda upload: uploads.append(upload) if held else upload.continue_())
        held = True
        page.goto(f"{address}/evidence?corpus={opening.key}")
        main.get_by_role("radio", name="Other").click()
        choose(page, "Other target", "My own texts")
        main.locator("input[type=file]").set_input_files(target)
        # the browser lists a file before it has sent it
        expect(main.get_by_role("button", name="Cancel upload of wanted.txt")).to_be_visible()
        main.get_by_role("button", name="More").last.click()
        page.get_by_label("Seeds", exact=True).fill("6")
        page.get_by_label("Seeds", exact=True).press("Enter")
        page.get_by_text("Learned masks", exact=True).click()
        page.keyboard.press("Escape")
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        main.get_by_role("button", name="Start").click()
        expect(main.get_by_text("The ablation starts when they are uploaded")).to_be_visible()
        page.wait_for_function(STILL)
        held = False
        for upload in uploads:
            upload.continue_()
        expect(main.get_by_text(re.compile("better than the best simple baseline, "))).to_be_visible()
        expect(menu.get_by_role("button", name="Stop")).to_have_count(0)

        texts = texts_of(target.read_text(encoding="utf-8"))
        question = AblationQuestion(target=Target.own(texts, "wanted.txt"), seeds=6, methods=METHODS[:-1])
        stored = ablation_results.load(cache, opening.corpus.fingerprint, question.key)
        assert f"answer={question.key}" in page.url and not stored.provisional
        expect(main.get_by_text(wording.headline(stored))).to_be_visible()
        best = stored.recommendation.method
        assert best.objective and best.lamb is not None, "a joint method was planted"
