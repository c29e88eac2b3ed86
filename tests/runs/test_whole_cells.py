"""Facility location on all rows of a corpus in mapped files, after a sample: an ordinary run folder."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask import measured
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.errors import InputError
from datamask.learning import facility_solver
from datamask.runs.attempt import attempt
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.making.derivable_runs import shard
from tests.making.shards import clustered
from tests.making.whole_runs import done_run, written_shards
from tests.reference import truth

ROWS = (900, 1, 1099)
N, S, SAMPLE = sum(ROWS), 200, 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("corpus")
    for number, rows in enumerate(ROWS):
        pq.write_table(shard(rows, seed=number, d=8), place / f"{number}.parquet")
    return place


def created(root, folder, **options):
    given = {
        "objective": "facility",
        "select_ratio": S / N,
        "lamb": 0.3,
        "device": "cpu",
        "scratch_dir": str(root / "scratch"),
    }
    config = RunConfig(CorpusConfig((str(folder),), rows=SAMPLE), SelectionConfig.from_options(**given | options))
    return RunStore(root / "runs").create(config)


@pytest.fixture(scope="module")
def unbroken(folder, tmp_path_factory):
    """A run that nobody stopped, and the folder that it was made in."""
    root = tmp_path_factory.mktemp("unbroken")
    run = created(root, folder)
    execute(run)
    return root, run


@pytest.mark.parametrize("lamb", [0.0, 0.5])
def test_a_scratch_changes_nothing_that_is_selected(tmp_path, monkeypatch, lamb):
    # on approximate lists swaps would end after the first pass; here all pairs are compared, in memory and out of core
    monkeypatch.setattr(facility_solver, "FEWEST_SWAPS", 1.0)
    features, quality = clustered(2000, seed=1)
    options = {"objective": "facility", "select_ratio": 0.1, "lamb": lamb}
    outcomes = [
        done_run(written_shards(tmp_path / name / "shards", features, quality), scratch=name == "scratch", **options)
        for name in ("memory", "scratch")
    ]
    (memory, of_memory), (scratch, of_scratch) = outcomes
    np.testing.assert_array_equal(of_scratch, of_memory)
    assert memory["estimator"] == scratch["estimator"] == "relaxed"
    assert scratch["calibrated"]["joint"] == pytest.approx(memory["calibrated"]["joint"])


def test_of_many_rows_fewer_random_selections_are_drawn_and_the_same_ones_in_memory_and_out_of_core(
    tmp_path, monkeypatch
):
    features, quality = clustered(1000, seed=1)
    options = {"objective": "facility", "select_ratio": 0.1, "lamb": 0.0}
    drawn = {}
    for rows in (measured.DRAWN_ROWS, 5000):
        monkeypatch.setattr(measured, "DRAWN_ROWS", rows)
        for name in ("memory", "scratch"):
            shards = written_shards(tmp_path / str(rows) / name / "shards", features, quality)
            summary, _ = done_run(shards, scratch=name == "scratch", **options)
            drawn[name, measured.random_draws(1000)] = summary["anchors"]["diversity"]["facility"]["random"]
    for draws in (32, 5):
        assert drawn["scratch", draws] == pytest.approx(drawn["memory", draws])
    assert 1e-4 < abs(drawn["memory", 32] - drawn["memory", 5]) < 0.01


def test_a_run_selects_from_all_rows_and_says_what_that_is_worth(folder, unbroken):
    root, run = unbroken
    summary = run.status().to_dict()["summary"]
    corpus = open_corpus(CorpusConfig((str(folder),)))
    selection = pq.read_table(run.path / "selection.parquet")
    ids = set(selection.column("id").to_pylist())
    members = np.flatnonzero([value in ids for value in corpus.ids.to_pylist()])
    assert len(members) == len(ids) == S == summary["selected"] and summary["n"] == N
    value = truth.facility(corpus.features.astype(np.float64), members)
    assert summary["objectives"]["facility"] == pytest.approx(value, abs=1e-6)
    assert summary["values"] == summary["bound_holds_for"] == "exact" and 0 <= summary["gap"] < 0.05
    assert summary["quality"] == pytest.approx(corpus.quality[members].mean())
    assert summary["calibrated"]["joint"] == pytest.approx(
        0.3 * summary["calibrated"]["quality"] + 0.7 * summary["calibrated"]["diversity"]
    )
    stored = RunStore(root / "runs").get(run.id)
    assert stored.whole["rows"] == N and stored.whole["selected"] == S and stored.whole["sample_rows"] == SAMPLE
    assert stored.status().state == "done" and stored.status().to_dict()["summary"]["joint"] == summary["joint"]
    metrics = stored.metrics()
    steps = np.isfinite(metrics["pass"])
    assert steps.sum() == 1
    assert np.nanmax(metrics["joint"][steps]) == pytest.approx(summary["calibrated"]["joint"])
    # of the sample those are marked that are selected from all
    sample = stored.rows()
    assert len(sample) == SAMPLE and stored.facts()["selected"] == sum(sample["selected"].to_pylist())
    assert {row["id"] for row in sample.to_pylist() if row["selected"]} == ids & set(sample["id"].to_pylist())


def test_a_stopped_run_goes_on_and_ends_as_one_that_was_not_stopped(folder, unbroken, tmp_path):
    run = created(tmp_path, folder)
    outcome = attempt(run, Work.of(lambda: "rows" in (run.whole or {})))
    assert outcome.status.state == "stopped"
    assert attempt(run).status.state == "done" and not list((tmp_path / "scratch").iterdir())
    _, whole = unbroken
    assert pq.read_table(run.path / "selection.parquet").equals(pq.read_table(whole.path / "selection.parquet"))


def test_rows_that_cannot_be_used_are_listed_and_shards_that_change_meanwhile_are_refused(tmp_path):
    features, quality = clustered(300, seed=1)
    quality[[7, 250]] = np.nan
    place = written_shards(tmp_path / "shards", features, quality)
    config = CorpusConfig((str(place),), rows=100, drop_invalid=True)
    options = {"objective": "facility", "select_ratio": 0.1, "device": "cpu", "scratch_dir": str(tmp_path / "scratch")}
    run = RunStore(tmp_path / "runs").create(RunConfig(config, SelectionConfig.from_options(**options)))
    execute(run)
    assert run.left_out()["source_row"].to_pylist() == [7, 50] and run.whole["rows"] == 298
    changed = RunStore(tmp_path / "runs").create(RunConfig(config, SelectionConfig.from_options(**options)))

    def poll() -> None:
        if (tmp_path / "other").exists() or not (changed.path / "metrics.jsonl").exists():
            return
        written_shards(tmp_path / "other", features[::-1], quality[::-1])
        for path in (tmp_path / "other").iterdir():
            path.rename(place / path.name)

    with pytest.raises(InputError, match="has changed since the run: it holds other rows"):
        execute(changed, Work(poll))
