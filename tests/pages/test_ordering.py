"""Lists of samples in an order that people choose: a part of the sorted corpus is what sorting that part gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
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


def test_rows_are_ranked_by_their_distance_to_the_cut():
    rng = np.random.default_rng(3)
    score, eligible = rng.normal(size=300).astype(np.float32), rng.random(300) < 0.8
    frame = pd.DataFrame({"score": score.astype(float), "eligible": eligible})
    best = frame[frame["eligible"]].nlargest(51, "score")["score"]
    selected = eligible & (score >= best.iloc[49])
    distance = (frame["score"] - (best.iloc[49] + best.iloc[50]) / 2).abs().where(frame["eligible"], np.inf)
    ranked = ordering.closest_to_cut("distance", score, selected, eligible)
    assert ranked.tolist() == distance.sort_values(kind="stable").index.tolist()
    everything = np.ones(300, bool)
    lowest = ordering.closest_to_cut("everything", score, everything, everything)
    assert lowest[0] == score.argmin() and lowest[-1] == score.argmax()
