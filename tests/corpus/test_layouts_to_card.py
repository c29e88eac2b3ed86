"""From files as corpora are shipped to a folder for a dataset hub: prepare, select, ablate, runs export --card."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.runs.ablation_results import results
from tests.corpus.embedders.tiny import write_model
from tests.making.layouts import LAYOUTS, WORDS, write

N, DIM, RATIO, LAMBDA = 800, 24, 0.3, 0.5
QUICK = ["--target", "random", "--methods", "top-quality", "--objectives", "pairwise", "--lambdas", "0,0.5"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A static model that knows the words of made texts."""
    words = ["[UNK]", *WORDS]
    vectors = np.random.default_rng(0).normal(size=(len(words), DIM)).astype(np.float32)
    return write_model(tmp_path_factory.mktemp("models") / "tiny", vectors, words=words)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_the_files_as_shipped_to_a_dataset_card(tmp_path, model, layout, capsys):
    make, ending, *_ = LAYOUTS[layout]
    shard = write(tmp_path / f"shard{ending}", [make(i) for i in range(N)])
    ready, out, card = tmp_path / "ready", tmp_path / "out.parquet", tmp_path / "card"
    runs = ["--runs-dir", str(tmp_path / "runs")]

    def command(*words):
        assert main([*map(str, words), "--json"]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    prepared = command("prepare", shard, "--output", ready, "--embedder", f"model2vec:{model}")
    assert (prepared["rows"], prepared["embedder"], prepared["dim"]) == (N, "tiny", DIM)
    selection = ["--objective", "pairwise", "--lamb", LAMBDA, "--select-ratio", RATIO]
    run = command("select", ready, "--output", out, *selection, *runs)["run_id"]
    found = command("ablate", ready, *QUICK, "--seeds", 6, "--select-ratio", RATIO, "--device", "cpu", *runs)
    written = command("runs", "export", run, "--card", card, *runs)["card"]

    assert sorted(written) == sorted(str(path) for path in card.rglob("*") if path.is_file())
    kept = pq.read_table(out)[0].to_pylist()
    assert len(set(kept)) == round(RATIO * N)
    ids = pq.read_table(card / "data" / "selection.parquet")
    assert ids[0].to_pylist() == kept and not any("/" in file for file in ids["source_file"].to_pylist())
    recipe = json.loads((card / "recipe.json").read_text())
    assert (recipe["objective"], recipe["lambda"], recipe["learned"]["run"]) == ("pairwise", LAMBDA, run)
    text = (card / "README.md").read_text()
    assert f"{len(kept)} of {N} rows" in text and "not measured" not in text.lower()
    (result,) = results(tmp_path / "runs" / ".kept", found["fingerprint"])
    place = [method.name for method in result.methods].index(f"pairwise-{LAMBDA}")
    better = int(result.to_random(place, 0).verdict == "better")
    assert f"By an ablation over 6 seeds, {result.methods[place].label} is better than random on {better} of 1" in text
