"""Lists of samples in an order that people choose: a part of the sorted corpus is what sorting that part gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from datamask.dashboard.shell import ordering


@dataclass
class _Corpus:
    identity: str
    quality: np.ndarray

    def __len__(self) -> int:
        return len(self.quality)


@pytest.mark.parametrize("order", ordering.ORDERS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.6, 1.0])
def test_a_part_of_the_corpus_is_sorted_as_by_python_with_equal_ones_in_input_order(order, share):
    rng = np.random.default_rng(int(100 * share))
    quality = rng.normal(size=500).round(1).astype(np.float32)  # with ties
    rows = np.flatnonzero(rng.random(500) < share)
    sign = {ordering.BEST: -1, ordering.WORST: 1, ordering.INPUT: 0}[order]
    expected = sorted(rows.tolist(), key=lambda row: sign * float(quality[row]))
    listed = ordering.in_order(_Corpus(f"ordering {share}", quality), rows, order)
    assert listed.dtype == np.int64 and listed.tolist() == expected
