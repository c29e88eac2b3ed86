"""A selection by blocks: the same ids whoever does the blocks, rules that hold exactly, values of the whole."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.blocks.cutting import halved
from datamask.cli import main
from tests.making.run_folders import ROOT
from tests.making.shards import clustered
from tests.test_killed_commands import killed, started

ROWS, BLOCKS = 900, 4

CUT = ("--blocks", str(BLOCKS), "--into")

WORKER = """
import sys, time
from pathlib import Path
from datamask.cli import main

block, folder = sys.argv[1:]
for kind in ("picks", "selected"):
    while kind == "selected" and len(list(Path(folder).glob("picks-*.parquet"))) < 4:
        time.sleep(0.05)
    assert main(["select", "--block", block, "--into", folder]) == 0
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Two shards with ids, features, quality, tokens and a column of three values."""
    folder = tmp_path_factory.mktemp("corpus")
    features, quality = clustered(ROWS)
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "id": [f"r{n}" for n in range(ROWS)],
            "features": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), features.shape[1]),
            "score": quality,
            "tokens": rng.integers(20, 400, ROWS),
            "kind": pa.array(["web", "code", "books"]).take(pa.array((features[:, 0] > 0).astype(int) + (quality > 1))),
        }
    )
    for number in range(2):
        pq.write_table(table.slice(number * 500, 500), folder / f"part-{number}.parquet")
    return folder


def cut(corpus, folder, *words):
    """Cut the blocks."""
    given = [*words] if "--budget" in words else ["--select_ratio", "0.2", *words]
    assert main(["select", str(corpus), "--blocks", str(BLOCKS), "--into", str(folder), *given]) == 0


def joined(folder, capsys):
    """What the join writes, and what it says."""
    capsys.readouterr()
    assert main(["select", "--join", str(folder), "--output", str(folder / "out.parquet"), "--json"]) == 0
    return pq.read_table(folder / "out.parquet"), json.loads(capsys.readouterr().out.splitlines()[-1])


def solved(corpus, folder, capsys, *words):
    """The rows and the answer of a selection by blocks, one block after another."""
    cut(corpus, folder, *words)
    for _ in range(2):
        for block in range(1, BLOCKS + 1):
            assert main(["select", "--block", str(block), "--into", str(folder)]) == 0
    return joined(folder, capsys)


def rows_of(corpus):
    """All rows, by id."""
    table = pa.concat_tables(pq.read_table(path) for path in sorted(corpus.glob("*.parquet"))).to_pandas()
    return table.set_index("id")


def test_ids_are_the_same_whoever_does_the_blocks(corpus, tmp_path, capsys):
    expected, answer = solved(corpus, tmp_path / "one", capsys)
    assert len(expected) == answer["selected"] == 180 and expected["rank"].to_pylist() == list(range(1, 181))

    given = [str(corpus), *CUT, str(tmp_path / "many"), "--select_ratio", "0.2"]
    killed(started(("datamask.blocks.cutting", "_table", 1), tmp_path / "hung", ["select", *given]))
    assert not (tmp_path / "many" / "rows-0001.parquet").exists()
    cut(corpus, tmp_path / "many")
    assert not list((tmp_path / "many").glob(".*"))
    cut(corpus, tmp_path / "many")  # the same again changes nothing
    words = ["select", "--block", "2", "--into", str(tmp_path / "many")]
    killed(started(("datamask.blocks.solving", "picks_in_order", 0), tmp_path / "hangs", words))
    assert not list((tmp_path / "many").glob("picks-*"))
    children = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(block), str(tmp_path / "many")], cwd=ROOT)
        for block in (3, 1, 4, 2)
    ]
    assert [child.wait(240) for child in children] == [0, 0, 0, 0]
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "many").glob("selected-*")}
    assert main(["select", "--block", "1", "--into", str(tmp_path / "many")]) == 0
    assert times == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "many").glob("selected-*")}
    assert joined(tmp_path / "many", capsys)[0] == expected


def test_rows_may_be_joined_sampled_invalid_and_read_in_parts(corpus, tmp_path, capsys, monkeypatch):
    """Features of other shards in another order, one row without a score, 600 of the others; read 90 at a time."""
    table = pa.concat_tables(pq.read_table(path) for path in sorted(corpus.glob("*.parquet")))
    order = pa.array(np.random.default_rng(3).permutation(ROWS))
    quality = table["score"].to_pylist()
    quality[7] = None
    left = table.drop_columns(["features", "score"]).append_column("score", pa.array(quality))
    pq.write_table(left, tmp_path / "left.parquet")
    pq.write_table(table.select(["id", "features"]).take(order), tmp_path / "right.parquet")
    words = ["--rows", "600", "--drop_invalid", "--select_ratio", "0.2"]
    joined_words = [*words, "--features", str(tmp_path / "right.parquet")]
    with monkeypatch.context() as patch:
        patch.setattr("datamask.blocks.cutting.default_row_limit", lambda *_: 180)
        assert main(["select", str(tmp_path / "left.parquet"), *CUT, str(tmp_path / "apart"), *joined_words]) == 0
    pq.write_table(left.append_column("features", table["features"]), tmp_path / "one.parquet")
    assert main(["select", str(tmp_path / "one.parquet"), *CUT, str(tmp_path / "one"), *words]) == 0
    tables = []
    for folder in (tmp_path / "apart", tmp_path / "one"):
        for block in range(1, BLOCKS + 1):
            assert main(["select", "--block", str(block), "--into", str(folder)]) == 0
        tables.append(joined(folder, capsys)[0])
    assert (
        tables[0]["id"] == tables[1]["id"] and len(tables[0]) in (119, 120) and "r7" not in tables[0]["id"].to_pylist()
    )


def test_blocks_that_lack_their_swaps_are_done_by_the_join_also_without_the_inputs(corpus, tmp_path, capsys):
    expected, _ = solved(corpus, tmp_path / "apart", capsys)
    shards = shutil.copytree(corpus, tmp_path / "shards")
    cut(shards, tmp_path / "join")
    shutil.rmtree(shards)
    for block in range(1, BLOCKS + 1):
        assert main(["select", "--block", str(block), "--into", str(tmp_path / "join")]) == 0
    table, _ = joined(tmp_path / "join", capsys)
    assert table.drop_columns("source_file") == expected.drop_columns("source_file")


@pytest.mark.parametrize("by", ["cells", "random"])
def test_values_are_those_of_the_whole(corpus, tmp_path, capsys, by):
    """With fewer rows than are drawn they are exact."""
    table, answer = solved(corpus, tmp_path, capsys, "--blocks_by", by, "--lamb", "0.4")
    rows = rows_of(corpus)
    features = np.stack(rows["features"]).astype(np.float64)
    chosen = rows.index.get_indexer(table["id"].to_pylist())
    assert answer["values"] == "exact" and answer["estimate"] is None and answer["n"] == ROWS
    assert answer["quality"] == pytest.approx(rows["score"].to_numpy()[chosen].mean())
    assert answer["diversity"] == pytest.approx((features @ features[chosen].T).max(axis=1).mean(), abs=1e-5)
    ends = answer["anchors"]["diversity"]["facility"]
    share = (answer["diversity"] - ends["random"]) / (ends["best"] - ends["random"])
    assert answer["calibrated"]["diversity"] == pytest.approx(share)
    assert table["quality"].to_pylist() == rows["score"].to_numpy()[chosen].tolist()


def test_blocks_of_cells_are_nearly_as_good_as_one_block(corpus, tmp_path, capsys):
    whole = ["select", str(corpus), "--select_ratio", "0.2", "--runs_dir", str(tmp_path / "runs"), "--json"]
    assert main(whole) == 0
    best = json.loads(capsys.readouterr().out.splitlines()[-1])["calibrated"]["joint"]
    by = {
        name: solved(corpus, tmp_path / name, capsys, "--blocks_by", name)[1]["calibrated"]["joint"]
        for name in ("cells", "random")
    }
    assert by["random"] < by["cells"] < best + 1e-3
    assert by["cells"] - by["random"] > 0.7 * (best - by["random"])


@pytest.mark.parametrize("by", ["cells", "random"])
def test_quotas_hold_exactly(corpus, tmp_path, capsys, by):
    quotas = ["--quota", "kind=web:0.5:0.5", "--quota", "kind=books:0.1:0.12"]
    table, _ = solved(corpus, tmp_path, capsys, "--blocks_by", by, *quotas)
    kinds = rows_of(corpus)["kind"].loc[table["id"].to_pylist()].value_counts()
    assert len(table) == 180 and kinds["web"] == 90 and 18 <= kinds["books"] <= 21


@pytest.mark.parametrize("by", ["cells", "random"])
def test_a_token_budget_is_filled_within_its_quotas(corpus, tmp_path, capsys, by):
    words = ["--budget", "30000", "--quota", "kind=web:0.5:0.55"]
    table, answer = solved(corpus, tmp_path, capsys, "--blocks_by", by, *words)
    rows = rows_of(corpus).loc[table["id"].to_pylist()]
    longest, web = rows_of(corpus)["tokens"].max(), rows["tokens"][rows["kind"] == "web"].sum()
    assert 30_000 - 2 * longest <= rows["tokens"].sum() == answer["tokens"] <= 30_000
    assert 15_000 - longest <= web <= 16_500


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--objective", "pairwise"], "datamask apply"),
        (["--objective", "facility:0.5,pairwise:0.5"], "datamask recipe"),
        (["--estimator", "random"], "leave --estimator out"),
        (["--prune", "0.1"], "--prune needs all rows at once"),
        (["--quality_column", "score:1:z"], "ranks and z-scores are of all"),
        (["--quota", "kind=books:0.9:1"], "loosen a quota"),
        (["--dry_run"], "--dry_run is of runs"),
        (["--join", "elsewhere"], "give one of"),
        (["--output", "ids.csv"], "--join FOLDER"),
    ],
)
def test_what_blocks_cannot_do_is_refused_with_a_way_out(corpus, tmp_path, capsys, words, sentence):
    assert main(["select", str(corpus), "--blocks", "3", "--into", str(tmp_path / "blocks"), *words]) == 2
    refused = capsys.readouterr().err
    assert sentence in refused and not (tmp_path / "blocks" / "plan.json").exists()


def test_steps_out_of_order_are_refused_with_a_way_out(corpus, tmp_path, capsys):
    def refused(*words):
        capsys.readouterr()
        assert main(["select", *map(str, words)]) == 2
        return capsys.readouterr().err

    assert "cut the blocks first" in refused("--block", 1, "--into", tmp_path)
    cut(corpus, tmp_path / "blocks", "--blocks_by", "random")
    into = tmp_path / "blocks"
    assert "from 1 to 4" in refused("--block", 5, "--into", into)
    assert "takes its settings from the folder" in refused(corpus, "--block", 1, "--into", into)
    assert main(["select", "--block", "2", "--into", str(into)]) == 0
    assert "blocks 1, 3 and 4 of 4" in refused("--join", into, "--output", tmp_path / "out.csv")
    assert "add --output" in refused("--join", into)
    assert "other settings" in refused(corpus, "--blocks", 2, "--into", into)
    (into / "plan.json").unlink()
    assert "picks of other blocks" in refused(corpus, "--blocks", 4, "--into", into)


def test_changed_inputs_are_named(corpus, tmp_path, capsys):
    pq.write_table(pq.read_table(corpus / "part-0.parquet"), tmp_path / "rows.parquet")
    cut(tmp_path / "rows.parquet", tmp_path / "blocks")
    pq.write_table(pq.read_table(corpus / "part-1.parquet"), tmp_path / "rows.parquet")
    assert main(["select", "--block", "1", "--into", str(tmp_path / "blocks")]) == 2
    assert "rows.parquet has changed since" in capsys.readouterr().err


def test_ids_come_out_in_the_type_of_the_input(corpus, tmp_path, capsys):
    table = pq.read_table(corpus / "part-0.parquet")
    ids = pa.array([bytes([n % 256, n // 256]) for n in range(len(table))], pa.binary(2))
    pq.write_table(table.set_column(0, "key", ids), tmp_path / "rows.parquet")
    out, _ = solved(tmp_path / "rows.parquet", tmp_path / "blocks", capsys, "--id_column", "key")
    assert out.column_names[0] == "key" and out["key"].type == pa.binary(2)
    places = dict(zip(ids.to_pylist(), range(len(table)), strict=True))
    assert [places[key] for key in out["key"].to_pylist()] == out["source_row"].to_pylist()


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "datamask 1.0"}', '{"format": "datamask 0.9"}'])
def test_a_plan_that_is_none_is_refused(tmp_path, capsys, text):
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    assert main(["select", "--block", "1", "--into", str(tmp_path)]) == 2
    assert "cut the blocks again into an empty folder" in capsys.readouterr().err


def test_a_damaged_file_is_named(corpus, tmp_path, capsys):
    cut(corpus, tmp_path)
    (tmp_path / "rows-0001.parquet").write_bytes(b"PAR1")
    assert main(["select", "--block", "1", "--into", str(tmp_path)]) == 2
    assert "rows-0001.parquet" in capsys.readouterr().err


def test_cells_are_put_into_groups_of_neighbors_of_equal_weight():
    points = np.array([[x, y] for x in range(8) for y in range(4)], float)
    group = halved(points, np.ones(32), 4)
    assert np.bincount(group).tolist() == [8, 8, 8, 8]
    spread = np.mean([points[group == g].std(axis=0).max() for g in range(4)])
    assert spread < 1.2
    assert sorted(set(halved(points, np.zeros(32), 32))) == list(range(32))


def test_the_page_says_what_was_measured_and_cells_keep_nine_tenths():
    result = json.loads((ROOT / "benchmarks/results/blocks.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    for each in result["lambdas"]:
        whole, cells, random = (each["ways"][way]["joint"] for way in ("whole", "cells", "random"))
        assert each["kept"] == pytest.approx((cells - random) / (whole - random)) and each["kept"] >= 0.9
        assert f"| {each['lamb']:g} | {whole:.3f} | {cells:.3f} | {random:.3f} | {each['kept']:.3f} |" in page
