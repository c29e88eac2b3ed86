"""Filters against pandas: the same conditions written as a query, on all rows."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.dashboard.map.filters import Among, Between, Filters, Holding, Inside, Rows
from datamask.dashboard.map.regions import Region

N = 400


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    words = np.array(["Alpha", "beta", "gamma.", "(delta)", "ALPHABET"])
    return pd.DataFrame(
        {
            "quality": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "length": rng.integers(1, 30, N),
            "source": rng.choice(["web", "books", "code"], N),
            "x": rng.normal(size=N),
            "y": rng.normal(size=N),
            "text": [None if rng.random() < 0.05 else " ".join(rng.choice(words, 3)) for _ in range(N)],
        }
    )


@pytest.fixture(scope="module")
def rows(frame) -> Rows:
    codes, names = pd.factorize(frame["source"])
    return Rows(
        N,
        {"quality": frame["quality"].to_numpy(np.float32), "length": frame["length"].to_numpy(float)},
        {"source": (codes.astype(np.int32), tuple(names))},
        pa.chunked_array([pa.array(frame["text"])]),
        frame[["x", "y"]].to_numpy(),
    )


SEARCHES = {
    "alpha": ["alpha"],
    "ALPHA beta": ["alpha", "beta"],
    '"Alpha beta"': ["alpha beta"],
    "gamma. “beta  alpha”": ["gamma.", "beta alpha"],
    '"alpha': ['"alpha'],
    ".": ["."],
    "(delta)": ["(delta)"],
    "nothing": ["nothing"],
    "  ": [],
}
"""What is typed, and what each text must then hold."""


def text_mask(frame: pd.DataFrame, query: str) -> np.ndarray:
    found = np.ones(N, bool)
    for phrase in SEARCHES[query]:
        found &= frame["text"].str.lower().str.contains(phrase, regex=False, na=False).to_numpy(bool)
    return found


@settings(max_examples=60, deadline=None)
@given(
    low=st.floats(-2, 2),
    width=st.floats(0, 3),
    sources=st.sets(st.sampled_from(["web", "books", "code", "moon"])),
    query=st.sampled_from(list(SEARCHES)),
    half=st.floats(0.1, 3),
    used=st.sets(st.integers(0, 3)),
)
def test_any_conditions_together_are_the_query(frame, rows, low, width, sources, query, half, used):
    made = [
        (
            Between("quality", low, low + width),
            frame["quality"].astype(np.float32).astype(float).between(low, low + width).to_numpy(bool),
        ),
        (Among("source", tuple(sources)), frame["source"].isin(sources).to_numpy(bool)),
        (Holding(query), text_mask(frame, query)),
        (
            Inside((Region.box([-half, half], [-half, half]),)),
            ((frame["x"].abs() < half) & (frame["y"].abs() < half)).to_numpy(bool),
        ),
    ]
    filters, expected = Filters(), np.ones(N, bool)
    for k in sorted(used):
        filters = filters.taking(made[k][0])
        expected &= made[k][1]
    assert np.array_equal(filters.mask(rows), expected)
    # each view is drawn from what all the others let through
    for k in used:
        others = np.ones(N, bool)
        for j in used - {k}:
            others &= made[j][1]
        assert np.array_equal(filters.mask(rows, skip=(made[k][0].name,)), others)


def test_a_condition_replaces_the_one_of_its_name_in_its_place():
    first = Filters().taking(Between("a", 0, 1)).taking(Among("b", ("x",))).taking(Between("a", 2, 3))
    assert [condition.description for condition in first.conditions] == ["a 2 to 3", "b: x"]
    assert first.of("a") == Between("a", 2, 3) and first.of("c") is None
    assert first.without("a").conditions == (Among("b", ("x",)),)
    assert not first.without("a").without("b") and first


def test_the_chip_says_what_is_searched_for():
    """Two words without quotes were called a phrase, while rows with both words anywhere were counted."""
    said = [Holding(text).description for text in ("memory leak", '"memory leak" free', "one")]
    expected = ["text contains memory and leak", "text contains “memory leak” and free", "text contains one"]
    assert said == expected
    over_a_line = Rows(2, texts=pa.chunked_array([["a memory\n  leak", "a leak of memory"]]))
    assert Holding('"memory leak"').mask(over_a_line).tolist() == [True, False]


def test_conditions_on_what_is_not_there_are_forgotten(rows):
    filters = Filters((Between("gone", 0, 1), Among("gone too", ("x",)), Between("quality", 0, 9), Holding("a")))
    assert [one.name for one in filters.known(rows).conditions] == ["quality", "search"]


def test_a_number_at_the_end_of_a_range_is_in_and_a_missing_one_is_out():
    rows = Rows(4, {"v": np.array([0.1, 0.3, np.nan, 0.2], np.float32)})
    end = float(np.float32(0.3))
    assert Between("v", float(np.float32(0.1)), end).mask(rows).tolist() == [True, True, False, True]
    assert Between("v", 0.15, np.nextafter(end, 0)).mask(rows).tolist() == [False, False, False, True]


def test_a_row_without_a_class_has_no_name():
    rows = Rows(3, classes={"c": (np.array([0, -1, 1]), ("", "b"))})
    assert Among("c", ("", "b")).mask(rows).tolist() == [True, False, True]


def test_masks_may_come_from_a_cache(rows):
    asked = []

    def mask_of(one, given):
        asked.append(one.name)
        return one.mask(given)

    filters = Filters((Between("quality", 0, 9), Holding("a")))
    assert np.array_equal(filters.mask(rows, (), mask_of), filters.mask(rows))
    assert asked == ["quality", "search"]
    assert Holding("a").mask(Rows(2)).tolist() == [False, False] and Inside(()).mask(Rows(2)).tolist() == [False] * 2
