"""A corpus at a glance."""

import dataclasses

import numpy as np
import pytest

from datamask.analyses.overview import tables as overview
from datamask.analyses.overview.chart import quality_histogram
from datamask.corpus import open_corpus
from datamask.dashboard.runs import cost
from tests.making.runs import NASTY, write_shard


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return open_corpus(write_shard(tmp_path_factory.mktemp("overview") / "shard.parquet"))


def test_the_histogram_counts_every_row_once(corpus):
    table = overview.quality_histogram(corpus)
    assert table["rows"].sum() == len(corpus) and len(table) == overview.BINS
    assert table["low"].iloc[0] == corpus.quality.min() and table["high"].iloc[-1] == corpus.quality.max()
    drawn = quality_histogram(table, label="score <b>")
    (bars,) = drawn.data
    assert drawn.layout.xaxis.title.text == "score &lt;b&gt;" and list(bars.y) == table["rows"].tolist()
    assert np.allclose(bars.x + bars.width, table["high"]) and list(bars.x) == table["low"].tolist()
    assert (
        bars.hovertext[0] == f"from: {table['low'][0]:.3f}<br>to: {table['high'][0]:.3f}<br>rows: {table['rows'][0]:,}"
    )


def test_few_distinct_scores_get_few_bins(corpus):
    rough = dataclasses.replace(corpus, quality=np.repeat([1.0, 2.0, 3.0], len(corpus) // 3))
    assert len(overview.quality_histogram(rough)) == 3
    constant = dataclasses.replace(corpus, quality=np.ones(len(corpus)))
    assert overview.quality_histogram(constant)["rows"].tolist() == [len(corpus)]


def test_first_rows_put_id_quality_length_and_text_first_and_cut_texts(corpus):
    table = overview.first_rows(corpus, 20)
    assert list(table.columns[:4]) == ["chunk_id", "quality", "n_tokens", "text"] and len(table) == 20
    assert table["text"][0] == NASTY and table["quality"][3] == corpus.quality[3]
    long = dataclasses.replace(
        corpus,
        metadata=corpus.metadata.set_column(
            corpus.metadata.column_names.index("text"), "text", [["word " * 500] * len(corpus)]
        ),
    )
    assert len(overview.first_rows(long, 1)["text"][0]) == overview.TEXT_LIMIT


def test_problems_come_most_frequent_first(corpus):
    provenance = dataclasses.replace(corpus.provenance, dropped={"NaN": 2, "null ids": 7})
    table = overview.problems(dataclasses.replace(corpus, provenance=provenance))
    assert table.to_dict("list") == {"problem": ["null ids", "NaN"], "rows": [7, 2]}
    assert len(overview.problems(corpus)) == 0


def test_a_constant_quality_is_said_in_one_sentence(corpus):
    assert overview.constant_quality(corpus) == ""
    said = overview.constant_quality(dataclasses.replace(corpus, quality=np.full(len(corpus), 0.5)))
    assert said.startswith(f"The quality score is 0.5 in all {len(corpus):,} rows") and said.count(".") == 2


def test_memory_counts_the_features_at_least(corpus):
    assert corpus.nbytes > corpus.features.nbytes


def test_tokens_only_where_there_are_lengths(corpus):
    assert cost.token_total(corpus) == corpus.lengths.sum()
    assert cost.token_total(dataclasses.replace(corpus, lengths=None)) is None
