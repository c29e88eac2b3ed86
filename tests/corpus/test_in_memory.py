"""Tables in memory: each kind gives the corpus that the same rows in a file give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import CorpusConfig, open_corpus, select
from datamask.corpus import in_memory
from datamask.errors import InputError, OptionError

N, D = 120, 6


def rows() -> dict:
    rng = np.random.default_rng(0)
    return {
        "doc": [f"d{k}" for k in range(N)],
        "score": rng.normal(size=N),
        "embedding": rng.normal(size=(N, D)).astype(np.float32),
        "text": [f"text {k}" for k in range(N)],
        "token_count": rng.integers(1, 9, N),
    }


def frame() -> pd.DataFrame:
    return pd.DataFrame({name: list(values) for name, values in rows().items()})


def arrays() -> dict:
    names = {"doc": "ids", "score": "quality", "embedding": "features", "text": "texts", "token_count": "tokens"}
    return {names[name]: values for name, values in rows().items()}


def polars_frame():
    return pytest.importorskip("polars").from_pandas(frame())


def dataset():
    return pytest.importorskip("datasets").Dataset.from_pandas(frame().iloc[::-1]).select(range(N - 1, -1, -1))


TABLES = {
    "pandas": frame,
    "pandas, index": lambda: frame().set_index("doc"),
    "pandas, shuffled index": lambda: frame().set_index(np.arange(N)[::-1]),
    "polars": polars_frame,
    "Table": lambda: pa.Table.from_pandas(frame()),
    "RecordBatch": lambda: pa.Table.from_pandas(frame()).to_batches()[0],
    "Dataset": dataset,
    "dict": rows,
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_in_memory_is_the_corpus_of_its_file(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(in_memory, "GROUP_ROWS", 50)
    pq.write_table(pa.Table.from_pandas(frame()), tmp_path / "in.parquet")
    by_file = open_corpus(tmp_path / "in.parquet", id_column="doc")
    corpus = open_corpus(TABLES[kind](), id_column="doc")
    assert corpus.fingerprint == by_file.fingerprint and corpus.ids.to_pylist() == by_file.ids.to_pylist()
    assert corpus.texts.to_pylist() == by_file.texts.to_pylist() and (corpus.lengths == by_file.lengths).all()
    assert corpus.provenance.config is None and corpus.source_row.tolist() == list(range(N))


def test_arrays_and_paths_of_every_kind(tmp_path):
    pq.write_table(pa.Table.from_pandas(frame()), tmp_path / "in.parquet")
    path = tmp_path / "in.parquet"
    sources = (str(path), path, [path], (str(path),), CorpusConfig((str(path),), id_column="doc"), CorpusConfig([path]))
    found = {open_corpus(source).fingerprint for source in sources} | {open_corpus(**arrays()).fingerprint}
    assert len(found) == 1
    made = open_corpus(features=arrays()["features"], quality=arrays()["quality"])
    assert made.ids.to_pylist()[:2] == ["table:0", "table:1"]


@pytest.mark.parametrize(
    "arguments, options, sentence",
    [
        ((5,), {}, "needs a path or several, a pandas .* or arrays, got int"),
        (([1, 2],), {}, "needs a path or several, .* got list"),
        ((), {}, "needs a path or several, .* got nothing"),
        ((frame,), {"texts": ["a"]}, "texts and a source exclude each other"),
        ((frame,), {"features": np.zeros((N, 2))}, "features must be paths beside a source, got an array"),
        ((), {"ids": [1], "features": np.zeros((2, 3))}, "one value per row, got 1 ids, 2 features"),
        ((), {"features": np.zeros((2, 3, 4))}, r"shape \(N,\) or \(N, d\), got \(2, 3, 4\)"),
        ((CorpusConfig(("x",)),), {"rows": 5}, "rows must stand in the CorpusConfig"),
        (("gone.parquet",), {}, "gone.parquet does not exist"),
        (
            (Path("gone"),),
            {"quality_colum": "a"},
            "quality_colum is not an option of open_corpus; did you mean quality_columns",
        ),
    ],
)
def test_a_wrong_argument_is_one_sentence(arguments, options, sentence):
    given = [argument() if argument is frame else argument for argument in arguments]
    with pytest.raises(InputError, match=sentence):
        open_corpus(*given, **options)


def test_a_selection_has_a_length_a_frame_a_file_and_a_map(tmp_path):
    corpus = open_corpus(frame(), id_column="doc")
    selection = select(corpus, objective="pairwise", select_ratio=0.25, device="cpu")
    assert len(selection) == 30 and selection.to_pandas()["doc"].tolist() == selection.ids.to_pylist()
    merged = frame().merge(selection.to_pandas(), on="doc")
    assert len(merged) == 30 and {"score", "datamask_score"} <= set(merged.columns)
    selection.save(tmp_path / "ids.csv")
    assert pd.read_csv(tmp_path / "ids.csv")["doc"].tolist() == selection.ids.to_pylist()
    with pytest.raises(OptionError, match="must end in"):
        selection.save(tmp_path / "ids.xlsx")
    with pytest.raises(OptionError, match="ratio is not an option of a selection; did you mean select_ratio"):
        select(corpus, ratio=0.3)
    (points,) = selection.map().data
    order = np.argsort(selection.mask, kind="stable")
    assert len(points.x) == N and points.text[0] == f"d{order[0]}: text {order[0]}"
    buttons = {button.label: button.args[0] for button in selection.map().layout.updatemenus[0].buttons}
    assert np.allclose(buttons["quality"]["marker.color"][0], corpus.quality[order])
    assert np.allclose(buttons["diversity"]["marker.color"][0], selection.marginal_diversity[order])
    assert len(set(buttons["selection"]["marker.color"][0][-30:])) == 1
