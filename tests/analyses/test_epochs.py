"""Epochs over what a select ratio keeps, and the ratio that follows from tokens trained on and tokens owned."""

from __future__ import annotations

import pytest

from datamask.analyses.epochs.training import FRESH, LEAST, RATIOS, UNREAD, WORN, Training


@pytest.mark.parametrize(
    ("trained", "owned", "once", "strictest"),
    [(10e9, 40e9, 0.25, 0.0625), (40e9, 40e9, None, 0.25), (120e9, 40e9, None, 0.75), (400e9, 40e9, None, None)],
)
def test_ratios_by_counting_tokens(trained, owned, once, strictest):
    training = Training(trained, owned)
    assert training.once == once and training.strictest == strictest and training.ratio == once
    for ratio, kept, epochs, means in training.table():
        assert kept == pytest.approx(ratio * owned) and epochs * kept == pytest.approx(trained)
        assert means == (UNREAD if kept > trained * (1 + 1e-6) else WORN if 4 * kept < trained else FRESH)
    ratios = [row[0] for row in training.table()]
    assert ratios == sorted(ratios) and set(RATIOS) <= set(ratios) and (once is None or once in ratios)


def test_what_is_read_once_is_no_waste_whatever_is_rounded():
    for trained in (1.0, 3.0, 7e9, 1 / 3):
        training = Training(trained, 10 * trained / 0.7)
        assert training.reading(training.once) == FRESH
    assert Training(1.0, 1e9).ratio == LEAST
