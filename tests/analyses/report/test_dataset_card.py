"""A selection as a folder for a dataset hub: the files hold what the run holds, and the card says the run's numbers."""

from __future__ import annotations

import io
import json
import re
import subprocess
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from datamask.analyses.report.dataset_card import size_class
from datamask.analyses.report.hub_text import plain
from datamask.analyses.report.public import OF_CORPUS, OF_SELECTION, public_config
from datamask.cli import main
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.dashboard.drawing import words
from datamask.options import CORPUS_OPTIONS, OPTIONS
from datamask.runs.ablation_results import save
from datamask.runs.recipe import recipe_of
from datamask.runs.store import RunStore
from tests.making.ablations import ROBUST, made_result
from tests.making.runs import finish_run


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
    assert "Columns of the ids: chunk\\_id, the id;" in text and "Quality is column quality\\_score" in text
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


MARKUP = "x` <img src=x onerror=alert(1)> [click](http://evil.example) `"
LINES = "q\n\n# Injected\n\n<script>alert(1)</script>\n\n[free](http://evil.example)\n"


def test_names_make_no_markup_and_nothing_private_leaves_with_the_card(tmp_path):
    """Names of columns and of the run hold marks and line breaks; paths, notes and options are of this machine."""
    private, rng = tmp_path / "private", np.random.default_rng(0)
    private.mkdir()
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=1600).astype(np.float32)), 8)
    rows = {MARKUP: [f"i{row}" for row in range(200)], LINES: rng.normal(size=200), "f": vectors}
    pq.write_table(pa.table(rows), private / "a.parquet")
    for row, name in enumerate(("pin", "ban", "given")):
        (private / f"{name}.txt").write_text(f"i{row}\n")
    words = [str(private), "--objective", "pairwise", "--id_column", MARKUP, "--quality_column", f"{LINES}:1:raw"]
    words += ["--feature_column", "f", "--name", "n\U0001f600\r~~~\rrest", "--notes", "SECRET note"]
    words += [word for name in ("pin", "ban", "given") for word in (f"--{name}", str(private / f"{name}.txt"))]
    words += ["--output", str(tmp_path / "o.parquet")]
    runs = ["--runs_dir", str(tmp_path / "runs")]
    assert main(["select", *words, *runs]) == 0
    store = RunStore(tmp_path / "runs")
    (run,) = store.list()
    for folder, more in (("card", ()), ("rows", ("--card_rows",))):
        assert exported(store, run, tmp_path / folder, *more) == 0
        everything = {path.name: path.read_bytes() for path in (tmp_path / folder).rglob("*") if path.is_file()}
        assert {"README.md", "settings.json", "recipe.json"} < set(everything)
        for name, content in everything.items():
            assert str(tmp_path).encode() not in content and b"SECRET" not in content, name
    header, text = card_of(tmp_path / "card")
    assert header["pretty_name"].encode() and header["pretty_name"] == "n\U0001f600 ~~~ rest"
    assert "# n\U0001f600 \\~\\~\\~ rest\n" in text and "\r" not in text
    marks = re.sub(r"\\.", "", text.replace(re.search(r"\n    datamask select .*\n", text)[0], ""))
    assert "<" not in marks and "evil" not in re.sub(r"http(?!:)\S*", "", marks)
    assert [line for line in marks.splitlines() if line.startswith("#")] == [
        "# n\U0001f600  rest", "## Result", "## Corpus", "## Settings", "## Files",
    ]  # fmt: skip
    settings = json.loads((tmp_path / "card" / "settings.json").read_text())
    assert settings["corpus"]["inputs"] == ["private"] and settings["selection"]["pin"] == "pin.txt"
    assert settings["notes"] == ""
    recipe = json.loads((tmp_path / "card" / "recipe.json").read_text())
    whole = recipe_of(run).to_dict()
    assert recipe["rule"] == whole["rule"] and recipe["thresholds"] == whole["thresholds"]
    assert recipe["learned"]["files"] == ["a.parquet"] and recipe["learned"]["kept"] == whole["learned"]["kept"]
    (command,) = re.findall(r"\n    (datamask select .*)\n", text)
    said = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True).stdout
    assert said.decode().split("\0")[:-1] == ["datamask", *public_config(run.config).arguments("selection.parquet")]


def test_every_setting_is_shown_or_hidden_on_purpose():
    hidden = {"scratch_dir"}
    assert set(OF_SELECTION) | hidden == set(OPTIONS) and not hidden & set(OF_SELECTION)
    assert set(OF_CORPUS) == set(CORPUS_OPTIONS)
    paths = dict.fromkeys(("inputs", "features", "scores"), "/SECRET/a.parquet")
    selection = dict.fromkeys(("pin", "ban", "given"), "/SECRET/a.txt") | {"scratch_dir": "/SECRET/b"}
    selection |= {"objective": "pairwise"}
    config = RunConfig(CorpusConfig(**paths, rows=9), SelectionConfig.from_options(**selection), "name", "SECRET")
    shown = public_config(config)
    assert "SECRET" not in json.dumps(shown.to_dict(), default=str) and shown.name == "name"
    assert shown.corpus.inputs == ("a.parquet",) and shown.selection.pin == "a.txt"
    in_memory = replace(config, selection=replace(config.selection, scratch_dir=None))
    assert (shown.corpus.rows, public_config(in_memory).corpus.rows) == (None, 9)


@given(st.text(st.characters(codec=None), max_size=40))
def test_plain_text_has_no_mark_of_its_own(text):
    shown = plain(text)
    shown.encode()
    assert shown == " ".join(shown.split()) and not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", shown)
    bare = re.sub(r"\\[^\w\s]|\\_", "x", shown)
    assert not set(bare) & set("\\`*_[]<>|#~&$@") and "://" not in bare and not re.match(r"[-+=]|\d+[.)]", bare)


def test_plain_text_is_the_text_behind_its_backslashes():
    text = "1. a_b <b> \\ `c` [d](http://e.org) #f ~g &amp; h@i.org www.j.org \u2028 k"
    assert re.sub(r"\\(.)", r"\1", plain(text)) == text.replace(" \u2028", "")
