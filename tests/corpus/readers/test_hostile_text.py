"""JSON lines and CSV that are damaged or made to do harm: a sentence with the place in the file, in bounded memory."""

import gzip
import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from datamask import CorpusConfig, open_corpus
from datamask.config import QualityColumn
from datamask.corpus.readers import Wanted, text
from datamask.corpus.readers.shard import open_shard
from datamask.errors import InputError, Stopped
from datamask.polling import poll_of
from tests.making.packed_files import packed, zstd

GOOD = '{"id": "a", "quality": 1.5, "features": [1, 2.5]}\n{"id": "b", "quality": 2, "features": [0.5, 1]}\n'
SHEET = 'id,quality,features\na,1.5,"[1, 2.5]"\nb,2,"[0.5, 1]"\n'
MANY = 20_000

BAD_LINES = {
    "no UTF-8": (GOOD.encode() + b'{"id": "\xff"}\n', r"line 3 is no UTF-8 \(byte 0xff\); convert"),
    "half an object": (GOOD + '{"id": ', r"line 3, column 8 is not JSON \(Expecting value\)"),
    "an object on two lines": ('{"id":\n"a"}\n', r"line 1, column 7 is not JSON"),
    "two objects on a line": (GOOD + '{"id": "c"} {"id": "d"}\n', r"line 3, column 13 is not JSON \(Extra data\)"),
    "a comma behind": ('{"id": "a"},\n', "line 1, column 12 is not JSON"),
    "a whole list": (json.dumps([{"id": "a"}]), "line 1 holds a list, but every line must hold one object"),
    "a number": (GOOD + "\n7\n", "line 4 holds a number"),
    "a word": ("hello\n", "line 1, column 1 is not JSON"),
    "a lone surrogate": ('{"id": "\\ud800"}\n', r"from line 1 on: .*surrogate"),
    "a byte of nought": ('{"id": "a\x00b"}\n', "line 1, column 10 is not JSON"),
    "kinds mixed nearby": (GOOD + '\n{"id": 5}\n', r"column 'id' of .* holds number in line 4 and"),
    "a key twice": ('{"id": "a", "id": "b"}\n', "specified twice"),
    "kinds mixed far away": ('{"id": "a", "x": 1}\n' * MANY * 3 + '{"id": "b", "x": "y"}\n', "column 'x' of .* holds"),
    "nested lists": ('{"id": "a", "x": ' + "[" * MANY + "]" * MANY + "}\n", "line 1 nests values more than 64 deep"),
    "nested objects": (GOOD + '{"x": ' * MANY + "1" + "}" * MANY, "line 3 nests values more than 64"),
    "nested and never closed": (GOOD + "[" * MANY, "line 3 nests values more than 64"),
    "other keys on every line": ("".join(f'{{"k{i}": 1}}\n' for i in range(MANY)), "more than 10,000 different keys"),
    "many keys on one line": (
        "{" + ",".join(f'"k{i}": 1' for i in range(MANY * 6)) + "}\n",
        "different keys by line 1",
    ),
    "objects in one list": (
        '{"id": "a", "x": [' + json.dumps({f"k{i}": 1 for i in range(500)}) + ",{}" * MANY * 4 + "]}\n",
        "line 1 has more keys, or objects in lists, than fit in memory",
    ),
    "a line without end": ('{"id": "' + "x" * (text.LONGEST + 5) + '"}\n', r"line 1 is longer than 16 MiB"),
    "nothing but blanks": ("\n \n\n", "has no rows"),
    "features of words": ('{"id": "a", "quality": 1, "features": ["x"]}\n', "has no feature column"),
}

BAD_SHEETS = {
    "a value too few": (SHEET + "c,3\n", r"row 4 \(the header is row 1\) has 2 values, the header 3"),
    "a value too many": (SHEET + "c,3,1,2\n", "row 4 .* has 4 values, the header 3; put quotes around"),
    "no UTF-8": (SHEET.encode() + b"\xff,3,[1]\n", r"row 4 \(the header is row 1\), column 1, is no UTF-8"),
    "a header that is no UTF-8": (b"\xffid,b\n1,2\n", "the header of .* is no UTF-8"),
    "a quote that never closes": (SHEET + 'c,3,"' + "x\n" * (2 * text.LONGEST), "row longer than 16 MiB, or a quote"),
    "a header without end": ("a," * MANY + "b\n", "has 20,001 columns in its first line"),
    "nothing but a header": ("id,quality,features\n", "has no rows"),
    "another separator": (SHEET.replace(",", ";"), "has no"),
    "words among the scores": (SHEET + 'c,high,"[1, 1]"\n', "column 'quality' is string"),
    "features of two lengths": (
        SHEET + 'c,3,"[1]"\n',
        "1 row has features .* of another length than 2 .*row 2",
    ),
    "objects in a list": (SHEET + 'c,3,"[1]} {""v"":[2]"\n', "has no feature column"),
}


PACKED = (
    ("half an object", ".jsonl"),
    ("kinds mixed far away", ".jsonl"),
    ("a value too many", ".csv"),
    ("a quote that never closes", ".csv"),
)
"""What is looked at in packed files too: at their ends, and far into them."""


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize(
    ("case", "ending", "packing"),
    [
        *((case, ".jsonl", "") for case in BAD_LINES),
        *((case, ".csv", "") for case in BAD_SHEETS),
        *((case, ending, packing) for case, ending in PACKED for packing in (".gz", ".zst")),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path, case, ending, packing):
    content, message = (BAD_LINES if ending == ".jsonl" else BAD_SHEETS)[case]
    content = content if isinstance(content, bytes) else content.encode()
    file = tmp_path / f"in{ending}{packing}"
    path = write(file, packed(file, content))
    with pytest.raises(InputError, match=message) as caught:
        open_corpus(CorpusConfig((path,)))
    assert path in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-20], lambda d: d[:30] + b"\xff\xff\xff" + d[33:], lambda d: d + b"junk"]
)
@pytest.mark.parametrize("ending", [".jsonl.gz", ".csv.gz"])
def test_damaged_gzip_is_refused(tmp_path, ending, damage):
    content = (GOOD if "jsonl" in ending else SHEET).encode()
    path = write(tmp_path / f"in{ending}", damage(gzip.compress(content)))
    with pytest.raises(InputError, match=re.escape(path)):
        open_corpus(CorpusConfig((path,), drop_invalid=True))


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-9], lambda d: d[:20] + b"\xff\xff\xff" + d[23:], lambda d: d + b"junk"]
)
@pytest.mark.parametrize("ending", [".jsonl.zst", ".csv.zst"])
def test_damaged_zstd_is_refused(tmp_path, ending, damage):
    content = (GOOD if "jsonl" in ending else SHEET).encode()
    path = write(tmp_path / f"in{ending}", damage(zstd(content)))
    with pytest.raises(InputError, match=re.escape(path)):
        open_corpus(CorpusConfig((path,), drop_invalid=True))


def test_zstd_in_several_frames_is_read_whole(tmp_path):
    """Parallel compressors write one frame after another, some with a frame to be skipped in front."""
    first, second = GOOD.splitlines(keepends=True)
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
    path = write(tmp_path / "in.jsonl.zst", skippable + zstd(first.encode()) + zstd(second.encode()))
    assert open_corpus(CorpusConfig((path,))).ids.to_pylist() == ["a", "b"]


def test_nan_and_infinity_are_invalid_values_like_any_others(tmp_path):
    rows = (
        GOOD + '{"id": "c", "quality": NaN, "features": [1, 1]}\n{"id": "d", "quality": 1, "features": [Infinity, 1]}\n'
    )
    path = write(tmp_path / "in.jsonl", rows)
    with pytest.raises(InputError, match=r"in\.jsonl row 2.*--drop_invalid|2 rows"):
        open_corpus(CorpusConfig((path,)))
    assert open_corpus(CorpusConfig((path,), drop_invalid=True)).ids.to_pylist() == ["a", "b"]
    path = write(tmp_path / "in.csv", SHEET + 'c,NaN,"[1, 1]"\nd,inf,"[1, 1]"\ne,1,"[NaN, 1]"\n')
    assert open_corpus(CorpusConfig((path,), drop_invalid=True)).ids.to_pylist() == ["a", "b"]


def test_what_is_unusual_and_right_is_read(tmp_path):
    lines = "\ufeff" + GOOD.replace("\n", "\r\n")
    lines += '\n{"features": [3, 4], "other": {"a": ["x"]}, "id": "c", "quality": 3}'
    corpus = open_corpus(CorpusConfig((write(tmp_path / "in.jsonl", lines),)))
    assert corpus.ids.to_pylist() == ["a", "b", "c"] and corpus.features[2] == pytest.approx([0.6, 0.8])
    assert corpus.metadata["other.a"].to_pylist() == [None, None, ["x"]] and corpus.source_row.tolist() == [0, 1, 2]
    sheet = '\ufeffid,quality,features,zip,note,n\n007, 1 ,"[3,\n4]",01234,"a, ""b""\nc",\n8,NA,"[1, null]",9,,5\n'
    path = write(tmp_path / "in.csv", sheet)
    shard = open_shard(path)
    (batch,) = shard.batches(Wanted(None, most_rows=100))
    assert batch.to_pylist()[0] == {
        "id": "007",
        "quality": 1,
        "features": [3.0, 4.0],
        "zip": "01234",
        "note": 'a, "b"\nc',
        "n": None,
    }
    assert batch.to_pylist()[1] == {"id": "8", "quality": None, "features": [1.0, None], "zip": "9", "note": "", "n": 5}


@pytest.mark.parametrize("ids", [["0x10", "0x1f"], ["7", "-0X1F"], ["007", "7"]])
def test_ids_are_never_respelled_as_numbers(tmp_path, ids):
    rows = "".join(f'{name},1.5,"[1, {place}]"\n' for place, name in enumerate(ids))
    path = write(tmp_path / "in.csv", "id,quality,features\n" + rows)
    assert open_corpus(CorpusConfig((path,))).ids.to_pylist() == ids
    path = write(tmp_path / "hex.csv", 'id,quality,features\na,0x10,"[1, 2]"\nb,0x1f,"[1, 1]"\n')
    with pytest.raises(InputError, match="column 'quality' is string"):
        open_corpus(CorpusConfig((path,)))


LARGE = 2**60


@pytest.mark.parametrize(("ending", "far"), [(".jsonl", False), (".csv", False), (".jsonl", True)])
@pytest.mark.parametrize(
    "qualities, fits",
    [
        ([LARGE + 1, LARGE + 2, LARGE + 3], True),  # whole and within 64 bits: kept by rank, as in parquet
        ([LARGE + 1, LARGE + 2, 0.5], False),
        ([0.5, None, LARGE + 2], False),
        ([2**64 + 1, 2**64 + 2, 2**64 + 3], False),
        ([-(2**63) - 1, 1, 2], False),
        ([2**53 + 1, 1.5, 2], False),
        ([2**53, 1.5, 2**62], True),
        ([1e300, 1.5, 2**63], True),
        ([2**63 - 1, 1, 2], True),
    ],
)
def test_qualities_keep_their_order_or_are_refused(tmp_path, ending, qualities, fits, far):
    rows = [(f"r{place}", quality) for place, quality in enumerate(qualities)]
    if far:  # the last lies in another part of the file
        rows[-1:-1] = [(f"far{place}", 1) for place in range(70_000)]
    if ending == ".jsonl":
        lines = "".join(json.dumps({"id": name, "q": q, "q2": q, "v": [1, 2]}) + "\n" for name, q in rows)
    else:
        lines = "id,q,q2,v\n" + "".join(f'{name},{"" if q is None else q},{q},"[1, 2]"\n' for name, q in rows)
    path = write(tmp_path / f"in{ending}", lines)
    config = CorpusConfig((path,), quality_columns=(QualityColumn("q", 1.0, "rank"),), drop_invalid=True)
    if not fits:
        with pytest.raises(InputError, match=r"column 'q' of .*in\..* holds whole numbers beyond 2\^53.*subtract"):
            open_corpus(config)
        return
    corpus = open_corpus(config)
    kept = [quality for _, quality in rows if quality is not None]
    order = {quality: place for place, quality in enumerate(sorted(set(kept)))}
    ranks = np.unique(corpus.quality, return_inverse=True)[1]
    assert ranks.tolist() == [order[quality] for quality in kept]


def test_whole_numbers_that_are_no_quality_may_be_as_large_as_they_like(tmp_path):
    rows = [{"id": f"{place}", "quality": place, "features": [1, 2], "hash": 2**64 + place} for place in range(3)]
    path = write(tmp_path / "in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert open_corpus(CorpusConfig((path,))).quality.tolist() == [0, 1, 2]


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
@pytest.mark.parametrize(
    "ids", [["2024-01-01", "2024-01-02"], ["2024-01-01 10:00:00", "2024-01-01T10:00:00Z"], ["2024-01-01", "b"]]
)
def test_ids_that_look_like_dates_are_texts(tmp_path, ending, ids):
    lines = "".join(json.dumps({"id": name, "q": 1.5, "v": [1, 2 + len(name)]}) + "\n" for name in ids)
    sheet = "id,q,v\n" + "".join(f'{name},1.5,"[1, {2 + len(name)}]"\n' for name in ids)
    path = write(tmp_path / f"in{ending}", lines if ending == ".jsonl" else sheet)
    assert open_corpus(CorpusConfig((path,), quality_columns=(QualityColumn("q"),))).ids.to_pylist() == ids


def test_a_text_full_of_brackets_and_colons_is_a_text(tmp_path):
    content = "[{" * 1000 + '": ' * (text.MOST_COLUMNS * 11)
    path = write(tmp_path / "in.jsonl", json.dumps({"id": "a", "text": content}) + "\n")
    (batch,) = open_shard(path).batches(Wanted(["text"], most_rows=10))
    assert batch["text"].to_pylist() == [content]


def test_columns_of_several_types_get_one_that_holds_them_all(tmp_path):
    far = '{"id": 1}\n' * 200_000  # the first of them are another part of the file
    path = write(
        tmp_path / "in.jsonl",
        '{"id": 1, "n": 1, "when": "2024-01-01", "of": {"a": 1}, "v": []}\n'
        + far
        + '{"id": 2.5, "n": null, "when": "yesterday", "of": {"b": "x"}, "v": [1]}\n',
    )
    shard = open_shard(path)
    assert shard.rows == 200_002 and shard.schema.field("id").type == pa.float64()
    assert shard.schema.field("v").type == pa.list_(pa.float64())
    batches = list(shard.batches(Wanted(["when", "of.a", "of.b", "v", "n"], most_rows=1000)))
    assert max(batch.num_rows for batch in batches) <= 1000
    first, last = batches[0].to_pylist()[0], batches[-1].to_pylist()[-1]
    assert first == {"when": "2024-01-01", "of.a": 1, "of.b": None, "v": [], "n": 1}
    assert last == {"when": "yesterday", "of.a": None, "of.b": "x", "v": [1.0], "n": None}


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_a_look_can_be_stopped_and_is_remembered_until_the_file_changes(tmp_path, monkeypatch, ending):
    monkeypatch.setattr("datamask.memo.SETTLED_SECONDS", -1.0)
    head, line = ("", '{"id": 1}\n') if ending == ".jsonl" else ("id\n", "1\n")
    path = write(tmp_path / f"in{ending}", head + line * 500_000)
    with pytest.raises(Stopped):
        open_shard(path, poll_of(lambda: True))
    shard = open_shard(path)
    assert open_shard(path, poll_of(lambda: True)).facts is shard.facts and shard.rows == 500_000
    write(tmp_path / f"in{ending}", head + line * 3)
    assert open_shard(path).rows == 3


def test_a_file_that_changed_since_it_was_looked_at_is_refused(tmp_path):
    path = write(tmp_path / "in.jsonl", GOOD)
    shard = open_shard(path)
    write(tmp_path / "in.jsonl", GOOD.replace('"quality": 2', '"quality": "two"'))
    with pytest.raises(InputError, match="holds string in line 2 and number before"):
        list(shard.batches(Wanted(None, most_rows=10)))


CHANGED = """
import json, pathlib, sys
from datamask.corpus.readers import Wanted
from datamask.corpus.readers.shard import open_shard
from datamask.errors import InputError
path = pathlib.Path(sys.argv[1])
for deep in ("[" * 10**6 + "]" * 10**6, '{"x": ' * 10**6 + "1" + "}" * 10**6):
    for value in (1, "a", [1], [[1]], {"x": {"x": 1}}, None):
        path.write_text(json.dumps({"x": value, "y": 1}) + "\\n")
        shard = open_shard(str(path))
        path.write_text('{"x": ' + deep + "}\\n")
        for columns in (None, ["y"]):
            try:
                for batch in shard.batches(Wanted(columns, most_rows=10)):
                    batch.to_pylist()
            except InputError as error:
                print(str(error)[-60:])
print("whole")
"""


def test_values_nested_without_end_in_a_file_that_changed_do_no_harm(tmp_path):
    """A look refuses them; whether they end the process is seen in one of its own."""
    out = subprocess.run(
        [sys.executable, "-c", CHANGED, str(tmp_path / "in.jsonl")], capture_output=True, text=True, check=True
    )
    assert out.stdout.splitlines()[-1] == "whole"


MEASURED = """
import sys
from datamask.corpus.readers import Wanted
from datamask.corpus.readers.shard import open_shard
from datamask.errors import InputError

def peak():  # of this process alone: the system's own count of resources begins with that of the parent
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])

before = peak()
try:
    shard = open_shard(sys.argv[1])
    rows = sum(batch.num_rows for batch in shard.batches(Wanted(None, most_rows=65536)))
    print("rows", rows)
except InputError as error:
    print("refused")
print((peak() - before) >> 10)
"""


def _wide_objects():
    """Four columns that are objects with 900 fields each."""
    objects = [{f"c{c}": {f"k{k}": 1 for k in range(900)}} for c in range(4)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in objects)


def _wide_lists(value, count):
    """A list of an object with 900 fields, then one of so many values."""
    wide = json.dumps({"a": [{f"k{k}": 1 for k in range(900)}]}).encode()
    return wide + b'\n{"a": [' + b",".join([value] * count) + b"]}\n"


BOMBS = {
    "rows.jsonl.gz": lambda: b'{"id": 1}\n' * (3 << 20),
    "keys.jsonl": lambda: b"".join(b'{"k%d": 1}\n' % i for i in range(100_000)),
    "fields.jsonl": lambda: _wide_objects() + b"{}\n" * 3_000,
    "lists.jsonl": lambda: _wide_lists(b"{}", 300_000),
    "nulls.jsonl": lambda: _wide_lists(b"null", 300_000),
    "one list.jsonl": lambda: _wide_lists(b"{}", 300_000).replace(b']}\n{"a": [', b",", 1),
    "many lists.jsonl": lambda: _wide_lists(b"{}", 30) + (b'{"a": [{},{},{},{},{}]}\n' * 4_000),
    "line.jsonl.gz": lambda: b" " * (300 << 20),
    "numbers.jsonl": lambda: b'{"v": [' + b"1," * (7 << 20) + b"1]}\n",
    "rows.csv.gz": lambda: b"a,b\n" + b"1,\n" * (8 << 20),
    "commas.csv": lambda: b"a\n" + b"," * (15 << 20),
}
"""What is in files that want to be large in memory; made where it is needed, since together it is half a gigabyte."""


@pytest.mark.parametrize("name", BOMBS)
def test_memory_stays_bounded(tmp_path, name):
    data = BOMBS[name]()
    path = write(tmp_path / name, gzip.compress(data, 1) if name.endswith(".gz") else data)
    out = subprocess.run([sys.executable, "-c", MEASURED, path], capture_output=True, text=True, check=True)
    told, mebibytes = out.stdout.splitlines()
    assert int(mebibytes) < 350, f"{told}, {mebibytes} MiB"
