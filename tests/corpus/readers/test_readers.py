"""The table of readers: one corpus in every format is the same corpus, and a reader of somebody's own is a line."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import CorpusConfig, open_corpus
from datamask.cli import main
from datamask.corpus import inspect_inputs
from datamask.corpus.preparation import prepare_shards
from datamask.corpus.readers import READERS, by_ending, endings, formats, reader_of
from datamask.corpus.readers.contract import FileFacts, Reader
from datamask.corpus.readers.shard import open_shard
from datamask.corpus.shards import list_files, open_source
from datamask.errors import InputError
from tests.making.packed_files import packed

N, DIM = 60, 4


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, DIM)).round(4)
    return [
        {
            "id": f"doc-{i:03d}",
            "score": round(rng.uniform(), 3),
            "text": f'line {i}, "quoted"\nand ü',
            "source": "web" if i % 3 else "code",
            "n_tokens": i + 1,
            "embedding": features[i].tolist(),
        }
        for i in range(n)
    ]


def write(path, made):
    """Rows in the format of the path's ending."""
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(made), path, row_group_size=7)
        return path
    if name.endswith((".arrow", ".feather")):
        table, stream = pa.Table.from_pylist(made), name.endswith(".arrow")
        with (
            pa.OSFile(str(path), "wb") as sink,
            (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, table.schema) as out,
        ):
            out.write_table(table, 7)
        return path
    if name.endswith((".jsonl", ".ndjson", ".json")):
        content = "".join(json.dumps(row) + "\n" for row in made)
    else:
        sink = io.StringIO()
        sheet = csv.DictWriter(sink, list(made[0]))
        sheet.writeheader()
        sheet.writerows(
            {key: json.dumps(value) if isinstance(value, list) else value for key, value in row.items()} for row in made
        )
        content = sink.getvalue()
    path.write_bytes(packed(path, content.encode()))
    return path


@pytest.mark.parametrize("ending", [*endings(), ".json"])
def test_one_corpus_in_every_format_is_the_same_corpus(tmp_path, ending):
    parquet = open_corpus(CorpusConfig((str(write(tmp_path / "a.parquet", rows())),)))
    path = write(tmp_path / f"b{ending}", rows())
    corpus = open_corpus(CorpusConfig((str(path),)))
    assert corpus.fingerprint == parquet.fingerprint and corpus.ids.equals(parquet.ids)
    assert corpus.metadata["text"].to_pylist() == parquet.metadata["text"].to_pylist()
    assert corpus.provenance.columns == parquet.provenance.columns
    assert (corpus.source_row == np.arange(N)).all() and corpus.provenance.files == (str(path),)


@pytest.mark.parametrize("ending", endings())
def test_a_sample_is_the_same_sample_and_says_its_rows(tmp_path, ending):
    made = rows(300)
    parquet = open_corpus(CorpusConfig((str(write(tmp_path / "a.parquet", made)),), rows=40))
    for shard, part in enumerate((made[:100], made[100:])):
        write(tmp_path / f"b-{shard}{ending}", part)
    corpus = open_corpus(CorpusConfig((str(tmp_path / "b-*"),), rows=40))
    assert corpus.fingerprint == parquet.fingerprint
    for row, (file, place) in enumerate(zip(corpus.source_file, corpus.source_row, strict=True)):
        assert made[100 * file + place]["id"] == corpus.ids[row].as_py()


@pytest.mark.parametrize("ending", endings())
def test_a_look_beforehand_knows_rows_columns_and_dimensions(tmp_path, ending):
    seen = inspect_inputs(CorpusConfig((str(write(tmp_path / f"a{ending}", rows())),)))
    assert (seen.rows, seen.dim, seen.problems) == (N, DIM, ()) and seen.row_limit >= N
    assert seen.columns == {
        "id": "id",
        "quality": "score",
        "feature": "embedding",
        "length": "n_tokens",
        "text": "text",
    }


@pytest.mark.parametrize("ending", [".jsonl", ".csv.gz"])
def test_a_first_look_reads_no_large_file_to_its_end_and_opening_does(tmp_path, monkeypatch, ending):
    made = rows(40_000)
    path = write(tmp_path / f"a{ending}", made)
    monkeypatch.setattr("datamask.corpus.shards.LOOK_BYTES", 1 << 20)
    monkeypatch.setattr("datamask.corpus.readers.text.LONGEST", 1 << 20)  # what CSV reads at a time
    seen = inspect_inputs(CorpusConfig((str(path),)))
    assert not seen.complete and 1000 < seen.rows < 40_000 and seen.dim == DIM and not seen.problems
    assert len(open_corpus(CorpusConfig((str(path),)))) == 40_000


@pytest.mark.parametrize("ending", endings())
def test_features_may_lie_beside_in_another_format(tmp_path, ending):
    made = rows()
    main_rows = [{key: value for key, value in row.items() if key != "embedding"} for row in made]
    whole = open_corpus(CorpusConfig((str(write(tmp_path / "a.parquet", made)),)))
    plain = write(tmp_path / "b.csv", main_rows)
    side = write(tmp_path / f"side{ending}", [{"id": row["id"], "embedding": row["embedding"]} for row in made[::-1]])
    corpus = open_corpus(CorpusConfig((str(plain),), features=(str(side),)))
    assert corpus.fingerprint == whole.fingerprint
    with pytest.raises(InputError, match=r"b\.csv has no feature column .*--features"):
        open_corpus(CorpusConfig((str(plain),)))


@pytest.mark.parametrize("ending", endings())
def test_texts_are_prepared_from_every_format(tmp_path, ending):
    made = [{"id": f"d{i}", "text": f"the cat number {i} sat on mat {i % 7} and ran away"} for i in range(40)]
    path = write(tmp_path / f"in{ending}", made)
    facts = prepare_shards([path], tmp_path / "out", text_column="text", dim=2)
    assert facts["rows"] == 40
    out = pq.read_table(facts["files"][0])
    assert out["text"].to_pylist() == [row["text"] for row in made] and out["id"][3].as_py() == "d3"


@pytest.mark.parametrize("ending", endings())
def test_selected_rows_are_exported_as_the_file_has_them(tmp_path, ending):
    path = write(tmp_path / f"in{ending}", rows())
    out = tmp_path / "out.parquet"
    assert (
        main(
            [
                "select",
                str(path),
                "--output",
                str(out),
                "--objective",
                "pairwise",
                "--estimator",
                "top-quality",
                "--runs-dir",
                str(tmp_path / "runs"),
            ]
        )
        == 0
    )
    run = next(path.name for path in (tmp_path / "runs").iterdir() if path.name[0].isdigit())
    assert (
        main(
            [
                "runs",
                "export",
                run,
                "--runs-dir",
                str(tmp_path / "runs"),
                "--rows",
                str(tmp_path / "rows.parquet"),
                "--mask",
                str(tmp_path / "masks"),
            ]
        )
        == 0
    )
    best = {row["id"]: row for row in sorted(rows(), key=lambda row: -row["score"])[:18]}
    exported = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    assert {row["id"]: row for row in exported} == best
    (mask,) = (tmp_path / "masks").iterdir()
    assert mask.name == ("in.mask.parquet" if ending == ".parquet" else f"in{ending}.mask.parquet")
    assert pq.read_table(mask)["selected"].to_pylist() == [int(row["id"] in best) for row in rows()]


def test_a_folder_is_read_in_one_format_and_a_name_tells_it_elsewhere(tmp_path):
    write(tmp_path / "b.csv", rows())
    assert list_files([str(tmp_path)]) == (str(tmp_path / "b.csv"),)
    write(tmp_path / "c.jsonl", rows())
    (tmp_path / "manifest.json").write_text("{}")
    assert list_files([str(tmp_path)]) == (str(tmp_path / "c.jsonl"),)
    write(tmp_path / "a.parquet", rows())
    source = open_source("input", [str(tmp_path)])
    assert [shard.path for shard in source.shards] == [str(tmp_path / "a.parquet")]
    assert source.notes == (
        f"--input {tmp_path} also has 2 files of other formats, such as {tmp_path / 'b.csv'}; not read.",
    )
    write(tmp_path / "shard-of-no-kind", rows())
    (tmp_path / "really-parquet.csv").write_bytes((tmp_path / "a.parquet").read_bytes())
    assert [reader_of(tmp_path / name).name for name in ("really-parquet.csv", "b.csv", "c.jsonl")] == [
        "parquet",
        "CSV",
        "JSON lines",
    ]
    with pytest.raises(InputError, match=r"shard-of-no-kind is neither a parquet file nor .*\.jsonl\.zst"):
        reader_of(tmp_path / "shard-of-no-kind")
    assert by_ending("X.JSONL.GZ").name == "JSON lines" and by_ending("x.txt") is None
    assert formats() == "parquet, Arrow, JSON lines, CSV or NumPy arrays"


# -- one of somebody's own ---------------------------------------------------------------------------------------------


def _look(path, poll, most_bytes):
    table = _table(path)
    return FileFacts(table.schema, (table.num_rows,), table.nbytes / table.num_rows)


def _batches(path, facts, wanted):
    table = _table(path)
    yield from (table if wanted.columns is None else table.select(wanted.columns)).to_batches(wanted.most_rows)


def _table(path):
    with open(path) as file:  # noqa: PTH123
        fields = [line.split() for line in file]
    return pa.table(
        {
            "id": [field[0] for field in fields],
            "quality": [float(field[1]) for field in fields],
            "features": [[float(value) for value in field[2:]] for field in fields],
        }
    )


BLANKS = Reader("words", (".words",), _look, _batches)


@pytest.fixture
def with_a_line_more():
    READERS.append(BLANKS)
    yield
    READERS.remove(BLANKS)


def test_one_of_somebodys_own_is_a_file_and_a_line(tmp_path, with_a_line_more):
    made = rows(30)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.words").write_text(
        "".join(f"{row['id']} {row['score']} {' '.join(map(str, row['embedding']))}\n" for row in made)
    )
    out = tmp_path / "out.parquet"
    assert (
        main(
            [
                "select",
                str(tmp_path / "in"),
                "--output",
                str(out),
                "--objective",
                "pairwise",
                "--estimator",
                "top-quality",
                "--runs-dir",
                str(tmp_path / "runs"),
            ]
        )
        == 0
    )
    best = {row["id"] for row in sorted(made, key=lambda row: -row["score"])[:9]}
    selected = pq.read_table(out)
    assert set(selected["id"].to_pylist()) == best
    assert [made[row]["id"] for row in selected["source_row"].to_pylist()] == selected["id"].to_pylist()
    assert open_shard(str(tmp_path / "in" / "a.words")).reader is BLANKS and "words" in formats()
