"""Examples from files: ids, features of the same model, texts in the space that `prepare` made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.analyses.ablation.compute.sources import in_space
from datamask.config import CorpusConfig
from datamask.config.target import Target
from datamask.corpus import open_corpus
from datamask.corpus.preparation import prepare_shards
from datamask.corpus.text_space import features_of_texts
from datamask.errors import InputError, Stopped
from datamask.evaluation.examples import Examples, read_examples, target_of_file
from tests.making.planted import language
from tests.making.pools import corpus_of, made_corpus


@pytest.fixture(scope="module")
def corpus():
    return made_corpus(400)


def lists(features: np.ndarray) -> pa.Array:
    return pa.array(features.tolist(), pa.list_(pa.float64()))


def test_ids_of_any_file_are_rows_with_their_texts(corpus, tmp_path):
    named = np.arange(399, 150, -2)
    (tmp_path / "ids.txt").write_text("\n".join(map(str, [*named, named[0]])))
    pq.write_table(pa.table({"id": named, "other": named * 0}), tmp_path / "ids.parquet")
    (tmp_path / "ids.csv").write_text("id\n" + "\n".join(map(str, named)))
    texts = corpus.metadata["text"].to_pylist()
    for name, repeated in (("ids.txt", 1), ("ids.parquet", 0), ("ids.csv", 0)):
        examples = read_examples("ids", tmp_path / name, corpus)
        # rows that copy each other, text included, are one example
        keys: dict = {}
        for row in named:
            keys.setdefault((corpus.features[row].tobytes(), texts[row]), row)
        first = list(keys.values())
        assert len(examples) == len(first) and examples.repeated == repeated + len(named) - len(first)
        assert (examples.features == corpus.features[first]).all() and examples.name == name
        assert examples.texts == tuple(texts[row] for row in first)


def test_features_are_the_same_examples_as_the_ids_of_their_rows(corpus, tmp_path):
    rows = np.arange(0, 400, 3)
    (tmp_path / "ids.txt").write_text("\n".join(map(str, rows)))
    scaled = corpus.features[rows].astype(np.float64) * np.geomspace(1e-200, 1e200, len(rows))[:, None]
    table = pa.table({"x": lists(scaled), "text": corpus.metadata["text"].take(pa.array(rows)), "more": rows})
    pq.write_table(table, tmp_path / "features.parquet")
    by_ids = read_examples("ids", tmp_path / "ids.txt", corpus)
    by_features = read_examples("features", tmp_path / "features.parquet", corpus)
    assert np.allclose(by_ids.features, by_features.features, atol=1e-6) and by_ids.texts == by_features.texts
    assert np.allclose(np.linalg.norm(by_features.features, axis=1), 1, atol=1e-6)
    # under another name it is the only such column, and texts of another name are none
    pq.write_table(table.rename_columns(["vector", "words", "more"]), tmp_path / "other.parquet")
    other = read_examples("features", tmp_path / "other.parquet", corpus)
    assert other.texts is None and len(other) == len(by_features)


def test_features_of_something_else_are_refused(corpus, tmp_path):
    path = tmp_path / "f.parquet"
    features = np.random.default_rng(0).normal(size=(120, corpus.dim))

    def refused(table: pa.Table, match: str) -> None:
        pq.write_table(table, path)
        with pytest.raises(InputError, match=match):
            read_examples("features", path, corpus)

    refused(pa.table({"x": lists(features[:, :5])}), "5 values in a row, and the corpus's features have 12")
    for value in (0.0, np.nan, np.inf):
        broken = features.copy()
        broken[[7, 9]] = value
        refused(pa.table({"x": lists(broken)}), "2 of 120 rows have no direction .* the first is row 7")
    refused(pa.table({"x": pa.array([None, *features.tolist()], pa.list_(pa.float64()))}), "1 of 121 rows")
    refused(pa.table({"a": lists(features), "b": lists(features)}), "the only such one; it has a, b")
    refused(pa.table({"a": np.arange(200)}), "it has none among a")
    refused(pa.table({"x": lists(features[:99])}), "100 to 10,000 different examples .* got 99; give more")
    refused(pa.table({"x": lists(np.repeat(features[:1], 300, axis=0))}), r"got 1 \(299 more repeat them\)")
    refused(pa.table({"x": lists(np.random.default_rng(1).normal(size=(10_001, 12)))}), "got 10,001; a uniform sample")
    path.write_bytes(b"no parquet")
    with pytest.raises(InputError, match="cannot be read as parquet"):
        read_examples("features", path, corpus)
    with pytest.raises(InputError, match="no such file"):
        read_examples("features", tmp_path / "nowhere.parquet", corpus)


def test_ids_that_are_not_there_are_refused(corpus, tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("\n".join(map(str, range(200, 450))))
    with pytest.raises(InputError, match="50 of its 250 ids are not in the corpus of 400 rows, such as '400'"):
        read_examples("ids", path, corpus)
    part = replace(corpus, provenance=replace(corpus.provenance, total_rows=9_000, rows_read=400))
    with pytest.raises(InputError, match=r"400 rows, a sample of 9,000, such as '400'; .*open more rows"):
        read_examples("ids", path, part)
    path.write_text("\n".join(["1", "two"] * 100))
    with pytest.raises(InputError, match="its ids are no int64"):
        read_examples("ids", path, corpus)
    path.write_text("\n".join(map(str, range(50))))
    with pytest.raises(InputError, match="100 to 10,000 different examples"):
        read_examples("ids", path, corpus)
    pq.write_table(pa.table({"id": [None, *range(150)]}), tmp_path / "ids.parquet")
    with pytest.raises(InputError, match="1 of its 151 ids are null"):
        read_examples("ids", tmp_path / "ids.parquet", corpus)


def test_a_target_is_known_by_the_content_of_its_file(tmp_path):
    for name, content in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / name).write_bytes(content)
    a, b, c = (target_of_file("ids", tmp_path / name) for name in "abc")
    assert a.digest == b.digest != c.digest and a == Target.examples("ids", b"1", "a") and a.steers
    assert "a" in a.label and not Target().steers
    with pytest.raises(InputError, match="no such file"):
        target_of_file("ids", tmp_path / "d")
    with pytest.raises(InputError, match="cannot be read"):
        target_of_file("ids", tmp_path)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    rng = np.random.default_rng(8)
    texts = [text for prefix in ("one", "two", "three") for text in language(rng, 300, prefix, 25)]
    pq.write_table(pa.table({"text": texts}), folder / "texts.parquet")
    prepare_shards([folder / "texts.parquet"], folder / "out.parquet", text_column="text", dim=16)
    return open_corpus(CorpusConfig((str(folder / "out.parquet"),)))


def test_texts_come_where_prepare_put_them(prepared):
    texts = prepared.metadata["text"].to_pylist()
    features = features_of_texts(prepared, [*texts[100:300], "wordless!", ""])
    # shards hold features in float16
    assert np.allclose(features[:200], prepared.features[100:300], atol=2e-3) and not features[200:].any()
    examples = in_space(prepared, Examples("mine", None, (*texts[:150], "qwertz", *texts[:2])), lambda *_: None)
    assert examples.texts is not None and len(set(examples.texts)) == len(examples.texts) <= 150
    assert "qwertz" not in examples.texts and examples.features is not None
    with pytest.raises(InputError, match="different examples are needed"):
        in_space(prepared, Examples("mine", None, tuple(f"qwertz{place}" for place in range(300))), lambda *_: None)

    def poll():
        raise Stopped("enough")

    with pytest.raises(Stopped):
        in_space(prepared, Examples("mine", None, tuple(texts[:150])), lambda *_: None, poll)


def test_texts_have_no_place_among_other_features(prepared):
    texts = prepared.metadata["text"].to_pylist()
    other = corpus_of(np.random.default_rng(0).normal(size=(len(texts), 16)), text=texts)
    with pytest.raises(InputError, match=r"`datamask prepare` .* 90% are needed; .*--target features:FILE"):
        features_of_texts(other, texts[:100])
    with pytest.raises(InputError, match=r"without the texts they were made of; .*--target ids:FILE"):
        features_of_texts(made_corpus(200, texts=False), texts)


def test_example_texts_are_read_as_lines(corpus, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(f'{{"text": "words {place % 130}"}}' for place in range(200)))
    examples = read_examples("examples", path, corpus)
    assert len(examples) == 130 and examples.features is None and examples.texts and examples.texts[3] == "words 3"
    path.write_text("\n".join(f'{{"text": "words {place}"}}' for place in range(80)))
    with pytest.raises(InputError, match="100 to 10,000 different examples"):
        read_examples("examples", path, corpus)
