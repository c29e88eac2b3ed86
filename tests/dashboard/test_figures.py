"""What figures share: a legend that names what is drawn, text that cannot be mistaken for marks, round numbers."""

import pytest

from datamask.dashboard.drawing import figures

NASTY = "<b>a & b</b>"


def test_a_legend_names_the_traces_that_have_a_name_and_nothing_else():
    drawn = figures.figure(figures.axis("x"), figures.axis("y"), height=100)
    figures.add(drawn, [None], [None], "ring", mode="markers")
    figures.add(drawn, [1], [2], read=["two"])
    ring, other = drawn.data
    assert drawn.layout.showlegend and ring.showlegend and not other.showlegend
    assert ring.hoverinfo == "skip" and other.hovertext == ("two",)


@pytest.mark.parametrize("text", [figures.plain(NASTY), figures.cut(NASTY, 200), figures.hover((NASTY, NASTY))])
def test_letters_of_a_corpus_are_no_marks(text):
    assert "<b>" not in text and "&lt;b&gt;" in text


def test_long_names_are_cut_before_they_are_escaped():
    assert figures.cut("&" * 50, 48) == "&amp;" * 7 + "…"
    assert figures.cut("short", 48) == "short"
    axis = figures.rows(["first", "second"])
    assert axis["range"] == [1.5, -0.5] and axis["ticktext"] == ["first", "second"]


@pytest.mark.parametrize("low, high", [(2, 3), (297, 190_000), (0.004, 1e6), (5, 5), (1e-9, 1e9)])
def test_round_numbers_of_a_logarithmic_axis_lie_between_its_ends(low, high):
    ticks = figures.log_ticks(low, high, 7)
    assert len(ticks) <= 7 and ticks == sorted(set(ticks))
    assert all(low * 0.99 <= tick <= high * 1.01 for tick in ticks)
    assert len(ticks) >= 3 or high / low < 20


def test_an_axis_without_a_title_takes_no_room_for_one():
    assert "title" not in figures.axis() and figures.axis("rows")["title"]["text"] == "rows"
