"""Changes by group against pandas, and their intervals against simulated pairs."""

import numpy as np
import pandas as pd
import pytest

from datamask.analyses.comparison import tables as changes


def two(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 5, n), rng.random(n) < 0.3, rng.random(n) < 0.4


def test_masks_part_what_either_selected():
    _, a, b = two()
    parts = changes.masks(a, b)
    assert tuple(parts) == changes.KINDS
    assert np.array_equal(sum(part.astype(int) for part in parts.values()), (a | b).astype(int))
    assert set(np.flatnonzero(parts["left out"])) == set(np.flatnonzero(a)) - set(np.flatnonzero(b))
    assert set(np.flatnonzero(parts["added"])) == set(np.flatnonzero(b)) - set(np.flatnonzero(a))


def test_groups_count_as_pandas_does():
    codes, a, b = two()
    tokens = np.arange(len(codes), dtype=float)
    names = ("u", "v", "w", "x", "y", "nobody")
    table = changes.by_group(codes, names, a, b, tokens).set_index("group")
    frame = pd.DataFrame({"code": codes, "a": a, "b": b, "t": tokens}).query("code >= 0")
    assert set(table.index) == {names[k] for k in frame.code.unique()} and "nobody" not in table.index
    for code, part in frame.groupby("code"):
        row = table.loc[names[code]]
        assert (row.n, row.both) == (len(part), (part.a & part.b).sum())
        assert (row.added, row["left out"]) == ((part.b & ~part.a).sum(), (part.a & ~part.b).sum())
        assert row.after - row.before == pytest.approx(row.change) == pytest.approx(part.b.mean() - part.a.mean())
        assert row.tokens_added == part.t[part.b & ~part.a].sum()
        assert row.low <= row.change <= row.high


def test_the_largest_sure_change_comes_first():
    codes = np.repeat([0, 1, 2], [1000, 4, 1000])
    a, b = np.zeros(2004, bool), np.zeros(2004, bool)
    a[:300], b[150:300] = True, True  # large and sure
    b[1000:1002] = True  # half of four samples: large, not sure
    a[1004:1100], b[1014:1110] = True, True  # none
    b[1200:1350] = True  # the rest of the size
    table = changes.by_group(codes, ("sure", "tiny", "gaining"), a, b)
    overall = b.mean() - a.mean()
    assert table["group"].tolist()[-1] == "tiny"
    by_name = table.set_index("group")
    assert by_name.loc["sure", "high"] < overall < by_name.loc["gaining", "low"]
    assert by_name.loc["tiny", "low"] < overall < by_name.loc["tiny", "high"]


def test_intervals_cover_what_they_promise():
    """2 000 groups of 60 pairs with known rates: about 95 % hold the true change, not 80, and not all of them."""
    rng = np.random.default_rng(1)
    added, left_out = rng.multinomial(60, (0.15, 0.05, 0.8), 2000)[:, :2].T
    low, high = changes.paired(added, left_out, np.full(2000, 60))
    assert 0.93 < ((low <= 0.1) & (high >= 0.1)).mean() < 0.985


def test_ends_hold_their_change_and_stay_shares():
    low, high = changes.paired(np.array([5, 0, 0]), np.array([0, 5, 0]), np.array([5, 5, 1]))
    assert low.min() >= -1 and high.max() <= 1
    assert (low <= [1, -1, 0]).all() and (high >= [1, -1, 0]).all()
