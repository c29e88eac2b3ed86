"""Tables as files: what each format holds, read back by Python's own readers."""

from __future__ import annotations

import csv
import gzip
import io
import json
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.errors import InputError, OptionError
from datamask.tables import OF_ROWS, defused, format_of, is_file, table_bytes, write_table

UNSEEN = "\t\n\r\x00\x0b\x1f \x7f\x85\xa0\xad\u1680\u2003\u200b\u200e\u2028\u202f\u2060\u3000\ufeff"
LETTERS = st.one_of(st.sampled_from([*UNSEEN, *"=+-@＝＋－＠"]), st.characters(exclude_categories=["C", "Z"]))


def cells(table: pa.Table, ids=()) -> list[list[str]]:
    return list(csv.reader(io.StringIO(table_bytes(table, ".csv", ids).decode(), newline="")))


@pytest.mark.parametrize("before", UNSEEN)
@pytest.mark.parametrize("sign", "=+-@＝＋－＠")
def test_a_sign_behind_what_nobody_sees_is_a_formula_too(before, sign):
    text = f"{before}{sign}1+1"
    assert cells(pa.table({"text": [text]})) == [["text"], ["'" + text]]


@given(st.lists(st.text(LETTERS, max_size=8), min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
def test_csv_reads_back_no_text_is_a_formula_and_ids_are_as_they_are(texts):
    rows = cells(pa.table({"=id": texts, "text": texts, "=n": pa.array(range(len(texts)))}), ["=id"])
    assert rows[0] == ["=id", "text", "'=n"]
    for text, (sample_id, cell, number) in zip(texts, rows[1:], strict=True):
        first = next((letter for letter in text if unicodedata.category(letter)[0] not in "ZC"), "")
        dangerous = text.startswith(("\t", "\r", "\n")) or first in tuple("=+-@＝＋－＠")
        assert cell == defused(text) == ("'" + text if dangerous else text)
        assert sample_id == text and number.isdigit()


def test_numbers_stay_numbers_nulls_stay_empty_and_other_types_become_text():
    table = pa.table(
        {
            "logit": pa.array([-1.5, None]),
            "half": pa.array([0.5, None], pa.float16()),
            "source": pa.array(["-x", None]).dictionary_encode(),
            "large": pa.array(["@", "a"], pa.large_string()),
            "view": pa.array(["=", "a"], pa.string_view()),
            "list": [[1.0, float("nan")], None],
            "bytes": [b"\x00\xff", None],
            "struct": [{"a": b"x", "b": -1}, None],
        }
    )
    assert cells(table)[1:] == [
        ["-1.5", "0.5", "'-x", "'@", "'=", "[1.0, null]", "00ff", '{"a": "78", "b": -1}'],
        ["", "", "", "a", "a", "", "", ""],
    ]
    lines = [json.loads(line) for line in table_bytes(table, ".jsonl").splitlines()]
    assert lines[0] == {
        "logit": -1.5,
        "half": 0.5,
        "source": "-x",
        "large": "@",
        "view": "=",
        "list": [1.0, None],
        "bytes": "00ff",
        "struct": {"a": "78", "b": -1},
    }
    assert set(lines[1].values()) == {None, "a"}


def test_text_has_the_ids_alone_and_refuses_those_that_a_line_cannot_hold(tmp_path):
    table = pa.table({"doc": ["=a", "中", "000121", "x\x00y"], "rank": [1, 2, 3, 4]})
    assert table_bytes(table, ".txt").decode().split("\n") == ["=a", "中", "000121", "x\x00y", ""]
    for bad in ("a\nb", " a", "a\t", ""):
        with pytest.raises(InputError, match=r"which a line of \.txt cannot; write \.csv, \.jsonl or \.parquet"):
            write_table(tmp_path / "ids.txt", pa.table({"doc": ["a", bad]}))
    assert not list(tmp_path.iterdir())


def test_a_second_ending_compresses_and_twice_the_same_table_is_the_same_file(tmp_path):
    table = pa.table({"id": ["a", "b"]})
    assert gzip.decompress(table_bytes(table, ".csv.gz")) == table_bytes(table, ".csv")
    for ending in (".jsonl.zst", ".txt.gz", ".parquet"):
        assert table_bytes(table, ending) == table_bytes(table, ending)
    write_table(tmp_path / "A.JSONL.ZST", table)
    with pa.input_stream(str(tmp_path / "A.JSONL.ZST"), compression="zstd") as stream:
        assert stream.read() == table_bytes(table, ".jsonl")
    write_table(tmp_path / "a.parquet", table.replace_schema_metadata({"datamask": "{}"}))
    assert pq.read_schema(tmp_path / "a.parquet").metadata[b"datamask"] == b"{}"


def test_another_ending_is_refused():
    for name in ("x", "x.arrow", "x.parquet.gz", "x.json", "x.csv.bz2", ".gz"):
        with pytest.raises(OptionError, match=r"--ids must end in \.parquet, \.csv, \.jsonl or \.txt .*, got"):
            format_of(name, "ids")
    with pytest.raises(OptionError, match=r"--rows must end in \.parquet, \.csv or \.jsonl \("):
        format_of("x.txt", "rows", OF_ROWS)


def test_what_may_be_a_folder_or_a_file(tmp_path):
    (tmp_path / "there.d").mkdir()
    assert not any(map(is_file, ("kept", "kept-0.3", "a.csv/", str(tmp_path / "there.d"))))
    assert is_file("a/kept.jsonl.gz")
    with pytest.raises(OptionError, match=r"got 'kept\.arrow'; the name of a folder may end in /"):
        is_file("kept.arrow")


def test_json_lines_and_csv_refuse_two_columns_of_one_name():
    twice = pa.table([["a"], ["b"]], names=["id", "id"])
    for ending in (".csv", ".jsonl"):
        with pytest.raises(InputError, match=r"several columns 'id', which \.\w+ cannot hold; write \.parquet"):
            table_bytes(twice, ending)
