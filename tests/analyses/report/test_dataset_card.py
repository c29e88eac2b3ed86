"""A selection as a folder for a dataset hub: the files hold what the run holds, and the card says the run's numbers."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from datamask.analyses.report.dataset_card import size_class
from datamask.cli import main
from datamask.corpus import open_corpus
from datamask.dashboard.drawing import words
from datamask.runs.ablation_results import save
from datamask.runs.store import RunStore
from tests.making.ablations import ROBUST, made_result
from tests.making.runs import finish_run, write_shard


@pytest.fixture
def world(tmp_path):
    config = write_shard(tmp_path / "shard.parquet")
    return RunStore(tmp_path / "runs"), open_corpus(config), config


def exported(store, run, folder, *words) -> int:
    return main(["runs", "export", run.id, "--card", str(folder), "--runs_dir", str(store.root), *words])


def card_of(folder) -> tuple[dict, str]:
    """The header, read as YAML, and the text below it."""
    _, header, text = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(header), text


def test_the_folder_holds_the_ids_and_the_card_says_the_numbers(world, tmp_path, capsys):
    store, corpus, config = world
    run = finish_run(store, corpus, config, corpus.quality, objective="facility", lamb=0.7, name="best: *half* # 1")
    result = made_result(ROBUST, fingerprint=corpus.fingerprint)
    save(store.cache_dir, result)
    out = tmp_path / "card"
    assert exported(store, run, out, "--json") == 0
    written = json.loads(capsys.readouterr().out.splitlines()[-1])["card"]
    assert sorted(written) == sorted(str(path) for path in out.rglob("*") if path.is_file())
    ids = pq.read_table(out / "data" / "selection.parquet")
    assert ids["chunk_id"].to_pylist() == run.selection()["chunk_id"].to_pylist()
    header, text = card_of(out)
    assert header["pretty_name"] == "best: *half* # 1" and header["size_categories"] == ["n<1K"]
    assert (out / header["configs"][0]["data_files"]).is_file()
    assert "The selection is in data/selection.parquet." in text and "in the folder of run" not in text
    assert "Columns of the ids: `chunk_id`, the id;" in text and "Quality is column quality\\_score" in text
    assert "# best: \\*half\\* \\# 1" in text and "72 of 240 rows" in text
    place = [method.name for method in result.methods].index("facility-0.7")
    better = [result.to_random(place, at).verdict for at in range(3)].count("better")
    assert f"better than random on {better} of 3 targets" in text
    assert Image.open(io.BytesIO((out / "map.png").read_bytes())).size == (560, 560)
    assert not (out / "recipe.json").exists(), "facility has no per-row rule"
    everything = b"".join(path.read_bytes() for path in out.rglob("*") if path.suffix in (".md", ".json", ".parquet"))
    assert str(tmp_path).encode() not in everything and b"shard.parquet" in everything
    assert all("/" not in file for file in ids["source_file"].to_pylist())
    (row,) = [line for line in text.splitlines() if line.startswith("| mean quality |")]
    raw, ends = run.status().result.raw.quality, run.status().result.anchors.quality
    assert row.split(" | ")[1:4] == [words.value(value) for value in (raw, ends.random, ends.best)]


def test_rows_and_the_recipe(world, tmp_path):
    store, _, config = world
    assert main(["select", *config.inputs, "--objective", "pairwise", "--runs_dir", str(store.root), "--output",
                 str(tmp_path / "out.parquet")]) == 0  # fmt: skip
    (run,) = store.list()
    assert exported(store, run, tmp_path / "card", "--card_rows") == 0
    rows, shard = pq.read_table(tmp_path / "card" / "data" / "rows.parquet"), pq.read_table(config.inputs[0])
    kept = set(run.selection()["chunk_id"].to_pylist())
    assert rows.equals(shard.filter([each in kept for each in shard["chunk_id"].to_pylist()]))
    assert json.loads((tmp_path / "card" / "recipe.json").read_text())
    assert "not measured" in card_of(tmp_path / "card")[1].lower()


def test_a_folder_with_files_is_left_alone(world, tmp_path, capsys):
    store, corpus, config = world
    run = finish_run(store, corpus, config, corpus.quality, objective="facility", lamb=0.7)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert exported(store, run, tmp_path / "full") == 2 and "exists already" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    assert main(["runs", "export", run.id, "--card_rows", "--runs_dir", str(store.root)]) == 2


@pytest.mark.parametrize(
    "rows, name", [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (54_000, "10K<n<100K"), (10**12, "n>10B")]
)
def test_size_classes(rows, name):
    assert size_class(rows) == name
