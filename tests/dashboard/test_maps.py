"""The map's parts against independent truth: nearest cell centres by brute force, counts by hand, labels as text."""

import numpy as np
import pyarrow as pa
import pytest

from datamask.dashboard import layers as layer_module
from datamask.dashboard import words
from datamask.dashboard.hexagons import PRIOR, bin_hexagons
from datamask.dashboard.layers import GAINED, KEPT, LOST, NEITHER, Category, Change, Number, Selection
from datamask.dashboard.maps import draw_map
from datamask.dashboard.panels import category_colors, cividis
from datamask.dashboard.places import MAX_POINTS, UNDER_HEXAGONS, hover_texts, place
from datamask.dashboard.regions import Region


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0, 1, (900, 2)), rng.normal(8, 0.3, (100, 2))]).astype(np.float32)


def hovers(places):
    return hover_texts([f"id{i}" for i in places.drawn], np.ones(len(places.drawn)), None)


# -- the view -------------------------------------------------------------------------------------------------------


def test_a_few_far_islands_do_not_shrink_the_view_and_a_blob_is_shown_whole():
    rng = np.random.default_rng(1)
    blob = rng.uniform(0, 10, (2000, 2))
    x0, x1, y0, y1 = place(blob).view
    assert x0 < blob[:, 0].min() and blob[:, 0].max() < x1 and y0 < blob[:, 1].min() and blob[:, 1].max() < y1
    islands = np.concatenate([blob, rng.uniform(90, 95, (40, 2))])
    x0, x1, y0, y1 = place(islands).view
    assert x1 - x0 == pytest.approx(y1 - y0) and 9.6 < x1 - x0 < 11.5 and x1 < 12


# -- hexagons -------------------------------------------------------------------------------------------------------


def test_every_point_is_in_the_cell_of_its_nearest_center(points):
    cells = bin_hexagons(points, 0.5)
    distance = ((points[:, None, :].astype(float) - cells.centers[None]) ** 2).sum(axis=2)
    own = distance[np.arange(len(points)), cells.cell]
    assert np.allclose(own, distance.min(axis=1), atol=1e-9)
    # a regular hexagon reaches no farther than its corners
    assert np.sqrt(own.max()) <= cells.radius * (1 + 1e-6)
    assert cells.counts.sum() == len(points) and cells.counts.min() >= 1


def test_neighbouring_centers_are_one_width_apart(points):
    cells = bin_hexagons(points, 0.5)
    distance = np.sqrt(((cells.centers[:, None] - cells.centers[None]) ** 2).sum(axis=2))
    np.fill_diagonal(distance, np.inf)
    assert distance.min() == pytest.approx(0.5)


def test_means_and_shares_by_hand():
    cells = bin_hexagons(np.array([[0.0, 0.0], [0.01, 0.0], [5.0, 5.0], [5.0, 5.01]]), 1.0)
    near, far = cells.cell[0], cells.cell[2]
    means = cells.means(np.array([1.0, 3.0, np.nan, np.nan]))
    assert means[near] == 2.0 and np.isnan(means[far])
    shares = cells.shares(np.array([True, True, True, False]))
    # two of two and one of two, each with PRIOR rows' worth of the overall three quarters
    assert shares[near] == pytest.approx((2 + PRIOR * 0.75) / (2 + PRIOR))
    assert shares[far] == pytest.approx((1 + PRIOR * 0.75) / (2 + PRIOR))


def test_outlines_are_closed_hexagons_with_gaps(points):
    cells = bin_hexagons(points, 0.5)
    xs, ys = cells.outlines(np.array([0, 3]), inset=1.0)
    assert xs.shape == ys.shape == (16,) and np.isnan(xs[[7, 15]]).all()
    ring = np.column_stack([xs[:7], ys[:7]])
    assert np.allclose(ring[0], ring[6])
    radius = np.sqrt(((ring[:6] - cells.centers[0]) ** 2).sum(axis=1))
    assert np.allclose(radius, cells.radius * cells.sizes()[0], rtol=1e-4)


# -- layers ---------------------------------------------------------------------------------------------------------


def test_number_ends_at_the_percentiles_and_says_so():
    values = np.arange(1000.0)
    layer = Number.of("quality", values)
    assert (layer.low, layer.high) == pytest.approx((19.98, 979.02))
    assert layer.clipped and "percentile" in layer.note
    constant = Number.of("quality", np.full(10, 3.0))
    assert constant.low < 3 < constant.high and not constant.clipped
    with pytest.raises(ValueError, match="quality"):
        Number.of("quality", np.full(3, np.nan))


def test_category_keeps_the_seven_most_frequent():
    column = pa.chunked_array([pa.array([*"aaabbbbccdefghijk", None, None])])
    layer = Category.of("domain", column)
    assert layer.names == ("b", "a", "c", "d", "e", "f", "g", "other")
    assert layer.counts == (4, 3, 2, 1, 1, 1, 1, 6)
    assert [layer.names[c] for c in layer.codes[[0, 3, 14, 18]]] == ["a", "b", "other", "other"]
    assert "4 more values" in layer.note and "2 rows without" in layer.note


def test_eight_categories_need_no_other():
    layer = Category.of("domain", pa.chunked_array([pa.array(list("abcdefgh"))]))
    assert layer.names == tuple("abcdefgh") and layer.note == ""
    assert len(set(category_colors(layer))) == 8


def test_columns_worth_colouring_by():
    n = 200
    table = pa.table({
        "source": pa.array(["x", "y"] * (n // 2)).dictionary_encode(), "chars": pa.array(range(n)),
        "url": [f"http://{i}" for i in range(n)], "year": pa.array([2020 + i % 3 for i in range(n)]),
        "flag": pa.array([True, False] * (n // 2)), "tags": pa.array([["a"]] * n), "empty": pa.nulls(n, pa.int32()),
        "text": ["same"] * n})
    assert layer_module.colourable(table, skip=("text",)) == ["source", "chars", "year", "flag"]
    kinds = [type(layer_module.layer_of_column(name, table[name])) for name in ("source", "chars", "year", "flag")]
    assert kinds == [Category, Number, Category, Category]


def test_a_column_without_values_keeps_its_panel_empty(points):
    nothing = layer_module.layer_of_column("gap", pa.chunked_array([pa.array([float("nan")] * 1000)]))
    assert isinstance(nothing, layer_module.Blank)
    places = place(points)
    figure = draw_map(places, [nothing, Number.of("a", points[:, 0])], hovers(places))
    assert [trace.xaxis for trace in panels_of(figure)] == ["x2"]
    assert "no row has a value" in [note.text for note in figure.layout.annotations]


def test_change_codes():
    first, second = np.array([0, 1, 1, 0], bool), np.array([0, 1, 0, 1], bool)
    assert Change.between("", first, second).codes.tolist() == [NEITHER, KEPT, LOST, GAINED]


# -- places ---------------------------------------------------------------------------------------------------------


def test_few_rows_are_all_drawn_in_random_order(points):
    places = place(points)
    assert sorted(places.drawn) == list(range(1000)) and places.cells is None
    assert not np.array_equal(places.drawn, np.arange(1000))
    assert places.caption == "Drawn: all 1,000 samples; the first view may cut off far ones, so zoom out to see them."


def test_many_rows_become_hexagons_and_a_sample():
    many = np.random.default_rng(0).normal(size=(MAX_POINTS + 5, 2))
    places = place(many)
    assert len(places.drawn) == UNDER_HEXAGONS and len(np.unique(places.drawn)) == UNDER_HEXAGONS
    assert places.cells.counts.sum() == len(many)
    assert "10,000 of 20,005, sampled" in places.caption and "all 20,005" in places.caption
    assert place(many, hexagons=False).caption == (
        "Drawn: 20,000 of 20,005, sampled; the first view may cut off far ones, so zoom out to see them.")


def test_the_view_ignores_far_outliers_and_is_square(points):
    outlier = np.concatenate([points, [[1e6, -1e6]]])
    x0, x1, y0, y1 = place(outlier).view
    assert x1 - x0 == pytest.approx(y1 - y0) and x1 < 100
    core = points[(points > -2).all(axis=1)]
    assert ((core[:, 0] > x0) & (core[:, 0] < x1) & (core[:, 1] > y0) & (core[:, 1] < y1)).mean() > 0.98


def test_one_place_for_all_is_still_a_view():
    x0, x1, y0, y1 = place(np.zeros((5, 2)), hexagons=True).view
    assert x0 < 0 < x1 and y0 < 0 < y1


def test_hover_texts_are_escaped_cut_and_wrapped():
    bold = "<b>" + "word " * 100
    (label,) = hover_texts(["<script>&"], [7.25], [bold], width=20, limit=50)
    lines = label.split("<br>")
    assert lines[0] == "<b>&lt;script&gt;&amp;</b>" and lines[1] == "quality 7.25"
    assert lines[2].startswith("&lt;b&gt;word") and lines[-1].endswith("…")
    assert all(len(line.replace("&lt;", "<").replace("&gt;", ">")) <= 20 for line in lines[2:])
    assert hover_texts(["a"], [1.0], [None]) == ["<b>a</b><br>quality 1"]


# -- the figure -----------------------------------------------------------------------------------------------------


def panels_of(figure):
    return [trace for trace in figure.data if trace.type == "scattergl"]


@pytest.mark.parametrize("hexagons", [False, True])
def test_panels_share_places_and_axes(points, hexagons):
    places = place(points, hexagons=hexagons)
    mask = points[:, 0] > 0
    layers = [Number.of("Quality", points[:, 0]), Category.of("Sign", pa.chunked_array([pa.array(mask)])),
              Selection("Run", mask), Change.between("B against A", mask, ~mask)]
    figure = draw_map(places, layers, hovers(places))
    traces = panels_of(figure)
    assert [trace.xaxis for trace in traces] == ["x", "x2", "x3", "x4"]
    for trace in traces:
        assert np.array_equal(trace.x, points[places.drawn, 0]) and np.array_equal(trace.y, points[places.drawn, 1])
        assert len(trace.hovertext) == len(places.drawn)
    layout = figure.layout
    assert [layout[f"xaxis{k}"].matches for k in (2, 3, 4)] == ["x"] * 3
    assert [layout[f"yaxis{k}"].matches for k in (2, 3, 4)] == ["y"] * 3
    assert layout.yaxis.scaleanchor == "x" and layout.xaxis.range == places.view[:2]
    assert not any(layout[f"{axis}axis{k}"].showticklabels for axis in "xy" for k in ("", 2, 3, 4))
    titles = [a.text for a in layout.annotations if a.text.startswith("<b>")]
    assert titles == ["<b>Quality</b>", "<b>Sign</b>", "<b>Run</b>", "<b>B against A</b>"]


def test_selected_differ_by_colour_size_and_opacity(points):
    places = place(points)
    mask = points[:, 0] > 0
    (trace,) = panels_of(draw_map(places, [Selection("Run", mask)], hovers(places)))
    chosen = mask[places.drawn]
    marker = trace.marker
    assert set(marker.color[chosen]) == {1} and set(marker.color[~chosen]) == {0}
    assert marker.size[chosen].min() > marker.size[~chosen].max()
    assert marker.opacity[chosen].min() > marker.opacity[~chosen].max()


def test_changes_differ_by_colour_and_shape(points):
    places = place(points)
    layer = Change.between("", points[:, 0] > 0, points[:, 1] > 0)
    (trace,) = panels_of(draw_map(places, [layer], hovers(places)))
    codes = layer.codes[places.drawn]
    assert {str(s) for s in trace.marker.symbol[codes == LOST]} == {"x"}
    assert {str(s) for s in trace.marker.symbol[codes == GAINED]} == {"triangle-up"}
    key = next(a.text for a in draw_map(places, [layer], hovers(places)).layout.annotations if "gained" in a.text)
    assert f"gained {(layer.codes == GAINED).sum():,}" in key and f"kept {(layer.codes == KEPT).sum():,}" in key


def test_selected_share_is_white_at_the_ratio_and_blank_where_nothing_is():
    rng = np.random.default_rng(0)
    many = rng.uniform(size=(300_000, 2))
    places = place(many)
    # on the left as everywhere; on the right all below a line and none above it
    mask = np.where(many[:, 0] < 0.5, rng.random(300_000) < 0.3, many[:, 1] < 0.3)
    figure = draw_map(places, [Selection("Run", mask)], hovers(places))
    paths = [trace for trace in figure.data if trace.type == "scatter" and trace.fill == "toself"]
    cells = sum(int(np.isnan(trace.x).sum()) for trace in paths)
    assert cells == len(places.cells.counts)
    by_color = {trace.fillcolor: np.asarray(trace.x, float) for trace in paths}
    assert "rgb(244, 244, 242)" in by_color  # the middle of the scale
    right = {color: np.mean(xs[np.isfinite(xs)] > 0.5) for color, xs in by_color.items()}
    # shrinking keeps a cell of 50 rows from the very end of the scale
    most_orange = min(right, key=lambda color: int(color[:-1].split(",")[2]))
    assert right[most_orange] > 0.99 and right["rgb(0, 114, 178)"] > 0.99
    assert right["rgb(244, 244, 242)"] < 0.05
    bar = next(trace.marker.colorbar for trace in figure.data if trace.marker.colorbar.ticktext is not None)
    assert bar.ticktext[0] == "0 %" and bar.ticktext[1] == f"{words.percent(0.3)} everywhere"


def test_a_carried_region_is_outlined_in_every_panel(points):
    places = place(points)
    layers = [Number.of("a", points[:, 0]), Number.of("b", points[:, 1])]
    figure = draw_map(places, layers, hovers(places), outlines=[Region.box([0, 1], [0, 2])])
    assert {(shape.xref, shape.yref) for shape in figure.layout.shapes} == {("x", "y"), ("x2", "y2")}
    assert {shape.path for shape in figure.layout.shapes} == {"M0,0L1,0L1,2L0,2Z"}


def test_what_does_not_fit_is_refused(points):
    places = place(points)
    with pytest.raises(ValueError, match=r"'short' must have a value for each of 1,000 rows, got 3"):
        draw_map(places, [Number.of("short", np.arange(3.0))], hovers(places))
    with pytest.raises(ValueError, match=r"1,000 texts"):
        draw_map(places, [Number.of("a", points[:, 0])], ["x"])
    with pytest.raises(ValueError, match="at least one layer"):
        draw_map(places, [], hovers(places))


def test_scales_do_not_sink_into_the_page():
    def lightness(color):
        return np.mean([int(part) for part in color[4:-1].split(",")])

    assert lightness(cividis(dark=True)[0][1]) > 60
    assert lightness(cividis(dark=False)[-1][1]) < 180
    lights = [lightness(color) for _, color in cividis()]
    assert lights == sorted(lights)
