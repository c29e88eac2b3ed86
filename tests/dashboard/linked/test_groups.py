"""Shares of groups against pandas and against the definition of the interval; classes and names by brute force."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from datamask.dashboard.linked import groups
from datamask.dashboard.linked.groups_chart import first_groups, heat_map


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7), (3, 5), (40, 1000), (1, 1), (500, 1000)])
def test_wilson_ends_are_where_the_score_test_turns(hits, n):
    low, high = (end.item() for end in groups.wilson(np.array([hits]), np.array([n])))
    share = hits / n

    def score(p):
        return (share - p) ** 2 - groups.Z**2 * p * (1 - p) / n

    expected_low = 0.0 if hits == 0 else brentq(score, 1e-12, min(share, 1 - 1e-9) - 1e-9)
    expected_high = 1.0 if hits == n else brentq(score, share + 1e-9, 1 - 1e-12)
    assert (low, high) == pytest.approx((expected_low, expected_high), abs=1e-6)
    assert 0 <= low <= share <= high <= 1


def test_wilson_covers_what_it_says():
    rng = np.random.default_rng(0)
    for p, n in ((0.3, 40), (0.05, 60)):
        low, high = groups.wilson(rng.binomial(n, p, 4000), np.full(4000, n))
        assert 0.93 < ((low <= p) & (p <= high)).mean() < 0.98


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 5, 2000).astype(np.int32)
    selected = rng.random(2000) < np.array([0.05, 0.3, 0.3, 0.3, 0.9, 0.3])[codes]
    return codes, ("starving", "b", "c", "d", "fat", "nobody"), selected, rng.integers(1, 90, 2000).astype(float)


def test_shares_of_groups_are_those_of_a_groupby(made):
    codes, names, selected, weights = made
    table = groups.shares(codes, names, selected, weights)
    frame = pd.DataFrame({"group": np.array([*names, None], object)[codes], "s": selected, "w": weights}).dropna()
    expected = (
        frame[frame["group"].notna()].groupby("group").agg(n=("s", "size"), selected=("s", "sum"), tokens=("w", "sum"))
    )
    found = table.set_index("group")
    for name, row in expected.iterrows():
        assert found.loc[name, ["n", "selected", "tokens"]].tolist() == row.tolist()
    assert set(table["group"]) == set(expected.index)
    assert np.allclose(table["share"], table["selected"] / table["n"])
    assert np.allclose(table["lift"], table["share"] / selected.mean())
    # under- and over-represented first, the farthest on top
    assert set(table["group"][:2]) == {"starving", "fat"} and table["group"][0] == "fat"
    verdict = dict(zip(table["group"], table["verdict"]))
    assert verdict["starving"] == groups.UNDER and verdict["fat"] == groups.OVER
    for row in table.itertuples():
        inside = row.low <= selected.mean() <= row.high
        assert (row.verdict == groups.EVEN) == inside
    first = first_groups(table, 3)
    assert first["share"].is_monotonic_increasing and len(first) == 3
    # one place for each side, whichever is farther off
    assert first["group"].iloc[0] == "starving" and first["group"].iloc[-1] == "fat"


def test_shares_of_shown_rows_are_those_of_a_groupby_and_compared_with_all(made):
    codes, names, selected, weights = made
    shown = np.random.default_rng(1).random(len(codes)) < 0.4
    table = groups.shares(codes, names, selected, weights, shown).set_index("group")
    frame = pd.DataFrame({"group": np.array([*names, None], object)[codes], "s": selected, "w": weights})[shown]
    expected = frame.dropna().groupby("group").agg(n=("s", "size"), selected=("s", "sum"), tokens=("w", "sum"))
    assert table.loc[expected.index, ["n", "selected", "tokens"]].to_numpy().tolist() == expected.to_numpy().tolist()
    assert np.allclose(table["lift"], table["share"] / selected.mean())
    assert groups.shares(codes, names, selected, shown=np.zeros(len(codes), bool)).empty


def test_a_heat_map_of_shown_rows_keeps_its_cells():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 12, 3000)
    names, quality, crowding = tuple("abcdefghijkl"), rng.random(3000) + codes, rng.random(3000) - codes
    selected, shown = rng.random(3000) < 0.3, (codes < 6) & (rng.random(3000) < 0.5)
    codes[rng.random(3000) < 0.1] = -1  # rows of no region
    whole = groups.heat(codes, names, quality, crowding, selected)
    part = groups.heat(codes, names, quality, crowding, selected, shown)
    assert part.quality == whole.quality and part.ratio == whole.ratio == selected.mean()
    members = whole.table.set_index(["quality", "crowding"])["members"]
    for row in part.table.itertuples():
        assert row.members == members[(row.quality, row.crowding)]
        inside = shown & np.isin(codes, [names.index(name) for name in row.members])
        assert (row.n, row.selected) == (inside.sum(), (inside & selected).sum())
    assert part.table["n"].sum() == (shown & (codes >= 0)).sum()


def test_bands_hold_equal_numbers_and_their_names_tell_their_ends():
    values = np.random.default_rng(0).lognormal(4, 1, 5000)
    codes, names = groups.bands(values, "tokens")
    assert len(names) == groups.BANDS and names[0].startswith("up to") and names[-1].startswith("over")
    assert np.ptp(np.bincount(codes)) <= 2
    assert all(values[codes == k].max() <= values[codes == k + 1].min() for k in range(len(names) - 1))
    few, named = groups.bands(np.array([1.0, 1, 1, 2, np.nan]))
    assert few.tolist() == [0, 0, 0, 1, -1] and named == ("up to 1", "over 1")
    assert groups.bands(np.full(3, 5.0), "tokens")[1] == ("all tokens",) and groups.bands(np.full(2, np.nan))[1] == ()


def test_every_region_is_in_one_cell_of_the_heat_map():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 48, 6000).astype(np.int32)
    quality, crowding = rng.normal(codes % 7, 0.1), rng.normal(codes // 7, 0.1)
    selected = rng.random(6000) < 0.1 + 0.1 * (codes % 7)
    names = tuple(f"c{k}" for k in range(50))  # two of them empty
    found = groups.heat(codes, names, quality, crowding, selected)
    members = [name for row in found.table["members"] for name in row]
    assert sorted(members) == sorted(names[:48]) and len(found.quality) == 4
    assert found.table["n"].sum() == 6000 and found.table["selected"].sum() == selected.sum()
    for row in found.table.itertuples():
        inside = np.isin(codes, [int(name[1:]) for name in row.members])
        assert row.n == inside.sum() and row.share == pytest.approx(selected[inside].mean())
    means = pd.Series(quality).groupby(codes).mean()
    step = {name: row.quality for row in found.table.itertuples() for name in row.members}
    order = [step[f"c{k}"] for k in means.sort_values().index]
    assert order == sorted(order)
    assert np.bincount([step[f"c{k}"] for k in codes]).min() > 1000
    drawn = heat_map(found)
    (cells,) = drawn.data
    # quality rises upwards, and the number of a cell is its place in the table
    assert (cells.base + 0.5).tolist() == found.table["quality"].tolist() and drawn.layout.yaxis.range == (-0.5, 3.5)
    assert list(cells.x) == found.table["crowding"].tolist() and np.allclose(
        cells.marker.color, 100 * found.table["share"]
    )
    assert cells.marker.colorscale[1][0] * cells.marker.cmax == pytest.approx(100 * found.ratio)
    assert all("score of the regions: " in text and " to " in text for text in cells.hovertext)
    assert all("c1," not in text for text in cells.hovertext), "the names of the regions are not said"
