"""The rows at both ends of a selection: against a sort of all rows, and those that may not be selected left out."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.analyses.samples.extremes_panel import EACH, extremes


@pytest.mark.parametrize("seed", range(3))
def test_the_most_valuable_left_out_and_the_weakest_selected_by_a_sort_of_all(seed):
    rng = np.random.default_rng(seed)
    scores, selected = rng.integers(0, 40, 300) / 7, rng.random(300) < 0.3  # many are equal
    scores[rng.random(300) < 0.2] = np.nan
    rows = [row for row in range(300) if np.isfinite(scores[row])]
    left_out = sorted((row for row in rows if not selected[row]), key=lambda row: (-scores[row], row))
    weakest = sorted((row for row in rows if selected[row]), key=lambda row: (scores[row], row))
    found = extremes(scores, selected)
    assert found[0].tolist() == left_out[:EACH] and found[1].tolist() == weakest[:EACH]


def test_without_scores_that_differ_there_is_nothing_to_show():
    selected = np.arange(20) < 4
    for scores in (np.full(20, np.nan), np.ones(20)):
        assert [len(rows) for rows in extremes(scores, selected)] == [0, 0]
    few = extremes(np.arange(20.0), np.arange(20) < 3)
    assert [len(rows) for rows in few] == [EACH, 3]
