"""Apply to the whole corpus on the Export page: the plan, the run in a process of its own, and shares by group."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.data.openings import openings
from datamask.errors import InputError, OptionError
from datamask.pages.export import whole_panel
from datamask.runs import applying, detached
from datamask.runs import forecast as forecasts
from datamask.runs.execute import execute
from datamask.runs.forecast import forecast
from datamask.work.context import Work
from datamask.work.worker import worker
from tests.making.derivable_runs import shard
from tests.making.runs import execute_run
from tests.pages.reading import end_of
from tests.pages.test_why import waited

N, SAMPLE, LONG = 3000, 400, 240.0


@pytest.fixture
def folder(tmp_path):
    """Three shards with a column of classes, one value of which is missing here and there."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for number in range(3):
        table = shard(N // 3, seed=number, d=8)
        kinds = np.random.default_rng(number).choice(["web", "code", "books"], N // 3, p=[0.6, 0.3, 0.1])
        kind = pa.array([None if place % 50 == 0 else name for place, name in enumerate(kinds)])
        pq.write_table(table.append_column("kind", kind), folder / f"{number}.parquet")
    return folder


def opened(runs_dir, config):
    opening = openings(runs_dir).start(config, "shards")
    opening.wait(LONG)
    assert opening.ready, opening.job.error
    return opening


def solved(store, config, **options):
    return execute_run(store, config, "on a sample", **{"select_ratio": 0.25, "objective": "pairwise", **options})


@pytest.fixture
def sample(runs_dir, store, folder):
    """A run on a sample of 400 rows, and the sample open."""
    config = CorpusConfig((str(folder),), rows=SAMPLE)
    return solved(store, config, lamb=0.3), opened(runs_dir, config)


def text_of(app) -> str:
    kinds = ("markdown", "caption", "warning", "info", "error")
    return " ".join(str(one.value) for kind in kinds for one in app.get(kind)).replace("\\", "")


def asked(app, button, job):
    """Press a button that starts a job where it is there, and wait for it."""
    if [one for one in app.button if one.key == button]:
        app.button(key=button).click().run()
    return waited(app, job)


def test_plan_run_stop_resume_and_the_shares_at_the_end(page, sample, store, folder, monkeypatch, explained):
    run, opening = sample
    damaged = store.create(run.config)
    (damaged.path / "config.json").write_text("{")
    app = page("pages/export.py", corpus=opening.key, run=run.id)
    assert f"The run has seen {SAMPLE} of {N:,} rows" in text_of(app)
    app.button(key="plan_whole").click().run()
    app, job = waited(app, "plan of all rows")
    assert job.state == "done", job.error
    config = applying.over_all_rows(run.config, store.root)
    line = forecast(config, store.root).sentence.partition(". Takes")[0]
    assert line.startswith(f"750 of {N:,} rows of 8 dimensions, in mapped files. Columns: id (id)") and line in text_of(
        app
    )
    explained(app, 8)

    # the driver waits, so that the run can be watched and stopped before it has begun
    monkeypatch.setattr(detached, "_start_driver", lambda run, lock, objectives: 0)
    app.button(key="start_whole").click().run()
    (whole,) = [other for other in store.list() if other.id not in (run.id, damaged.id)]
    assert whole.config.selection.lamb == 0.3 and whole.config.selection.scratch_dir is not None
    assert whole.config.corpus == run.config.corpus and whole.config.name == "on a sample, all rows"
    with whole.writer() as writer:
        writer.set_status("running")
        writer.append_metrics({"step": 1, "seconds": 0.2, "joint": 0.61})
        writer.beat(0, 0, "bound, about 3 s left")
        app.run()
        said = text_of(app)
        assert "about 3 s left" in said and "Value so far 0.61" in said
        app.button(key="stop_whole").click().run()
        assert whole.stop_requested()
        writer.finish("stopped", ending="stopped", message="stopped")
    app = page("pages/export.py", corpus=opening.key, run=run.id)
    monkeypatch.undo()
    monkeypatch.setenv("DATAMASK_RUNS_DIR", str(store.root))
    monkeypatch.setenv("DATAMASK_ROOTS", str(folder.parent))
    app.button(key="resume_whole").click().run()
    assert end_of(whole) == "done", whole.status().error

    app = page("pages/export.py", corpus=opening.key, run=run.id)
    app.selectbox(key="whole_column").select("kind").run()
    app, _ = asked(app, "count_groups", "groups of all rows")
    assert f"Selected **750** of all {N:,} rows" in text_of(app)
    # the proof and what it settles are of all rows
    said = text_of(app)
    classes = re.search(r"([\d,]+) rows are required, ([\d,]+) are excluded and ([\d,]+) are interchangeable", said)
    assert "No selection of 750 rows" in said and classes is not None
    assert sum(int(count.replace(",", "")) for count in classes.groups()) == N
    # counted once more from the files
    shards = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    every = pa.concat_tables(shards).to_pandas()
    every["kind"] = every["kind"].fillna(applying.NOTHING)
    chosen = every["id"].isin(set(whole.selection()["id"].to_pylist()))
    names = opening.corpus.ids.to_pylist()
    of_sample = every.set_index("id").loc[names]
    kept = run.rows()["selected"].to_numpy().astype(bool)
    table = next(one.value for one in app.dataframe if "selected share of all rows" in one.value)
    assert set(table["kind"]) == {"web", "code", "books", applying.NOTHING} and table["rows"].sum() == N
    for name, rows, count, share, share_of_sample in table.itertuples(index=False):
        inside = every["kind"] == name
        assert (rows, count) == (inside.sum(), (inside & chosen).sum())
        assert share == pytest.approx(100 * chosen[inside].mean())
        assert share_of_sample == pytest.approx(100 * kept[(of_sample["kind"] == name).to_numpy()].mean())
    # the run on all rows, shown itself, says the same of all rows
    app = page("pages/export.py", corpus=opening.key, run=whole.id)
    app.selectbox(key="whole_column").select("kind").run()
    again = next(one.value for one in app.dataframe if "selected share of all rows" in one.value)
    assert again[["kind", "rows", "kept"]].equals(table[["kind", "rows", "kept"]])


def test_a_corpus_that_was_opened_whole_has_nothing_more_to_apply_to(page, runs_dir, store, folder):
    config = CorpusConfig((str(folder),))
    run, opening = solved(store, config), opened(runs_dir, config)
    app = page("pages/export.py", corpus=opening.key, run=run.id)
    assert not app.exception and "Apply to the whole corpus" not in text_of(app)
    assert not [button for button in app.button if button.key == "plan_whole"]
    links = [link.proto.label for link in page("pages/runs.py", corpus=opening.key, run=run.id).get("page_link")]
    assert "Apply to the whole corpus" not in links


def test_what_is_not_solved_over_all_rows_says_why_and_runs_lead_to_the_rest(page, sample, store, runs_dir):
    run, opening = sample
    links = [link.proto.label for link in page("pages/runs.py", corpus=opening.key, run=run.id).get("page_link")]
    assert "Apply to the whole corpus" in links
    other = solved(store, run.config.corpus, objective="disf", estimator="top-quality")
    app = page("pages/export.py", corpus=opening.key, run=other.id)
    assert "Not available for this" in text_of(app) and not [one for one in app.button if one.key == "plan_whole"]
    assert whole_panel.sampled(opening.corpus)


def over_all(store, run):
    """The run on all rows that asks what a run asked, done."""
    whole = store.create(applying.over_all_rows(run.config, store.root))
    execute(whole, Work(threads=1))
    return whole


def rewritten(path, column):
    """Write a shard anew with other values in one column."""
    table = pq.read_table(path)
    place = table.column_names.index(column)
    other = np.roll(table[column].to_numpy(zero_copy_only=False), 1)
    pq.write_table(table.set_column(place, column, pa.array(other, table[column].type)), path)


def test_a_run_made_before_the_shards_changed_is_not_this_runs_result(page, sample, store, folder, runs_dir):
    run, opening = sample
    whole = over_all(store, run)
    config = applying.over_all_rows(run.config, store.root)

    def newest(corpus):
        return applying.newest(store.list(), config, corpus.provenance, corpus.fingerprint)

    assert newest(opening.corpus).id == whole.id
    counted = applying.groups_of(whole, "kind")
    assert sum(group.rows for group in counted) == N
    # the text of rows that no number of the sample tells of: ids and counts stay
    rewritten(folder / "1.parquet", "kind")
    with pytest.raises(InputError, match=r"1\.parquet has changed since the run: it was written anew"):
        applying.groups_of(whole, "kind")
    app = page("pages/export.py", corpus=opening.key, run=run.id)
    app.selectbox(key="whole_column").select("kind").run()
    app, _ = asked(app, "count_groups", "groups of all rows")
    assert "has changed since the run" in text_of(app)
    assert [button for button in app.button if button.key == "plan_whole"]
    # one more shard: another sample, other rows
    pq.write_table(pq.read_table(folder / "0.parquet"), folder / "3.parquet")
    with pytest.raises(InputError, match=r"3\.parquet has changed since the run: it was not there then"):
        applying.groups_of(whole, "kind")
    (folder / "3.parquet").unlink()
    pq.write_table(pq.read_table(folder / "2.parquet").slice(0, 900), folder / "2.parquet")
    with pytest.raises(InputError, match=r"have 2,900 rows, and had 3,000"):
        applying.groups_of(whole, "kind")
    assert newest(open_corpus(run.config.corpus)) is None


def test_two_presses_begin_one_run_and_what_lies_outside_is_not_read(page, sample, store, monkeypatch, tmp_path):
    run, opening = sample
    app = page("pages/export.py", corpus=opening.key, run=run.id)
    app.button(key="plan_whole").click().run()
    app, _ = waited(app, "plan of all rows")
    monkeypatch.setattr(detached, "_start_driver", lambda run, lock, objectives: 0)
    other = page("pages/export.py", corpus=opening.key, run=run.id)  # a second tab, drawn before the press
    third = page("pages/export.py", corpus=opening.key, run=run.id)
    # all pages hold the button when the first press comes
    assert all([button for button in tab.button if button.key == "start_whole"] for tab in (app, other, third))
    with monkeypatch.context() as moved:
        moved.setenv("DATAMASK_ROOTS", str(tmp_path / "elsewhere"))
        third.button(key="start_whole").click().run()
    assert [stored.id for stored in store.list()] == [run.id]
    assert "outside" in " ".join(warning.value for warning in third.warning)
    app.button(key="start_whole").click().run()
    other.button(key="start_whole").click().run()
    (whole,) = [one for one in store.list() if one.id != run.id]
    with whole.writer() as writer:
        writer.set_status("running")
        writer.finish("stopped", ending="stopped", message="stopped")
    app = page("pages/export.py", corpus=opening.key, run=run.id)
    monkeypatch.setenv("DATAMASK_ROOTS", str(tmp_path / "elsewhere"))
    app.button(key="resume_whole").click().run()
    assert whole.status().state == "stopped" and "outside" in " ".join(one.value for one in app.warning)


def test_neither_a_plan_nor_a_count_reads_what_lies_outside(page, sample, store, monkeypatch, tmp_path):
    run, opening = sample
    whole = over_all(store, run)
    counting = page("pages/export.py", corpus=opening.key, run=whole.id)
    assert not [key for key in worker()._jobs if key.startswith("groups of all rows") and whole.id in key]
    planning = page("pages/export.py", corpus=opening.key, run=solved(store, run.config.corpus, lamb=0.7).id)
    before = set(worker()._jobs)
    monkeypatch.setenv("DATAMASK_ROOTS", str(tmp_path / "elsewhere"))
    for app, button in ((counting, "count_groups"), (planning, "plan_whole")):
        app.button(key=button).click().run()
        assert "outside" in " ".join(one.value for one in app.warning)
    assert set(worker()._jobs) == before


def test_a_baseline_is_refused_and_the_plan_says_method_place_and_room(page, sample, store, monkeypatch):
    run, opening = sample
    for estimator in ("random", "greedy"):
        options = SelectionConfig.from_options(objective="pairwise", select_ratio=0.25, estimator=estimator)
        with pytest.raises(OptionError, match="by a rule of its own"):
            applying.over_all_rows(RunConfig(run.config.corpus, options), store.root)
    learned = SelectionConfig.from_options(objective="pairwise", select_ratio=0.25, estimator="counterfactual")
    config = RunConfig(run.config.corpus, learned)
    assert "in the place of Counterfactual" in applying.method_sentence(
        applying.over_all_rows(config, store.root), config
    )

    # the same question, whose scratch lay elsewhere, is the same question
    whole = over_all(store, run)
    asked_again = applying.over_all_rows(run.config, store.root)
    moved = replace(asked_again, selection=replace(asked_again.selection, scratch_dir="/elsewhere"))
    assert applying.newest(store.list(), moved, opening.corpus.provenance, opening.corpus.fingerprint).id == whole.id

    other = solved(store, run.config.corpus, lamb=0.7)
    app = page("pages/export.py", corpus=opening.key, run=other.id)
    app.button(key="plan_whole").click().run()
    app, _ = waited(app, "plan of all rows")
    assert f"free in {store.root / '.scratch'})" in text_of(app) and "as on the sample" in text_of(app)
    assert not app.button(key="start_whole").disabled
    usage = shutil.disk_usage(store.root)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=1000))
    monkeypatch.setattr(forecasts, "memory_bytes", lambda: 1)
    app.run()
    assert "more memory than" in text_of(app)
    assert "name a larger disk" in text_of(app) and app.button(key="start_whole").disabled
