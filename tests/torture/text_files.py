"""JSON lines and CSV, plain and gzip: drawn ones, damaged ones, and bombs; the standard library reads them beside."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import itertools
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from datamask import CorpusConfig, open_corpus
from datamask.corpus import inspect_inputs
from tests.torture.contract import Finding
from tests.torture.crafted import EITHER, Make, open_and_use
from tests.torture.judging import ACCEPTED, REFUSED, Family, attempted
from tests.torture.reading import check_column, check_same
from tests.torture.schemas import SIZES, WORDS
from tests.torture.selecting import select_and_check

ID, QUALITY, FEATURES, TEXT = "chunk_id", "quality_score", "feature_arr", "text"
ENDINGS = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz", ".ndjson")
BOM = "\ufeff"


def _is_sheet(ending: str) -> bool:
    return ".csv" in ending


# -- drawn -------------------------------------------------------------------------------------------------------------


@dataclass
class Drawn:
    """Rows under construction: `odd` says what is wrong with them; where nothing is, they must be accepted."""

    rng: random.Random
    sheet: bool
    rows: list[dict]
    odd: list[str] = field(default_factory=list)

    def maybe(self, chance: float, what: str) -> bool:
        """Whether something odd is done, which is then remembered."""
        if self.rng.random() >= chance:
            return False
        self.odd.append(what)
        return True


def _ids(rng: random.Random, rows: int) -> list:
    kind = rng.choice(["plain", "hostile", "whole", "zeros", "hexadecimal", "large"])
    if kind == "hostile":
        return [f"{rng.choice(WORDS)}x{number}" for number in range(rows)]
    makes: dict[str, Callable[[int], object]] = {
        "plain": "i{}".format,
        "whole": lambda number: number - 3,
        "zeros": "{:07d}".format,
        "hexadecimal": "{:#x}".format,
        "large": lambda number: 2**62 + number,
    }
    return [makes[kind](number) for number in range(rows)]


def _qualities(drawn: Drawn, rows: int) -> list:
    rng = drawn.rng
    kind = rng.choice(["floats", "short", "whole", "mixed", "denormal"])
    makes: dict[str, Callable[[], object]] = {
        "floats": lambda: rng.gauss(0, 1),
        "short": lambda: round(rng.gauss(0, 1), 2),
        "whole": lambda: rng.randrange(-50, 50),
        "mixed": lambda: rng.choice([rng.randrange(9), rng.random(), 1e-7, 1.5e20]),
        "denormal": lambda: rng.choice([5e-324, 1e-310, 0.0, -0.0, 1.0]),
    }
    values = [makes[kind]() for _ in range(rows)]
    if drawn.maybe(0.12, "an odd quality"):
        values[rng.randrange(rows)] = rng.choice(
            [float("nan"), float("inf"), 1e308, None, "high", True, [1.0], 2**53 + 1, 2**63, 10**30, 10**400]
        )
    if drawn.maybe(0.04, "qualities beyond 2^53"):
        start = rng.choice([2**53, 2**62, -(2**63), 2**63 - 20, 2**64])
        values = [start + number for number in range(rows)]
    return values


def _features(drawn: Drawn, rows: int, dim: int) -> list:
    rng = drawn.rng
    values: list = [[rng.gauss(0.5, 1) for _ in range(dim)] for _ in range(rows)]
    if rng.random() < 0.2:
        values = [[rng.randrange(1, 9) for _ in range(dim)] for _ in range(rows)]
    if drawn.maybe(0.12, "odd features"):
        values[rng.randrange(rows)] = rng.choice(
            [
                None,
                [],
                [None] * dim,
                [1.0] * (dim + 1),
                [float("nan")] * dim,
                [1e300] * dim,
                [10**400] * dim,
                [0] * dim,
                [[1.0] * dim],
                ["1"] * dim,
                {"a": 1},
                "[1, 2",
                7,
            ]
        )
    return values


def _draw(rng: random.Random, sheet: bool) -> Drawn:
    rows, dim = rng.choice(SIZES), rng.choice([1, 2, 5])
    drawn = Drawn(rng, sheet, [])
    columns = {ID: _ids(rng, rows), QUALITY: _qualities(drawn, rows), FEATURES: _features(drawn, rows, dim)}
    columns[TEXT] = [f"{rng.choice(WORDS)} of {number}" for number in range(rows)]
    drawn.rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
    for row in drawn.rows:
        if rng.random() < 0.3:
            row["n"] = rng.choice([1, 2.5, None])
        if rng.random() < 0.3 and not sheet:
            row["of"] = rng.choice([{"a": [{"b": "c"}]}, {}, None])
    if rows > 1 and drawn.maybe(0.04, "a repeated id"):
        drawn.rows[0][ID] = drawn.rows[1][ID]
    if drawn.maybe(0.04, "a value missing"):
        del rng.choice(drawn.rows)[rng.choice([ID, QUALITY, FEATURES])]
    if drawn.maybe(0.03, "a column missing"):
        gone = rng.choice([ID, QUALITY, FEATURES])
        drawn.rows = [{name: value for name, value in row.items() if name != gone} for row in drawn.rows]
    if drawn.maybe(0.03, "several kinds in a column"):
        for row in drawn.rows:
            row["kinds"] = rng.choice([1, "a", [1], {"a": 1}, True, "2020-01-01"])
    return drawn


def _lines(drawn: Drawn) -> str:
    rng, texts = drawn.rng, []
    ascii_only, separators = rng.random() < 0.5, rng.choice([(", ", ": "), (",", ":"), (" ,\t", " : ")])
    for row in drawn.rows:
        names = rng.sample(list(row), len(row)) if rng.random() < 0.5 else list(row)
        line = json.dumps({name: row[name] for name in names}, ensure_ascii=ascii_only, separators=separators)
        texts.append(line)
    if drawn.maybe(0.04, "a key twice"):
        texts[-1] = texts[-1][:-1] + f', "{rng.choice([ID, QUALITY, TEXT])}": 1}}'
    end = rng.choice(["\n", "\n", "\r\n"])
    if rng.random() < 0.2:
        texts.insert(rng.randrange(len(texts) + 1), rng.choice(["", " ", "\t"]))
    return end.join(texts) + (end if rng.random() < 0.8 else "")


def _sheet(drawn: Drawn) -> str:
    rng = drawn.rng
    names = list(dict.fromkeys(name for row in drawn.rows for name in row))
    rng.shuffle(names)
    end = rng.choice(["\n", "\n", "\r\n"])
    written = io.StringIO()
    separator = ";" if drawn.maybe(0.03, "another separator") else ","
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    writer = csv.writer(written, quoting=quoting, lineterminator=end, delimiter=separator)
    head = list(names)
    if drawn.maybe(0.04, "a name twice"):
        head[rng.randrange(len(head))] = rng.choice(head)
    writer.writerow(head)
    odd = rng.randrange(len(drawn.rows)) if drawn.maybe(0.04, "a row of another length") else None
    for place, row in enumerate(drawn.rows):
        cells = [row.get(name) for name in names]
        cells = [json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in cells]
        writer.writerow(cells[:-1] if place == odd and rng.random() < 0.5 else [*cells, 1] if place == odd else cells)
        if rng.random() < 0.02:
            written.write(end)
    content = written.getvalue()
    return content if rng.random() < 0.8 else content.removesuffix(end)


def _packed(data: bytes, rng: random.Random) -> bytes:
    """gzip, of one member or several."""
    cuts = sorted({0, len(data), *(rng.randrange(len(data) + 1) for _ in range(rng.choice([0, 0, 1, 3])))})
    return b"".join(gzip.compress(data[low:high], rng.choice([1, 6, 9])) for low, high in itertools.pairwise(cuts))


def run_drawn(number: int, folder: Path) -> str:
    """Draw a file, look, open, compare; every fourth time select from it as well."""
    rng, ending = random.Random(f"text {number}"), ENDINGS[number % len(ENDINGS)]
    drawn = _draw(rng, _is_sheet(ending))
    content = _sheet(drawn) if drawn.sheet else _lines(drawn)
    data = ((BOM if rng.random() < 0.15 else "") + content).encode()
    path = folder / f"drawn{ending}"
    path.write_bytes(_packed(data, rng) if ending.endswith(".gz") else data)
    config = CorpusConfig((str(path),), drop_invalid=rng.random() < 0.3)
    _, inspection = attempted(lambda: inspect_inputs(config), "inspecting")
    if inspection is not None:
        f"{inspection.schema} {inspection.problems} {inspection.columns}".encode()
    word, corpus = attempted(lambda: open_corpus(config), "opening")
    if word == REFUSED and not drawn.odd:
        raise Finding("a plain corpus was refused")
    if corpus is None:
        return word
    check_same(corpus)
    if TEXT in corpus.metadata.column_names:
        check_column(corpus, TEXT)
    if number % 4 == 0 and len(corpus) > 1:
        return select_and_check(corpus, config, np.random.default_rng([88, number]), folder)
    return word


# -- damaged -----------------------------------------------------------------------------------------------------------

DAMAGE = (
    "bit",
    "bytes",
    "sign",
    "cut",
    "zeroed",
    "doubled",
    "line torn",
    "line gone",
    "end gone",
    "number",
)
PACKED_DAMAGE = ("bit", "bytes", "cut", "zeroed", "doubled", "end gone", "end gone", "head", "tail", "more behind")
SIGNS = b'{}[]",:\\\n\r\t 0-+.eE\x00\xff\xc3'
NUMBERS = (b"1e400", b"-1e400", b"NaN", b"Infinity", b"1e-400", b"0x10", b"007", b"1_0", b"9" * 400, b"-", b"1.", b".5")


@functools.cache
def _base(ending: str) -> bytes:
    rng = random.Random("base")
    rows = [
        {ID: f"id{number}", QUALITY: rng.gauss(0, 1), FEATURES: [rng.gauss(0.5, 1) for _ in range(4)]}
        | {TEXT: f'text {number}, "é"\nand more', "n": number}
        for number in range(40)
    ]
    drawn = Drawn(random.Random(1), _is_sheet(ending), rows)
    if not drawn.sheet:
        data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    else:
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerows(
            [list(rows[0]), *([row[ID], row[QUALITY], json.dumps(row[FEATURES]), row[TEXT], row["n"]] for row in rows)]
        )
        data = written.getvalue().encode()
    return gzip.compress(data, mtime=0) if ending.endswith(".gz") else data


def mutate(data: bytes, kind: str, rng: random.Random) -> bytes:
    """The file with damage of that kind."""
    file, at = bytearray(data), rng.randrange(len(data))
    size = rng.randrange(1, 200)
    if kind == "bit":
        file[at] ^= 1 << rng.randrange(8)
    elif kind == "bytes":
        for _ in range(rng.randrange(1, 5)):
            file[rng.randrange(len(file))] = rng.randrange(256)
    elif kind == "sign":
        file[at : at + rng.randrange(2)] = bytes([rng.choice(SIGNS)])
    elif kind == "cut":
        del file[at : at + size]
    elif kind == "zeroed":
        file[at : at + size] = bytes(len(file[at : at + size]))
    elif kind == "doubled":
        file[at:at] = file[at : at + size]
    elif kind == "line torn":
        file[at:at] = rng.choice([b"\n", b"\r\n", b"\r", b"\n\n"])
    elif kind == "line gone":
        del file[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at) + 1]
    elif kind == "end gone":
        del file[at:]
    elif kind == "number":
        digits = [place for place in range(1, len(data)) if data[place - 1] in b" ,[" and data[place] in b"-0123456789"]
        at = rng.choice(digits)
        end = next(place for place in range(at, len(data)) if data[place] not in b"-+.eE0123456789")
        file[at:end] = rng.choice(NUMBERS)
    elif kind == "head":
        file[rng.randrange(10)] = rng.randrange(256)
    elif kind == "tail":
        file[rng.randrange(len(file) - 8, len(file))] ^= 1 << rng.randrange(8)
    elif kind == "more behind":
        file += rng.choice([b"junk", bytes(512), data, data[:40], data[:-4], b"\x1f\x8b"])
    return bytes(file)


def _damage(number: int) -> tuple[str, str]:
    ending = ENDINGS[number % 4]
    kinds = PACKED_DAMAGE if ending.endswith(".gz") else DAMAGE
    return ending, kinds[number // 4 % len(kinds)]


def run_damaged(number: int, folder: Path) -> str:
    """Inspect and open one damaged file."""
    ending, kind = _damage(number)
    path = folder / f"mutant{ending}"
    path.write_bytes(mutate(_base(ending), kind, random.Random(f"text bytes {number}")))
    config = CorpusConfig((str(path),))
    attempted(lambda: inspect_inputs(config), "inspecting", naming=path.name)
    word, corpus = attempted(lambda: open_corpus(config), "opening", naming=path.name)
    if corpus is not None:
        check_same(corpus)
        if TEXT in corpus.metadata.column_names:
            check_column(corpus, TEXT)
    return word


# -- made by hand ------------------------------------------------------------------------------------------------------


def _line(number: int, **values: object) -> str:
    row = {ID: f"id{number}", QUALITY: number + 0.5, FEATURES: [1.0, 2.0 + number]} | values
    return json.dumps(row) + "\n"


ROWS = 12
PLAIN = "".join(_line(number) for number in range(ROWS))
HEAD = f"{ID},{QUALITY},{FEATURES}\n"
SHEET = HEAD + "".join(f'id{number},{number + 0.5},"[1.0, {2.0 + number}]"\n' for number in range(ROWS))


def _file(name: str, content: str | bytes) -> Make:
    def make(folder: Path) -> None:
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(gzip.compress(data, 1) if name.endswith(".gz") else data)

    return make


def _beside(name: str, content: str, other: str, more: str) -> Make:
    def make(folder: Path) -> None:
        _file(name, content)(folder)
        _file(other, more)(folder)

    return make


def _members(name: str, parts: Callable[[], Iterable[str | tuple[bytes, int]]]) -> Make:
    """A gzip file of many members: texts, or bytes (already packed) so many times."""

    def make(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            for part in parts():
                file.write(gzip.compress(part.encode(), 1) if isinstance(part, str) else part[0] * part[1])

    return make


@functools.cache
def _many(letter: str, megabytes: int = 1) -> bytes:
    return gzip.compress(letter.encode() * (megabytes << 20), 9)


def _texts(sheet: bool, rows: int) -> Iterable[str | tuple[bytes, int]]:
    """Rows of a megabyte of text each."""
    if sheet:
        yield HEAD.strip() + ",text\n"
    for number in range(rows):
        row = f'id{number},{number}.5,"[1.0, {number}.0]",' if sheet else _line(number).rstrip("}\n") + ', "text": "'
        yield row
        yield _many("z"), 1
        yield "\n" if sheet else '"}\n'


def _endless(before: str, letter: str, megabytes: int) -> Iterable[str | tuple[bytes, int]]:
    yield before
    yield _many(letter), megabytes


def _wide(rows: int, dim: int) -> Iterable[str | tuple[bytes, int]]:
    """Rows of so many dimensions, all ones."""
    ones = gzip.compress(b"1," * (dim - 1) + b"1]}\n", 9)
    for number in range(rows):
        yield json.dumps({ID: f"id{number}", QUALITY: 0.5 + number})[:-1] + f', "{FEATURES}": ['
        yield ones, 1


CASES: tuple[tuple[str, str, Make], ...] = (
    ("plain lines", ACCEPTED, _file("a.jsonl", PLAIN)),
    ("plain sheet", ACCEPTED, _file("a.csv", SHEET)),
    ("packed lines", ACCEPTED, _file("a.jsonl.gz", PLAIN)),
    ("packed sheet", ACCEPTED, _file("a.csv.gz", SHEET)),
    ("lines with a BOM and CRLF", ACCEPTED, _file("a.jsonl", BOM + PLAIN.replace("\n", "\r\n"))),
    ("a sheet with a BOM and CRLF", ACCEPTED, _file("a.csv", BOM + SHEET.replace("\n", "\r\n"))),
    ("lines in UTF-16", REFUSED, _file("a.jsonl", PLAIN.encode("utf-16"))),
    ("a sheet in UTF-16", REFUSED, _file("a.csv", SHEET.encode("utf-16"))),
    ("gzip in gzip", REFUSED, _file("a.jsonl.gz", gzip.compress(PLAIN.encode()))),
    ("an empty gzip", REFUSED, _file("a.jsonl.gz", "")),
    ("an empty sheet in gzip", REFUSED, _file("a.csv.gz", "")),
    ("a key that one line has", ACCEPTED, _file("a.jsonl", PLAIN + _line(99, rare="x"))),
    ("no quality in one line", REFUSED, _file("a.jsonl", PLAIN + f'{{"{ID}": "z", "{FEATURES}": [1, 1]}}\n')),
    ("a key twice", REFUSED, _file("a.jsonl", PLAIN + _line(99)[:-2] + f', "{ID}": "b"}}\n')),
    ("a header twice", REFUSED, _file("a.csv", SHEET.replace(HEAD, HEAD.replace(QUALITY, ID)))),
    ("spare headers twice", EITHER, _file("a.csv", SHEET.replace("\n", ",x,x\n"))),
    (
        "headers without a name",
        EITHER,
        _file("a.csv", HEAD.strip() + ",,\n" + SHEET[len(HEAD) :].replace("\n", ",1,2\n")),
    ),
    *(
        (f"quality {value}", expected, _file("a.jsonl", PLAIN + _line(99).replace("99.5", value)))
        for value, expected in (
            ("1e400", REFUSED),
            ("NaN", REFUSED),
            ("-Infinity", REFUSED),
            ("1e308", EITHER),
            ("1e-400", EITHER),
            ("9" * 30, REFUSED),
            ("9" * 400, REFUSED),
            ("007", REFUSED),
            ("0x10", REFUSED),
            ("true", REFUSED),
            ('"7"', REFUSED),
            ("null", REFUSED),
            ("[1]", REFUSED),
            ("{}", REFUSED),
        )
    ),
    *(
        (f"quality {value} in a sheet", expected, _file("a.csv", SHEET + f'z,{value},"[1, 1]"\n'))
        for value, expected in (
            ("1e400", REFUSED),
            ("NaN", REFUSED),
            ("-inf", REFUSED),
            ("9" * 30, REFUSED),
            ("9" * 400, REFUSED),
            ("0x10", REFUSED),
            ("1_0", REFUSED),
            ('"1,5"', REFUSED),
            ("", REFUSED),
        )
    ),
    *(
        (
            f"ids {name} in a sheet",
            expected,
            _file("a.csv", HEAD + "".join(f'{i},{k},"[1, {k}]"\n' for k, i in enumerate(ids))),
        )
        for name, expected, ids in (
            ("with zeros", ACCEPTED, [f"{number:05d}" for number in range(ROWS)]),
            ("hexadecimal", ACCEPTED, [f"0x{number:x}" for number in range(ROWS)]),
            ("with blanks", EITHER, [f" {number} " for number in range(ROWS)]),
            ("with signs", EITHER, [f"+{number}" for number in range(ROWS)]),
            ("beyond 2^63", EITHER, [2**63 + number for number in range(ROWS)]),
            ("beyond 2^53 and a half", EITHER, [*(2**53 + number for number in range(ROWS)), "1.5"]),
            ("that say NA", EITHER, ["NA", *range(ROWS)]),
            ("of dates", EITHER, [f"2020-01-{number + 1:02d}" for number in range(ROWS)]),
            ("of formulas", ACCEPTED, [f"=1+{number}" for number in range(ROWS)]),
        )
    ),
    *(
        (f"ids {name}", expected, _file("a.jsonl", "".join(_line(k, **{ID: i}) for k, i in enumerate(ids))))
        for name, expected, ids in (
            ("whole", ACCEPTED, list(range(ROWS))),
            ("beyond 2^63", EITHER, [2**63 + number for number in range(ROWS)]),
            ("of dates", EITHER, [f"2020-01-{number + 1:02d}" for number in range(ROWS)]),
            ("with NUL", EITHER, [f"a\0{number}" for number in range(ROWS)]),
            ("empty", REFUSED, [""] * ROWS),
            ("of lists", REFUSED, [[number] for number in range(ROWS)]),
        )
    ),
    (
        "features in lists in lists",
        REFUSED,
        _file("a.jsonl", "".join(_line(k, **{FEATURES: [[1.0, k]]}) for k in range(9))),
    ),
    ("features 64 deep", REFUSED, _file("a.jsonl", PLAIN + _line(99).replace("[1.0", "[" * 5000 + "1.0"))),
    ("features of huge whole numbers", EITHER, _file("a.jsonl", PLAIN + _line(99, **{FEATURES: [10**40, 1]}))),
    ("features 1e400 in a sheet", REFUSED, _file("a.csv", SHEET + 'z,1,"[1e400, 1]"\n')),
    (
        "spare values 5,000 deep",
        REFUSED,
        _file("a.jsonl", PLAIN + _line(99)[:-2] + ', "x": ' + "[" * 5000 + "]" * 5000 + "}\n"),
    ),
    ("other keys beside", REFUSED, _beside("a.jsonl", PLAIN, "b.jsonl", '{"x": 1}\n')),
    ("same ids beside", REFUSED, _beside("a.jsonl", PLAIN, "b.jsonl.gz", PLAIN)),
    ("another format beside", EITHER, _beside("a.jsonl", PLAIN, "b.csv", SHEET)),
    ("bomb of a line", REFUSED, _members("a.jsonl.gz", lambda: _endless(PLAIN, " ", 20_000))),
    ("bomb of a text", REFUSED, _members("a.jsonl.gz", lambda: _endless(PLAIN + '{"text": "', "z", 20_000))),
    ("bomb of a quote", REFUSED, _members("a.csv.gz", lambda: _endless(SHEET + '"', "\n", 20_000))),
    ("bomb of a header", REFUSED, _members("a.csv.gz", lambda: _endless("", "a", 20_000))),
    ("bomb of commas", REFUSED, _members("a.csv.gz", lambda: _endless("", ",", 20_000))),
    ("bomb of brackets", REFUSED, _members("a.jsonl.gz", lambda: _endless(PLAIN, "[", 20_000))),
    ("bomb of empty lines", EITHER, _members("a.jsonl.gz", lambda: _endless(PLAIN, "\n", 20))),
    ("bomb of empty rows", EITHER, _members("a.csv.gz", lambda: _endless(SHEET, "\n", 4))),
    ("bomb of 100 texts", ACCEPTED, _members("a.jsonl.gz", lambda: _texts(False, 100))),
    ("bomb of 100 texts in a sheet", ACCEPTED, _members("a.csv.gz", lambda: _texts(True, 100))),
    ("bomb of features", EITHER, _members("a.jsonl.gz", lambda: _wide(800, 2_000))),
)
MEMORY = 256 << 20
"""Bytes the program is told it may use: a quarter is its budget, and 100 texts of a megabyte are sampled or refused."""


def run_crafted(number: int, folder: Path) -> str:
    """As `crafted.run`."""
    return open_and_use(*CASES[number], folder, MEMORY)


FAMILIES = (
    Family("drawn text files", 4_000, run_drawn, lambda number: ENDINGS[number % len(ENDINGS)]),
    Family("text file bytes", 4_000, run_damaged, lambda number: " ".join(_damage(number))),
    Family("crafted text files", len(CASES), run_crafted, lambda number: CASES[number][0]),
)
