"""Quality columns to one number."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import rankdata

from datamask.api import select
from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import open_corpus
from datamask.corpus.decode import integer_rests
from datamask.corpus.quality import ranks_within, transform, weighted_sum
from datamask.errors import InputError


def test_rank_is_the_mean_rank_over_n_minus_one():
    values = np.random.default_rng(0).integers(0, 9, 50).astype(float)
    np.testing.assert_allclose(transform(values, "rank"), (rankdata(values) - 1) / 49)
    assert transform(np.array([3.0]), "rank").tolist() == [0.0]


def test_z_has_mean_0_and_deviation_1_and_a_constant_is_0():
    values = np.random.default_rng(0).normal(5, 3, 100)
    np.testing.assert_allclose(transform(values, "z"), (values - values.mean()) / values.std())
    assert transform(np.full(4, 0.1), "z").tolist() == [0] * 4
    assert transform(np.zeros(4), "z").tolist() == [0] * 4
    np.testing.assert_allclose(transform(np.array([-1e308, 1e308]), "z"), [-1, 1])


def test_weighted_sum():
    values = np.array([[1.0, 2, 3], [10.0, 30, 20]])
    columns = (QualityColumn("a", 2.0), QualityColumn("b", -1.0, "rank"))
    np.testing.assert_allclose(weighted_sum(values, columns), [2, 4 - 1, 6 - 0.5])
    with pytest.raises(ValueError):
        weighted_sum(values, columns[:1])


def test_values_that_cannot_be_summed_are_refused():
    huge = np.array([[1e308, -1e308, 1.0]])
    with pytest.raises(InputError, match=r"column 'q' is up to 1e\+308 \(row 0\), too large for 3 rows .* q:1:rank$"):
        weighted_sum(huge, [QualityColumn("q")])
    with pytest.raises(InputError, match="beyond float64's range once weighted"):
        weighted_sum(huge, [QualityColumn("q", 10.0)])
    with pytest.raises(InputError, match="in column 'a', 'b' is"):
        weighted_sum(np.array([[4e307, 0], [4e307, 0]]), [QualityColumn("a"), QualityColumn("b")])
    with pytest.raises(InputError, match="too large for 1,000 rows"):
        weighted_sum(np.full((1, 1000), 1e305), [QualityColumn("q")])
    assert weighted_sum(np.full((1, 10), 1e305), [QualityColumn("q")]).tolist() == [1e305] * 10
    assert weighted_sum(huge, [QualityColumn("q", 1, "rank")]).tolist() == [1, 0, 0.5]
    z = weighted_sum(huge, [QualityColumn("q", 1, "z")])
    np.testing.assert_allclose(z, np.array([1, -1, 0]) * np.sqrt(1.5), atol=1e-12)


def test_integers_beyond_2_53_keep_their_order_by_rank_and_are_refused_where_it_is_lost():
    integers = np.array([2**62 + 3, 2**62, 2**62 + 1, 2**62 + 1, -(2**62)])
    column = pa.array(integers)
    values, rests = integers.astype(np.float64), integer_rests(column)
    expected = (rankdata(integers.astype(object)) - 1) / 4
    np.testing.assert_allclose(weighted_sum(values[None], [QualityColumn("q", 1, "rank")], {0: rests}), expected)
    for transform_name in ("raw", "z"):
        with pytest.raises(InputError, match=r"'q' holds whole .* 2\^53: float64 takes 2 of them .* q:2:rank"):
            weighted_sum(values[None], [QualityColumn("q", 2, transform_name)], {0: rests})
    apart = np.array([2**60, 2**61, 2**62 + 1])  # rounded, but in their order
    rests = integer_rests(pa.array(apart))
    rounded = apart.astype(float)
    assert weighted_sum(rounded[None], [QualityColumn("q")], {0: rests}).tolist() == rounded.tolist()


def test_rests_of_integers():
    assert integer_rests(pa.array([1, None, -(2**53), 2**53])) is None
    assert integer_rests(pa.array([1.5])) is None
    assert integer_rests(pa.array([2**53 + 1, 5])).tolist() == [1, 0]
    assert integer_rests(pa.array([2**64 - 1, 0], pa.uint64())).tolist() == [-1, 0]
    assert integer_rests(pa.array([2**63 - 1, None])).tolist() == [-1, 0]


def test_ranks_within_a_column_are_those_of_pandas(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"lang": rng.choice(["en", "th", None], 700, p=[0.6, 0.3, 0.1]), "q": rng.integers(0, 50, 700)}
    )
    frame.loc[frame.lang == "th", "q"] -= 40  # no Thai row would be kept by the scores themselves
    frame["lang"] = frame.lang.where(frame.index >= 20, "xx")
    ranks, note = ranks_within(frame.q.to_numpy(float), pa.table({"lang": pa.array(frame.lang)}), "lang")
    group = frame.lang.where(frame.lang.isin(["en", "th"]), "few")
    expected = frame.groupby(group).q.transform(lambda q: (q.rank() - 1) / (len(q) - 1))
    np.testing.assert_allclose(ranks, expected)
    few = frame.lang.isna().sum()
    assert note.startswith("Quality is the rank within each of 2 values of lang; those of fewer than 100 rows are ")
    assert "xx (20)" in note and f"none ({few})" in note and few < 100


def test_a_selection_keeps_as_large_a_share_of_each_language(tmp_path):
    rng = np.random.default_rng(0)
    lang = np.repeat(["en", "de", "ja"], 300)
    quality = rng.normal(size=900) + np.select([lang == "en", lang == "de"], [8, 4], 0)
    features = rng.normal(size=(900, 16)).astype(np.float32)
    table = pa.table({"id": range(900), "score": quality, "language": lang, "embedding": list(features)})
    pq.write_table(table, tmp_path / "corpus.parquet")
    shares = {}
    for within in (None, "language"):
        corpus = open_corpus(CorpusConfig((str(tmp_path / "corpus.parquet"),), quality_within=within))
        selection = select(corpus, objective="facility", select_ratio=0.3, lamb=0.5)
        shares[within] = pd.Series(corpus.ids.to_numpy()).isin(selection.ids.to_numpy()).groupby(lang).mean()
    assert shares["language"].between(0.25, 0.35).all() and shares[None].min() < 0.25


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(InputError, match=r"--quality_within: the corpus has no column 'lang'; there are language"):
        ranks_within(np.zeros(2), pa.table({"language": ["a", "b"]}), "lang")
