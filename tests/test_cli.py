"""The command line: what it reads, what it writes, and how it says no. Runs real selections on small shards."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy.sparse.csgraph import connected_components

from datamask import catalogue
from datamask.cli import output as cli_output
from datamask.cli.parser import COMMANDS, corpus_config, parse
from datamask.corpus.threads import thread_count
from datamask.options import CORPUS_OPTIONS, OPTIONS
from datamask.runs.rooted import rooted
from datamask.runs.store import RunStore
from tests.commands import FAST, ROOT, D, N, last_json, run, table
from tests.making.run_folders import config, install_fake_execute
from tests.reference import truth

# -- select -----------------------------------------------------------------------------------------------------------


def test_the_papers_quick_test_line_is_the_papers_method(here, capsys):
    line = (
        "select --input in.parquet --output out.parquet --device cpu --n_epochs 20 --algorithm DiSF --partial 0.1 "
        "--max_lr 10 --min_lr 1 --n_rollout 128 --select_ratio 0.3 --init quality --lamb 0.5 --json"
    )
    assert run(*line.split()) == 0
    summary = last_json(capsys)
    assert summary["estimator"] == "reinforce" and summary["status"] == "done" and summary["steps"] == 20
    assert (summary["n"], summary["selected"]) == (N, 72)
    assert summary["output"] == str(here / "out.parquet")
    selection = RunStore("runs").get(summary["run_id"]).config.selection
    assert (selection.objective, selection.partial, selection.max_lr, selection.min_lr) == ("disf", 0.1, 10.0, 1.0)
    assert (selection.n_rollout, selection.init, selection.lamb) == (128, "quality", 0.5)


def test_the_papers_line_as_published_names_the_device_that_is_not_there(here, capsys):
    line = (
        "select --input in.parquet --output out.parquet --device cuda:99 --n_epochs 5000 --algorithm DiSF "
        "--partial 0.1 --max_lr 10 --min_lr 1 --n_rollout 128 --select_ratio 0.3 --init quality --lamb 0.5"
    )
    assert run(*line.split()) == 2
    assert "--device cuda:99 is not on this machine, which has: " in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["in.parquet", "more.parquet"]


@pytest.mark.parametrize("objective", [entry.name for entry in catalogue.OBJECTIVES])
def test_what_it_reports_is_what_is_in_the_file(here, capsys, objective):
    """Values recomputed from OUT.parquet in float64 with plain numpy."""
    assert run("select", "in.parquet", "--output", "out.parquet", "--objective", objective, "--json", *FAST) == 0
    summary = last_json(capsys)
    out, source = pq.read_table("out.parquet"), pq.read_table("in.parquet")
    assert out.column_names == [
        "chunk_id",
        "rank",
        "logit",
        "score",
        "quality",
        "marginal_quality",
        "marginal_diversity",
        "source_file",
        "source_row",
    ]
    assert out["chunk_id"].type == pa.int64() and out["rank"].to_pylist() == list(range(1, 73))
    rows = out["source_row"].to_numpy()
    assert out["chunk_id"].to_pylist() == source["chunk_id"].take(pa.array(rows)).to_pylist()
    assert len(set(rows)) == summary["selected"] == 72
    x = np.stack(source["feature_arr"].to_numpy(zero_copy_only=False)).astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    diversity = truth.OBJECTIVES[objective](x, rows)
    quality = source["quality_score"].to_numpy()[rows].mean()
    assert summary["quality"] == pytest.approx(quality, rel=1e-4)
    assert summary["diversity"] == pytest.approx(diversity, rel=1e-4)
    assert summary["joint"] == pytest.approx(0.5 * quality + 0.5 * diversity, rel=1e-4)
    stored = json.loads(pq.read_schema("out.parquet").metadata[b"datamask"])
    assert "config" in stored


@pytest.mark.parametrize("estimator", [entry.name for entry in catalogue.ESTIMATORS if entry.weighs])
def test_weights_say_how_often_to_repeat_each_sample(here, capsys, estimator):
    steps = ["--n_epochs", "5"] if estimator in ("counterfactual", "reinforce") else []
    words = ["select", "in.parquet", "--output", "out.parquet", "--objective", "pairwise", "--estimator", estimator]
    assert run(*words, *steps, "--device", "cpu", "--weights", "w.parquet", "--repeats", "400", "--json") == 0
    summary = last_json(capsys)
    weights = pq.read_table("w.parquet")
    assert summary["weights_output"] == str(here / "w.parquet")
    assert summary["weights"]["samples"] == weights.num_rows
    assert sum(weights["weight"].to_pylist()) == pytest.approx(summary["selected"], rel=1e-13)
    assert sum(weights["repeat"].to_pylist()) == 400
    chosen = set(pq.read_table("out.parquet")[weights.column_names[0]].to_pylist())
    marked = weights.filter(weights["selected"])[0].to_pylist()
    assert set(marked) <= chosen and (estimator == "relaxed" or set(marked) == chosen)


@pytest.mark.parametrize("name", ["weight", "tokens"])
def test_ids_called_as_a_column_of_the_weights_stay_ids(here, capsys, name):
    shard = pq.read_table("in.parquet")
    shard = shard.rename_columns([name if column == "chunk_id" else column for column in shard.column_names])
    pq.write_table(shard, "named.parquet")
    words = ["named.parquet", "--output", "out.parquet", "--id_column", name, "--objective", "pairwise", "--json"]
    assert run("select", *words, "--device", "cpu", "--select_ratio", "0.3") == 0
    run_id = last_json(capsys)["run_id"]
    assert set(pq.read_table("out.parquet")[name].to_pylist()) <= set(shard[name].to_pylist())
    assert RunStore("runs").get(run_id).rows()[name].to_pylist() == shard[name].to_pylist()
    assert run("runs", "export", run_id, "--weights", "w.csv") == 2
    assert f"id column is named {name}" in capsys.readouterr().err


def test_near_copies_here_and_in_parts_of_the_corpus(here, capsys):
    assert run("copies", "in.parquet", "--cosine", "0.6", "--json") == 0
    report = last_json(capsys)
    x = truth_features()
    products = x @ x.T
    np.fill_diagonal(products, -1)
    assert report["rate"] == pytest.approx((products.max(1) >= 0.6).mean(), abs=1e-12)
    assert [line["rows"] for line in report["within"]] == [30, 60, 120, 240]
    rates = [line["rate"] for line in report["within"]]
    assert rates == sorted(rates) and rates[-1] == report["rate"]
    assert run("copies", "in.parquet", "--cosine", "0.6") == 0
    printed = capsys.readouterr().out
    assert re.search(r"of 240 rows have another at cosine 0\.6 or more; removing drops \d+\.\d %", printed)
    assert "  of 30 of them: " in printed
    assert run("copies", "in.parquet", "--cosine", "1.5") == 2 and "--cosine must be above 0" in capsys.readouterr().err


def test_duplicates_are_removed_and_the_best_of_each_group_is_kept(here, capsys):
    """Groups by brute force: connected components over all pairs at the cosine; rows as the shard has them."""
    shard = pq.read_table("in.parquet")
    x, quality = truth_features(), np.array(shard["quality_score"].to_pylist())
    _, group = connected_components(x @ x.T >= 0.6 - 1e-6, directed=False)
    best = {max(np.flatnonzero(group == each), key=lambda row: quality[row]) for each in range(group.max() + 1)}
    assert 1 < len(best) < 240
    assert run("copies", "in.parquet", "--cosine", "0.6", "--remove", "kept.parquet", "--json") == 0
    report = last_json(capsys)
    assert report["kept"] == len(best) and report["removed"] == pytest.approx(1 - len(best) / 240, abs=1e-12)
    assert pq.read_table("kept.parquet").equals(shard.take(sorted(best)))
    for pairs in ("pairs.parquet", "pairs.csv.gz"):
        assert run("copies", "in.parquet", "--cosine", "0.6", "--pairs", pairs) == 0
        printed = capsys.readouterr().out
        assert f"{240 - len(best)} semantic duplicates (cosine 0.6 or more), each with the row" in printed
    written = pq.read_table("pairs.parquet").to_pylist()
    ids = shard["chunk_id"].to_pylist()
    place = {name: row for row, name in enumerate(ids)}
    assert [line["removed"] for line in written] == [name for row, name in enumerate(ids) if row not in best]
    for line in written:
        removed, kept = place[line["removed"]], place[line["kept"]]
        assert group[removed] == group[kept] and kept in best
        assert line["cosine"] == pytest.approx(x[removed] @ x[kept], abs=1e-6)
    assert [row["kept"] for row in pa.csv.read_csv("pairs.csv.gz").to_pylist()] == [row["kept"] for row in written]
    twice = pa.concat_tables([shard, shard.set_column(0, "chunk_id", pa.array(range(1_000_000, 1_000_240)))])
    pq.write_table(twice, "twice.parquet")
    assert run("copies", "twice.parquet", "--exact", "--remove", "once.parquet") == 0
    assert "240 of 480 rows; 240 exact duplicates (same features) were removed" in capsys.readouterr().out
    assert len(pq.read_table("once.parquet")) == 240
    for words, why in (
        (["in.parquet", "--exact"], "--exact belongs to --remove or --pairs"),
        (["in.parquet", "--pairs", "pairs.txt"], "--pairs must end in .parquet, .csv or .jsonl"),
        (["in.parquet", "--remove", "in.parquet"], "is one of the inputs"),
        (["in.parquet", "--rows", "50", "--remove", "out.parquet"], "needs all rows, and 50 of 240 were read"),
    ):
        assert run("copies", *words) == 2 and why in capsys.readouterr().err
    assert pq.read_table("in.parquet").equals(shard)


def test_different_texts_with_equal_features_are_no_exact_duplicates(here, capsys):
    """Texts of one template have equal TF-IDF features: each of their own words is in one text alone."""
    words = ["river", "stone", "cloud", "field", "market", "window", "garden", "winter"]
    texts = [f"Route {100_000 + i} of the register is located in Lamar County." for i in range(100)]
    texts += [f"{first} {second} {third}" for first, second, third in itertools.permutations(words, 3)][:260]
    twice = [*texts, *(f" {text}\n" for text in texts[:40])]
    pq.write_table(pa.table({"id": [f"r{i}" for i in range(400)], "text": twice}), "texts.parquet")
    assert run("prepare", "texts.parquet", "--output", "prepared") == 0
    assert run("copies", "prepared", "--exact", "--remove", "kept.parquet", "--json") == 0
    assert last_json(capsys)["kept"] == 360
    assert {text.strip() for text in pq.read_table("kept.parquet")["text"].to_pylist()} == set(texts)
    words = ["prepared", "--collapse", "exact", "--output", "out.parquet", "--estimator", "random"]
    assert run("select", *words, "--select_ratio", "0.8", "--device", "cpu") == 0
    assert "40 left out" in capsys.readouterr().out
    assert len(set(pq.read_table("out.parquet")["id"].to_pylist())) == 320


def test_the_best_of_each_group_of_a_column_can_be_selected(here, capsys):
    """Groups of MinHash: 60 of two rows, and 120 rows without one."""
    shard = pq.read_table("in.parquet")
    groups = [f"g{row // 2}" if row < 120 else None for row in range(240)]
    pq.write_table(shard.append_column("Group Id", pa.array(groups)), "grouped.parquet")
    words = ["grouped.parquet", "--collapse", "column:Group Id", "--select_ratio", "0.74", "--estimator", "random"]
    assert run("select", *words, "--output", "out.parquet") == 0
    assert "of rows with the same Group Id only the best kept (60 left out)" in capsys.readouterr().out
    quality = shard["quality_score"].to_pylist()
    chosen = set(pq.read_table("out.parquet")["chunk_id"].to_pylist())
    worse = {min(row, row + 1, key=quality.__getitem__) for row in range(0, 120, 2)}
    assert len(chosen) == 178 and not chosen & worse


def truth_features():
    """The features of in.parquet in float64, of unit length."""
    x = np.array(pq.read_table("in.parquet")["feature_arr"].to_pylist(), float)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_people_get_shares_and_paths(here, capsys):
    assert run("select", "in.parquet", "--output", "deep/er/out.parquet", *FAST, "more.parquet") == 0
    text = capsys.readouterr()
    assert re.search(r"quality +-?\d+\.\d % +-?\d", text.out)
    assert "Selected 90 of 300 rows by relaxed (facility, lambda 0.5)." in text.out
    assert f"Selection: {here / 'deep/er/out.parquet'}" in text.out
    assert "100%  done" in text.err and "\r" not in text.err


def test_threads_are_as_many_as_asked(here, capsys, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert thread_count(100) == 3
    assert run("select", "in.parquet", "--threads", "2", "--json", *FAST) == 0
    assert thread_count(100) == 2 and thread_count(1) == 1
    assert RunStore("runs").get(last_json(capsys)["run_id"]).facts()["threads"] == 2
    assert run("select", "in.parquet", "--threads", "0", *FAST) == 2
    assert "--threads must be a whole number from 1 on, got 0" in capsys.readouterr().err


def test_without_output_the_selection_is_in_the_run_folder(here, capsys):
    before = set(here.iterdir())
    assert run("select", "in.parquet", "--json", *FAST) == 0
    summary = last_json(capsys)
    (stored,) = RunStore("runs").list()
    assert summary["run_id"] == stored.id and summary["output"] == str(stored.path.absolute() / "selection.parquet")
    assert pq.read_table(summary["output"]).num_rows == summary["selected"] == 72
    assert {path.name for path in set(here.iterdir()) - before} == {"runs"}
    assert run("select", "in.parquet", "--output", "out.parquet", *FAST) == 0
    assert pq.read_table("out.parquet").equals(pq.read_table(summary["output"]))
    capsys.readouterr()
    assert run("resume", stored.id) == 0
    assert f"Selection: {stored.path.absolute() / 'selection.parquet'}" in capsys.readouterr().out


def test_the_name_of_the_output_says_how_it_is_written(here, capsys):
    assert run("select", "in.parquet", "--output", "out.CSV", *FAST) == 0
    assert run("select", "in.parquet", "--output", "out.parquet", *FAST) == 0
    table, written = pq.read_table("out.parquet"), pa.csv.read_csv("out.CSV")
    assert written.column_names == table.column_names
    assert written["chunk_id"].cast(table["chunk_id"].type).to_pylist() == table["chunk_id"].to_pylist()


def test_prepare_says_in_words_what_it_wrote_and_the_next_command(here, capsys):
    lines = [json.dumps({"text": f"a text of {n} words", "id": n}) for n in range(9)]
    Path("texts.jsonl").write_text("\n".join(lines))
    assert run("select", "texts.jsonl") == 2
    path = here / "texts.jsonl"
    assert f"make features with `python -m datamask prepare {path} --output prepared`" in capsys.readouterr().err
    assert run("prepare", "texts.jsonl", "--output", "prepared") == 0
    text, said = capsys.readouterr()
    assert "Kept as they are: ids id.\n" in said and "Made: quality quality_score, " in said
    lines = text.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("Wrote 9 rows of 54 tokens by column n_tokens to ")
    assert "dimensions by TF-IDF, fitted on 9 texts" in lines[1]
    assert lines[-1] == "Next: python -m datamask select prepared --select_ratio 0.3 --output ids.csv"
    Path("rated.jsonl").write_text(
        "\n".join(json.dumps({"text": f"a text of {n} words", "stars": n}) for n in range(9))
    )
    assert run("prepare", "rated.jsonl", "--output", "rated") == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert "by your own column stars" in line and line.endswith("--output ids.csv --quality_column stars")
    assert not any("None" in line or "{" in line for line in lines)


def test_select_ends_with_the_command_that_shows_its_selection_on_the_map(here, capsys):
    assert run("select", "in.parquet", "--quality_column", "quality_score", "--rows", "200", "--seed", "3", *FAST) == 0
    text = capsys.readouterr().out
    assert "Quality is column quality_score." in text
    (command,) = re.findall(r"^On the map: python -m datamask (.*)$", text, re.MULTILINE)
    options = parse(shlex.split(command))
    (stored,) = RunStore("runs").list()
    assert options.command == "open" and corpus_config(options) == stored.config.corpus


def test_an_option_of_select_is_named_as_such_elsewhere(capsys):
    assert run("prepare", "x.jsonl", "--output", "y", "--quality-column", "rating") == 2
    assert "--quality_column is an option of `datamask select`, not of `datamask prepare`" in capsys.readouterr().err


def test_the_commands_on_runs_have_one_help(capsys):
    assert run("runs", "--help") == 0
    text = capsys.readouterr().out
    assert [line.split("  ")[0] for line in text.splitlines()] == [
        f"datamask {name}" for name in COMMANDS if name.startswith("runs ")
    ]


def test_folders_globs_and_hyphens(here, capsys):
    Path("shards").mkdir()
    pq.write_table(table(50), "shards/a.parquet")
    pq.write_table(table(50, first=500), "shards/b.parquet")
    for given in ("shards", "shards/*.parquet"):
        assert (
            run(
                "select",
                given,
                "--output",
                "out.parquet",
                "--select-ratio",
                "0.2",
                "--quality-column",
                "quality_score:2:z",
                "--runs-dir",
                "elsewhere",
                "--n-epochs=3",
                "--json",
                "--name",
                "a-b_c",
            )
            == 0
        )
        assert last_json(capsys)["selected"] == 20
    assert {each.config.name for each in RunStore("elsewhere").list()} == {"a-b_c"}


def test_a_run_finds_its_files_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = config()
    corpus = replace(made.corpus, inputs=("a.parquet",), features=("f.parquet",), scores=("s.parquet",))
    placed = rooted(replace(made, corpus=corpus, selection=replace(made.selection, pin="p", ban="b", given="g")))
    paths = [
        *placed.corpus.inputs,
        *placed.corpus.features,
        *placed.corpus.scores,
        placed.selection.pin,
        placed.selection.ban,
        placed.selection.given,
    ]
    assert paths == [str(tmp_path / name) for name in ("a.parquet", "f.parquet", "s.parquet", "p", "b", "g")]


def test_invalid_rows_are_refused_or_dropped(here, capsys):
    bad = table().to_pydict()
    bad["feature_arr"][3] = [0.0] * D
    bad["feature_arr"][5][2] = float("nan")
    pq.write_table(pa.table(bad), "bad.parquet")
    assert run("select", "bad.parquet", "--output", "out.parquet", *FAST) == 2
    assert re.search("--drop[_-]invalid", capsys.readouterr().err)
    assert run("select", "bad.parquet", "--output", "out.parquet", "--drop-invalid", "--json", *FAST) == 0
    assert last_json(capsys)["n"] == N - 2


# -- saying no --------------------------------------------------------------------------------------------------------


def broken_shards() -> dict[str, pa.Table]:
    """One shard per way of being unusable."""
    good = table(40)

    def but(column: str, values: pa.Array) -> pa.Table:
        return good.set_column(good.schema.get_field_index(column), column, values)

    lists = good["feature_arr"].to_pylist()
    return {
        "norows": good.slice(0, 0),
        "noquality": good.drop_columns(["quality_score"]),
        "textquality": but("quality_score", pa.array(["high"] * 40)),
        "nofeatures": good.drop_columns(["feature_arr"]),
        "lengths": but("feature_arr", pa.array([*lists[:39], [1.0, 2.0]])),
        "nan": but("feature_arr", pa.array([*lists[:39], [float("nan")] * D])),
        "infinite": but("quality_score", pa.array([float("inf")] + [1.0] * 39)),
        "zero": but("feature_arr", pa.array([*lists[:39], [0.0] * D])),
        "duplicate": but("chunk_id", pa.array([7] * 40)),
        "nullid": but("chunk_id", pa.array([None, *range(39)], pa.int64())),
    }


NO = {
    "no input": (["--output", "o.parquet"], "INPUT is required"),
    "no output": (["in.parquet", "--output"], "--output needs a value"),
    "no such file": (["gone.parquet", "--output", "o.parquet"], "gone.parquet"),
    "no such folder or glob": (["gone/*.parquet", "--output", "o.parquet"], "gone/*.parquet"),
    "not parquet": (["text.parquet", "--output", "o.parquet"], "text.parquet"),
    "cut short": (["short.parquet", "--output", "o.parquet"], "short.parquet"),
    **{
        name: ([f"{name}.parquet", "--output", "o.parquet"], expected)
        for name, expected in {
            "norows": "norows.parquet",
            "noquality": "quality",
            "textquality": "quality_score",
            "nofeatures": "feature",
            "lengths": "feature_arr",
            "nan": "feature_arr",
            "infinite": "quality_score",
            "zero": "feature_arr",
            "duplicate": "chunk_id",
            "nullid": "chunk_id",
        }.items()
    },
    "no such column": (["in.parquet", "--output", "o.parquet", "--id-column", "nope"], "nope"),
    "no such option": (["in.parquet", "--output", "o.parquet", "--lamda", "1"], "did you mean --lamb?"),
    "no number": (
        ["in.parquet", "--output", "o.parquet", "--lamb", "half"],
        "--lamb must be a number such as 0.2, got 'half'",
    ),
    "many numbers": (["in.parquet", "--output", "o.parquet", "--lamb", "0,0.5"], "--vary OPTION=VALUES"),
    "no value": (["in.parquet", "--output"], "--output needs a value"),
    "lambda": (["in.parquet", "--output", "o.parquet", "--lamb", "1.5"], "--lamb must be"),
    "negative": (["in.parquet", "--output", "o.parquet", "--seed", "-1"], "--seed must be"),
    "nan option": (["in.parquet", "--output", "o.parquet", "--lamb", "nan"], "--lamb must be"),
    "ratio of none": (["in.parquet", "--output", "o.parquet", "--select_ratio", "0.0001"], "--select_ratio"),
    "ratio of all": (["in.parquet", "--output", "o.parquet", "--select_ratio", "0.9999"], "--select_ratio"),
    "objective": (["in.parquet", "--output", "o.parquet", "--objective", "best"], "--objective 'best' is unknown"),
    "estimator": (["in.parquet", "--output", "o.parquet", "--estimator", "best"], "--estimator 'best' is unknown"),
    "option of another": (
        ["in.parquet", "--output", "o.parquet", "--estimator", "random", "--partial", "0.5"],
        "--partial is not an option of --estimator random",
    ),
    "preset never changes": (
        ["in.parquet", "--output", "o.parquet", "--preset", "paper", "--n_epochs", "9"],
        "--n_epochs must be left out",
    ),
    "quality weight": (
        ["in.parquet", "--output", "o.parquet", "--quality_column", "q:heavy:z"],
        "--quality_column must be NAME[:WEIGHT[:raw|z|rank]]",
    ),
    "pruned away": (["in.parquet", "--output", "o.parquet", "--prune", "0.8"], "--prune"),
    "device": (["in.parquet", "--output", "o.parquet", "--device", "tpu"], "--device must be auto, cpu"),
    "output is a folder": (["in.parquet", "--output", "folder"], "--output must be a file, got the folder"),
    "output is a device": (["in.parquet", "--output", "/dev/full"], "--output must be an ordinary file"),
    "output under a file": (["in.parquet", "--output", "in.parquet/o.parquet"], "is a file, not a folder"),
    "output is an input": (["in.parquet", "--output", "./in.parquet"], "is one of the inputs"),
    "output matches a glob": (["*.parquet", "--output", "o.parquet"], "is one of the inputs"),
    "output among inputs": (["folder", "--output", "folder/o.parquet"], "lies in the input folder"),
    "weights of an estimator without": (
        ["in.parquet", "--output", "o.parquet", "--estimator", "greedy", "--weights", "w.csv"],
        "--weights: estimator greedy has no repeat weights",
    ),
    "weights of facility": (
        ["in.parquet", "--output", "o.parquet", "--objective", "facility", "--weights", "w.csv"],
        "facility has no repeat weights. Use relaxed with pairwise, vendi or disf_fixed",
    ),
    "weights of another kind": (
        ["in.parquet", "--output", "o.parquet", "--objective", "pairwise", "--weights", "w.txt"],
        "--weights must end in .parquet, .csv or .jsonl (all but .parquet also with .gz or .zst), got 'w.txt'",
    ),
    "weights over an input": (
        ["in.parquet", "--output", "o.parquet", "--objective", "pairwise", "--weights", "in.parquet"],
        "--weights in.parquet is one of the inputs",
    ),
    "weights over the output": (
        ["in.parquet", "--output", "o.parquet", "--objective", "pairwise", "--weights", "./o.parquet"],
        "--weights must be another file than --output",
    ),
    "weights and detach": (
        ["in.parquet", "--output", "o.parquet", "--objective", "pairwise", "--weights", "w.csv", "--detach"],
        "runs export RUN --weights",
    ),
    "repeats without weights": (["in.parquet", "--output", "o.parquet", "--repeats", "5"], "add --weights"),
    "no repeats": (
        ["in.parquet", "--output", "o.parquet", "--objective", "pairwise", "--weights", "w.csv", "--repeats", "0"],
        "--repeats must be a whole number of rows from 1",
    ),
    "runs among inputs": (
        ["folder", "--output", "o.parquet", "--runs_dir", "folder/runs"],
        "--runs_dir folder/runs lies in the input folder",
    ),
    "runs folder is a file": (
        ["in.parquet", "--output", "o.parquet", "--runs_dir", "text.parquet"],
        "text.parquet is a file, not a folder",
    ),
}


@pytest.mark.parametrize("case", NO)
def test_bad_input_is_one_sentence_and_leaves_nothing(here, capsys, case):
    words, expected = NO[case]
    Path("folder").mkdir()
    Path("text.parquet").write_text("no parquet at all")
    Path("short.parquet").write_bytes(Path("in.parquet").read_bytes()[:-20])
    for name, shard in broken_shards().items():
        pq.write_table(shard, f"{name}.parquet")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert run("select", *words) == 2
    captured = capsys.readouterr()
    sentence = captured.err.splitlines()[-1]
    assert expected in sentence and sentence.startswith("datamask: ")
    assert "Traceback" not in captured.err and captured.out == ""
    after = {path: path.read_bytes() for path in here.rglob("*") if path.is_file() and ".kept" not in path.parts}
    assert after == before


@pytest.mark.parametrize(
    "words, expected",
    [
        ([], "a command is required"),
        (["selct"], "did you mean select?"),
        (["runs"], "a command is required"),
        (["resume"], "RUN is required"),
        (["resume", "../x"], "a run id has only"),
        (["resume", "never"], "no run 'never'"),
        (["runs", "show", "a", "b"], "too many words: b"),
        (["runs", "export", "never"], "no run 'never'"),
        (["prepare", "x.parquet"], "required"),
        (["score", "in.parquet"], "--selection is required"),
        (["score", "in.parquet", "--selection", "gone.parquet"], "gone.parquet: there is no such file"),
    ],
)
def test_other_commands_say_no_as_well(here, capsys, words, expected):
    assert run(*words) == 2
    assert expected in capsys.readouterr().err.splitlines()[-1]


def test_a_full_disk_is_one_sentence_and_the_old_output_stays(here):
    """A file size limit stands in for the disk: the first file larger than it is refused."""
    Path("out.parquet").write_bytes(b"the old one")
    code = (
        "import resource, sys\nfrom datamask.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))\nsys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "select",
            "in.parquet",
            "--output",
            "out.parquet",
            "--objective",
            "pairwise",
            *FAST,
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 2, done.stderr
    assert re.search(r"cannot be written: .*File too large", done.stderr.splitlines()[-1])
    assert "Traceback" not in done.stderr and done.stdout == ""
    assert Path("out.parquet").read_bytes() == b"the old one"
    (failed,) = RunStore("runs").list()
    assert failed.status().state == "failed" and "File too large" in failed.status().error


def test_a_fault_of_the_program_shows_its_traceback(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "datamask.runs.execute", None)
    install_fake_execute()
    assert run("select", "in.parquet", "--output", "o.parquet", "--name", "bug") == 1
    error = capsys.readouterr().err
    assert "Traceback" in error and "ZeroDivisionError" in error.splitlines()[-1]
    (failed,) = RunStore("runs").list()
    assert failed.status().state == "failed" and "ZeroDivisionError" in failed.status().traceback


# -- the words --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained_in_the_help(capsys, command):
    assert run(*command.split(), "--help-all") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: datamask {command} ")
    for option in re.findall(r"^  (--\w+)", text, re.M):
        block = re.search(rf"^  {option}\b.*(?:\n {{10,}}.*)*", text, re.M)[0]
        assert len(block.split()) > 3, f"{option} has no help"
    if command == "select":
        for entry in (*catalogue.OBJECTIVES, *catalogue.ESTIMATORS):
            assert entry.name in text


def listed(text: str) -> list[str]:
    """The options that a help lists."""
    return re.findall(r"^  (--\w+)", text, re.M)


def test_the_help_of_select_lists_eleven_options_and_all_of_them_on_request(capsys):
    assert run("select", "--help") == 0
    short = capsys.readouterr().out
    assert sorted(listed(short)) == sorted(
        f"--{name}"
        for name in (
            *("objective", "lamb", "select_ratio", "budget", "estimator", "collapse"),
            *("quality_column", "rows", "output", "json", "dry_run"),
        )
    )
    assert "`datamask select --help-all` lists all" in short
    assert run("select", "--help_all") == 0
    whole = capsys.readouterr().out
    topics = {option.group for option in (*OPTIONS.values(), *CORPUS_OPTIONS.values())}
    assert len(topics) == 7 and all(f"\n{topic}:\n" in whole for topic in topics)
    for option in (*OPTIONS.values(), *CORPUS_OPTIONS.values()):
        after = whole[whole.index(f"\n{option.group}:\n") + 1 :] if option.name != "inputs" else whole
        assert f"\n  --{option.word}" in after.split("\n\n")[0] or option.name == "inputs", option.word
    assert set(listed(short)) < set(listed(whole))


@pytest.mark.parametrize("command", ["sweep", "score", "copies", "ablate", "open", "runs import"])
def test_other_commands_keep_the_shared_options_short_too(capsys, command):
    assert run(*command.split(), "--help") == 0
    short = capsys.readouterr().out
    assert "--quality_column" in short and "--row_seed" not in short and "--scratch_dir" not in short
    assert f"`datamask {command} --help-all` lists all" in short
    assert run(*command.split(), "--help-all") == 0
    assert "--row_seed" in capsys.readouterr().out


def test_a_help_without_rare_options_names_no_other(capsys):
    assert run("runs", "list", "--help") == 0
    short = capsys.readouterr().out
    assert "help-all" not in short
    assert run("runs", "list", "--help-all") == 0
    assert capsys.readouterr().out == short


def test_help_and_version(capsys):
    assert run("--help") == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)
    assert text.rstrip().endswith("`datamask COMMAND --help` lists the options of a command.")
    assert run("--version") == 0
    assert re.fullmatch(r"datamask \d+\.\d+\.\d+(\.dev0)?\n", capsys.readouterr().out)


def test_a_closed_pipe_is_no_error(here):
    done = subprocess.run(
        f"{sys.executable} -m datamask --help | head -1",
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.startswith("usage") and done.stderr == ""


def test_words_after_two_hyphens_are_inputs():
    options = parse(["select", "--output", "o", "--", "--lamb", "a-b.parquet"])
    assert options.input == ["--lamb", "a-b.parquet"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(monkeypatch):
    monkeypatch.setattr(cli_output, "BAR_SECONDS", 0.0)
    stream = Terminal()
    with cli_output.Progress(stream) as progress:
        progress(0.25, "reading")
        progress(0.5, "x" * 500)
    drawn = stream.getvalue().split("\r\x1b[K")
    assert drawn[1].startswith("[######                  ]  25%  reading")
    assert len(drawn[2]) < 500 and drawn[-1] == ""


def test_elsewhere_a_line_now_and_then(monkeypatch):
    stream = io.StringIO()
    with cli_output.Progress(stream) as progress:
        for step in range(1, 1000):
            progress(step / 1000, f"step {step} of 1,000, {(9.5, 10)[step % 2]} MB/s")
        progress(1.0, "measuring")
    assert [line.split("%")[1].split(",")[0].strip() for line in stream.getvalue().splitlines()] == [
        "step 1 of 1",
        "measuring",
    ]
