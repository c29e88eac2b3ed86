"""Features and scores in other shards, joined by id or by row position."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import open_corpus
from datamask.errors import InputError, Stopped

N, DIM = 50, 4


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(N, DIM)).astype(np.float32)
    return {
        "chunk_id": pa.array([f"c{i}" for i in rng.permutation(N)]),
        "quality_score": pa.array(rng.uniform(size=N)),
        "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), DIM),
        "text": pa.array([f"text {i}" for i in range(N)]),
    }


def write(path, parts, names, rows=None, **options):
    table = pa.table({name: parts[name] for name in names})
    pq.write_table(table if rows is None else table.take(rows), path, **options)
    return (str(path),)


@pytest.fixture(scope="module")
def whole(parts, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "x.parquet"
    return open_corpus(CorpusConfig(write(path, parts, parts)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.one_of(st.none(), st.integers(2, 40)))
def test_joining_by_id_equals_one_table_whatever_the_order(parts, whole, tmp_path_factory, seed, group, rows):
    folder, rng = tmp_path_factory.mktemp("join"), np.random.default_rng(seed)
    inputs = write(folder / "main.parquet", parts, ["chunk_id", "text"], row_group_size=group)
    features = write(folder / "f.parquet", parts, ["feature_arr", "chunk_id"], rng.permutation(N), row_group_size=group)
    scores = write(folder / "s.parquet", parts, ["chunk_id", "quality_score"], rng.permutation(N))
    corpus = open_corpus(CorpusConfig(inputs, features=features, scores=scores, rows=rows))
    if rows is None:
        assert corpus.fingerprint == whole.fingerprint
    place = {value: i for i, value in enumerate(whole.ids.to_pylist())}
    where = [place[value] for value in corpus.ids.to_pylist()]
    np.testing.assert_array_equal(corpus.features, whole.features[where])
    np.testing.assert_array_equal(corpus.quality, whole.quality[where])
    assert corpus.metadata["text"].to_pylist() == whole.metadata["text"].take(where).to_pylist()
    assert corpus.provenance.dropped == {}
    assert "--features was joined by the id column 'chunk_id'." in corpus.provenance.notes


def test_unmatched_rows_are_dropped_and_counted_on_both_sides(parts, whole, tmp_path):
    inputs = write(tmp_path / "main.parquet", parts, ["chunk_id", "quality_score"], np.arange(0, 40))
    features = write(tmp_path / "f.parquet", parts, ["chunk_id", "feature_arr"], np.arange(49, 9, -1))
    lacking = (
        r"10 of 40 rows of --input have no row in --features \(ids 'c\d+', .*; the first is .*main.parquet row 0\)"
    )
    with pytest.raises(InputError, match=f"{lacking}.*--drop_invalid"):
        open_corpus(CorpusConfig(inputs, features=features))
    corpus = open_corpus(CorpusConfig(inputs, features=features, drop_invalid=True))
    assert corpus.ids.to_pylist() == whole.ids.to_pylist()[10:40]
    np.testing.assert_array_equal(corpus.features, whole.features[10:40])
    assert corpus.provenance.dropped == {"no row in --features": 10}
    assert "10 rows of --features are of no row of --input." in corpus.provenance.notes
    assert (corpus.provenance.total_rows, corpus.provenance.rows_read) == (40, 30)
    assert corpus.source_row.tolist() == list(range(10, 40))


def test_without_ids_rows_are_joined_by_position_over_all_shards(parts, whole, tmp_path):
    inputs = write(tmp_path / "main.parquet", parts, ["chunk_id", "quality_score", "text"])
    (tmp_path / "f").mkdir()
    write(tmp_path / "f" / "1.parquet", parts, ["feature_arr"], np.arange(0, 20))
    write(tmp_path / "f" / "2.parquet", parts, ["feature_arr"], np.arange(20, N))
    config = CorpusConfig(inputs, features=(str(tmp_path / "f"),))
    corpus = open_corpus(config)
    assert corpus.fingerprint == whole.fingerprint
    assert "--features was joined by row position." in corpus.provenance.notes
    sample = open_corpus(config, row_limit=12)
    where = sample.source_row
    np.testing.assert_array_equal(sample.features, whole.features[where])


def test_ids_of_one_side_and_positions_of_the_other(parts, whole, tmp_path):
    order = np.random.default_rng(1).permutation(N)
    inputs = write(tmp_path / "main.parquet", parts, ["chunk_id"])
    features = write(tmp_path / "f.parquet", parts, ["chunk_id", "feature_arr"], order)
    scores = write(tmp_path / "s.parquet", parts, ["quality_score"])
    assert open_corpus(CorpusConfig(inputs, features=features, scores=scores)).fingerprint == whole.fingerprint


def test_quality_may_be_summed_over_both_sides(parts, tmp_path):
    inputs = write(tmp_path / "main.parquet", parts, ["chunk_id", "quality_score", "feature_arr"])
    other = pa.table({"chunk_id": parts["chunk_id"], "dclm": np.arange(float(N))})
    pq.write_table(other.take(np.arange(N)[::-1]), tmp_path / "s.parquet")
    corpus = open_corpus(
        CorpusConfig(
            inputs,
            scores=(str(tmp_path / "s.parquet"),),
            quality_columns=(QualityColumn("dclm", 2.0), QualityColumn("quality_score")),
        )
    )
    np.testing.assert_allclose(corpus.quality, 2 * np.arange(N) + np.array(parts["quality_score"]))
    np.testing.assert_array_equal(corpus.metadata["dclm"], np.arange(N))
    np.testing.assert_array_equal(corpus.metadata["quality_score"], parts["quality_score"])


def test_what_does_not_fit_is_one_sentence(parts, tmp_path):
    inputs = write(tmp_path / "main.parquet", parts, ["chunk_id", "quality_score"])
    shorter = write(tmp_path / "a.parquet", parts, ["feature_arr"], np.arange(N - 1))
    with pytest.raises(InputError, match=r"--features has 49 rows and no id column .*--input has 50 rows"):
        open_corpus(CorpusConfig(inputs, features=shorter))
    renamed = parts | {"chunk_id": pa.array([f"other {i}" for i in range(N)])}
    strangers = write(tmp_path / "b.parquet", renamed, ["chunk_id", "feature_arr"])
    with pytest.raises(InputError, match=r"no id of --input .* occurs in --features"):
        open_corpus(CorpusConfig(inputs, features=strangers))
    twice = write(tmp_path / "c.parquet", parts, ["chunk_id", "feature_arr"], np.r_[np.arange(N), 3])
    with pytest.raises(InputError, match=r"of --features holds 1 repeated ids .*row 3 and .*row 50"):
        open_corpus(CorpusConfig(inputs, features=twice))
    numbered = write(tmp_path / "d.parquet", parts | {"chunk_id": pa.array(np.arange(N))}, ["chunk_id", "feature_arr"])
    with pytest.raises(InputError, match=r"ids are string in --input .* but int64 in --features"):
        open_corpus(CorpusConfig(inputs, features=numbered))
    (tmp_path / "e").mkdir()
    write(tmp_path / "e" / "1.parquet", parts, ["chunk_id", "feature_arr"], np.arange(20))
    write(tmp_path / "e" / "2.parquet", parts, ["feature_arr"], np.arange(20, N))
    with pytest.raises(InputError, match=r"2\.parquet has no column 'chunk_id'"):
        open_corpus(CorpusConfig(inputs, features=(str(tmp_path / "e"),)))
    with pytest.raises(InputError, match=r"--features .* does not exist"):
        open_corpus(CorpusConfig(inputs, features=(str(tmp_path / "no.parquet"),)))


def test_progress_never_falls_and_stop_is_polled_while_joining(parts, tmp_path):
    inputs = write(tmp_path / "main.parquet", parts, ["chunk_id"])
    features = write(tmp_path / "f.parquet", parts, ["chunk_id", "feature_arr"])
    scores = write(tmp_path / "s.parquet", parts, ["chunk_id", "quality_score"])
    config, shares = CorpusConfig(inputs, features=features, scores=scores), []
    open_corpus(config, progress=lambda share, what: shares.append((share, what)))
    assert [share for share, _ in shares] == sorted(share for share, _ in shares)
    assert shares[-1] == (1.0, "Corpus is open") and all(what for _, what in shares)
    polls = []
    for allowed in range(9):
        with pytest.raises(Stopped):
            open_corpus(config, should_stop=lambda allowed=allowed: polls.append(0) or polls.count(0) > allowed)
        polls.clear()
