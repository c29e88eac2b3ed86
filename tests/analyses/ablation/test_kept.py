"""What an ablation has selected so far comes back as it was."""

from __future__ import annotations

import numpy as np

from datamask.analyses.ablation.compute.kept import StudyCache


def test_kept_selections_come_back_as_they_were(tmp_path):
    kept = StudyCache(tmp_path, "abc").under("1").under("0")
    kept.selection("2", 2, 1_000_001).keep(np.array([3, 1_000_000]))
    rows = kept.selection("2", 2, 1_000_001).find()
    assert rows.dtype == np.int64 and rows.tolist() == [3, 1_000_000]
    for other in (
        kept.selection("2", 3, 1_000_001),
        kept.selection("2", 2, 1_000_000),
        kept.selection("3", 2, 9),
        kept.under("2").selection("2", 2, 1_000_001),
    ):
        assert other.find() is None
    nowhere = StudyCache().selection("2", 2, 1_000_001)
    assert not nowhere.keep(rows) and nowhere.find() is None and StudyCache().names() == []
