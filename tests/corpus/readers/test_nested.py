"""Fields of nested columns by dotted names, in every format that has them; JSON whose fields are of several kinds."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import CorpusConfig, open_corpus
from datamask.config import QualityColumn
from datamask.corpus.readers import Wanted
from datamask.corpus.readers.leaves import leaf_schema, schema_of
from datamask.corpus.readers.shard import open_shard
from tests.making.packed_files import packed

N = 24
NESTED = [".parquet", ".jsonl", ".jsonl.gz", ".jsonl.zst"]


def rows():
    rng = np.random.default_rng(3)
    return [
        {
            "feature_arr": rng.normal(size=4).round(4).tolist(),
            "text": f"text number {i}",
            "metadata": {"id": f"doc-{i}", "score": i / 7, "url": f"https://example.org/{i}", "lang": {"en": i / N}},
        }
        for i in range(N)
    ]


def write(path, made):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(made), path, row_group_size=7)
    else:
        path.write_bytes(packed(path, "".join(json.dumps(row) + "\n" for row in made).encode()))
    return str(path)


@pytest.mark.parametrize("ending", NESTED)
def test_leaves_play_every_part(tmp_path, ending):
    path = write(tmp_path / f"in{ending}", rows())
    corpus = open_corpus(CorpusConfig((path,)))
    assert corpus.ids.to_pylist() == [row["metadata"]["id"] for row in rows()]
    assert corpus.quality.tolist() == pytest.approx([row["metadata"]["score"] for row in rows()])
    assert corpus.metadata.column_names == ["text", "metadata.url", "metadata.lang.en"]
    assert corpus.metadata["metadata.lang.en"].to_pylist() == [i / N for i in range(N)]
    config = CorpusConfig((path,), quality_columns=(QualityColumn("metadata.lang.en"),), id_column="metadata.url")
    corpus = open_corpus(config)
    assert corpus.ids[3].as_py() == "https://example.org/3" and corpus.quality[-1] == (N - 1) / N


def test_of_parquet_only_the_leaf_is_read(tmp_path, monkeypatch):
    path = write(tmp_path / "in.parquet", rows())
    asked = []
    read = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda *args, **kw: asked.append(kw["columns"]) or read(*args, **kw)
    )
    batches = list(open_shard(path).batches(Wanted(["metadata.score"], most_rows=100)))
    assert asked == [["metadata.score"]]
    assert pa.Table.from_batches(batches).to_pydict() == {"metadata.score": [i / 7 for i in range(N)]}


def test_a_null_struct_has_null_leaves_and_a_file_without_the_leaf_too(tmp_path):
    some = [{"id": "a", "metadata": {"n": 1}}, {"id": "b", "metadata": None}]
    pq.write_table(pa.Table.from_pylist(some), tmp_path / "a.parquet")
    batches = open_shard(str(tmp_path / "a.parquet")).batches(
        Wanted(["metadata.n", "id", "metadata.other"], most_rows=9)
    )
    assert pa.Table.from_batches(batches).to_pydict() == {"metadata.n": [1, None], "id": ["a", "b"]}


def test_json_lines_whose_files_have_other_keys_open_together(tmp_path):
    """The second file lacks a column and a leaf; reading it was refused as damaged."""
    first, second = rows()[:12], rows()[12:]
    for row in first:
        row |= {"source": "web"}
    for row in second:
        del row["metadata"]["url"]
    write(tmp_path / "a.jsonl", first)
    write(tmp_path / "b.jsonl", second)
    metadata = open_corpus(CorpusConfig((str(tmp_path),))).metadata
    assert metadata["source"].to_pylist() == ["web"] * 12 + [None] * 12
    assert metadata["metadata.url"].to_pylist()[11:13] == ["https://example.org/11", None]


def test_a_column_with_a_dot_in_its_name_is_itself():
    schema = pa.schema({"a.b": pa.string(), "a": pa.struct({"b": pa.int64(), "c": pa.int64()})})
    assert leaf_schema(schema) == pa.schema({"a.b": pa.string(), "a.c": pa.int64()})
    assert schema_of(schema, ["a.c"]) == pa.schema({"a": pa.struct({"c": pa.int64()})})
    plain = pa.schema({"x": pa.int64()}, metadata={"k": "v"})
    assert leaf_schema(plain) is plain


def test_leaves_are_no_reason_to_ask_which_column_is_meant(tmp_path):
    made = [row | {"id": i, "stars": i / 2} for i, row in enumerate(rows())]
    for row in made:
        row["metadata"] = {"a": 1.5, "b": 2.5}
    columns = open_corpus(CorpusConfig((write(tmp_path / "in.parquet", made),))).provenance.columns
    assert columns["quality"] == ["stars"], "the only column of numbers, as before there were leaves"


MIXED = {
    "a number and a text": ({"v": 1}, {"v": "x"}, "metadata.v"),
    "an object and a number": ({"v": {"a": 1}}, {"v": 3}, "metadata.v"),
    "in a list": ({"v": [{"a": 1}]}, {"v": [{"a": "x"}]}, "metadata.v"),
    "a key with a slash": ({"v/w": 1}, {"v/w": "x"}, "metadata.v/w"),
    "no object": ({"v": 1}, None, "metadata"),
}
FAR = "long " * 500_000
"""A text longer than a part of the file, so that its line is parsed apart from those before."""


@pytest.mark.parametrize("case", MIXED)
@pytest.mark.parametrize("between", ["", FAR])
def test_fields_of_several_kinds_are_left_out_with_a_note(tmp_path, case, between):
    first, second, field = MIXED[case]
    made = [row | {"id": i, "score": i / 7, "metadata": {"n": i, **first}} for i, row in enumerate(rows())]
    made[-1]["metadata"] = "none" if second is None else {"n": N - 1, **second}
    made[-1]["text"] += between
    corpus = open_corpus(CorpusConfig((write(tmp_path / "in.jsonl", made),)))
    assert corpus.quality.tolist() == pytest.approx([i / 7 for i in range(N)])
    if case == "a key with a slash" and not between:
        field = "metadata"  # within a part its path cannot be told from that of two keys
    notes = [note for note in corpus.provenance.notes if "was left out" in note]
    assert len(notes) == 1 and notes[0].startswith(f"Field {field!r} was left out: it holds "), notes
    kept = [] if field == "metadata" else list(range(N))
    assert (
        corpus.metadata["metadata.n"].to_pylist() == kept if kept else "metadata.n" not in corpus.metadata.column_names
    )


@pytest.mark.parametrize("block", [700, 1 << 20])
def test_a_field_of_several_kinds_is_left_out_alone_wherever_blocks_end(tmp_path, monkeypatch, block):
    """Where two parts of a file had such a field, the whole column was left out."""
    made = [{"metadata": {"id": i, "v": "x" if i % 2 else 1, "score": i / 7}} for i in range(100)]
    monkeypatch.setattr("datamask.corpus.readers.text.READ_BYTES", block)
    facts = open_shard(write(tmp_path / "in.jsonl", made)).facts
    assert facts.left_out == {"metadata.v": "holds texts in some lines and numbers in others"}
    assert facts.schema == pa.schema({"metadata": pa.struct({"id": pa.int64(), "score": pa.float64()})})


def test_a_column_with_too_many_fields_is_left_out(tmp_path):
    made = [row | {"id": i, "score": 1.0 * i, "words": {f"w{100 * i + k}": 1 for k in range(100)}}
            for i, row in enumerate(rows())]  # fmt: skip
    corpus = open_corpus(CorpusConfig((write(tmp_path / "in.jsonl", made),)))
    assert "Field 'words' was left out: it has more than 1,000 different fields." in corpus.provenance.notes
    assert len(corpus) == N and "text" in corpus.metadata.column_names
