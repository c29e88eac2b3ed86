"""What is counted at each λ, against pandas; and groups by the verdict of their table."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from datamask.analyses.lambda_slider.counts import counts_parcel
from datamask.dashboard.linked import groups
from datamask.dashboard.linked.tally import Tally
from tests.making.parcels import opened_parcel


@pytest.mark.parametrize("filtered", [False, True])
def test_counts_are_those_of_pandas(filtered):
    rng = np.random.default_rng(0)
    n, names = 400, tuple("abcde")
    codes, bins = rng.integers(-1, 4, n), rng.integers(0, 7, n).astype(np.int16)  # nothing is in e
    shown = rng.random(n) < 0.6 if filtered else None
    masks = [rng.random(n) < 0.15 + 0.3 * (codes == 1), rng.random(n) < 0.5]
    points = [SimpleNamespace(lamb=lamb, mask=mask) for lamb, mask in zip((0.25, 0.5), masks, strict=True)]
    parcel = counts_parcel(points, [Tally("groups", codes, 5, shown), Tally("bars", bins, 7)])
    header = opened_parcel(parcel)
    assert header["tallies"] == [["groups", 5], ["bars", 7]] and header["lambdas"] == [0.25, 0.5]
    counted = np.ones(n, bool) if shown is None else shown
    sizes = np.asarray(header["sizes"])
    kept, verdicts = (np.asarray(header[name]).reshape(2, 12) for name in ("kept", "verdicts"))
    frame = pd.DataFrame({"code": codes, "bar": bins})
    assert sizes[:5].tolist() == [int((counted & (codes == k)).sum()) for k in range(5)]
    for line, mask in enumerate(masks):
        by_code = frame[mask & counted].code.value_counts()
        assert kept[line, :5].tolist() == [by_code.get(k, 0) for k in range(5)]
        assert kept[line, 5:].tolist() == frame[mask].bar.value_counts().reindex(range(7), fill_value=0).tolist()
        table = groups.shares(codes, names, mask, shown=shown).set_index("group").verdict
        said = [header["names"][verdict] for verdict in verdicts[line, :5]]
        assert said[:4] == [table[name] for name in names[:4]] and said[4] == groups.EVEN
        assert header["shares"][line] == mask.mean()


def test_another_filter_is_another_tally():
    codes = np.zeros(4, int)
    keys = {Tally("a", codes, 1, shown).key for shown in (None, np.ones(4, bool), np.array([1, 0, 1, 1], bool))}
    assert len(keys) == 3
