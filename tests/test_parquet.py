"""The one road of user's parquet files: what is damaged or out of all proportion is refused, wherever it enters."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datamask
from datamask import parquet, parquet_pages
from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.preparation import prepare_shards
from datamask.errors import InputError, NoRoomError, StoreError
from datamask.evaluation.id_lists import read_ids
from datamask.runs import exports
from datamask.runs.store import Run
from datamask.work.ledger import Ledger
from tests.making.control_groups import memory_of, own_ledger
from tests.making.run_folders import finished

N = 400


def table(first: str = "a", n: int = N, **columns) -> pa.Table:
    """A shard in the paper's format with a dictionary column of 33 words."""
    rng = np.random.default_rng(0)
    words = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(n) % 33, pa.int32()), pa.array([f"{first}w{k:05d}" for k in range(33)])
    )
    features = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=4 * n).astype(np.float32)), 4)
    return pa.table(
        {
            "chunk_id": [f"{first}{k}" for k in range(n)],
            "quality_score": rng.normal(size=n),
            "feature_arr": features,
            "domain": words,
        }
        | columns
    )


def write(path: Path, data: pa.Table, **options) -> Path:
    pq.write_table(data, path, compression="none", **options)
    return path


def foreign_indices(path: Path, name: str) -> None:
    """Let indices of a dictionary column of 33 words point at word 63: six bits each, the tail of their page."""
    footer = pq.read_metadata(path)
    column = next(
        footer.row_group(0).column(k) for k in range(footer.num_columns) if footer.schema.column(k).path == name
    )
    end = column.dictionary_page_offset + column.total_compressed_size
    data = bytearray(path.read_bytes())
    data[end - 200 : end - 60] = b"\xff" * 140
    path.write_bytes(data)


def not_utf8(n: int = N) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), n, pa.array([b"\xff\xfe%d" % k for k in range(n)], pa.binary()).buffers())


# -- what is refused --------------------------------------------------------------------------------------------------


def test_a_runs_own_table_with_indices_outside_its_dictionary_is_damaged(tmp_path):
    path = write(tmp_path / "rows.parquet", table(), use_dictionary=["domain"])
    assert Run(tmp_path).rows(["chunk_id"]).column_names == ["chunk_id"]
    foreign_indices(path, "domain")
    with pytest.raises(StoreError, match="damaged"):
        Run(tmp_path).rows()


def test_indices_outside_a_dictionary_are_refused_in_one_or_two_shards(tmp_path):
    write(tmp_path / "a.parquet", table("a"), use_dictionary=["domain"])
    damaged = write(tmp_path / "b.parquet", table("b"), use_dictionary=["domain"])
    foreign_indices(damaged, "domain")
    for inputs in (damaged, tmp_path):
        with pytest.raises(InputError, match=r"b\.parquet is damaged .*row group 0.*out of bounds"):
            open_corpus(CorpusConfig((str(inputs),)))


@pytest.mark.parametrize("name", ["text", "chunk_id"])
def test_text_that_is_no_utf8_is_refused(tmp_path, name):
    path = write(tmp_path / "a.parquet", table(**{name: not_utf8()}))
    with pytest.raises(InputError, match=r"a\.parquet is damaged .*UTF8"):
        open_corpus(CorpusConfig((str(path),)))


def test_page_checksums_are_compared(tmp_path):
    plain = table(quality_score=np.full(N, 0.1234567))
    path = write(tmp_path / "a.parquet", plain, use_dictionary=False, write_page_checksum=True)
    data = path.read_bytes()
    number = np.float64(0.1234567).tobytes()
    at = data.index(number, data.index(number) + 8 * N // 2)  # among the values, not the statistics
    path.write_bytes(data[:at] + np.float64(0.7654321).tobytes() + data[at + 8 :])
    with pytest.raises(InputError, match=r"a\.parquet is damaged .*(CRC|checksum)"):
        open_corpus(CorpusConfig((str(path),)))


def test_side_shards_are_validated(tmp_path):
    main = write(tmp_path / "a.parquet", table().drop(["feature_arr"]))
    side = write(tmp_path / "side.parquet", pa.table({"chunk_id": not_utf8(), "feature_arr": table()["feature_arr"]}))
    with pytest.raises(InputError, match=r"side\.parquet is damaged .*UTF8"):
        open_corpus(CorpusConfig((str(main),), features=(str(side),)))


def test_texts_to_prepare_are_validated(tmp_path):
    path = write(tmp_path / "a.parquet", pa.table({"text": not_utf8()}))
    with pytest.raises(InputError, match=r"a\.parquet is damaged.*UTF8"):
        prepare_shards([path], tmp_path / "out.parquet", text_column="text", dim=3)


def test_shards_to_export_are_validated(tmp_path):
    shard = pa.table(
        {
            "id": pa.array(range(10), pa.uint32()),
            "feature": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(30.0), pa.float16()), 3),
            "text": [f"text {k}" for k in range(10)],
        }
    )
    run = finished(tmp_path, {"a.parquet": shard}, {"a.parquet": list(range(10))}, {"a.parquet": [1, 2]})
    path = next(tmp_path.rglob("a.parquet"))
    pq.write_table(shard.set_column(2, "text", not_utf8(10)), path)
    with pytest.raises(InputError, match=r"a\.parquet .*UTF8"):
        exports.filtered_rows(run, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_lists_of_ids_are_validated(tmp_path):
    path = write(tmp_path / "ids.parquet", pa.table({"id": not_utf8()}))
    with pytest.raises(InputError, match=r"ids\.parquet: cannot be read .*UTF8"):
        read_ids(path, "id")


@pytest.mark.parametrize(
    "error",
    [
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        OverflowError("big"),
        KeyError("name"),
    ],
)
def test_whatever_the_library_raises_becomes_one_sentence(tmp_path, monkeypatch, error):
    path = write(tmp_path / "a.parquet", table())
    fails(monkeypatch, "read_batches", error)
    with pytest.raises(InputError, match=r"a\.parquet is damaged"):
        open_corpus(CorpusConfig((str(path),)))
    fails(monkeypatch, "open_parquet", error)
    with pytest.raises(InputError, match=r"a\.parquet is not a parquet file"):
        open_corpus(CorpusConfig((str(path),)))


def fails(monkeypatch, name: str, error: Exception) -> None:
    """Let a function of `datamask.parquet` raise where shards are read."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(f"datamask.corpus.readers.parquet.{name}", fail)


@pytest.mark.parametrize("error", [pa.ArrowMemoryError("malloc of size 8 failed"), MemoryError()])
@pytest.mark.parametrize("name", ["read_batches", "open_parquet"])
def test_where_memory_is_short_nothing_is_said_of_the_file(tmp_path, monkeypatch, name, error):
    path = write(tmp_path / "a.parquet", table())
    fails(monkeypatch, name, error)
    with pytest.raises(NoRoomError, match=r"a\.parquet does not fit in memory \(.+\); read fewer rows") as refusal:
        open_corpus(CorpusConfig((str(path),)))
    assert "damaged" not in str(refusal.value)


# -- what is bounded --------------------------------------------------------------------------------------------------


def bomb(path: Path, n: int = 300, size: int = 1 << 18) -> Path:
    """Short texts first, then a long one again and again: decoded, thousands of times the file's size."""
    long = pa.DictionaryArray.from_arrays(pa.array([0] * n + [1] * n, pa.int32()), pa.array(["a", "z" * size]))
    pq.write_table(
        table(n=2 * n, text=long),
        path,
        compression="zstd",
        store_schema=False,
        use_dictionary=["text"],
        dictionary_pagesize_limit=1 << 28,
    )
    return path


def test_no_batch_decodes_to_more_than_its_span(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "SPAN_BYTES", 4 << 20)
    path = bomb(tmp_path / "a.parquet")
    with parquet.open_parquet(path) as file:
        sizes = [batch.nbytes for batch in parquet.read_batches(path, file, columns=["text"])]
    assert sum(sizes) > 300 << 18
    assert max(sizes) <= 5 << 20


def test_front_coded_texts_are_read_a_few_at_a_time(tmp_path):
    texts = pa.table({"text": ["z" * 10_000 + str(k) for k in range(1_000)]})
    path = write(tmp_path / "a.parquet", texts, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
    with parquet.open_parquet(path) as file:
        batches = list(parquet.read_batches(path, file))
    assert max(batch.num_rows for batch in batches) <= parquet.CAREFUL_ROWS
    assert pa.Table.from_batches(batches).equals(texts)


def test_a_row_group_without_rows_has_no_longest_text(tmp_path):
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, pa.schema([("text", pa.string())])) as writer:
        writer.write_table(pa.table({"text": pa.array([], pa.string())}))
    footer = pq.read_metadata(path)
    assert footer.num_row_groups == 1
    assert parquet._longest_text(path, footer, 0, ["text"]) == 0


def with_footer(path: Path, nbytes: int) -> Path:
    """A file that is a footer of zeros, which takes no room on the disk."""
    with path.open("wb") as file:
        file.write(b"PAR1")
        file.truncate(4 + nbytes)
        file.seek(0, 2)
        file.write(nbytes.to_bytes(4, "little") + b"PAR1")
    return path


def test_a_footer_beyond_all_measure_is_not_read(tmp_path, monkeypatch):
    path = with_footer(tmp_path / "a.parquet", 1_400_000_000)
    monkeypatch.setattr(parquet.pq, "ParquetFile", None)
    with pytest.raises(InputError, match=r"a\.parquet has a footer of 1\.3 GiB, and footers may have 0\.5 GiB; write"):
        open_corpus(CorpusConfig((str(path),)))


def test_a_large_footer_has_a_reservation_as_long_as_it_is_used(tmp_path, monkeypatch):
    ledger = own_ledger(monkeypatch, Ledger(lambda: 64 << 20))
    path = with_footer(tmp_path / "a.parquet", 16 << 20)
    with pytest.raises(NoRoomError, match=r"Reading the footer of a\.parquet needs 0\.156 GiB of memory, but this"):
        open_corpus(CorpusConfig((str(path),)))
    monkeypatch.setattr(parquet, "FOOTER_FROM", 1)
    path = write(tmp_path / "b.parquet", table())
    with parquet.open_parquet(path) as file:
        footer = file.metadata
    del file
    assert 0 < ledger.total() - ledger.free() < 1 << 20, "a footer of some kilobytes"
    del footer
    assert ledger.free() == ledger.total()


def test_pages_are_known_by_their_headers(tmp_path):
    whole = table(text=["z" * 1_000 + str(k) for k in range(N - 1)] + ["y" * 5_000])
    for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        path = tmp_path / f"{codec}.parquet"
        pq.write_table(whole, path, compression=codec)
        footer, size = pq.read_metadata(path), path.stat().st_size
        [chunk] = parquet_pages.column_chunks(footer, size, 0, ["text"], [whole.column_names.index("text")])
        content = path.read_bytes()

        def read(offset: int, count: int, content: bytes = content) -> bytes:
            return content[offset : offset + count]

        pages = parquet_pages.look_at_pages(read, chunk)
        assert pages.dictionary is not None and pages.dictionary.plain == sum(4 + len(x.as_py()) for x in whole["text"])
        assert pages.plain == pages.dictionary.plain and pages.data < 1_000
        assert parquet_pages.longest_word(read, pages.dictionary) == 5_000


def test_texts_that_fill_the_memory_are_refused_before_they_do(tmp_path, monkeypatch):
    path = bomb(tmp_path / "a.parquet")
    assert path.stat().st_size < 100_000
    memory_of(monkeypatch, tmp_path, 256 << 20)
    with pytest.raises(InputError, match=r"columns other than the features take [0-9.]+ MiB .*; take a sample, such"):
        open_corpus(CorpusConfig((str(path),)))
    assert len(open_corpus(CorpusConfig((str(path),), rows=150))) == 150


# -- what is read -----------------------------------------------------------------------------------------------------


def test_batches_hold_what_the_file_holds(tmp_path):
    rng = np.random.default_rng(0)
    n = 5_000
    whole = table(
        n=n,
        text=[None if k % 7 == 0 else "x" * (k % 300) for k in range(n)],
        lists=[[str(j) for j in range(k % 4)] for k in range(n)],
        nested=[{"a": str(k % 5), "b": k} for k in range(n)],
        number=rng.integers(0, 9, n),
    )
    path = write(tmp_path / "a.parquet", whole, row_group_size=1_700)
    for columns in (None, ["text", "nested"], ["number"]):
        with parquet.open_parquet(path) as file:
            batches = list(parquet.read_batches(path, file, columns=columns))
        read = pa.Table.from_batches(batches)
        assert read.to_pylist() == (whole if columns is None else whole.select(columns)).to_pylist()
        assert batches[0].num_rows == 1
        assert len(batches) < 60
    assert parquet.read_table(path, ["number"]).equals(whole.select(["number"]))


def test_a_large_dictionary_is_not_copied_into_every_batch(tmp_path):
    words = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(40_000) % 20_000, pa.int32()), pa.array([f"{'w' * 100}{k}" for k in range(20_000)])
    )
    path = write(tmp_path / "a.parquet", pa.table({"word": words}))
    with parquet.open_parquet(path) as file:
        batches = list(parquet.read_batches(path, file, most_rows=1_000))
    assert sum(batch.nbytes for batch in batches) < 10 << 20
    assert pa.Table.from_batches(batches)["word"].to_pylist() == words.to_pylist()


OPENING = {
    f"{module}.{name}"
    for module in ("pq", "pyarrow.parquet")
    for name in ("ParquetFile", "read_table", "ParquetDataset", "read_pandas")
}
OWN = {"runs/store.py"}
"""Its tables are of the program's own making: read whole, and validated too."""


def test_nobody_else_opens_a_users_file():
    """`read_schema` and `read_metadata` are looks at a footer, which hold no rows; `parquet_pages` reads none."""
    root = Path(datamask.__file__).parent
    openers = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in OPENING:
                openers.add(path.relative_to(root).as_posix())
    assert openers == {"parquet.py", "parquet_pages.py"} | OWN
