"""The three lines of README's *Start*, on what newcomers bring; and the languages that a selection of theirs keeps."""

import gzip
import json
import re
import shlex
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import open_corpus
from datamask.cli import main
from datamask.cli.parser import parse
from tests.commands import ROOT

PACKED = ROOT / "tests/corpus/token_counts.jsonl.gz"
TEXTS = [json.loads(line) for line in gzip.decompress(PACKED.read_bytes()).decode().splitlines()]
ENGLISH = [row["text"] for row in TEXTS if row["language"] == "English"]
EMBEDDING = np.random.default_rng(0).normal(size=(len(ENGLISH), 12)).astype(np.float32)


def fineweb(folder):
    rows = [
        {
            "text": text,
            "id": f"<urn:uuid:{k}>",
            "dump": "CC-MAIN-2024-10",
            "url": f"https://a/{k}",
            "date": "2024-03-01",
        }
        | {"date": "2024-03-01", "language": "en", "language_score": 0.9 + k / 1000, "token_count": len(text) // 4}
        for k, text in enumerate(ENGLISH)
    ]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "texts.jsonl", {"id": "id", "quality": ["quality_score"], "feature": "feature_arr", "length": "token_count"}


def scored(folder):
    table = pa.table({"text": ENGLISH, "score": EMBEDDING[:, 0], "embedding": list(EMBEDDING)})
    pq.write_table(table, folder / "texts.parquet")
    return "texts.parquet", {"id": "chunk_id", "quality": ["score"], "feature": "embedding", "length": "n_tokens"}


def embedded(folder):
    pq.write_table(pa.table({"text": ENGLISH, "embedding": list(EMBEDDING)}), folder / "texts.parquet")
    return "texts.parquet", {"id": "chunk_id", "quality": ["quality_score"], "feature": "embedding"}


def splits(folder):
    shutil.copytree(ROOT / "tests/corpus/foreign/datasets-splits", folder / "texts")
    return "texts", {"id": "id", "quality": ["score"], "feature": "embedding", "length": "token_count"}


@pytest.mark.parametrize("bring", [fineweb, scored, embedded, splits])
def test_the_first_lines_of_the_readme_run_on_what_newcomers_bring(bring, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name, columns = bring(tmp_path)
    start = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Start")[2]
    lines = re.findall(r"^ {4}datamask (.*?)(?: +#.*)?$", start, re.MULTILINE)
    prepare, select, opened = (shlex.split(line.replace("texts.jsonl", name)) for line in lines)
    ready = main(prepare)
    said = capsys.readouterr().err
    if ready != 0:  # nothing is missing: the sentence says so, and the file is opened as it is
        assert ready == 2 and "already: open it as it is" in said
        select, opened = ([name if word == "prepared" else word for word in words] for words in (select, opened))
    assert main(select) == 0
    said = capsys.readouterr().err
    corpus = open_corpus(parse(opened).inputs[0])
    ids = (tmp_path / "ids.csv").read_text().splitlines()[1:]
    assert len(ids) == round(0.3 * len(corpus))
    assert columns.items() <= corpus.provenance.columns.items() and corpus.provenance.notes[0] in said


def test_each_of_seven_languages_keeps_its_share(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"language": row["language"], "text": part}
        for row in TEXTS
        for part in re.findall(f"(?s).{{1,{-(-len(row['text']) // 3)}}}", row["text"])
    ]
    pq.write_table(pa.Table.from_pylist(rows), "in.parquet")
    assert main(["prepare", "in.parquet", "--output", "ready.parquet", "--dim", "64"]) == 0
    asked = ["select", "ready.parquet", "--lamb", "0.5", "--select_ratio", "0.3", "--output", "ids.csv"]
    frame = pq.read_table("ready.parquet").to_pandas()
    shares = []
    for within in ([], ["--quality_within", "language"]):
        assert main([*asked, *within]) == 0
        kept = {line.split(",")[0].strip('"') for line in (tmp_path / "ids.csv").read_text().splitlines()[1:]}
        shares.append(frame.chunk_id.isin(kept).groupby(frame.language).mean())
    assert len(shares[1]) == 7 and shares[1].between(0.25, 0.35).all()
    assert not shares[0].between(0.25, 0.35).all()
