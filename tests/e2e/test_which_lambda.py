"""Which lambda, in a real browser: stopped, continued, answered, and every word of it the package's own."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, Route, expect

from datamask.config import CorpusConfig
from datamask.config.lambda_question import LambdaQuestion, Target, texts_of
from datamask.dashboard.data.openings import openings
from datamask.evaluation.lambdas.kept import Kept
from datamask.evaluation.lambdas.wording import named
from datamask.runs import lambda_answers
from datamask.runs.lambdas import answer
from datamask.runs.store import RunStore
from datamask.work.cache import Cache
from tests.e2e.serving import STILL, served
from tests.e2e.test_walk import choose
from tests.evaluation.lambdas.planted import planted_corpus

LONG = 240_000


def written(folder: Path) -> tuple[Path, Path]:
    """A corpus whose best lambda for a target is known, as a shard, and the target's texts as a file."""
    corpus, _, texts = planted_corpus(3, n=1500)
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


def signed(number: float) -> str:
    return f"{number:+.4f}".replace("-", "−")


@pytest.mark.timeout(900)
def test_a_search_is_stopped_continued_and_answered(tmp_path, browser_page: Page):
    shard, target = written(tmp_path / "corpus")
    opening = openings(tmp_path / "runs").start(CorpusConfig((str(shard),)), "planted")
    opening.wait(LONG / 1000)
    cache = RunStore(tmp_path / "runs").cache_dir
    kept = Kept(cache, opening.corpus.fingerprint)
    with served(tmp_path) as address:
        page = browser_page
        page.set_default_timeout(LONG)
        # a table would ask where to save, in a window that no test can reach; without, it downloads
        page.add_init_script("window.showSaveFilePicker = () => { throw new Error('no such thing') }")
        expect.set_options(timeout=LONG)
        main, menu = page.get_by_test_id("stMain"), page.locator(".st-key-menu")
        page.goto(f"{address}/evidence?corpus={opening.key}")
        expect(main.get_by_text("No lambda has been tried on this corpus")).to_be_visible()

        # something long, so that there is time to stop it: the slowest objective at many lambdas and ratios
        main.get_by_text("Pair-wise similarity", exact=True).click()
        main.get_by_text("DiSF (feature decorrelation)", exact=True).click()
        for share in ("2", "5", "30"):
            main.get_by_role("button", name=re.compile(rf"^{share}\s%$")).click()
        main.get_by_text("16, finer").click()
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        main.get_by_role("button", name="Start").click()
        expect(main.get_by_text("Searching")).to_be_visible()
        expect(main.get_by_text(re.compile(r"Selecting by DiSF .* round 1 of 5"))).to_be_visible()
        expect(main.get_by_text(re.compile(r"\d\s% done, about .* left"))).to_be_visible()
        expect(menu.get_by_text("Which lambda", exact=True).last).to_be_visible()
        expect(menu.get_by_text(re.compile(r"\d\s%, about .* left"))).to_be_visible()
        expect(main.get_by_role("button", name="Start")).to_be_disabled()

        menu.get_by_role("button", name="Stop").click()
        expect(main.get_by_text(re.compile("What was selected so far is kept"))).to_be_visible()
        expect(menu.get_by_role("button", name="Stop")).to_have_count(0)
        first = Cache(cache).path(kept.entry(next(name for name in kept.names() if name.endswith("-1-0-0"))))
        before, done = first.stat().st_mtime_ns, len(kept.names())
        assert done >= 16, "facility location at the first ratio was selected before DiSF began"
        main.get_by_role("button", name="Continue").click()
        expect(main.get_by_text(re.compile(r"Selecting by DiSF .* round 1 of 5"))).to_be_visible()
        main.get_by_role("button", name="Stop").last.click()
        expect(main.get_by_role("button", name="Continue")).to_be_visible()
        assert first.stat().st_mtime_ns == before and len(kept.names()) >= done
        main.get_by_role("button", name="Put away").click()
        expect(main.get_by_text("No lambda has been tried on this corpus")).to_be_visible()

        # a page opened anew has the first choices again
        page.goto(f"{address}/evidence?corpus={opening.key}")
        choose(page, "Judge by", "Texts of my own")
        main.locator("input[type=file]").set_input_files(target)
        expect(main.get_by_text("wanted.txt")).to_be_visible()
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        main.get_by_role("button", name="Start").click()
        expect(main.get_by_text(re.compile("helps on wanted.txt"))).to_be_visible()
        expect(menu.get_by_role("button", name="Stop")).to_have_count(0)

        texts = texts_of(target.read_text(encoding="utf-8"))
        question = LambdaQuestion(target=Target.own(texts, "wanted.txt"))
        stored = lambda_answers.load(cache, opening.corpus.fingerprint, question.key)
        own = answer(opening.corpus, question, tmp_path / "own", texts=texts, device="cpu")
        assert not kept.names(), "the answer is there, so nothing waits to be continued"
        assert f"answer={question.key}" in page.url
        assert own["headline"] == stored["headline"] and "at lambda 0.85" in own["headline"]
        expect(main.get_by_text(own["headline"])).to_be_visible()
        for mine, theirs in zip(own["measures"], stored["measures"], strict=True):
            for curve, other in zip(mine["curves"], theirs["curves"], strict=True):
                assert curve["verdict"] == other["verdict"] and curve["recommended"] == other["recommended"]
                # another number of threads may round otherwise, and so choose another of nearly equal rows
                assert [point["difference"] for point in curve["points"]] == pytest.approx(
                    [point["difference"] for point in other["points"]], abs=0.02
                )

        # a single lambda is recommended, so the picture says no more than the word
        expect(main.locator("svg text").filter(has_text=re.compile("^recommended$")).first).to_be_visible()
        # what is written is what was stored: the sentence of each curve, and the table cell by cell
        main.get_by_text("All numbers").click()
        for measure in stored["measures"]:
            for curve in measure["curves"]:
                expect(main.get_by_text(curve["sentence"])).to_be_visible()
        for number, measure in enumerate(stored["measures"]):
            main.get_by_test_id("stDataFrame").nth(number).hover()
            with page.expect_download() as download:
                main.get_by_role("button", name=f"Download as CSV: {measure['label']}").click()
            download.value.save_as(tmp_path / "table.csv")
            shown = pyarrow.csv.read_csv(tmp_path / "table.csv").to_pylist()
            points = [(point["value"], curve, point) for curve in measure["curves"] for point in curve["points"]]
            points.sort(key=lambda found: found[0])
            rows = [row for row in shown if "λ" in row["selection"]]
            assert [row["selection"] for row in rows] == [
                f"{named(curve['objective'])}, λ {point['lamb']:g}" for _, curve, point in points
            ]
            for row, (value, _, point) in zip(rows, points, strict=True):
                assert row["value"] == pytest.approx(value) and row["difference"] == pytest.approx(point["difference"])
                assert row["interval"] == f"{signed(point['low'])} to {signed(point['high'])}"
                assert row["against random"] == (
                    "better than random"
                    if point["high"] < 0
                    else "worse than random"
                    if point["low"] > 0
                    else "cannot be told apart"
                )
                assert row["level with its best"] == ("yes" if point["level"] else "no")
            assert {row["selection"] for row in shown} - {row["selection"] for row in rows} == {"Top quality", "Random"}


@pytest.mark.timeout(600)
def test_start_pressed_while_the_texts_are_on_their_way_starts_when_they_are_there(tmp_path, browser_page: Page):
    shard, target = written(tmp_path / "corpus")
    opening = openings(tmp_path / "runs").start(CorpusConfig((str(shard),)), "planted")
    opening.wait(LONG / 1000)
    on_their_way: list[Route] = []
    with served(tmp_path) as address:
        page = browser_page
        page.route("**/_stcore/upload_file/**", lambda upload: on_their_way.append(upload))
        main = page.get_by_test_id("stMain")
        page.goto(f"{address}/evidence?corpus={opening.key}")
        choose(page, "Judge by", "Texts of my own")
        main.locator("input[type=file]").set_input_files(target)
        # the browser lists a file before it has sent it
        expect(main.get_by_role("button", name="Cancel upload of wanted.txt")).to_be_visible()
        main.get_by_role("button", name="Start").click()
        expect(main.get_by_text("The search starts as soon as they are uploaded")).to_be_visible()
        page.wait_for_function(STILL)
        for upload in on_their_way:
            upload.continue_()
        expect(main.get_by_text("Searching").or_(main.get_by_text(re.compile("helps on wanted.txt")))).to_be_visible()
