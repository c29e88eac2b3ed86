"""The command `explain`: what it prints and writes is what the package's own explainer says."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from datamask import cli
from datamask.analyses.explanation.compute.explained_run import explainer_of
from datamask.errors import RunStateError
from datamask.runs.store import RunStore
from tests import commands
from tests.commands import TINY


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a done run of the tiny shards, the run, and its explainer."""
    folder = tmp_path_factory.mktemp("explain")
    words = [
        "select",
        TINY,
        "--output",
        str(folder / "out.parquet"),
        "--objective",
        "pairwise",
        "--estimator",
        "relaxed",
        "--select_ratio",
        "0.2",
        "--runs_dir",
        str(folder / "runs"),
        "--device",
        "cpu",
    ]
    assert cli.main(words) == 0
    run = RunStore(folder / "runs").list()[0]
    return folder, run, explainer_of(run)


def explain(made, *words: str) -> int:
    return cli.main(["explain", made[1].id, *words, "--runs_dir", str(made[0] / "runs")])


def test_one_sample_as_text_and_as_json(made, capsys):
    _, _, explainer = made
    told = explainer.explain([17])[0]
    assert explain(made, str(told.id)) == 0
    text, said = capsys.readouterr()
    assert "id chunk_id (string) · quality quality_score · features feature_arr (" in said
    assert text.startswith(f"{told.id}: {told.sentence}") and "score - threshold" in text
    assert explain(made, str(told.id), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    # the folder, as `select` prints it, names the run as well
    assert cli.main(["runs", "show", str(made[1].path), "--runs_dir", str(made[0] / "runs")]) == 0
    assert cli.main(["runs", "show", str(made[0] / made[1].id), "--runs_dir", str(made[0] / "runs")]) == 2
    (sample,) = found["samples"]
    assert sample["score"] == pytest.approx(told.score, rel=1e-12)
    assert sum(part["value"] for part in sample["parts"]) == pytest.approx(told.score - told.threshold, abs=1e-12)
    assert found["exceptions"] == explainer.exceptions


def test_all_rows_in_bulk(made):
    folder, run, explainer = made
    assert explain(made, "--all", "--output", str(folder / "all.parquet")) == 0
    table = pq.read_table(folder / "all.parquet")
    assert table.num_rows == 1200 and table["selected"].to_pylist() == run.rows()["selected"].to_pylist()
    parts = np.sum([table[name].to_numpy() for name in table.column_names if name.startswith("part_")], axis=0)
    assert parts == pytest.approx(table["score"].to_numpy() - table["threshold"].to_numpy(), abs=1e-12)
    assert table["score"].to_numpy() == pytest.approx(explainer.score, rel=1e-12)
    assert explain(made, "--ids", str(folder / "out.parquet"), "--output", str(folder / "some.csv")) == 0
    some = pyarrow.csv.read_csv(folder / "some.csv")
    assert some.num_rows == 240 and set(some["selected"].to_pylist()) == {True}


def test_ids_in_the_csv_are_as_they_are(tmp_path):
    rows = commands.table()
    signs = pa.array([f"=cmd|{k}" for k in range(rows.num_rows)])
    pq.write_table(rows.set_column(0, "chunk_id", signs), tmp_path / "shard.parquet")
    runs, output = ("--runs_dir", str(tmp_path / "runs")), str(tmp_path / "all.csv")
    fast = ["--objective", "pairwise", "--estimator", "relaxed", "--device", "cpu"]
    assert commands.run("select", tmp_path / "shard.parquet", "--output", tmp_path / "out.parquet", *fast, *runs) == 0
    assert commands.run("explain", RunStore(tmp_path / "runs").list()[0].id, "--all", "--output", output, *runs) == 0
    with (tmp_path / "all.csv").open(newline="", encoding="utf-8") as file:
        ids = [row["chunk_id"] for row in csv.DictReader(file)]
    assert ids == signs.to_pylist()


@pytest.mark.parametrize(
    "words, says",
    [
        (["no such id"], "'no such id' is not an id of the corpus"),
        ([], "give one of them"),
        (["--all"], "give --output"),
        (["--all", "--output", "x.json"], "must end in .parquet, .csv or .jsonl"),
    ],
)
def test_it_says_no_in_one_sentence(made, capsys, words, says):
    assert explain(made, *words) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("datamask: ") and says in last


def test_only_a_done_run_of_the_same_corpus(made):
    folder, run, explainer = made
    waiting = RunStore(folder / "others").create(run.config)
    with pytest.raises(RunStateError, match="only a done run"):
        explainer_of(waiting)
    with run.writer() as writer:
        known = run.facts()["fingerprint"]
        writer.update_facts(fingerprint="0" * 64)
    try:
        with pytest.raises(RunStateError, match="has changed since"):
            explainer_of(run, pool=explainer.pool)
    finally:
        with run.writer() as writer:
            writer.update_facts(fingerprint=known)
