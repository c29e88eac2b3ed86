"""What comes out of every command: the ending decides the format, and ids find their rows again everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.corpus.readers.shard import open_shard
from datamask.runs.store import RunStore
from tests.commands import last_json, run

N = 60
ENDINGS = (".parquet", ".csv", ".jsonl", ".txt")
STARTS = {".parquet": b"PAR1", ".csv": b'"', ".jsonl": b"{", ".gz": b"\x1f\x8b", ".zst": b"\x28\xb5"}
SELECT = ("--objective", "pairwise", "--estimator", "relaxed", "--device", "cpu", "--select_ratio", "0.3")

BYTES = {
    "uuid": pa.array([UUID(int=2**120 + k).bytes for k in range(N)], pa.uuid()),
    "binary": pa.array([bytes([0, 255, k]) for k in range(N)]),
    "fixed": pa.array([bytes([0, 255, k]) for k in range(N)], pa.binary(3)),
    "decimal": pa.array([10**20 + k for k in range(N)], pa.decimal128(38, 0)),
}
"""Ids that are texts outside of Parquet: a UUID with its dashes, other bytes as hexadecimal digits."""

IDS: dict[str, pa.Array] = {
    "int32": pa.array(range(-30, 30), pa.int32()),
    "int64": pa.array([2**62 + k for k in range(N)], pa.int64()),
    "uint64": pa.array([2**63 + 7 * k for k in range(N)], pa.uint64()),
    "text": pa.array(
        [f"{start}{k:02}" for k, start in enumerate(["中文", "-", "=1+", "+", "@", "0001", "x\x00y"] * 9)][:N]
    ),
}


def write_corpus(ids: pa.Array, name: str = "doc_id", **columns) -> None:
    rng = np.random.default_rng(0)
    features = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=8 * len(ids)).astype(np.float32)), 8)
    table = {name: ids, "score": rng.normal(size=len(ids)), "embedding": features, **columns}
    pq.write_table(pa.table(table), "in.parquet")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder with shards of two files, a finished run on them, and its recipe."""
    monkeypatch.chdir(tmp_path)
    Path("shards").mkdir()
    write_corpus(pa.array([f"-d{k}" for k in range(N)]), text=pa.array([f"=text {k}" for k in range(N)]))
    whole = pq.read_table("in.parquet")
    pq.write_table(whole.slice(0, 25), "shards/a.parquet")
    pq.write_table(whole.slice(25), "shards/b.parquet")
    assert run("select", "shards", *SELECT) == 0
    (done,) = RunStore("runs").list()
    assert run("recipe", done.id, "--output", "recipe.json") == 0
    return done


def commands(run_id: str) -> dict[str, tuple[list[str], tuple[str, ...]]]:
    """What writes a table -> the command without its last word, the file; and the endings that it takes."""
    rows = ENDINGS[:3]
    export = ["runs", "export", run_id]
    return {
        "select": (["select", "shards", *SELECT, "--output"], ENDINGS),
        "select --weights": (["select", "shards", *SELECT, "--weights"], rows),
        "resume": (["resume", run_id, "--output"], ENDINGS),
        "export --ids": ([*export, "--ids"], ENDINGS),
        "export --rows": ([*export, "--rows"], rows),
        "export --weights": ([*export, "--weights"], rows),
        "export --mask": ([*export, "--mask"], rows),
        "copies": (["copies", "shards", "--exact", "--remove"], rows),
        "apply": (["apply", "recipe.json", "shards", "--output"], ENDINGS),
        "apply --as rows": (["apply", "recipe.json", "shards", "--as", "rows", "--output"], rows),
        "apply --as masks": (["apply", "recipe.json", "shards", "--as", "masks", "--output"], rows),
        "explain": (["explain", run_id, "--all", "--output"], rows),
    }


@pytest.mark.parametrize("name", commands(""))
def test_the_ending_decides_the_format_and_another_is_refused_before_work_begins(made, name, capsys):
    words, endings = commands(made.id)[name]
    before = [run.id for run in RunStore("runs").list()]
    for wrong in ("out.arrow", "out.json", "out.parquet.gz", *(["out.txt"] if ".txt" not in endings else [])):
        assert run(*words, wrong) == 2 and not Path(wrong).exists()
        assert f" must end in .parquet, .csv{'' if '.txt' in endings else ' or .jsonl'}" in capsys.readouterr().err
    assert [run.id for run in RunStore("runs").list()] == before
    counts = set()
    for ending in (*endings, ".csv.gz", ".jsonl.zst"):
        path = Path(f"out{ending}")
        assert run(*words, path) == 0, capsys.readouterr().err
        if ending == ".txt":
            counts.add(len(path.read_text().splitlines()))
            continue
        assert path.read_bytes().startswith(STARTS[path.suffix])
        counts.add(open_shard(str(path)).rows)
    assert len(counts) == 1 and not list(Path().glob("*.parts"))
    if "rows" in name:
        kept = [pq.read_table("out.parquet"), pd.read_csv("out.csv"), pd.read_json("out.jsonl", lines=True)]
        assert kept[0].schema.equals(pq.read_schema("in.parquet"))
        assert (
            kept[0]["doc_id"].to_pylist()
            == kept[1]["doc_id"].astype(str).tolist()
            == kept[2]["doc_id"].astype(str).tolist()
        )
        assert set(kept[1]["text"].str[:6]) == {"'=text"} and set(kept[2]["text"].str[:5]) == {"=text"}
    if "mask" in name:
        mask = pq.read_table("out.parquet")
        assert mask.column_names == ["source_file", "source_row", "selected", "considered"] and mask.num_rows == N
        assert mask["source_row"].to_pylist() == [*range(25), *range(35)]


@pytest.mark.parametrize("kind", {**IDS, **BYTES})
def test_ids_of_any_type_find_their_rows_again(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ids = {**IDS, **BYTES}[kind]
    write_corpus(ids)
    lists = {ending: f"ids{ending}" for ending in (*ENDINGS, ".csv.gz", ".jsonl.zst", ".txt.gz")}
    for ending, path in lists.items():
        assert run("select", "in.parquet", *SELECT, "--output", path) == 0, (ending, capsys.readouterr().err)
    table = pq.read_table("ids.parquet")
    assert table.schema.field(0).equals(pa.field("doc_id", ids.type))
    assert "datamask_score" in table.column_names and "score" not in table.column_names
    selected = table["doc_id"].to_pylist()
    assert len(selected) == 18 and set(selected) <= set(ids.to_pylist())
    spelled = [value.hex() if isinstance(value, bytes) else str(value) for value in selected]
    if kind in BYTES:
        assert Path("ids.txt").read_text().splitlines() == spelled
    capsys.readouterr()
    for path in lists.values():
        assert run("score", "in.parquet", "--selection", path, "--device", "cpu", "--json") == 0
        (entry,) = last_json(capsys)["selections"]
        assert (entry["selected"], entry["unknown_ids"]) == (18, 0), path
        assert run("runs", "import", path, "in.parquet", "--device", "cpu", "--json") == 0
        assert last_json(capsys)["selected"] == 18, path
        for option, overlap in (("--pin", 18), ("--given", 0)):
            assert run("select", "in.parquet", *SELECT, option, path, "--output", "more.parquet") == 0
            more = pq.read_table("more.parquet")["doc_id"].to_pylist()
            assert len(more) == 18 and len(set(more) & set(selected)) == overlap, (path, option)
        capsys.readouterr()


@pytest.mark.parametrize("kind", {**IDS, **BYTES})
def test_duckdb_and_pandas_join_the_ids_unchanged(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpus({**IDS, **BYTES}[kind])
    for ending in ENDINGS:
        assert run("select", "in.parquet", *SELECT, "--output", f"ids{ending}") == 0
    corpus = pq.read_table("in.parquet").to_pandas()
    texts = {"dtype": {"doc_id": str}} if kind == "text" else {}  # 000121 is a text, which pandas cannot know
    frames = {
        ".parquet": pd.read_parquet("ids.parquet"),
        ".csv": pd.read_csv("ids.csv", **texts),
        ".jsonl": pd.DataFrame(map(json.loads, Path("ids.jsonl").read_text().splitlines())),
    }
    endings = (".parquet",) if kind in BYTES else (".parquet", ".csv", ".jsonl")
    for ending in endings:
        frame = frames[ending]
        merged = corpus.merge(frame, on="doc_id")
        assert len(merged) == 18 and merged["score"].equals(merged["quality"]), ending
    for ending in endings:
        joined = f"select count(*), sum(score - quality) from 'in.parquet' join 'ids{ending}' using (doc_id)"
        assert duckdb.sql(joined).fetchall() == [(18, 0.0)], ending


def test_duckdb_joins_uuids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpus(BYTES["uuid"])
    for ending in (".parquet", ".csv", ".jsonl"):
        assert run("select", "in.parquet", *SELECT, "--output", f"ids{ending}") == 0
        joined = f"select count(*) from 'in.parquet' join 'ids{ending}' using (doc_id)"
        assert duckdb.sql(joined).fetchall() == [(18,)], ending
    assert run("copies", "in.parquet", "--pairs", "pairs.parquet") == 0
    pairs = pq.read_schema("pairs.parquet")
    assert pairs.field("removed").type == pairs.field("kept").type == pa.uuid()
