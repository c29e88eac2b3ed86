"""What a selection takes, told before it runs: in memory, in mapped files, as a line, as JSON; nothing is written."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import cli
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs.forecast import forecast, time_text
from tests.making.derivable_runs import shard

ROWS = 1500


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """One shard, the only file of the working folder."""
    pq.write_table(shard(ROWS, d=8), tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys, *words):
    assert cli.main(["select", "rows.parquet", "--dry_run", "--select_ratio", "0.2", "--device", "cpu", *words]) == 0
    return capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("objective", ["pairwise", "facility"])
def test_a_dry_run_says_what_the_run_takes_and_writes_nothing(corpus, capsys, monkeypatch, objective, mapped):
    if mapped:
        monkeypatch.setattr("datamask.corpus.opening.default_row_limit", lambda *_, **__: 1000)
    words = ("--objective", objective, "--output", "out.parquet")
    line = told(capsys, *words)
    assert line.startswith(
        f"300 of 1,500 rows of 8 dimensions{', in mapped files' if mapped else ''}. Columns: id (id)"
    )
    answer = json.loads(told(capsys, *words, "--json"))
    assert (answer["rows"], answer["dim"], answer["selected"]) == (ROWS, 8, 300)
    assert answer["mapped"] == mapped and answer["columns"]["features"] and answer["columns"]["quality"]
    assert min(answer["memory_bytes"], answer["disk_bytes"], answer["minutes"], answer["free_bytes"]) > 0
    assert [path.name for path in corpus.iterdir()] == ["rows.parquet"]


def test_a_sample_a_budget_and_mapped_arrays(corpus, capsys):
    assert told(capsys, "--objective", "pairwise", "--rows", "400").startswith(
        "80 of 400 rows (a sample of 1,500) of 8"
    )
    config = CorpusConfig(("rows.parquet",))
    budget = RunConfig(config, SelectionConfig.from_options(objective="pairwise", budget=900))
    assert forecast(budget, corpus).sentence.startswith("As many rows as fill the budget, of 1,500 rows")
    pq.write_table(pq.read_table("rows.parquet").slice(0, 1), "one.parquet")
    assert forecast(replace(budget, corpus=CorpusConfig(("one.parquet",))), corpus).rows == 1
    facility = {"objective": "facility", "prune": 0.1}
    held, mapped = (
        forecast(RunConfig(config, SelectionConfig.from_options(**facility, scratch_dir=folder)), corpus)
        for folder in (None, "scratch")
    )
    assert (held.mapped, mapped.mapped) == (False, True) and mapped.rows == 1_500
    arrays = held.memory_bytes - mapped.memory_bytes
    assert arrays == mapped.disk_bytes - held.disk_bytes > 1_500 * 8 * 8


def test_texts_take_no_memory_of_a_run(corpus):
    run = RunConfig(CorpusConfig(("rows.parquet",)), SelectionConfig.from_options(objective="pairwise"))
    without = forecast(run, corpus).memory_bytes
    texts = pa.array([f"{row} " * 2_000 for row in range(ROWS)])
    pq.write_table(pq.read_table("rows.parquet").append_column("story", texts), "rows.parquet")
    assert forecast(run, corpus).memory_bytes == without


@pytest.mark.parametrize(
    "seconds, text",
    [
        (1e-6, "less than 1 s"),
        (2.5, "2.5 s"),
        (75, "75 s"),
        (600, "10 min"),
        (9000, "2.5 h"),
        (3e6, "35 days"),
        (1e9, "32 years"),
    ],
)
def test_times_of_any_length_are_said(seconds, text):
    assert time_text(seconds) == text
