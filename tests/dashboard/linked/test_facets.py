"""Distributions against pandas and numpy: what a bar counts is what brushing it lets through, row by row."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from datamask.corpus.column_kinds import metadata_columns
from datamask.dashboard.linked.facets import BARS, BINS, class_facet, codes_of, columns_of, number_facet
from datamask.dashboard.map.filters import Among, Rows


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(5, 1, 3000).astype(np.float32),
        np.where(np.random.default_rng(1).random(3000) < 0.2, np.nan, np.random.default_rng(2).normal(size=3000)),
        np.random.default_rng(3).integers(1, 9, 3000).astype(float),
        np.random.default_rng(4).lognormal(3, 1.5, 3000),
    ],
)
def test_a_brushed_range_lets_through_what_its_bars_count(values):
    facet = number_facet("v", "V", values)
    counts = facet.counts()
    assert counts.sum() == np.isfinite(values).sum() and facet.bars == len(counts) <= BINS + 1
    rows = Rows(len(values), {"v": values})
    rng = np.random.default_rng(0)
    for _ in range(30):
        first, last = sorted(rng.integers(0, facet.bars, 2).tolist())
        condition = facet.condition([first, last])
        if condition is None:
            assert (first, last) == (0, facet.bars - 1)
            continue
        mask = condition.mask(rows)
        assert mask.sum() == counts[first : last + 1].sum()
        assert np.array_equal(mask, (facet.bins >= first) & (facet.bins <= last))
        assert facet.brushed(condition) == list(range(first, last + 1))
    part = rng.random(len(values)) < 0.3
    assert np.array_equal(facet.counts(part), number_facet("v", "V", values).counts(part))
    assert facet.counts(part).sum() == (np.isfinite(values) & part).sum()


def test_whole_numbers_have_a_bar_each_and_skewed_ones_bars_of_equal_ratio():
    whole = number_facet("v", "V", np.array([1.0, 2, 2, 4]))
    assert whole.counts().tolist() == [1, 2, 0, 1] and whole.title == "V"
    skewed = number_facet("v", "V", np.random.default_rng(0).lognormal(3, 1.5, 3000))
    ratios = skewed.edges[1:] / skewed.edges[:-1]
    assert np.allclose(ratios, ratios[0]) and skewed.title == "V, log scale"
    assert number_facet("v", "V", np.full(9, 2.0)) is None and number_facet("v", "V", np.full(9, np.nan)) is None


def test_classes_are_the_most_frequent_ones_and_the_rest_shares_a_bar():
    rng = np.random.default_rng(0)
    names = rng.choice([f"class {k:02d}" for k in range(25)], 2000, p=np.arange(1, 26) / 325)
    codes, known = codes_of(pa.chunked_array([pa.array(names)]))
    facet = class_facet("c", "C", codes, known)
    expected = pd.Series(names).value_counts().sort_index().sort_values(ascending=False, kind="stable")
    assert list(facet.labels[:-1]) == expected.index[: BARS - 1].tolist() and facet.labels[-1] == "16 others"
    assert facet.counts().tolist() == [*expected[: BARS - 1], expected[BARS - 1 :].sum()]
    condition = facet.condition([0, 2, BARS - 1])
    assert condition == Among("c", (facet.labels[0], facet.labels[2]))
    mask = condition.mask(Rows(2000, classes={"c": (codes, known)}))
    assert mask.sum() == facet.counts()[[0, 2]].sum() and facet.brushed(condition) == [0, 2]
    assert facet.condition([]) is facet.condition([BARS - 1]) is facet.condition(["x", 99, -1]) is None


def test_columns_become_numbers_and_classes():
    n = 60
    table = pa.table(
        {
            "source": pa.array(["x", None, "y"] * 20).dictionary_encode(),
            "chars": pa.array(range(n), pa.int64()),
            "year": [2020 + i % 3 for i in range(n)],
            "flag": [True, False] * 30,
            "text": ["same"] * n,
        }
    )
    numbers, classes = columns_of(table, metadata_columns(table, text="text"))
    assert list(numbers) == ["chars"] and numbers["chars"].tolist() == list(range(n))
    assert sorted(classes) == ["flag", "source", "year"]
    codes, names = classes["source"]
    assert [names[k] for k in codes[:3]] == ["x", "(none)", "y"]
    codes, names = classes["year"]
    assert [names[k] for k in codes[:3]] == ["2020", "2021", "2022"]
