"""What an ablation has selected so far comes back as it was, and another search lets it go."""

from __future__ import annotations

import numpy as np

from datamask.evaluation.lambdas.kept import ABLATION, Kept, forget, kept_for


def test_cells_of_ablations_stay_where_another_question_is_asked(tmp_path):
    cells = Kept(tmp_path, "abc", ABLATION)
    cells.put("0123", np.arange(3))
    kept_for(tmp_path, "abc", "0123456789ab").put("1-0-0", np.arange(3))
    forget(tmp_path, "abc")
    assert cells.names() == ["0123"] and not kept_for(tmp_path, "abc", "0123456789ab").names()


def test_kept_selections_come_back_as_they_were(tmp_path):
    kept = Kept(tmp_path, "abc").under("1").under("0")
    kept.put("2", np.array([3, 1_000_000]))
    rows = kept.find("2", 2, 1_000_001)
    assert rows.dtype == np.int64 and rows.tolist() == [3, 1_000_000]
    assert kept.find("2", 3, 1_000_001) is None and kept.find("2", 2, 1_000_000) is None
    assert kept.find("3", 2, 9) is None and kept.under("2").find("2", 2, 1_000_001) is None
    Kept().put("2", rows)
    assert Kept().find("2", 2, 1_000_001) is None
