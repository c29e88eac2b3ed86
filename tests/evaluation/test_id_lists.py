"""Ids from files, against sets in plain Python."""

from __future__ import annotations

import gzip
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import catalogue
from datamask.api import select
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.errors import InputError, NoRoomError
from datamask.evaluation.id_lists import chance_overlap, overlap, overlaps, read_config, read_rows
from tests.making.control_groups import memory_of


def corpus_of(folder, ids: pa.Array):
    rng = np.random.default_rng(0)
    features = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=3 * len(ids)).astype(np.float32)), 3)
    pq.write_table(
        pa.table({"chunk_id": ids, "quality_score": rng.random(len(ids)), "feature_arr": features}),
        folder / "corpus.parquet",
    )
    return open_corpus(CorpusConfig((str(folder / "corpus.parquet"),)))


@pytest.fixture
def corpus(tmp_path):
    return corpus_of(tmp_path, pa.array(["0007", "b", "=c", "d", "7"]))


def test_ids_of_parquet_and_csv_become_rows(tmp_path, corpus):
    pq.write_table(
        pa.table({"rank": [1, 2, 3], "chunk_id": pa.array(["d", "0007", "nobody"], pa.large_string())}),
        tmp_path / "a.parquet",
    )
    (tmp_path / "a.csv").write_text("rank,chunk_id\n1,d\n2,0007\n3,nobody\n")
    (tmp_path / "one.csv").write_text("any name\nd\n0007\nnobody\n")
    (tmp_path / "bare.txt").write_text("d\r\n\n 0007 \nnobody\n")
    (tmp_path / "a.jsonl").write_text('{"rank": 1, "chunk_id": "d"}\n\n{"chunk_id": "0007"}\n{"chunk_id": "nobody"}\n')
    (tmp_path / "one.jsonl.gz").write_bytes(gzip.compress(b'{"x": "d"}\r\n{"x": "0007"}\n{"x": "nobody"}'))
    (tmp_path / "bare.txt.gz").write_bytes(gzip.compress(b"d\n0007\nnobody"))
    for name in ("a.parquet", "a.csv", "one.csv", "bare.txt", "a.jsonl", "one.jsonl.gz", "bare.txt.gz"):
        found = read_rows(tmp_path / name, corpus)
        assert found.rows.tolist() == [0, 3] and found.rows.dtype == np.int64
        assert (found.unknown, found.example) == (1, "nobody")


def test_numbers_in_any_width_are_the_same_ids(tmp_path):
    corpus = corpus_of(tmp_path, pa.array([10, 20, 30], pa.uint16()))
    pq.write_table(pa.table({"chunk_id": pa.array([30, 10], pa.int64())}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("chunk_id\n30\n10\n")
    for name in ("a.parquet", "a.csv"):
        assert read_rows(tmp_path / name, corpus).rows.tolist() == [0, 2]
    (tmp_path / "b.csv").write_text("chunk_id\nthirty\n")
    with pytest.raises(InputError, match=r"b\.csv: its ids are no uint16"):
        read_rows(tmp_path / "b.csv", corpus)


@pytest.mark.parametrize(
    "ids, expected",
    [
        (["b", "b", "d"], "1 of its 3 ids are repeated"),
        (["b", None], "1 of its 2 ids are null"),
        (["x", "y"], "none of its 2 ids is in the corpus of 5 rows"),
        (["0007", "b", "=c", "d", "7"], "holds all 5 rows"),
    ],
)
def test_lists_that_are_no_selection(tmp_path, corpus, ids, expected):
    pq.write_table(pa.table({"chunk_id": ids}), tmp_path / "bad.parquet")
    with pytest.raises(InputError, match=expected):
        read_rows(tmp_path / "bad.parquet", corpus)


def test_files_that_are_no_lists(tmp_path, corpus):
    pq.write_table(pa.table({"name": ["b"], "rank": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="has no column 'chunk_id', the corpus's id column; it has name, rank"):
        read_rows(tmp_path / "a.parquet", corpus)
    (tmp_path / "text.json").write_text("b\n")
    with pytest.raises(InputError, match=r"text\.json: cannot be read as .*or \.txt: Expecting value"):
        read_rows(tmp_path / "text.json", corpus)
    (tmp_path / "latin.txt").write_bytes(b"b\n\xe9\n")
    with pytest.raises(InputError, match=r"latin\.txt: cannot be read as parquet, .*or \.txt"):
        read_rows(tmp_path / "latin.txt", corpus)
    with pytest.raises(InputError, match=r"gone\.parquet: there is no such file"):
        read_rows(tmp_path / "gone.parquet", corpus)


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".parquet", ""])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.mkdir()])
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path, corpus, make, suffix):
    path = tmp_path / f"ids{suffix}"
    make(path)
    with pytest.raises(InputError, match="must be an ordinary file, not a folder, pipe, socket or device"):
        read_rows(path, corpus)
    assert read_config(path) is None


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".parquet"])
def test_a_list_that_does_not_fit_in_memory_is_refused_before_it_is_read(tmp_path, corpus, monkeypatch, suffix):
    path = tmp_path / f"ids{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.table({"chunk_id": ["b" * 1000] * 1000}), path)
    else:
        path.write_bytes(b"chunk_id\n" + b"b\n" * 2000)
    memory_of(monkeypatch, tmp_path, 10_000)
    with pytest.raises(NoRoomError, match=rf"Reading ids{suffix} needs .* of memory, but .* give a shorter list"):
        read_rows(path, corpus)


def test_overlap_is_intersection_over_union(rng):
    a, b = (np.sort(rng.choice(1000, size, replace=False)) for size in (300, 200))
    both = set(a) & set(b)
    assert overlap(a, b) == (len(both), pytest.approx(len(both) / len(set(a) | set(b))))
    assert overlap(a, a) == (300, 1.0)


def test_chance_is_what_random_subsets_give(rng):
    assert chance_overlap(300, 300, 1000) == pytest.approx(0.3 / 1.7)
    tries = [overlap(rng.choice(2000, 500, replace=False), rng.choice(2000, 200, replace=False))[1] for _ in range(400)]
    assert np.mean(tries) == pytest.approx(chance_overlap(500, 200, 2000), rel=0.03)


def test_every_pair_once():
    rows = {name: np.arange(k, k + 4) for k, name in enumerate("abc")}
    assert [(pair["a"], pair["b"], pair["shared"]) for pair in overlaps(rows, 10)] == [
        ("a", "b", 3),
        ("a", "c", 2),
        ("b", "c", 3),
    ]


def test_settings_are_read_from_the_file_where_they_are_known(tmp_path):
    config = RunConfig(CorpusConfig(("in.parquet",)), SelectionConfig.from_options(objective="disf", lamb=0.2))
    table = pa.table({"chunk_id": [1]})

    def written(text: bytes):
        pq.write_table(table.replace_schema_metadata({b"datamask": text}), tmp_path / "a.parquet")
        return read_config(tmp_path / "a.parquet")

    stored = {"run_id": "r", "config": config.to_dict()}
    assert written(json.dumps(stored).encode()) == config.selection
    stored["config"]["selection"]["estimator"] = catalogue.IMPORTED.name
    assert written(json.dumps(stored).encode()) is None
    assert written(b"{}") is None and written(b"no json") is None
    pq.write_table(table, tmp_path / "b.parquet")
    (tmp_path / "c.csv").write_text("chunk_id\n1\n")
    assert read_config(tmp_path / "b.parquet") is None and read_config(tmp_path / "c.csv") is None


@pytest.mark.parametrize("name", ["score", "quality", "rank", "logit", "source_row", "marginal_quality", "weight"])
def test_ids_stay_ids_whatever_their_column_is_called(tmp_path, name):
    named = corpus_of(tmp_path, pa.array(["p", "q", "r", "s", "t"]))
    path = tmp_path / "named.parquet"
    table = pq.read_table(tmp_path / "corpus.parquet")
    pq.write_table(
        table.rename_columns([name if column == "chunk_id" else column for column in table.column_names]), path
    )
    named = open_corpus(CorpusConfig((str(path),), id_column=name))
    selection = select(named, select_ratio=0.4, objective="pairwise", device="cpu")
    assert selection.rows_table()[name].to_pylist() == ["p", "q", "r", "s", "t"]
    assert selection.table()[name].to_pylist() == selection.ids.to_pylist()
    assert len(set(selection.table().column_names)) == len(selection.table().column_names)
