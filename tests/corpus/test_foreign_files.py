"""Files that pandas, polars, DuckDB and datasets wrote, and what Spark and Dolma write: the same selection of each."""

import pytest

from datamask import open_corpus, select
from tests.making.foreign_files import FOLDER, N

FILES = sorted(path.name for path in FOLDER.iterdir() if path.stem not in ("plain", "versions"))


def chosen(name):
    corpus = open_corpus(FOLDER / name)
    names = corpus.provenance.columns
    assert len(corpus) == N and corpus.lengths is not None and corpus.dim == 8
    assert names["id"] == "id" and names["feature"] == "embedding"
    assert (names["quality"], names["length"]) in (
        (["score"], "token_count"),
        (["metadata.score"], "metadata.token_count"),
    )
    return sorted(select(corpus, objective="pairwise", select_ratio=0.3).ids.to_pylist())


@pytest.fixture(scope="module")
def expected():
    return chosen("plain.parquet")


@pytest.mark.parametrize("name", FILES)
def test_each_gives_the_ids_of_the_plain_file(name, expected):
    assert len(expected) == 18 and chosen(name) == expected
