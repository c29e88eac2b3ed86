"""Shards whose columns, types, values and layout are drawn: whatever a person might have on disk, and worse."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask import CorpusConfig, open_corpus
from datamask.corpus import inspect_inputs
from tests.torture import materials
from tests.torture.contract import Finding
from tests.torture.judging import ACCEPTED, REFUSED, Family, attempted
from tests.torture.reading import check_same
from tests.torture.selecting import select_and_check

Rng = np.random.Generator
WORDS = ("a", "", " ", "é", "é", "=1+1", "<b>x</b>", "a\x00b", "\u202e", "\U0001f600", "a\nb", "NaN", "-", "a" * 3000)
SIZES = (1, 2, 3, 12, 60)


@dataclass
class Drawn:
    """Columns under construction: `odd` says what is wrong with them; where nothing is, they must be accepted."""

    rng: Rng
    rows: int
    columns: list[tuple[str, pa.Array]] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    def maybe(self, chance: float, what: str) -> bool:
        """Whether something odd is done, which is then remembered."""
        if self.rng.random() >= chance:
            return False
        self.odd.append(what)
        return True

    def some(self, *choices: object) -> object:
        return choices[int(self.rng.integers(len(choices)))]


def _ids(drawn: Drawn, first: int) -> pa.Array:
    numbers = np.arange(first, first + drawn.rows)
    kind = drawn.some(
        pa.string(),
        pa.large_string(),
        pa.int64(),
        pa.int32(),
        pa.uint64(),
        pa.int8(),
        pa.string_view(),
        "dictionary",
        "hostile",
    )
    if kind == "dictionary":
        values = pa.array([f"d{number}" for number in numbers]).dictionary_encode()
    elif kind == "hostile":
        values = pa.array([f"{drawn.some(*WORDS)}{number}" for number in numbers])
    elif kind == pa.int8() and first + drawn.rows > 127:
        values = pa.array(numbers, pa.int64())
    elif pa.types.is_integer(kind):
        values = pa.array(numbers, kind)
    else:
        values = pa.array([f"i{number}" for number in numbers]).cast(kind)
    if drawn.maybe(0.05, "a null id"):
        values = pa.array([None, *values.to_pylist()[1:]], values.type)
    if drawn.rows > 1 and drawn.maybe(0.05, "a repeated id"):
        values = pa.array([values[1].as_py(), *values.to_pylist()[1:]], values.type)
    if drawn.maybe(0.03, "ids of an odd type"):
        values = drawn.some(
            pa.array(numbers.astype(float)),
            pa.array([bytes([number % 256, 255]) for number in numbers], pa.binary()),
            pa.array([decimal.Decimal(int(number)) for number in numbers], pa.decimal128(38, 0)),
            pa.array([datetime.datetime(2020, 1, 1) + datetime.timedelta(int(number)) for number in numbers]),
            pa.array([{"a": int(number)} for number in numbers]),
        )
    return values


def _quality(drawn: Drawn) -> pa.Array:
    values = drawn.rng.normal(size=drawn.rows)
    kind = drawn.some(pa.float64(), pa.float32(), pa.float16(), pa.int64(), pa.int8(), pa.decimal128(20, 3))
    if pa.types.is_decimal(kind):
        array = pa.array([decimal.Decimal(int(1000 * value)) / 1000 for value in values], kind)
    elif pa.types.is_integer(kind):
        array = pa.array(np.round(20 * values).clip(-100, 100).astype(np.int64), pa.int64()).cast(kind)
    elif kind == pa.float16():
        array = pa.array(values.astype(np.float16))
    else:
        array = pa.array(values).cast(kind, safe=False)
    if drawn.maybe(0.12, "an odd quality"):
        extreme = drawn.some(
            [1e308],
            [1e308, -1e308],
            [np.inf],
            [-np.inf],
            [np.nan],
            [5e-324],
            [1e30],
            [-0.0],
            [1.8e308],
            [9e307, 9e307],
            [None],
        )
        array = pa.array([*extreme, *values.tolist()][: drawn.rows], pa.float64())
    if drawn.maybe(0.04, "a quality beyond 2^53"):
        start = int(drawn.some(2**53, 2**62, -(2**63), 2**63 - 100))
        array = pa.array([start + number for number in range(drawn.rows)], pa.int64())
    if drawn.maybe(0.03, "a quality of an odd type"):
        array = drawn.some(
            pa.array(["1.0"] * drawn.rows),
            pa.nulls(drawn.rows),
            pa.nulls(drawn.rows, pa.float64()),
            pa.array([True] * drawn.rows),
            pa.array([[1.0]] * drawn.rows),
            pa.array([decimal.Decimal(10) ** 70] * drawn.rows, pa.decimal256(76, 0)),
        )
    return array


def _features(drawn: Drawn, dim: int) -> pa.Array:
    values = drawn.rng.normal(size=(drawn.rows, dim)) + 0.3
    if drawn.maybe(0.15, "odd features"):
        row = int(drawn.rng.integers(drawn.rows))
        values[row] *= float(drawn.some(1e300, 1e-300, 1e38, 1e-38, 1e-45, 5e-324, 0.0, np.nan, np.inf, 1e160, 1e-170))
        return pa.array(values.tolist(), drawn.some(pa.list_(pa.float64()), pa.large_list(pa.float64())))
    kind = drawn.some(
        None, pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float16()), pa.list_(pa.float64(), dim)
    )
    array = materials.vectors(values, kind)
    if drawn.maybe(0.08, "holes in features"):
        rows = array.cast(pa.list_(pa.float32())).to_pylist()
        rows[0] = drawn.some(None, [], [None] * dim, [1.0] * (dim + 1), [1.0] * (dim - 1), [1.0, None][:dim])
        array = pa.array(rows, pa.list_(pa.float32()))
    if drawn.maybe(0.03, "features of an odd type"):
        array = drawn.some(
            pa.array(values[:, 0]),
            pa.array([["a"] * dim] * drawn.rows),
            pa.array([[True] * dim] * drawn.rows),
            pa.array([[[1.0]]] * drawn.rows),
            pa.array([b"abcd"] * drawn.rows),
            pa.array([list(range(dim))] * drawn.rows),
        )
    return array


def _nested(depth: int, rows: int, lists: bool) -> pa.Array:
    array: pa.Array = pa.array(np.ones(rows))
    for _ in range(depth):
        array = (
            pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), array)
            if lists
            else pa.StructArray.from_arrays([array], ["a"])
        )
    return array


SPARE: tuple[Callable[[Drawn], pa.Array], ...] = (
    lambda d: pa.array([d.some(*WORDS) for _ in range(d.rows)]),
    lambda d: pa.array([d.some(*WORDS, None) for _ in range(d.rows)]).dictionary_encode(),
    lambda d: pa.array(d.rng.integers(-5, 5, d.rows)),
    lambda d: pa.array([d.some(-(2**63), 2**63 - 1, 0) for _ in range(d.rows)], pa.int64()),
    lambda d: pa.array([d.some(np.nan, np.inf, 1e308, -1e308, 0.0) for _ in range(d.rows)]),
    lambda d: pa.array(
        [d.some(-(2**62), 2**62, 0) for _ in range(d.rows)], pa.timestamp(d.some("s", "ms", "us", "ns"))
    ),
    lambda d: pa.array(
        [0, *[10**15] * (d.rows - 1)], pa.timestamp("us", tz=d.some("UTC", "Nowhere/Zone", "+25:99", ""))
    ),
    lambda d: pa.array([d.some(datetime.date(1, 1, 1), datetime.date(9999, 12, 31)) for _ in range(d.rows)]),
    lambda d: pa.array([2**62] * d.rows, pa.duration("s")),
    lambda d: pa.array([86_399] * d.rows, pa.time32("s")),
    lambda d: pa.array([b"\xff\x00"] * d.rows),
    lambda d: pa.array([{"a": 1, "b": [{"c": "x"}]}] * d.rows),
    lambda d: pa.array([[("k", 1)]] * d.rows, pa.map_(pa.string(), pa.int32())),
    lambda d: pa.nulls(d.rows),
    lambda d: pa.array([decimal.Decimal("1.1")] * d.rows),
    lambda d: pa.array([d.some(True, False, None) for _ in range(d.rows)]),
    lambda d: _nested(int(d.some(2, 50, 300)), d.rows, bool(d.some(True, False))),
    lambda d: pa.Array.from_buffers(
        pa.string(), d.rows, pa.array([b"\xff\xfe%d" % row for row in range(d.rows)], pa.binary()).buffers()
    ),
    lambda d: pa.array([b"0123456789abcdef"] * d.rows, pa.binary(16)),
)
INVALID_TEXT = 17
"""The place in `SPARE` of text that is no UTF-8."""

NAMES = (
    "text",
    "n_tokens",
    "t",
    "rank",
    "logit",
    "score",
    "quality",
    "selected",
    "source_file",
    "source_row",
    "row",
    "cluster",
    "x",
    "",
    "a\nb",
    "<img src=x>",
    "$x$ `y`",
    "n" * 400,
    "é",
    "id",
    "label",
    "__index_level_0__",
)


def _shard(rng: Rng, first: int, dim: int, rows: int, odd: list[str]) -> pa.Table:
    drawn = Drawn(rng, rows, odd=odd)
    drawn.columns = [
        ("chunk_id", _ids(drawn, first)),
        ("quality_score", _quality(drawn)),
        ("feature_arr", _features(drawn, dim)),
    ]
    for _ in range(int(rng.integers(4))):
        which = int(rng.integers(len(SPARE)))
        if which == INVALID_TEXT or which == 16:
            drawn.odd.append("a spare column nobody can show")
        drawn.columns.append((str(drawn.some(*NAMES)), SPARE[which](drawn)))
    if drawn.maybe(0.06, "a column twice"):
        drawn.columns.append(drawn.columns[int(rng.integers(len(drawn.columns)))])
    if len({name for name, _ in drawn.columns}) < len(drawn.columns):
        drawn.odd.append("two columns of one name")
    if {name for name, _ in drawn.columns} & {"n_tokens", "id", "quality", "score"}:
        drawn.odd.append("a column that plays another part")
    if drawn.maybe(0.04, "a column missing"):
        del drawn.columns[int(rng.integers(3))]
    order = rng.permutation(len(drawn.columns))
    return pa.Table.from_arrays([drawn.columns[k][1] for k in order], names=[drawn.columns[k][0] for k in order])


def _write(table: pa.Table, path: Path, rng: Rng) -> bool:
    """Whether pyarrow could write it."""
    options = {
        "compression": str(rng.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"])),
        "use_dictionary": bool(rng.integers(2)),
        "row_group_size": int(rng.choice([1, 7, 1000])),
        "data_page_version": str(rng.choice(["1.0", "2.0"])),
        "store_schema": bool(rng.integers(4)),
        "write_page_checksum": bool(rng.integers(2)),
        "write_page_index": bool(rng.integers(2)),
        "write_statistics": bool(rng.integers(2)),
    }
    try:
        pq.write_table(table, path, **options)
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        return False
    return True


def run(number: int, folder: Path) -> str:
    """Draw shards, look, open, compare; every fourth time select from them as well."""
    rng = np.random.default_rng([77, number])
    odd: list[str] = []
    shards, dim, rows = int(rng.choice([1, 1, 1, 2, 3])), int(rng.choice([1, 2, 5])), int(rng.choice(SIZES))
    shared = int(rng.integers(2**31))
    if shards > 1 and rng.random() < 0.3:
        odd.append("shards drawn apart")
    for shard in range(shards):
        own = np.random.default_rng([shared, shard if odd[:1] == ["shards drawn apart"] else 0])
        table = _shard(own, shard * rows, dim, rows, odd)
        if not _write(table, folder / f"{shard}.parquet", np.random.default_rng([shared, shard])):
            return "cannot be written"
    if shards > 1:
        odd.append("several shards")
    config = CorpusConfig(
        (str(folder),),
        drop_invalid=bool(rng.random() < 0.3),
        rows=int(rng.integers(2, rows + 2)) if rng.random() < 0.1 else None,
    )
    _, inspection = attempted(lambda: inspect_inputs(config), "inspecting")
    if inspection is not None:
        f"{inspection.schema} {inspection.problems} {inspection.columns}".encode()
    word, corpus = attempted(lambda: open_corpus(config), "opening")
    if word == REFUSED and not odd:
        raise Finding("a plain corpus was refused")
    if corpus is None:
        return word
    check_same(corpus)
    if number % 4 == 0 and len(corpus) > 1:
        return select_and_check(corpus, config, rng, folder)
    return ACCEPTED


FAMILIES = (Family("drawn schemas", 6_000, run),)
