"""What figures share: a key that names what is drawn, text that cannot be mistaken for marks, round numbers."""

import numpy as np
import pandas as pd
import pytest
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, legend

NASTY = "<b>a & b</b>"


def test_the_key_names_the_traces_that_ask_for_it_and_nothing_else():
    drawn = figures.figure(figures.axis("x"), figures.axis("y"), height=100)
    assert legend.key_of(drawn) == ""
    drawn.add_trace(go.Bar(x=[1], y=[1], name="bars", showlegend=True, marker={"color": "#111111"}))
    drawn.add_trace(
        go.Scatter(x=[1], y=[1], name=figures.plain(NASTY), showlegend=True, mode="lines", line={"color": "#222222"})
    )
    drawn.add_trace(go.Scatter(x=[1], y=[1], name="without", mode="lines", line={"color": "#333333"}))
    figures.key_only(drawn, "ring", mode="markers", marker={"color": "#444444", "symbol": "circle-open"})
    drawn.update_layout(legend={"title": {"text": "of all"}})
    key = legend.key_of(drawn)
    assert "#111111" in key and "border-top:2px solid #222222" in key and "border:2px solid #444444" in key
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;" in key and "without" not in key and "#333333" not in key
    assert key.index("of all") < key.index("bars") < key.index("ring")


@pytest.mark.parametrize("text", [figures.plain(NASTY), figures.cut(NASTY, 200), figures.hover((NASTY, NASTY))])
def test_letters_of_a_corpus_are_no_marks(text):
    assert "<b>" not in text and "&lt;b&gt;" in text


def test_long_names_are_cut_before_they_are_escaped():
    assert figures.cut("&" * 50, 44) == "&amp;" * 7 + "…"
    assert figures.cut("short", 44) == "short"
    axis = figures.rows(["first", "second"])
    assert axis["range"] == [1.5, -0.5] and axis["ticktext"] == ["first", "second"]


@pytest.mark.parametrize("low, high", [(2, 3), (297, 190_000), (0.004, 1e6), (5, 5), (1e-9, 1e9)])
def test_round_numbers_of_a_logarithmic_axis_lie_between_its_ends(low, high):
    ticks = figures.log_ticks(low, high, 7)
    assert len(ticks) <= 7 and ticks == sorted(set(ticks))
    assert all(low * 0.99 <= tick <= high * 1.01 for tick in ticks)
    assert len(ticks) >= 3 or high / low < 20


def test_a_band_goes_up_one_curve_and_back_the_other():
    drawn = figures.figure(figures.axis(), figures.axis(), height=100)
    x, low, high = (pd.Series(values) for values in ([1.0, 2.0], [0.0, 1.0], [2.0, 3.0]))
    figures.band(drawn, x, low, high, figures.faded("#0072B2", 0.18))
    (area,) = drawn.data
    assert np.array_equal(area.x, [1, 2, 2, 1]) and np.array_equal(area.y, [0, 1, 3, 2])
    assert area.fillcolor == "rgba(0,114,178,0.18)" and area.hoverinfo == "skip"


def test_an_axis_without_a_title_takes_no_room_for_one():
    assert "title" not in figures.axis() and figures.axis("rows")["title"]["text"] == "rows"
