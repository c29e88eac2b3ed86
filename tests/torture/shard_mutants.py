"""Shards with damaged bytes: one alone, and a dictionary column in one of two that are opened together."""

from __future__ import annotations

import functools
import io
import random
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask import CorpusConfig, open_corpus
from datamask.corpus import inspect_inputs
from tests.torture import materials
from tests.torture.judging import Family, attempted
from tests.torture.reading import NoOtherReader, check_column, check_same

EDGES = (0x00, 0x01, 0x7F, 0x80, 0xFF)
LENGTHS = (
    b"\xfe\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x08",
    b"\x01",
)
"""Whole numbers as Thrift writes them: 2^31 - 1, -2^31, 2^63 - 1, 2^31, -1."""

KINDS = (
    "footer bit",
    "footer bit",
    "footer bytes",
    "footer number",
    "footer inserted",
    "footer cut",
    "data bit",
    "data bit",
    "data bytes",
    "page header",
    "page header",
    "data cut",
    "data zeroed",
    "data swapped",
    "footer length",
)


def mutate(data: bytes, kind: str, rng: random.Random) -> bytes:
    """The file with damage of that kind."""
    file = bytearray(data)
    length = struct.unpack("<I", file[-8:-4])[0]
    footer, end = len(file) - 8 - length, len(file) - 8

    def any_byte() -> int:
        return rng.choice([rng.randrange(256), *EDGES])

    if kind == "footer bit":
        file[rng.randrange(footer, end)] ^= 1 << rng.randrange(8)
    elif kind == "footer bytes":
        for _ in range(rng.randrange(2, 6)):
            file[rng.randrange(footer, end)] = any_byte()
    elif kind == "footer number":
        at = rng.randrange(footer, end - 12)
        file[at : at + rng.randrange(1, 3)] = rng.choice(LENGTHS)
    elif kind == "footer inserted":
        at = rng.randrange(footer, end)
        file[at:at] = bytes(any_byte() for _ in range(rng.randrange(1, 9)))
    elif kind == "footer cut":
        at = rng.randrange(footer, end - 8)
        del file[at : at + rng.randrange(1, 8)]
    elif kind == "data bit":
        file[rng.randrange(4, footer)] ^= 1 << rng.randrange(8)
    elif kind == "data bytes":
        for _ in range(16):
            file[rng.randrange(4, footer)] = rng.randrange(256)
    elif kind == "page header":
        meta = pq.read_metadata(io.BytesIO(data))
        column = meta.row_group(rng.randrange(meta.num_row_groups)).column(rng.randrange(meta.num_columns))
        start = rng.choice([column.dictionary_page_offset or column.data_page_offset, column.data_page_offset])
        for _ in range(rng.randrange(1, 4)):
            file[start + rng.randrange(60)] = any_byte()
    elif kind == "data cut":
        at = rng.randrange(4, footer - 1)
        del file[at : at + rng.randrange(1, min(5000, footer - at))]
    elif kind == "data zeroed":
        at = rng.randrange(4, footer)
        stop = min(footer, at + rng.randrange(1, 4000))
        file[at:stop] = bytes(stop - at)
    elif kind == "data swapped":
        size = rng.randrange(8, min(2000, (footer - 4) // 2))
        one, other = rng.randrange(4, footer - size), rng.randrange(4, footer - size)
        file[one : one + size], file[other : other + size] = file[other : other + size], file[one : one + size]
    if kind in ("footer number", "footer inserted", "footer cut"):
        file[-8:-4] = struct.pack("<I", len(file) - 8 - footer)
    if kind == "footer length":
        file[-8:-4] = struct.pack(
            "<I",
            rng.choice(
                [
                    0,
                    1,
                    length - 1,
                    length + 1,
                    2 * length,
                    2**31 - 1,
                    2**32 - 1,
                    len(file),
                    len(file) - 8,
                    len(file) - 12,
                ]
            ),
        )
    return bytes(file)


def _plan(number: int) -> tuple[int, str, random.Random]:
    rng = random.Random(f"shard {number}")
    return rng.randrange(len(materials.bases())), KINDS[number % len(KINDS)], rng


def run_shard(number: int, folder: Path) -> str:
    """Inspect and open one damaged shard."""
    base, kind, rng = _plan(number)
    path, whole = folder / "mutant.parquet", materials.bases()[base]
    path.write_bytes(mutate(whole, kind, rng))
    config = CorpusConfig((str(path),))
    _, inspection = attempted(lambda: inspect_inputs(config), "inspecting", naming=path.name)
    if inspection is not None:
        str(inspection.schema).encode()
        for sentence in inspection.problems:
            sentence.encode()
    word, corpus = attempted(lambda: open_corpus(config), "opening", naming=path.name)
    if corpus is None:
        return word
    try:
        check_same(corpus)
    except NoOtherReader:
        # a footer that contradicts itself, of which one reader believes the one part and another the other
        undamaged = folder / "whole.parquet"
        undamaged.write_bytes(whole)
        check_same(corpus, [undamaged])
        return f"{word}, as undamaged"
    return word


# -- two shards ------------------------------------------------------------------------------------------------------

PAIR_ROWS, WORDS = 400, 300
INDICES = (33, 63, 299, 300, 1000, 100_000, 10_000_000, 2**30, 2**31 - 1, -1, -(2**31))


def _pair_table(first: str, words: int) -> pa.Table:
    rng = np.random.default_rng(len(first) + words)
    codes = pa.array(np.arange(PAIR_ROWS) % words if words < 64 else rng.integers(0, words, PAIR_ROWS), pa.int32())
    domain = pa.DictionaryArray.from_arrays(codes, pa.array([f"{first}w{number:05d}" for number in range(words)]))
    schema = pa.schema(
        [
            ("chunk_id", pa.string()),
            ("quality_score", pa.float64()),
            ("feature_arr", pa.list_(pa.float32(), 4)),
            pa.field("domain", domain.type, nullable=words >= 64),
        ]
    )
    return pa.Table.from_arrays(
        [
            pa.array([f"{first}{number}" for number in range(PAIR_ROWS)]),
            pa.array(rng.normal(size=PAIR_ROWS)),
            materials.vectors(rng.normal(size=(PAIR_ROWS, 4))),
            domain,
        ],
        schema=schema,
    )


@functools.cache
def _pair(words: int, options: tuple[tuple[str, object], ...]) -> tuple[bytes, bytes, int, int, int]:
    """Two good shards, and where the second one's dictionary column begins, its pages begin, and it ends."""
    other, good = (
        materials.shard_bytes(_pair_table(first, words), compression="none", **dict(options)) for first in "ab"
    )
    column = pq.read_metadata(io.BytesIO(good)).row_group(0).column(3)
    start = column.dictionary_page_offset or column.data_page_offset
    return other, good, start, column.data_page_offset, start + column.total_compressed_size


def _with_index(good: bytes, start: int, end: int, value: int) -> bytes:
    """The file with one index of its dictionary column replaced: a run of 32-bit codes in place of packed ones."""
    file, packed = bytearray(good), 2 + -(-PAIR_ROWS // 8) * 6
    for at in range(end - packed - 6, end - packed + 6):
        if at >= start and file[at] == 6 and file[at + 1] & 1:
            file[at : at + 7] = bytes([32, 0xA0, 0x06]) + struct.pack("<i", value)
            return bytes(file)
    raise LookupError("the page of indices is not where pyarrow used to write it; mend this search")


def run_pair(number: int, folder: Path) -> str:
    """Open a good shard beside one whose dictionary column is damaged."""
    rng = random.Random(f"pair {number}")
    if number < 2 * len(INDICES):
        other, good, start, _, end = _pair(33, ())
        damaged = _with_index(good, start, end, INDICES[number // 2])
    else:
        options = rng.choice(
            [(), (("data_page_version", "2.0"),), (("row_group_size", 150),), (("data_page_size", 200),)]
        )
        other, good, start, pages, end = _pair(WORDS, options)
        file = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(pages, end) if rng.random() < 0.8 else rng.randrange(start, end)
            if rng.random() < 0.3:
                at = min(end - 1, pages + rng.randrange(60))
            file[at] = rng.choice([rng.randrange(256), 0xFF, 0x7F, 0x20, 0x1F])
        damaged = bytes(file)
    if number >= 2 * len(INDICES) or number % 2:
        (folder / "a.parquet").write_bytes(other)
    (folder / "b.parquet").write_bytes(damaged)
    word, corpus = attempted(lambda: open_corpus(CorpusConfig((str(folder),))), "opening two shards", naming=".parquet")
    if corpus is not None:
        check_same(corpus)
        check_column(corpus, "domain")
    return word


FAMILIES = (
    Family("shard bytes", 7_000, run_shard, lambda number: KINDS[number % len(KINDS)]),
    Family("dictionary of two", 3_000, run_pair),
)
