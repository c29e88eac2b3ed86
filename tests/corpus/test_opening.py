"""open_corpus: what it reads, in which order, and what it says about it."""

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import inspect_inputs, open_corpus
from datamask.corpus.opening import LOOK_SHARE, read_corpus
from datamask.errors import InputError, Stopped
from datamask.memory import memory_bytes
from datamask.work.context import Work

FINGERPRINTS = {
    pa.float16(): "9a74001ec77835b84eb79ac32de29d49",
    pa.float32(): "4c0644c68202f4a684c4f59418a4ec07",
    pa.float64(): "a68e67c9ace7720f916a3f0d5c66acc7",
}
"""Of version 5b8be39."""


def table(n=20, dim=4, seed=0, start=0, **columns):
    """A shard in the paper's format, with anything replaced or added."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, dim)).astype(np.float32)
    base = {
        "chunk_id": pa.array([f"c{start + i}" for i in range(n)]),
        "quality_score": pa.array(rng.uniform(size=n)),
        "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), dim),
    }
    return pa.table(base | columns)


def test_two_shards_are_read_in_order_with_unit_features(tmp_path):
    first, second = table(7), table(5, seed=1, start=7)
    pq.write_table(second, tmp_path / "b.parquet")
    pq.write_table(first, tmp_path / "a.parquet")
    corpus = open_corpus(CorpusConfig((str(tmp_path),)))
    assert corpus.ids.to_pylist() == [f"c{i}" for i in range(12)]
    raw = np.array(first["feature_arr"].to_pylist() + second["feature_arr"].to_pylist())
    expected = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(corpus.features, expected, atol=1e-6)
    expected = [*first["quality_score"].to_pylist(), *second["quality_score"].to_pylist()]
    np.testing.assert_array_equal(corpus.quality, expected)
    assert corpus.source_file.tolist() == [0] * 7 + [1] * 5
    assert corpus.source_row.tolist() == [*range(7), *range(5)]
    assert corpus.features.flags.c_contiguous and not corpus.features.flags.writeable
    assert len(corpus) == corpus.provenance.total_rows == corpus.provenance.rows_read == 12


def test_several_quality_columns_add_up_with_weights_and_stay_as_metadata(tmp_path):
    a, b = np.arange(20.0), np.arange(20.0)[::-1] ** 2
    pq.write_table(table(a=pa.array(a), b=pa.array(b)), tmp_path / "x.parquet")
    config = CorpusConfig(
        (str(tmp_path / "x.parquet"),), quality_columns=(QualityColumn("a", 2.0, "rank"), QualityColumn("b", 0.5, "z"))
    )
    corpus = open_corpus(config)
    np.testing.assert_allclose(corpus.quality, 2 * a / 19 + 0.5 * (b - b.mean()) / b.std())
    assert {"a", "b", "quality_score"} <= set(corpus.metadata.column_names)


def test_stop_ends_opening(tmp_path):
    pq.write_table(table(), tmp_path / "x.parquet")
    with pytest.raises(Stopped):
        open_corpus(CorpusConfig((str(tmp_path),)), should_stop=lambda: True)


def test_columns_of_wide_shards_are_each_looked_up_once(tmp_path):
    def cpu_per_column(count):
        pq.write_table(table(**{f"c{i}": pa.array(range(20), pa.int8()) for i in range(count)}), tmp_path / "x.parquet")
        began = time.process_time()
        assert open_corpus(str(tmp_path)).metadata.num_columns == count
        return (time.process_time() - began) / count

    cpu_per_column(8)
    # CPU seconds, of which searching all names once per column takes eight times as many
    assert cpu_per_column(4_000) < 3 * cpu_per_column(500)


def test_columns_are_put_together_one_poll_each(tmp_path):
    pq.write_table(table(**{f"c{i}": pa.array(range(20)) for i in range(50)}), tmp_path / "x.parquet")
    asked = Counter()
    doing = ""

    def report(share, what):
        nonlocal doing
        doing = what

    read_corpus(CorpusConfig((str(tmp_path),)), Work(lambda: asked.update([doing]), report))
    assert max(asked.values()) >= 50


def test_invalid_rows_are_refused_then_dropped(tmp_path):
    features = np.ones((6, 3), np.float32)
    features[1, 2], features[3], features[4, 0] = np.nan, 0, np.inf
    pq.write_table(
        pa.table(
            {
                "chunk_id": pa.array(range(6)),
                "quality_score": [1.0, 2, 3, 4, 5, None],
                "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 3),
            }
        ),
        tmp_path / "x.parquet",
    )
    with pytest.raises(InputError, match=r"2 rows have NaN or infinite features .*ids 1, 4; .*--drop_invalid"):
        open_corpus(CorpusConfig((str(tmp_path),)))
    corpus = open_corpus(CorpusConfig((str(tmp_path),), drop_invalid=True))
    assert corpus.ids.to_pylist() == [0, 2]
    assert sum(corpus.provenance.dropped.values()) == 4
    assert corpus.source_row.tolist() == [0, 2]


def test_metadata_of_shards_that_differ_is_brought_together(tmp_path):
    def words(*values):
        return pa.array(values).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))

    first = table(
        3,
        domain=words("a", "b", "a"),
        year=pa.array([1, 2, 3], pa.int16()),
        note=pa.array(["x", "y", "z"]),
        mixed=pa.array([1, 2, 3]),
        other=pa.array([[1.0]] * 3),
        raw=pa.array([b"0"] * 3),
    )
    second = table(
        2,
        start=3,
        domain=words("c", "a"),
        year=pa.array([4, 5], pa.int64()),
        mixed=pa.array(["p", "q"]),
        other=pa.array([[1.0]] * 2),
        raw=pa.array([b"0"] * 2),
    )
    pq.write_table(first, tmp_path / "a.parquet")
    pq.write_table(second, tmp_path / "b.parquet")
    corpus = open_corpus(CorpusConfig((str(tmp_path),)))
    assert corpus.metadata.to_pydict() == {
        "domain": ["a", "b", "a", "c", "a"],
        "year": [1, 2, 3, 4, 5],
        "note": ["x", "y", "z", None, None],
    }
    assert pa.types.is_dictionary(corpus.metadata.schema.field("domain").type)
    assert len({str(chunk.dictionary) for chunk in corpus.metadata["domain"].chunks}) == 1, "one dictionary"
    notes = " ".join(corpus.provenance.notes)
    for said in (
        "'mixed' was left out: its type differs",
        "'other' (list<",
        "'raw' (binary) was left out",
        "'note' is missing from 1 of 2 files",
    ):
        assert said in notes


def test_dictionaries_of_many_shards_may_outgrow_their_index(tmp_path):
    for number in range(3):
        values = [f"{number} {i}" for i in range(100)]
        pq.write_table(
            table(
                100,
                start=100 * number,
                domain=pa.DictionaryArray.from_arrays(pa.array(np.arange(100), pa.int8()), pa.array(values)),
            ),
            tmp_path / f"{number}.parquet",
        )
    corpus = open_corpus(CorpusConfig((str(tmp_path),)))
    assert corpus.metadata["domain"].to_pylist() == [f"{n} {i}" for n in range(3) for i in range(100)]


@pytest.mark.parametrize(
    "kinds, values",
    [
        ((pa.binary(16), pa.int64()), ([b"0" * 16] * 3, [1, 2, 3])),
        ((pa.int64(), pa.timestamp("us")), ([1, 2, 3], [1, 2, 3])),
        ((pa.binary(16), pa.bool_()), ([b"0" * 16] * 3, [True, False, None])),
    ],
)
def test_columns_that_are_no_numbers_in_all_shards_do_not_become_numbers(tmp_path, kinds, values):
    for number, (kind, column) in enumerate(zip(kinds, values)):
        pq.write_table(table(3, start=3 * number, x=pa.array(column, kind)), tmp_path / f"{number}.parquet")
    corpus = open_corpus(CorpusConfig((str(tmp_path),)))
    assert "x" not in corpus.metadata.column_names
    assert any("Column 'x' was left out: its type differs between shards" in note for note in corpus.provenance.notes)


def test_flags_and_numbers_are_numbers(tmp_path):
    pq.write_table(table(2, x=pa.array([True, False])), tmp_path / "a.parquet")
    pq.write_table(table(2, start=2, x=pa.array([7, 8], pa.int8())), tmp_path / "b.parquet")
    assert open_corpus(CorpusConfig((str(tmp_path),))).metadata["x"].to_pylist() == [1, 0, 7, 8]


def test_a_corpus_without_metadata_has_an_empty_table_of_its_length(tmp_path):
    pq.write_table(table(4), tmp_path / "x.parquet")
    corpus = open_corpus(CorpusConfig((str(tmp_path),), rows=3))
    assert corpus.metadata.num_rows == 3 and corpus.metadata.num_columns == 0


def test_integer_ids_of_several_widths_are_widened_and_those_without_a_common_type_refused(tmp_path):
    for number, kind in enumerate((pa.uint8(), pa.int8(), pa.int32())):
        ids = pa.array(np.arange(3 * number, 3 * number + 3), kind)
        pq.write_table(table(3, chunk_id=ids), tmp_path / f"{number}.parquet")
    corpus = open_corpus(CorpusConfig((str(tmp_path),)))
    assert corpus.ids.type == pa.int64() and corpus.ids.to_pylist() == list(range(9))
    pq.write_table(table(3, chunk_id=pa.array([20, 21, 22], pa.uint64())), tmp_path / "3.parquet")
    with pytest.raises(InputError, match=r"'chunk_id' is uint8 in .*0\.parquet but uint64 in .*3\.parquet"):
        open_corpus(CorpusConfig((str(tmp_path),)))


def test_long_texts_shrink_the_default_budget(tmp_path):
    for name, words in (("short", 1), ("long", 20_000)):
        text = [" ".join(map(str, np.random.default_rng(i).integers(0, 9, words))) for i in range(20)]
        pq.write_table(table(20, text=pa.array(text)), tmp_path / f"{name}.parquet", row_group_size=6)
    short, long = (inspect_inputs(CorpusConfig((str(tmp_path / f"{name}.parquet"),))) for name in ("short", "long"))
    assert short.row_limit == 200_000 > long.row_limit
    per_row = memory_bytes() / 4 / long.row_limit
    assert 40_000 < per_row < 46_000, "20 000 digits and spaces are 40 kB"


def test_lengths_are_read_and_kept_in_step(tmp_path):
    pq.write_table(
        table(5, token_count=pa.array([5, 4, 3, 2, 1]), quality_score=pa.array([1.0, None, 3, 4, 5])),
        tmp_path / "x.parquet",
    )
    corpus = open_corpus(CorpusConfig((str(tmp_path),), drop_invalid=True))
    assert corpus.lengths.tolist() == [5, 3, 2, 1] and corpus.lengths.dtype == np.float64
    assert corpus.provenance.columns["length"] == "token_count"
    assert corpus.provenance.dropped == {"null quality in column 'quality_score'": 1}


def test_dropping_rows_gives_the_corpus_that_never_had_them(tmp_path):
    good = table(5000, dim=3)
    features = np.array(good["feature_arr"].to_pylist(), np.float32)
    bad = np.random.default_rng(0).random(5000) < 0.3
    spoiled = features.copy()
    spoiled[bad, 1] = np.nan
    pq.write_table(
        good.set_column(2, "feature_arr", pa.FixedSizeListArray.from_arrays(pa.array(spoiled.ravel()), 3)),
        tmp_path / "bad.parquet",
    )
    pq.write_table(good.filter(~bad), tmp_path / "good.parquet")
    dropped = open_corpus(CorpusConfig((str(tmp_path / "bad.parquet"),), drop_invalid=True))
    never = open_corpus(CorpusConfig((str(tmp_path / "good.parquet"),)))
    assert dropped.fingerprint == never.fingerprint
    np.testing.assert_array_equal(dropped.features, never.features)
    np.testing.assert_array_equal(dropped.source_row, np.flatnonzero(~bad))
    assert dropped.features.flags.c_contiguous


def test_the_fingerprint_does_not_depend_on_dead_or_denormal_float16(tmp_path):
    rows = np.zeros((4, 3), np.float16)
    rows[:, 0], rows[:, 1] = [1, 2, 3, 4], np.float16(6e-8)  # a denormal; the last dimension is dead
    for name, kind in (("half", np.float16), ("single", np.float32)):
        features = pa.FixedSizeListArray.from_arrays(pa.array(rows.astype(kind).ravel()), 3)
        pq.write_table(table(4, feature_arr=features), tmp_path / f"{name}.parquet")
    half, single = (open_corpus(CorpusConfig((str(tmp_path / f"{name}.parquet"),))) for name in ("half", "single"))
    assert half.fingerprint == single.fingerprint
    assert (half.features[:, 1] > 0).all() and (half.features[:, 2] == 0).all()


def test_progress_ends_at_one_and_never_falls(tmp_path):
    pq.write_table(table(3000), tmp_path / "x.parquet", row_group_size=100)
    for options in ({}, {"rows": 100}):
        shares = []
        open_corpus(CorpusConfig((str(tmp_path),), **options), progress=lambda share, what: shares.append(share))  # noqa: B023
        assert shares == sorted(shares) and shares[-1] == 1.0


def test_opening_loads_no_heavy_library():
    code = (
        "import sys, datamask.corpus, datamask.corpus.neighbors, datamask.corpus.copies, "
        "datamask.corpus.shared_corpora, datamask.corpus.projections.layouts, datamask.corpus.density\n"
        "print([name for name in ('torch', 'sklearn', 'umap', 'numba', 'scipy', 'pandas', 'streamlit') "
        "if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


MEASURE = """
import sys
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from datamask.config import CorpusConfig
from datamask.corpus import inspect_inputs, open_corpus
from datamask.memory import memory_bytes
from datamask.work.context import Work

def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1024

rows = int(sys.argv[2]) or None
# one small opening first, so that libraries and thread pools are there
open_corpus(CorpusConfig((sys.argv[1],), rows=100))
before = peak()
corpus = open_corpus(CorpusConfig((sys.argv[1],), rows=rows))
print(peak() - before, corpus.features.nbytes / 2**20)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own account of peak memory")
def test_features_are_held_once_and_a_sample_never_loads_them_all(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(2):
        features = rng.normal(size=(50_000, 384)).astype(np.float16)
        pq.write_table(
            table(
                50_000,
                start=50_000 * number,
                feature_arr=pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 384),
            ),
            tmp_path / f"{number}.parquet",
            use_dictionary=False,
        )

    def measure(rows):
        out = subprocess.run(
            [sys.executable, "-c", MEASURE, str(tmp_path), str(rows)], capture_output=True, text=True, check=True
        )
        return map(float, out.stdout.split())

    # beside the one copy a decoded row group or two of 38 MB, as the threads that read happen to be ahead: 0.84 to 1.36
    # times the features in some thirty runs, on a quiet machine and on a busy one. A second copy is twice, or more
    peak, features = measure(0)
    assert 140 < features < 150 and peak < 1.7 * features
    peak, features = measure(500)
    assert features < 1 and peak < 70  # a row group of 38 MB at a time, and what its reader keeps; all rows are 146


@pytest.mark.parametrize("factor", [1e300, 1e-300, 2.0**-1040, 1e-39])
def test_double_features_that_no_float_holds_keep_their_direction(tmp_path, factor):
    rows = np.random.default_rng(0).normal(size=(12, 4))
    scaled, longer = rows.copy(), rows.copy()
    scaled[3] *= factor
    longer[3] *= 4 * factor  # the same but for a power of two
    for name, values in (("plain", rows), ("scaled", scaled), ("longer", longer)):
        column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 4)
        pq.write_table(table(12, feature_arr=column), tmp_path / f"{name}.parquet")
    plain, corpus = (open_corpus(CorpusConfig((str(tmp_path / f"{name}.parquet"),))) for name in ("plain", "scaled"))
    np.testing.assert_allclose(corpus.features, plain.features, atol=1e-6)
    others = np.arange(12) != 3
    np.testing.assert_array_equal(corpus.features[others], plain.features[others])
    np.testing.assert_allclose(corpus.norms, np.linalg.norm(rows, axis=1) * np.where(others, 1, factor), rtol=1e-6)
    other = open_corpus(CorpusConfig((str(tmp_path / "longer.parquet"),)))
    np.testing.assert_array_equal(other.features, corpus.features)
    assert len({plain.fingerprint, corpus.fingerprint, other.fingerprint}) == 3


def test_the_fingerprint_of_an_ordinary_corpus_stays(tmp_path):
    """Kept results and runs are found by it."""
    rng = np.random.default_rng(0)
    for kind, expected in FINGERPRINTS.items():
        values = pa.array(rng.integers(-8, 9, 80) / 8, pa.float64()).cast(kind)
        column = pa.FixedSizeListArray.from_arrays(values, 4)
        pq.write_table(
            pa.table(
                {
                    "chunk_id": [f"c{i}" for i in range(20)],
                    "quality_score": np.arange(20) / 4,
                    "feature_arr": column,
                    "n_tokens": range(20),
                }
            ),
            tmp_path / "a.parquet",
        )
        corpus = open_corpus(CorpusConfig((str(tmp_path / "a.parquet"),)))
        assert corpus.fingerprint == expected, kind


def test_metadata_of_one_name_is_left_out_in_all_shards(tmp_path):
    first, second = table(5, a=range(5), b=range(5)), table(5, start=5, a=range(5), b=range(5))
    pq.write_table(first, tmp_path / "0.parquet")
    second = second.rename_columns(["chunk_id", "quality_score", "feature_arr", "a", "a"])
    pq.write_table(second, tmp_path / "1.parquet")
    corpus = open_corpus(CorpusConfig((str(tmp_path),)))
    assert "a" not in corpus.metadata.column_names
    assert any("Column 'a' was left out: several" in note for note in corpus.provenance.notes)
    assert not inspect_inputs(CorpusConfig((str(tmp_path),))).problems


@pytest.mark.parametrize("rows", [None, 40])
@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_progress_goes_from_nothing_to_all_and_never_back(tmp_path, rows, ending):
    table = pa.table(
        {"id": [f"r{i}" for i in range(300)], "quality": np.arange(300.0), "features": np.eye(300)[:, :7].tolist()}
    ).slice(0, 7)
    tables = [table.set_column(0, "id", pa.array([f"{shard}-{i}" for i in range(7)])) for shard in range(20)]
    for shard, part in enumerate(tables):
        if ending == "parquet":
            pq.write_table(part, tmp_path / f"{shard}.parquet")
        else:
            (tmp_path / f"{shard}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part.to_pylist()))
    told = []
    open_corpus(CorpusConfig((str(tmp_path),), rows=rows), progress=lambda share, what: told.append((share, what)))
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] == 1.0
    before = max(share for share, what in told if what.startswith("Looking"))
    assert before == pytest.approx(0.0 if ending == "parquet" else LOOK_SHARE), "footers are read in moments"
    if rows is not None:
        assert any("Reading ids" in what for _, what in told)
