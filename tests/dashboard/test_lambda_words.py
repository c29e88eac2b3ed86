"""Words of the band over lambda keep out of the curves' way and off each other."""

from __future__ import annotations

import pandas as pd

from datamask.dashboard.charts.lambda_words import LINE, Room, Spot

EDGES, SPAN = (0.0, 1.0), (-1.0, 1.0)


def room(*differences: float) -> Room:
    curve = pd.DataFrame({"objective": "a", "lambda": [0.0, 0.5, 1.0], "difference": differences})
    return Room(curve, EDGES, SPAN, 200)


def test_words_stand_on_the_side_where_no_curve_runs():
    spots = [Spot(1.0, 0.0, 0, 11, "right"), Spot(1.0, 0.0, 0, -11, "right"), Spot(0.0, 0.0, 0, 11, "left")]
    assert room(0.9, 0.9, 0.9).place("words here", spots) == spots[0]
    # 0.11 of 2 in 200 pixels is 11 pixels: the middle of the words under the line
    assert room(-0.11, -0.11, -0.11).place("words here", spots) == spots[1]
    assert room(-0.9, -0.9, 0.9).place("words here", spots[::2]) == spots[0]
    assert room(0.9, -0.11, -0.11).place("words here", spots[::2]) == spots[2]


def test_words_lie_neither_on_each_other_nor_outside():
    here, low = Spot(0.5, 0.0, 0, 0, "center"), Spot(0.5, -1.0, 0, 0, "center")
    beside = Spot(0.5, 0.0, 0, LINE, "center")
    picture = room(0.9, 0.9, 0.9)
    assert picture.place("first", [low, here]) == here
    assert picture.place("second", [here, beside]) == beside
