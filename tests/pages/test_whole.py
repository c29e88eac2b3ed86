"""A run on all rows of a corpus beyond memory, on the pages: a selection on the map of its sample, which they say."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.dashboard.data.openings import openings
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import outcome
from tests.making.derivable_runs import shard
from tests.making.runs import execute_run
from tests.pages.reading import answer

N, SAMPLE = 3000, 400


@pytest.fixture
def whole(runs_dir, store, tmp_path):
    """A finished run, and its sample open."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for number in range(3):
        pq.write_table(shard(N // 3, seed=number, d=8), folder / f"{number}.parquet")
    options = {"objective": "pairwise", "select_ratio": 0.25, "scratch_dir": str(tmp_path / "scratch")}
    run = execute_run(store, CorpusConfig((str(folder),), rows=SAMPLE), **options)
    opening = openings(runs_dir).start(run.config.corpus, "shards")
    opening.wait(240)
    assert opening.ready, opening.job.error
    return run, opening


def _text(app) -> str:
    return " ".join(element.value for element in (*app.markdown, *app.caption, *app.subheader, *app.code))


def test_its_page_has_the_numbers_of_all_rows_and_says_what_is_drawn(page, whole):
    run, opening = whole
    app = page("pages/runs.py", corpus=opening.key, run=run.id)
    said, summary = answer(app)["answer"], run.status().to_dict()["summary"]
    assert said["size"] == f"750 of {N:,} rows · {words.short(summary['tokens'])} tokens"
    assert said["sentence"] == f"Mean score {summary['quality']:.2f}."
    assert said["note"].endswith(f"the map shows a uniform sample of {SAMPLE}")
    assert "No selection of 750 rows" in outcome.certificate(run)


def test_the_other_pages_open_it(page, whole):
    run, opening = whole
    for script in ("app.py", "pages/compare.py", "pages/frontier.py", "pages/export.py"):
        app = page(script, corpus=opening.key, run=run.id)
        assert not app.error, script
    tables = " ".join(str(value) for table in app.dataframe for value in table.value.to_numpy().ravel())
    assert "in mapped files; the map shows a uniform sample" in tables + _text(app)


def test_it_belongs_to_its_sample_and_its_corpus_is_opened_as_that(whole):
    run, opening = whole
    assert run.facts()["fingerprint"] == opening.corpus.fingerprint
    chosen = run.rows(("selected",))["selected"].to_numpy()
    ids = set(run.selection()["id"].to_pylist())
    assert np.array_equal(chosen, [name in ids for name in opening.corpus.ids.to_pylist()])
