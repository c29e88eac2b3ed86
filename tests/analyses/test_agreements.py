"""What stored counts say, against plain counting."""

import numpy as np
import pytest

from datamask.analyses.agreement.chart import agreement, histogram
from datamask.dashboard.linked import agreed


def test_core_flips_and_repetition():
    appeared = np.array([16, 16, 10, 10, 16, 0])
    selected = np.array([16, 15, 5, 2, 0, 0])
    own = np.array([True, True, True, False, False, True])
    found = agreed.agreed(appeared, selected, own)
    assert found.core.tolist() == [True, True, False, False, False, False]
    assert found.flips.tolist() == [False, False, True, False, False, False]
    assert found.kept == 0.5 and found.repeated == pytest.approx((1 + 15 / 16 + 0.5) / 3)


def test_every_undecided_row_is_in_one_bar():
    rng = np.random.default_rng(0)
    appeared = np.full(500, 20)
    selected, own = rng.integers(0, 21, 500), rng.random(500) < 0.3
    table = histogram(agreed.agreed(appeared, selected, own), own)
    for name, mask in (("selected by the run", own), ("not selected", ~own)):
        # a share of k of 20 lies at the lower end of its bar; none and 18 of 20 or more are left out
        assert table[table["of"] == name]["rows"].tolist() == [
            0 if k == 0 else int((selected[mask] == k).sum()) for k in range(18)
        ]
    below, above = (table[table["of"] == name] for name in ("selected by the run", "not selected"))
    assert below["base"].eq(0).all() and above["base"].tolist() == below["top"].tolist()
    assert (above["top"] - above["base"]).tolist() == above["rows"].tolist()
    drawn = agreement(table, dark=True)
    assert [bars.name for bars in drawn.data] == ["selected by the run", "not selected"]
    for bars, part in zip(drawn.data, (below, above)):
        assert list(bars.base) == part["base"].tolist() and list(bars.y) == part["rows"].tolist()
        assert np.allclose(bars.x, 100 * part["low"]) and np.allclose(bars.x + bars.width, 100 * part["high"])
    (zone,), (words,) = drawn.layout.shapes, drawn.layout.annotations
    assert (zone.x0, zone.x1) == tuple(100 * end for end in agreed.FLIP) and words.text == "unstable"
