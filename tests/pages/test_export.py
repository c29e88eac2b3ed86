"""Export: what is offered is what the run selected, with where it came from."""

import io
import os
import time

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from datamask import memo
from datamask.config import CorpusConfig, RunConfig
from datamask.dashboard.runs import provenance
from datamask.pages.export.join_code import join_code
from datamask.repeat_counts import Amount
from datamask.runs import exports
from datamask.runs.export_table import EXPORTS, Download, Export
from datamask.runs.store import Run
from datamask.work.worker import worker
from tests.making.runs import execute_run
from tests.pages.reading import captions, downloads


@pytest.fixture
def run(opened, store):
    """A run that really learned, in a second."""
    return execute_run(store, opened.config, "to take home", objective="pairwise", n_epochs=3, select_ratio=0.25)


def content(run, key, **wanted):
    """The file behind a button."""
    found = [(export, download) for export in EXPORTS for download in export.downloads if download.key == key]
    ((export, download),) = found
    return export.content(download, run, **wanted)


def test_nothing_finished_says_what_to_do(page, opened):
    app = page("pages/export.py", corpus=opened.key)
    assert any("Nothing to export yet" in heading.value for heading in app.subheader)


def test_an_unfinished_run_is_not_exported(page, opened, store):
    unfinished = store.create(RunConfig(opened.config))
    app = page("pages/export.py", corpus=opened.key, run=unfinished.id)
    assert any("no selection yet" in heading.value for heading in app.subheader)
    assert not downloads(app)


def test_after_a_stopped_run_the_newest_finished_one_is_offered(page, opened, store, run):
    stopped = store.create(RunConfig(opened.config, name="too long"))
    with stopped.writer() as writer:
        writer.set_status("stopped")
    app = page("pages/export.py", corpus=opened.key, run=stopped.id)
    said = app.info[0].value
    assert "too long** has no selection: it was stopped" in said and "**to take home**" in said
    assert len(downloads(app)) == 6 and "run" in app.query_params


def test_a_line_for_each_of_six_files_and_where_they_come_from(page, opened, run, explained):
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    assert [button.key for button in downloads(app)] == ["ids", "rows", "mask", "recipe", "report_html", "weights"]
    assert app.selectbox(key="ids_format").options == ["Parquet", "CSV", "JSON lines", "text"]
    said = captions(app)
    assert said.count("60 rows") == 2 and "240 rows" in said
    explained(app, 8)
    told = dict(app.dataframe[0].value.itertuples(index=False))
    assert told["fingerprint"] == opened.corpus.fingerprint and run.id in told["run"]
    assert "torch" in told["versions"] and told["seed"] == "0"
    assert app.code[0].value == provenance.command(run)


def test_drawing_the_page_again_reads_the_rows_of_an_unchanged_run_no_second_time(page, opened, run, monkeypatch):
    def counted(self, columns=None, optional=()):
        reads.append(self.id)
        return rows(self, columns, optional)

    rows, reads = Run.rows, []
    monkeypatch.setattr(memo, "SETTLED_SECONDS", -60.0)
    monkeypatch.setattr(Run, "rows", counted)
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    once = list(reads)
    assert once == [run.id] * 2, "the strip reads what is selected, the page from which files"
    app.run(), app.run()
    assert reads == once
    table = rows(run)
    with run.writer() as writer:
        writer.write_rows(table)
    app.run(), app.run()
    assert reads == once * 2, "a changed table is read anew"


def test_repeats_are_of_as_many_samples_as_one_asks_for(page, opened, store, run):
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    assert (
        app.number_input(key=f"weights_samples_{run.id}").value == run.status().to_dict()["summary"]["selected"] == 60
    )
    asked = Amount(samples=150)
    table = pyarrow.csv.read_csv(io.BytesIO(content(run, "weights_csv", amount=asked)))
    assert sum(table["repeat"].to_pylist()) == 150 and sum(table["weight"].to_pylist()) == pytest.approx(60)
    assert table.num_rows == run.status().to_dict()["summary"]["weights"]["samples"]
    picked = execute_run(store, opened.config, objective="pairwise", estimator="greedy", select_ratio=0.25)
    app = page("pages/export.py", corpus=opened.key, run=picked.id)
    assert any("greedy has no repeat weights" in c.value for c in (*app.caption, *app.markdown))
    assert len(downloads(app)) == 5


def test_a_run_without_a_rule_says_so_in_the_place_of_a_button(page, opened, store):
    facility = execute_run(store, opened.config, objective="facility", estimator="top-quality", select_ratio=0.25)
    app = page("pages/export.py", corpus=opened.key, run=facility.id)
    assert any("each row depends on others" in caption.value for caption in app.caption)
    keys = {button.key for button in app.get("download_button")}
    assert "rows" in keys and "recipe" not in keys
    # the reason, and no line to download
    assert any(caption.value.startswith("**Recipe**: ") for caption in app.caption)
    assert all("Recipe" not in heading.value for heading in app.markdown)


def test_large_exports_are_written_to_the_runs_folder(page, opened, run, monkeypatch):
    monkeypatch.setattr(provenance, "SMALL", 10)
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    assert len(downloads(app)) == 4
    app.button(key=f"rows-{run.id}").click().run()
    job = worker().find(f"rows-{run.id}")
    job.wait(240)
    assert job.state == "done", job.error
    app.run()
    target = run.path / "exports" / "rows.parquet"
    assert pq.read_table(target).num_rows == 60 and str(target.resolve()) in [code.value for code in app.code]


def test_masks_on_their_way_to_disk_can_be_stopped_and_the_page_says_what_cannot_be_checked(
    page, opened, run, tmp_path, monkeypatch
):
    def never_done(run, folder, work):
        for _ in range(1200):
            work.poll()
            time.sleep(0.1)

    monkeypatch.setattr(exports, "write_masks", never_done)
    os.utime(tmp_path / "shard.parquet", (time.time() + 60,) * 2)
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    key = f"masks-{run.id}"
    app.button(key=key).click().run()
    worker().find(key).stop()
    worker().find(key).wait(60)
    assert worker().find(key).state == "stopped"


def test_shards_that_changed_since_are_refused_in_a_sentence(page, opened, run, tmp_path):
    shard = tmp_path / "shard.parquet"
    pq.write_table(pq.read_table(shard).slice(5), shard)
    os.utime(shard, (time.time() + 60,) * 2)  # the clock of files ticks in steps of some milliseconds
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    assert any("newer than this run" in warning.value for warning in app.warning)
    assert len(downloads(app)) == 3, "ids and weights are still the run's own"
    for key in (f"rows-{run.id}", f"masks-{run.id}"):
        app.button(key=key).click().run()
        worker().find(key).wait(240)
        assert worker().find(key).state == "failed" and not (run.path / "exports" / "rows.parquet").exists()
    assert sum("has changed since the run" in error.value for error in app.run().error) == 2


def test_shards_that_are_newer_than_the_run_and_hold_the_same_are_not_warned_of(
    page, opened, run, tmp_path, monkeypatch
):
    """As those of a corpus that was copied or installed after the run was made, such as the demo's."""
    monkeypatch.setattr(Run, "created", property(lambda run: 0.0))
    assert not page("pages/export.py", corpus=opened.key, run=run.id).warning
    os.utime(tmp_path / "shard.parquet", (time.time() + 60,) * 2)  # written again since it was opened
    (warning,) = page("pages/export.py", corpus=opened.key, run=run.id).warning
    assert "newer than this run" in warning.value


def test_shards_that_are_gone_are_said(page, opened, run, tmp_path):
    (tmp_path / "shard.parquet").rename(tmp_path / "moved.parquet")
    app = page("pages/export.py", run=run.id)
    assert any("corpus have moved" in warning.value for warning in app.warning)


def test_an_export_that_is_added_to_the_table_is_on_the_page_and_shards_decide_as_they_do_for_others(
    page, opened, run, tmp_path
):
    def count(run, path, work=None):
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(run.selection().num_rows))
        return str(path)

    download = Download("count_txt", "A number", "-count.txt", "text/plain", "How many.")
    counted = Export("count", "OUT.txt", "x", "How many", "One number.", count, (download,), "it", "count.txt", "Count")
    EXPORTS.append(counted)
    try:
        app = page("pages/export.py", corpus=opened.key, run=run.id)
        assert any("**How many**" in text.value for text in app.markdown) and len(downloads(app)) == 7
        os.utime(tmp_path / "shard.parquet", (time.time() + 60,) * 2)
        app = page("pages/export.py", corpus=opened.key, run=run.id)
        app.button(key=f"count-{run.id}").click().run()
        worker().find(f"count-{run.id}").wait(240)
        assert (run.path / "exports" / "count.txt").read_text() == "60"
    finally:
        EXPORTS.remove(counted)


def test_it_ends_with_a_summary(page, opened, run):
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    text = app.markdown[-1].value.replace("\\", "")
    assert "keeps 60 of 240 rows" not in text.replace("\u00a0", " ") and "Not measured yet" in text
    assert f"`datamask runs export {run.id} --rows" in app.markdown[-1].value


def test_the_shown_code_gives_the_selected_rows(page, opened, run, tmp_path, monkeypatch):
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    code = {tab.label: tab.children[0].value for tab in app.tabs}
    assert list(code) == ["pandas", "datasets", "DuckDB"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{run.id}.parquet").write_bytes((run.path / "selection.parquet").read_bytes())
    wanted = set(run.selection()["chunk_id"].to_pylist())
    for kept in joined(code):
        assert len(kept) == 60 and set(kept) == wanted


def joined(code):
    """The ids that each library's code keeps."""
    for library in ("pandas", "datasets"):
        names: dict = {}
        exec(code[library], names)
        yield list(names["kept"]["chunk_id"])
    with duckdb.connect() as base:
        yield [row[0] for row in base.execute(f"SELECT chunk_id FROM ({code['DuckDB']})").fetchall()]


def test_code_reads_shards_of_several_folders_and_other_kinds_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    table = pa.table({"chunk_id": ["a'1", "b", "c", "d"], "text": ["x", "y", "z", "w"]})
    pq.write_table(table.select(["chunk_id"]).take([0, 3]), "chosen.parquet")
    frame = table.to_pandas()
    for kind, write in (
        (".parquet", lambda part, path: part.to_parquet(path)),
        (".csv", lambda part, path: part.to_csv(path, index=False)),
        (".jsonl", lambda part, path: part.to_json(path, orient="records", lines=True)),
    ):
        paths = [tmp_path / f"it's [{place}]{kind}" / f"shard{kind}" for place in "12"]
        for path, part in zip(paths, (frame[:2], frame[2:])):
            path.parent.mkdir()
            write(part, path)
        for kept in joined(join_code("chunk_id", "chosen.parquet", map(str, paths))):
            assert sorted(kept) == ["a'1", "d"], kind
    assert not join_code("id", "chosen.parquet", ["a.parquet", "b.csv"])
    assert not join_code("id", "chosen.parquet", ["a.arrow"])


def test_ids_that_were_made_are_joined_by_no_column(opened, store, tmp_path):
    table = pq.read_table(opened.config.inputs[0])
    pq.write_table(table.drop_columns(["chunk_id"]), tmp_path / "without.parquet")
    config = CorpusConfig((str(tmp_path / "without.parquet"),))
    run = execute_run(store, config, objective="pairwise", estimator="random")
    assert provenance.has_made_ids(run)
