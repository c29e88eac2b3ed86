"""Bad input, by table: each case gets one sentence that names the file, column or row, and the way out."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import inspect_inputs, open_corpus
from datamask.errors import InputError
from tests.making.control_groups import memory_of


def table(n=8, dim=4, start=0, drop=(), **columns):
    """A good shard in the paper's format, with anything replaced, added or dropped."""
    rng = np.random.default_rng(start)
    base = {
        "chunk_id": [f"c{start + i}" for i in range(n)],
        "quality_score": rng.uniform(1, 2, n),
        "feature_arr": lists(rng.normal(size=(n, dim))),
    }
    return pa.table({name: value for name, value in (base | columns).items() if name not in drop})


def lists(rows, kind=None):
    rows = [None if row is None else [None if value is None else float(value) for value in row] for row in rows]
    return pa.array(rows, kind or pa.list_(pa.float32()))


def feature_rows(*special, n=8, dim=4):
    """Good features, the first rows replaced."""
    rows = np.random.default_rng(0).normal(size=(n, dim)).tolist()
    rows[: len(special)] = special
    return rows


def write(folder, *tables, **options):
    for number, one in enumerate(tables):
        pq.write_table(one, folder / f"part-{number}.parquet", **options)


def shards(*tables):
    """How a folder with these shards is made."""
    return lambda folder: write(folder, *tables)


def huge(n, dim):
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ones(n * dim, np.float16)), dim)


def bad(*rows):
    """A shard with good features but for the first rows."""
    return table(feature_arr=lists(feature_rows(*rows)))


def cut(folder, keep):
    write(folder, table(100))
    path = folder / "part-0.parquet"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])


def damage(folder):
    write(folder, table(3000, 16), compression="zstd", use_dictionary=False)
    path = folder / "part-0.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
    path.write_bytes(data)


def two_names(folder):
    one = table()
    columns, names = [*one.columns, one.column("quality_score")], [*one.column_names, "quality_score"]
    write(folder, pa.Table.from_arrays(columns, names))


def renamed(folder, names, one):
    write(folder, one.rename_columns(names))


NAN, INF = float("nan"), float("inf")
CASES = {
    # what is wrong: (how the folder is made, options, what the sentence holds)
    "path does not exist": (None, {"inputs": "nowhere.parquet"}, "--input .*nowhere.parquet does not exist"),
    "glob without match": (None, {"inputs": "*.parquet"}, r"--input .*\*.parquet matches no file"),
    "folder without parquet": (
        lambda d: (d / "a.txt").touch(),
        {},
        r"is a folder without any file to read .*\.parquet, .*\.json\.gz",
    ),
    "an address of a kind that is not read": (
        None,
        {"inputs": "ftp://host/x.parquet"},
        "--input ftp://host/x.parquet is an address that cannot be read; local files",
    ),
    "not parquet": (
        lambda d: (d / "part-0.parquet").write_text("chunk_id,quality\n"),
        {},
        "part-0.parquet is not a parquet file",
    ),
    "empty file": (lambda d: (d / "part-0.parquet").touch(), {}, "part-0.parquet is empty"),
    "cut short": (lambda d: cut(d, 0.7), {}, "part-0.parquet is not a parquet file, or was cut short"),
    "damaged inside": (damage, {}, "part-0.parquet is damaged .*row group 0"),
    "no rows": (shards(table(0)), {}, "part-0.parquet has no rows"),
    "no rows in any": (shards(table(0), table(0)), {}, "none of the 2 files of --input has any rows"),
    "no quality column": (shards(table(drop=["quality_score"])), {}, "no quality column .*--scores"),
    "no feature column": (shards(table(drop=["feature_arr"])), {}, "no feature column .*prepare.*--features"),
    "asked id missing": (shards(table()), {"id_column": "key"}, "no column 'key' .*--id_column"),
    "asked quality missing": (
        shards(table()),
        {"quality_columns": (QualityColumn("q"),)},
        "no column 'q' .*chunk_id, quality_score, feature_arr.*--quality_column",
    ),
    "asked features missing": (shards(table()), {"feature_column": "f"}, "no column 'f' .*--feature_column"),
    "asked length missing": (shards(table()), {"length_column": "l"}, "no column 'l' .*--length_column"),
    "column twice": (
        two_names,
        {"quality_columns": (QualityColumn("quality_score"),)},
        "2 columns called 'quality_score'",
    ),
    "several features": (
        shards(table(drop=["feature_arr"], a=lists(feature_rows()), b=lists(feature_rows()))),
        {},
        r"several columns that could be the feature \(a, b\).*--feature_column",
    ),
    "several qualities": (
        shards(table(drop=["quality_score"], a=np.ones(8), b=np.ones(8))),
        {},
        r"several columns that could be the quality \(a, b\).*--quality_column",
    ),
    "quality is text": (
        shards(table(quality_score=["good"] * 8)),
        {"quality_columns": (QualityColumn("quality_score"),)},
        "'quality_score' of .*part-0.parquet is string, but quality must be a number column",
    ),
    "features are numbers": (
        shards(table(feature_arr=np.ones(8))),
        {"feature_column": "feature_arr"},
        "'feature_arr' .* is double, but feature must be a column of lists",
    ),
    "features are lists of text": (
        shards(table(feature_arr=pa.array([["a"]] * 8))),
        {"feature_column": "feature_arr"},
        "is list<.*string>, but feature must be",
    ),
    "ids are floats": (
        shards(table(chunk_id=np.arange(8.0))),
        {"id_column": "chunk_id"},
        "'chunk_id' .* is double, but id must be a column of integers, texts",
    ),
    "lengths within a shard": (
        shards(bad([1, 2], [1, 2, 3])),
        {},
        "2 rows have features in column 'feature_arr' of another length than 4 .*'c0', 'c1'; .*part-0.parquet row 0",
    ),
    "lengths across shards": (
        shards(table(), table(dim=5, start=50)),
        {},
        "8 rows have features .* of another length than 4 .*part-1.parquet row 0.*--drop_invalid",
    ),
    "fixed lengths across shards": (
        shards(table(), table(start=50, feature_arr=lists(feature_rows(dim=3), pa.list_(pa.float32(), 3)))),
        {},
        "8 rows have features .* of another length than 4 .*part-1.parquet row 0",
    ),
    "empty features": (shards(table(feature_arr=lists([[]] * 8))), {}, "have no values"),
    "features all null": (shards(table(feature_arr=lists([None] * 8))), {}, "null in every row"),
    "column missing in a shard": (
        shards(table(), table(start=50, drop=["quality_score"])),
        {},
        "part-1.parquet has no column 'quality_score' .*part-0.parquet has",
    ),
    "type differs in a shard": (
        shards(table(), table(start=50, quality_score=["x"] * 8)),
        {},
        "'quality_score' of .*part-1.parquet is string",
    ),
    "ids differ in a shard": (
        shards(table(), table(start=50, chunk_id=np.arange(8))),
        {},
        "'chunk_id' is string in .*part-0.parquet but int64 in .*part-1.parquet",
    ),
    "NaN": (
        shards(bad([1, NAN, 1, 1])),
        {},
        r"1 row has NaN or infinite features in column 'feature_arr' \(ids 'c0'; .*part-0.parquet row 0\)",
    ),
    "infinity": (
        shards(bad([1, INF, 1, 1], [0, 0, 0, -INF])),
        {},
        "2 rows have NaN or infinite features .*'c0', 'c1'.*--drop_invalid",
    ),
    "many bad rows": (shards(bad(*[[NAN] * 4] * 6)), {}, r"6 rows have NaN .*'c0', 'c1', 'c2', \.\.\."),
    "all-zero": (shards(bad([0, -0.0, 0, 0])), {}, "1 row has all-zero features .*'c0'.*--drop_invalid"),
    "null features": (shards(bad([1, 2, 3, 4], None)), {}, "1 row has null features .*'c1'.*--drop_invalid"),
    "null inside features": (shards(bad([1, None, 3, 4])), {}, "1 row has NaN or infinite features"),
    "null quality": (
        shards(table(quality_score=[None, *[1.0] * 7])),
        {},
        "1 row has null quality in column 'quality_score' .*'c0'",
    ),
    "NaN quality": (
        shards(table(quality_score=[1.0, NAN, INF, *[1.0] * 5])),
        {},
        "2 rows have NaN or infinite quality .*'c1', 'c2'",
    ),
    "null length": (shards(table(token_count=[1, None, *[1] * 6])), {}, "null, infinite or negative length"),
    "negative length": (shards(table(token_count=[1, -1, *[1] * 6])), {}, "negative length in column 'token_count'"),
    "several faults": (
        shards(table(quality_score=[None, *[1.0] * 7], feature_arr=lists(feature_rows([0] * 4)))),
        {},
        "all-zero features .*; 1 row has null quality .*; repair them",
    ),
    "null id": (
        shards(table(), table(start=50, chunk_id=["a", None, *"bcdefg"])),
        {},
        "part-1.parquet row 1 has a null in the id column 'chunk_id'",
    ),
    "repeated id within": (
        shards(table(chunk_id=["a", "b", "b", *"cdefg"])),
        {},
        r"holds 1 id more than once \('b'; 'b' is in .*0.parquet row 1 and .*0.parquet row 2\)",
    ),
    "repeated id across": (
        shards(table(), table(start=7)),
        {},
        r"1 id more than once \('c7'; 'c7' is in .*0.parquet row 7 and .*1.parquet row 0\)",
    ),
    "repeated ids": (shards(table(), table()), {}, r"holds 8 ids more than once .*, \.\.\.;"),
    "a quality column twice": (
        shards(table()),
        {"quality_columns": (QualityColumn("quality_score"),) * 2},
        "names a column twice",
    ),
    "a quality column of one name with another": (
        two_names,
        {},
        "has 2 columns called 'quality_score', one of which could be the quality; rename all but one",
    ),
    "numbers of one name": (
        lambda d: renamed(d, ["chunk_id", "k", "feature_arr", "k"], table(a=range(8))),
        {},
        "has 2 columns called 'k', one of which could be the quality",
    ),
    "features of one name": (
        lambda d: renamed(
            d, ["chunk_id", "quality_score", "feature_arr", "feature_arr"], table(a=lists(feature_rows()))
        ),
        {},
        "has 2 columns called 'feature_arr', one of which could be the feature",
    ),
    "quality beyond all sums": (shards(table(quality_score=[1e308] * 8)), {}, "too large for 8 rows to be summed"),
    "quality beyond float64": (
        shards(table(quality_score=[2**62 + i for i in range(8)])),
        {},
        "float64 takes 7 of them for equal to others; rank them with --quality_column",
    ),
    "lengths beyond all sums": (
        shards(table(n_tokens=[1e308] * 8)),
        {},
        "length in column 'n_tokens' is up to 1e.308 .*part-0.parquet row 0., too large for 8",
    ),
    "more than memory": (
        shards(table(4, feature_arr=huge(4, 2**20), drop=["x"])),
        {"huge": True},
        "2 rows of 1,048,576 dimensions need 56 MiB of memory, but this process may use 8 MiB; .*--rows",
    ),
    "all rows invalid": (
        shards(table(feature_arr=lists([[0] * 4] * 8))),
        {"drop_invalid": True},
        "every one of the 8 rows is invalid .*8 with all-zero features",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_sentence(case, tmp_path, monkeypatch):
    make, options, expected = CASES[case]
    options = dict(options)
    if make is not None:
        make(tmp_path)
    if options.pop("huge", False):
        memory_of(monkeypatch, tmp_path, 10 << 20)
    inputs = options.pop("inputs", "")
    inputs = inputs if "://" in inputs else str(tmp_path / inputs)
    with pytest.raises(InputError) as raised:
        open_corpus(CorpusConfig((inputs,), **options))
    message = str(raised.value)
    assert re.search(expected, message), message
    assert "\n" not in message and "Traceback" not in message and len(message) < 700


@pytest.mark.parametrize("case", [name for name, (make, _, _) in CASES.items() if make is not None])
def test_inspecting_bad_input_lists_problems_or_says_the_same(case, tmp_path):
    make, options, _ = CASES[case]
    make(tmp_path)
    options = {name: value for name, value in options.items() if name != "huge"}
    try:
        inspection = inspect_inputs(CorpusConfig((str(tmp_path),), **options))
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert all("\n" not in problem for problem in inspection.problems)


def test_an_unreadable_file_is_one_sentence(tmp_path):
    (tmp_path / "x.parquet").mkdir()
    with pytest.raises(InputError, match="without any file to read"):
        open_corpus(CorpusConfig((str(tmp_path),)))
    for path in ("x" * 5000, "a\0b"):
        with pytest.raises(InputError, match=r"^--input .* (cannot be read|does not exist)"):
            open_corpus(CorpusConfig((path,)))


def test_bytes_flipped_anywhere_are_never_a_traceback(tmp_path):
    write(tmp_path, table(60), row_group_size=25)
    path = tmp_path / "part-0.parquet"
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        data = bytearray(good)
        for place in rng.integers(0, len(data), 3):
            data[place] = rng.integers(0, 256)
        path.write_bytes(data)
        try:
            open_corpus(CorpusConfig((str(path),), rows=40))
        except InputError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 50
