"""Hashes and uniform samples: uniform, independent of seed, and the same however the corpus is cut or ordered."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.config import CorpusConfig
from datamask.corpus import default_row_limit, open_corpus, row_hash, sampling
from datamask.corpus.sampling import BASE, Chosen, hash_under
from datamask.memory import memory_bytes


def plain_hash(value, seed):
    """`row_hash` of one id with Python's integers."""
    mask = 2**64 - 1

    def mix(x):
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
        x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
        return x ^ x >> 31

    base = int(BASE)
    if isinstance(value, str):
        data = value.encode()
        raw = sum((byte + 1) * pow(base, j, 2**64) for j, byte in enumerate(data)) + len(data) & mask
    else:
        raw = value & mask
    return mix(mix(raw + base & mask) ^ mix(seed * base + base & mask))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=20), st.integers(0, 2**63 - 1), st.integers(0, 5))
def test_strings_hash_alike_in_every_encoding_and_cut(values, seed, low):
    expected = [plain_hash(value, seed) for value in values]
    array = pa.array(values, pa.string())
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert row_hash(array.cast(kind), seed).tolist() == expected
    assert row_hash(array.dictionary_encode(), seed).tolist() == expected
    assert row_hash(array.slice(low), seed).tolist() == expected[low:]
    assert row_hash(pa.chunked_array([array.slice(0, low), array.slice(low)]), seed).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-128, 127), max_size=20), st.integers(0, 2**63 - 1))
def test_integers_hash_alike_in_every_width(values, seed):
    expected = [plain_hash(value, seed) for value in values]
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        assert row_hash(pa.array(values, kind), seed).tolist() == expected
    if all(value >= 0 for value in values):
        for kind in (pa.uint8(), pa.uint64()):
            assert row_hash(pa.array(values, kind), seed).tolist() == expected


def test_long_columns_are_hashed_piece_by_piece_to_the_same_numbers(monkeypatch):
    ids = pa.array([f"id-{i:x}" for i in range(500)])
    whole = row_hash(ids, 3)
    monkeypatch.setattr(sampling, "CHUNK", 7)
    np.testing.assert_array_equal(row_hash(ids, 3), whole)


def test_long_strings_are_hashed_piece_by_piece_to_the_same_numbers(monkeypatch):
    ids = pa.array(["", *("x" * k + "é" for k in range(300)), None, "y" * 2000])
    whole, longest = row_hash(ids, 3), []
    accumulate = np.cumsum
    monkeypatch.setattr(sampling, "CHUNK_BYTES", 500)
    monkeypatch.setattr(sampling.np, "cumsum", lambda values: longest.append(len(values)) or accumulate(values))
    assert np.array_equal(row_hash(ids, 3), whole)
    assert longest and max(longest) <= 500


@pytest.mark.parametrize(
    "ids", [pa.array(np.arange(40_000)), pa.array([f"doc-{i:06d}" for i in range(40_000)])], ids=["counting", "strings"]
)
def test_hashes_of_regular_ids_are_uniform_and_seeds_independent(ids):
    first, second = row_hash(ids, 0), row_hash(ids, 1)
    assert len(np.unique(first)) == len(ids)
    for hashes, shift in itertools.product((first, second, first ^ second), (0, 24, 56)):
        counts = np.bincount((hashes >> np.uint64(shift)).astype(np.uint8), minlength=256)
        chi = ((counts - len(ids) / 256) ** 2 / (len(ids) / 256)).sum()
        assert chi < 255 + 5 * np.sqrt(2 * 255), "five standard deviations of the chi-square of 256 equal cells"
    ranks = np.corrcoef(first.argsort().argsort(), second.argsort().argsort())[0, 1]
    assert abs(ranks) < 5 / np.sqrt(len(ids))


def test_every_row_is_as_likely_to_be_chosen():
    ids, k, seeds = pa.array(np.arange(60)), 20, 600
    counts = np.zeros(60)
    for seed in range(seeds):
        counts[np.argsort(row_hash(ids, seed))[:k]] += 1
    expected = seeds * k / 60
    chi = ((counts - expected) ** 2 / (expected * (1 - k / 60))).sum()
    assert chi < 59 + 5 * np.sqrt(2 * 59)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 300), st.one_of(st.none(), st.integers(1, 40)), st.integers(0, 10**6))
def test_chosen_equals_a_full_sort_whatever_the_order_of_offers(n, k, seed):
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 200, n).astype(np.uint64)  # with ties
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "CHUNK", 3)
        chosen = Chosen(k)
        order = rng.permutation(n)
        for part in np.array_split(order, rng.integers(1, 20)):
            chosen.offer(hashes[part], part.astype(np.int64), part * 10)
            if k is not None:
                assert chosen._count <= 2 * k + 3 + len(part)
        got_hashes, columns = chosen.finish()
    keep = np.sort(np.lexsort((np.arange(n), hashes))[:k])
    np.testing.assert_array_equal(columns[0], keep)
    np.testing.assert_array_equal(got_hashes, hashes[keep])
    if n:
        np.testing.assert_array_equal(columns[1], keep * 10)
    assert chosen.offered == n


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 3)).astype(np.float32)
    return pa.table(
        {
            "chunk_id": [f"row {i}" for i in rng.permutation(300)],
            "quality_score": rng.uniform(size=300),
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 3),
        }
    )


def chosen_ids(folder, **options):
    return set(open_corpus(CorpusConfig((str(folder),), **options)).ids.to_pylist())


def test_the_sample_is_the_same_whatever_the_order_of_rows_files_and_row_groups(rows, tmp_path):
    expected = None
    for variant in range(5):
        rng = np.random.default_rng(variant)
        shuffled = rows.take(rng.permutation(300))
        folder = tmp_path / str(variant)
        folder.mkdir()
        edges = np.sort(rng.integers(0, 301, variant))
        for name, part in zip(rng.permutation(variant + 1), np.split(np.arange(300), edges)):
            pq.write_table(shuffled.take(part), folder / f"{name}.parquet", row_group_size=int(rng.integers(1, 90)))
        got = chosen_ids(folder, rows=40)
        expected = got if expected is None else expected
        assert got == expected and len(got) == 40
        assert chosen_ids(folder, rows=40, seed=1) != expected


def test_the_row_budget_samples_and_says_so(rows, tmp_path):
    pq.write_table(rows, tmp_path / "x.parquet")
    config = CorpusConfig((str(tmp_path),))
    corpus = open_corpus(config, row_limit=50)
    assert len(corpus) == 50 and corpus.provenance.total_rows == 300
    assert any(
        "uniform sample of 50 of 300 rows" in note and "memory budget" in note for note in corpus.provenance.notes
    )
    asked = open_corpus(CorpusConfig((str(tmp_path),), rows=60), row_limit=50)
    assert len(asked) == 60, "--rows wins over the budget"
    assert any("--rows 60 asks" in note for note in asked.provenance.notes)
    assert open_corpus(config, row_limit=300).provenance.notes[1:] == ()


def test_the_default_budget_is_a_quarter_of_the_memory_at_most_200_000():
    assert default_row_limit(64) == 200_000
    rows = default_row_limit(768, None)
    assert rows * 768 * 4 < memory_bytes() / 4
    assert default_row_limit(10**9, None) == 2


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**63 - 1])
def test_hashes_under_another_seed_follow_from_those_under_0(seed):
    ids = pa.array([f"row {number}" for number in range(500)])
    assert np.array_equal(hash_under(row_hash(ids, 0), seed), row_hash(ids, seed))
