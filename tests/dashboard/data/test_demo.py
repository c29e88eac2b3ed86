"""What was computed of the demo is copied into the runs folder when it is opened."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.corpus.projections import layouts
from datamask.dashboard.data import demo
from datamask.dashboard.data.openings import Openings
from datamask.dashboard.map import map_layout
from datamask.dashboard.tradeoff import kept_points, lambda_points, live
from datamask.runs.store import RunStore

ROOT = Path(__file__).resolve().parents[3]
LONG = 240.0


@pytest.fixture
def small(tmp_path, monkeypatch) -> None:
    """The demo is another one, of 1,200 rows, of which nothing was computed."""
    shutil.copytree(ROOT / "sample_data" / "tiny", tmp_path / "small")
    monkeypatch.setattr(demo, "CORPUS", tmp_path / "small")


@pytest.fixture
def openings(tmp_path) -> Openings:
    return Openings(tmp_path / "runs")


def test_the_demo_opens_with_its_map_and_its_run_and_nothing_is_computed(openings, live_of_its_own, monkeypatch):
    monkeypatch.setattr(layouts, "compute_layout", None)
    opening = openings.start(demo.config(), demo.TITLE)
    opening.job.wait(LONG)
    store = RunStore(openings.runs_dir)
    assert opening.title == demo.TITLE and len(opening.corpus) > 5_000
    assert map_layout.layout(opening.corpus, store.cache_dir) is not None
    (run,) = store.list()
    assert run.status().state == "done" and run.config.corpus == opening.config
    # λ can be dragged at once, and nothing takes the processor from the first map
    points = kept_points.of_problem(opening.corpus, lambda_points.settings_of(run.config.selection), store.cache_dir)
    assert len(points) == lambda_points.GRID_SIZE and live._holder().sessions == {} and opening.counting is None
    assert not list(store.cache_dir.glob("*/neighbors*"))


def test_its_copies_are_counted_at_sight_and_once(small, openings):
    opening = openings.start(demo.config(), demo.TITLE)
    opening.wait(LONG)
    assert opening.ready and opening.counting is None
    openings.count_at_sight(opening)
    counting = opening.counting
    assert counting.wait(LONG) and opening.copies.near is not None
    openings.count_at_sight(opening)
    assert opening.counting is counting


def test_a_run_that_somebody_deleted_does_not_come_back_but_the_map_does(tmp_path):
    store = RunStore(tmp_path / "runs")
    demo.install(store.root)
    store.remove(demo.RUN_ID)
    shutil.rmtree(store.cache_dir)
    demo.install(store.root)
    assert store.list() == [] and list(store.cache_dir.glob("*/*.cache"))


def test_two_servers_at_once_and_a_second_start_change_nothing(tmp_path):
    threads = [threading.Thread(target=demo.install, args=(tmp_path / "runs",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (run,) = RunStore(tmp_path / "runs").list()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    demo.install(tmp_path / "runs")
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    assert before == after and run.status().state == "done"


def test_a_runs_folder_that_cannot_be_written_is_said_in_the_log(tmp_path, caplog):
    (tmp_path / "runs").write_text("a file where a folder is expected")
    demo.install(tmp_path / "runs")
    assert "not copied" in caplog.text


def test_another_corpus_under_its_name_gets_none_of_its_results(openings, tmp_path, monkeypatch):
    pq.write_table(pa.concat_tables([pq.read_table(demo.CORPUS)[:500]]), tmp_path / "demo.parquet")
    monkeypatch.setattr(demo, "CORPUS", tmp_path / "demo.parquet")
    openings.start(demo.config(), demo.TITLE).wait(LONG)
    assert RunStore(openings.runs_dir).list() == []
