"""Rows of JSON lines as the standard library reads them, wherever blocks of a file end."""

import itertools
import json

import pyarrow as pa
import pytest

from datamask.corpus.readers import Wanted, json_lines, text
from datamask.errors import InputError
from tests.making.packed_files import packed

PLAIN = [
    {"id": f"doc-{i}", "text": "word " * (i % 9), "n": i, "metadata": {"score": i / 7, "lang": {"en": 1.0}}}
    for i in range(200)
]
ROWS = {
    "plain": PLAIN,
    "numbers of mixed types": [{"n": n} for n in (1, 2.5, -0.0, 1e300, 2**53, -7, None, 5e-324) * 30],
    "keys that some lines lack": [{"a": 1}, {}, {"b": "x"}, {"a": None, "c": [1, 2.5]}, {"c": []}] * 40,
    "nulls in objects": [
        {"m": {"a": None, "b": {"c": 1}}},
        {"m": None},
        {"m": {"b": None}},
        {"m": {"a": "x", "b": {}}},
        {"m": {"list": [{"v": None}, {"v": 2, "w": [True]}]}},
    ]
    * 40,
    "letters of every length": [{"é": "ü\u2028\x85 \U0001f600 \ufeff", "t": '{[":\\\n\t\x00\r\n"'}] * 90,
    "a line over many blocks": [*PLAIN[:5], {"id": "long", "text": "[{é" * 20_000}, *PLAIN[5:9]],
}
WRITTEN = {
    "lines": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "UTF-8": lambda rows: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
    "no last line end": lambda rows: "\n".join(json.dumps(row) for row in rows),
    "CRLF": lambda rows: "".join(json.dumps(row) + "\r\n" for row in rows),
    "a mark and blank lines": lambda rows: "\ufeff\n \n" + "\n\t\r\n".join(json.dumps(row) for row in rows) + "\n\n",
    "blanks within": lambda rows: "".join(json.dumps(row, separators=(" ,\r\t", " : ")) + " \n" for row in rows),
}


def filled(values):
    """The values of one column or field, with null for every field that other values have."""
    if any(isinstance(value, dict) for value in values):
        names = dict.fromkeys(name for value in values for name in value or ())
        inside = {name: filled([(value or {}).get(name) for value in values]) for name in names}
        return [
            None if value is None else {name: inside[name][place] for name in names}
            for place, value in enumerate(values)
        ]
    if any(isinstance(value, list) for value in values):
        flat = iter(filled(list(itertools.chain.from_iterable(value or () for value in values))))
        return [None if value is None else list(itertools.islice(flat, len(value))) for value in values]
    return values


@pytest.mark.parametrize(
    ("written", "ending"),
    [*((written, ".jsonl") for written in WRITTEN), ("CRLF", ".jsonl.gz"), ("lines", ".jsonl.zst")],
)
@pytest.mark.parametrize("made", ROWS)
def test_all_rows_are_those_of_the_json_module(tmp_path, monkeypatch, made, written, ending):
    path = tmp_path / f"in{ending}"
    content = WRITTEN[written](ROWS[made])
    path.write_bytes(packed(path, content.encode()))
    expected = filled([json.loads(line) for line in content.lstrip("\ufeff").split("\n") if line.strip()])
    for block in (61, 4096, text.READ_BYTES):
        monkeypatch.setattr(text, "READ_BYTES", block)
        facts = json_lines.look(str(path))
        assert sum(facts.group_rows) == len(expected)
        batches = list(json_lines.batches(str(path), facts, Wanted(most_rows=50)))
        assert max(batch.num_rows for batch in batches) <= 50
        assert pa.Table.from_batches(batches).to_pylist() == expected


@pytest.mark.parametrize("block", [61, 1 << 20])
@pytest.mark.parametrize("line", [3, 150])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b'{"id": "\xe9"}', "line {} is no UTF-8 .byte 0xe9"),
        (b'{"id": "a"', "line {}, column 11 is not JSON"),
        (b'{"m": ' + b"[" * 65 + b"]" * 65 + b"}", "line {} nests values more than 64 deep"),
        (b'{"id": "a", "n": "x"}', "column 'n' of .* holds string in line {} and"),
        (b"[1]", "line {} holds a list"),
    ],
)
def test_the_line_is_named_wherever_blocks_end(tmp_path, monkeypatch, bad, message, line, block):
    lines = [json.dumps(row).encode() for row in PLAIN]
    lines[line - 1] = bad
    path = tmp_path / "in.jsonl.zst"
    path.write_bytes(packed(path, b"\n".join(lines)))
    monkeypatch.setattr(text, "READ_BYTES", block)
    with pytest.raises(InputError, match=message.format(line)):
        json_lines.look(str(path))
