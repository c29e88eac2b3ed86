"""The map's parts against independent truth: nearest centres by brute force, counts by hand, parcels opened again."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from datamask.corpus.column_kinds import metadata_columns
from datamask.dashboard.drawing import palette, words
from datamask.dashboard.map import layers as layer_module
from datamask.dashboard.map.ends import common_ends, net_shares
from datamask.dashboard.map.hexagons import PRIOR, bin_hexagons
from datamask.dashboard.map.layers import ADDED, BOTH, LEFT_OUT, NEITHER, Category, Change, Classes, Number, Selection
from datamask.dashboard.map.marks import MISSING, STEPS, Seen, marks_of
from datamask.dashboard.map.parcels import dimming_parcel, ground_parcel, layer_parcel, pack
from datamask.dashboard.map.places import HEXAGONS_FROM, MAX_POINTS, UNDER_HEXAGONS, cut, labels, place
from datamask.dashboard.map.scales import blend, category_colors, cividis, rgb
from tests.making.parcels import opened_parcel


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0, 1, (900, 2)), rng.normal(8, 0.3, (100, 2))]).astype(np.float32)


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


@pytest.mark.parametrize("rows", [1, 2, 7, 3_000])
def test_quantiles_of_cells_are_those_of_the_rows_in_them(rows):
    rng = np.random.default_rng(rows)
    cells = bin_hexagons(rng.normal(size=(rows, 2)), 0.4)
    values = rng.normal(size=len(cells.counts)).round(1)  # with ties
    shares = np.array([0.0, 0.02, 0.3, 0.5, 1 / 3, 0.98, 1.0])
    assert cells.quantiles(values, shares) == pytest.approx(np.quantile(values[cells.cell], shares), abs=1e-12)
    assert float(cells.quantiles(values, 0.3)) == pytest.approx(np.quantile(values[cells.cell], 0.3), abs=1e-12)
    values[rng.random(len(values)) < 0.4] = np.nan
    of_rows = values[cells.cell][~np.isnan(values[cells.cell])]
    expected = np.quantile(of_rows, shares) if len(of_rows) else np.full(len(shares), np.nan)
    assert cells.quantiles(values, shares) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert np.isnan(cells.quantiles(np.full(len(values), np.nan), (0.02, 0.98))).all()


def test_means_where_every_row_has_a_value_are_those_by_row():
    rng = np.random.default_rng(0)
    cells = bin_hexagons(rng.normal(size=(2_000, 2)), 0.4)
    values = rng.normal(size=2_000).astype(np.float32)
    expected = [values[cells.cell == number].astype(float).mean() for number in range(len(cells.counts))]
    assert cells.means(values) == pytest.approx(expected, abs=1e-12)


def test_cells_fill_their_place_where_most_samples_are(points):
    cells = bin_hexagons(points, 0.5)
    sizes = cells.sizes()
    assert sizes[cells.cell][cells.counts[cells.cell] >= np.percentile(cells.counts[cells.cell], 30)].min() == 1
    assert 0.42 <= sizes.min() < 1 and (np.diff(sizes[np.argsort(cells.counts)]) >= 0).all()


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
    table = pa.table(
        {
            "source": pa.array(["x", "y"] * (n // 2)).dictionary_encode(),
            "chars": pa.array(range(n)),
            "url": [f"http://{i}" for i in range(n)],
            "year": pa.array([2020 + i % 3 for i in range(n)]),
            "flag": pa.array([True, False] * (n // 2)),
            "tags": pa.array([["a"]] * n),
            "empty": pa.nulls(n, pa.int32()),
            "text": ["same"] * n,
        }
    )
    columns = metadata_columns(table, text="text")
    shown = {name: layer_module.layer_of_column(columns[name], table[name]) for name in table.column_names[:5]}
    assert [type(shown[name]) for name in ("source", "chars", "year", "flag")] == [Category, Number, Category, Category]
    kinds = {"source": "class", "chars": "number", "url": "text", "year": "class", "flag": "class"}
    assert {name: column.kind for name, column in columns.items()} == kinds | {
        "tags": "other",
        "empty": "other",
        "text": "text",
    }


def test_a_column_without_values_keeps_its_panel_empty(points):
    values = pa.chunked_array([pa.array([float("nan")] * 1000)])
    nothing = layer_module.layer_of_column(metadata_columns(pa.table({"gap": values}))["gap"], values)
    assert isinstance(nothing, layer_module.Blank)
    places = place(points)
    marks = marks_of(nothing, places)
    assert len(marks.codes) == 0 and marks.title == "gap" and marks.text == "no row has a value"


def test_change_codes():
    first, second = np.array([0, 1, 1, 0], bool), np.array([0, 1, 0, 1], bool)
    assert Change.between("", first, second).codes.tolist() == [NEITHER, BOTH, LEFT_OUT, ADDED]


# -- places ---------------------------------------------------------------------------------------------------------


def test_few_rows_are_all_drawn_in_random_order(points):
    places = place(points)
    assert sorted(places.drawn) == list(range(1000)) and places.cells is None
    assert not np.array_equal(places.drawn, np.arange(1000))
    assert "Zoom out" in places.caption


def test_many_rows_become_hexagons_and_a_sample():
    many = np.random.default_rng(0).normal(size=(HEXAGONS_FROM + 5, 2))
    places = place(many)
    assert len(places.drawn) == UNDER_HEXAGONS and len(np.unique(places.drawn)) == UNDER_HEXAGONS
    assert places.cells.counts.sum() == len(many)
    assert places.caption == "Larger hexagons have more rows. Hover to see any of 10,000 random rows."
    assert len(place(many, hexagons=False).drawn) == len(many)
    more = place(np.zeros((MAX_POINTS + 5, 2)), hexagons=False)
    assert len(more.drawn) == 50_000


def test_one_place_for_all_is_still_a_view():
    x0, x1, y0, y1 = place(np.zeros((5, 2)), hexagons=True).view
    assert x0 < 0 < x1 and y0 < 0 < y1


def test_labels_are_plain_text_cut_at_a_space():
    bold = "<b>" + "word " * 100
    (label,) = labels(["<script>\n&"], [7.25], [bold], limit=50)
    lines = label.split("\n")
    # foreign texts stay as they are: the browser shows them as text
    assert lines[:2] == ["<script> &", "quality score 7.25"]
    assert lines[2].startswith("<b>word word") and lines[2].endswith("word…") and len(lines[2]) <= 50
    assert labels(["a"], [1.0], [None]) == ["a\nquality score 1"]
    assert cut("x" * 99, 10) == "x" * 9 + "…"


# -- marks ----------------------------------------------------------------------------------------------------------


def test_a_scale_is_linear_between_its_ends_and_grey_where_nothing_is(points):
    places = place(points)
    values = points[:, 0].astype(np.float32).copy()
    values[:7] = np.nan
    layer = Number.of("Crowding", values)
    marks = marks_of(layer, places)
    drawn = values[places.drawn]
    expected = np.clip((drawn - layer.low) / (layer.high - layer.low), 0, 1) * (STEPS - 1)
    known = np.isfinite(drawn)
    assert np.abs(marks.codes[known] - expected[known]).max() <= 0.5 + 1e-4
    assert set(marks.codes[~known]) == {MISSING} and (~known).sum() == 7
    assert marks.colors[0, :3].tolist() == rgb([cividis()[0][1]])[0].tolist()
    assert marks.colors[STEPS - 1, :3].tolist() == rgb([cividis()[-1][1]])[0].tolist()
    assert marks.colors[MISSING, :3].tolist() == rgb([palette.LIGHT.muted])[0].tolist()
    assert marks.bar["ticks"][0][1].startswith("≤ ") and np.array_equal(marks.values, drawn, equal_nan=True)


def test_selected_differ_by_colour_size_and_opacity(points):
    places = place(points)
    mask = points[:, 0] > 0
    marks = marks_of(Selection("Run", mask), places)
    assert np.array_equal(marks.codes == 1, mask[places.drawn])
    assert marks.sizes[1] > marks.sizes[0] and marks.colors[1, 3] > marks.colors[0, 3]
    assert marks.colors[1, :3].tolist() == rgb([palette.LIGHT.accent])[0].tolist()
    assert [said for _, _, said in marks.key] == ["selected", "not selected"]


def test_changes_and_classes_differ_by_colour_and_shape(points):
    places = place(points)
    layer = Change.between("", points[:, 0] > 0, points[:, 1] > 0)
    marks = marks_of(layer, places)
    assert np.array_equal(marks.codes, layer.codes[places.drawn])
    assert [marks.shapes[k] for k in (ADDED, LEFT_OUT)] == ["triangle", "cross"]
    assert [said for _, _, said in marks.key] == [
        f"{name} {(layer.codes == k).sum():,}"
        for name, k in (("added", ADDED), ("left out", LEFT_OUT), ("in both", BOTH), ("in neither", NEITHER))
    ]
    codes = (np.arange(1000) % 3).astype(np.uint8)
    two = marks_of(Classes("", codes, ("a", "b"), ("quality", "diversity"), ("diamond", "triangle")), places)
    assert two.shapes == ("circle", "diamond", "triangle") and len({tuple(c) for c in two.colors[:3].tolist()}) == 3
    assert [entry[2] for entry in two.key] == ["a 333", "b 333"]
    whole = Classes("", codes, ("a", "b"), ("quality", "diversity"), ("diamond", "triangle"), rest="neither")
    few = marks_of(whole, places, seen=Seen(counted=np.arange(1000) < 10))
    assert [entry[2] for entry in few.key] == ["a 3 of 333", "b 3 of 333", "neither 4 of 334"]


def test_cells_take_the_most_frequent_class_and_tell_its_share():
    places = place(np.array([[0, 0], [0, 0], [0, 0], [9, 9]], float), hexagons=True)
    marks = marks_of(Category.of("kind", pa.chunked_array([pa.array(["a", "b", "b", "a"])])), places)
    cell = places.cells.cell
    # by falling count, equal ones by name
    assert marks.hover["names"] == ["a", "b"]
    assert marks.codes[cell[0]] == 1 and marks.values[cell[0]] == pytest.approx(2 / 3)
    assert marks.codes[cell[3]] == 0 and marks.values[cell[3]] == 1


def test_selected_share_is_gray_at_the_ratio():
    rng = np.random.default_rng(0)
    many = rng.uniform(size=(300_000, 2))
    places = place(many)
    # on the left as everywhere; on the right all below a line and none above it
    mask = np.where(many[:, 0] < 0.5, rng.random(300_000) < 0.3, many[:, 1] < 0.3)
    marks = marks_of(Selection("Run", mask), places)
    assert len(marks.codes) == len(places.cells.counts)
    # cells at the rim hold few rows, and their shares are shrunk
    right = (places.cells.centers[:, 0] > 0.55) & (np.abs(places.cells.centers - 0.5) < 0.46).all(axis=1)
    low, high = places.cells.centers[:, 1] < 0.25, places.cells.centers[:, 1] > 0.35
    assert marks.codes[right & low].min() > 0.85 * STEPS and marks.codes[right & high].max() < 0.25 * STEPS
    left = marks.codes[places.cells.centers[:, 0] < 0.45]
    assert abs(left.mean() - STEPS / 2) < 0.06 * STEPS
    assert np.ptp(marks.colors[STEPS // 2, :3]) < 10  # the middle of the scale
    assert [text for _, text in marks.bar["ticks"]][:2] == ["0 %", f"{words.percent(0.3)} of all rows"]
    hits = np.bincount(places.cells.cell[mask], minlength=len(marks.codes))
    assert np.array_equal(marks.values, hits)


def test_what_does_not_fit_is_refused(points):
    places = place(points)
    with pytest.raises(ValueError, match=r"'short' must have a value for each of 1,000 rows, got 3"):
        marks_of(Number.of("short", np.arange(3.0)), places)
    with pytest.raises(ValueError, match=r"1,000 texts"):
        ground_parcel(places, ["x"])
    with pytest.raises(ValueError, match=r"wrong must be uint8.*got int64"):
        pack({}, wrong=np.arange(3))


def test_scales_do_not_sink_into_the_page():
    assert rgb([cividis(dark=True)[0][1]]).mean() > 60
    assert rgb([cividis(dark=False)[-1][1]]).mean() < 180
    lights = rgb([color for _, color in cividis()]).mean(axis=1)
    assert (np.diff(lights) > 0).all()
    assert blend([(0, "#000000"), (1, "#0000ff")], np.array([-1, 0.5, 2]))[:, 2].tolist() == [0, 128, 255]


# -- parcels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hexagons", [False, True])
def test_a_ground_arrives_as_it_was(points, hexagons):
    places = place(points, hexagons=hexagons)
    said = [f"id {row} ü\nquality score 1" for row in places.drawn]
    ground = opened_parcel(ground_parcel(places, said))
    assert ground["view"] == list(places.view)
    assert np.array_equal(ground["points"].reshape(-1, 2), points[places.drawn])
    assert np.array_equal(ground["rows"], places.drawn)
    letters, ends = ground["letters"].tobytes(), ground["ends"]
    assert [letters[a:b].decode() for a, b in itertools.pairwise(ends)] == said
    assert ("centers" in ground) == hexagons
    if hexagons:
        assert np.allclose(ground["centers"].reshape(-1, 2), places.cells.centers, atol=1e-5)
        assert np.array_equal(ground["cell"], places.cells.cell[places.drawn])


def test_other_colours_are_another_parcel_and_the_same_colours_the_same(points):
    places = place(points)
    mask = points[:, 0] > 0
    parcel = [layer_parcel(marks_of(Selection("Run", chosen), places)) for chosen in (mask, mask.copy(), ~mask)]
    assert parcel[0] == parcel[1] != parcel[2]
    # one byte per sample, and a colour table with its words
    assert len(parcel[0]) < len(points) + 2500


def test_what_a_filter_leaves_out_is_dimmed(points):
    mask = points[:, 0] > 0
    places = place(points)
    bright = opened_parcel(dimming_parcel(places, mask))["bright"]
    assert np.array_equal(bright, np.where(mask[places.drawn], 255, 0))
    places = place(points, hexagons=True)
    bright = opened_parcel(dimming_parcel(places, mask))["bright"]
    hits = np.bincount(places.cells.cell[mask], minlength=len(bright))
    assert np.array_equal(bright == 0, hits == 0) and np.array_equal(bright == 255, hits == places.cells.counts)
    sent = opened_parcel(dimming_parcel(places, mask))
    assert np.array_equal(sent["hits"], hits) and np.array_equal(sent["passing"] == 255, mask[places.drawn])


def test_a_filter_recolours_cells_by_what_it_shows_and_leaves_the_key_of_a_selection(points):
    rng = np.random.default_rng(3)
    mask, shown = rng.random(len(points)) < 0.3, rng.random(len(points)) < 0.2
    seen = Seen(shown, shown)
    marks = marks_of(Selection("Run", mask), place(points, hexagons=False), seen=seen)
    assert [name for _, _, name in marks.key] == ["selected", "not selected"]
    places = place(points, hexagons=True)
    cell = places.cells.cell
    marks = marks_of(Selection("Run", mask), places, seen=seen)
    assert np.array_equal(marks.values, np.bincount(cell[mask & shown], minlength=len(marks.codes)))
    values = rng.normal(size=len(points))
    marks = marks_of(Number.of("height", values), places, seen=seen)
    for one in np.unique(cell[shown])[:20]:
        assert marks.values[one] == pytest.approx(values[shown & (cell == one)].mean(), abs=1e-5)
    assert (marks.codes[np.bincount(cell[shown], minlength=len(marks.codes)) == 0] == MISSING).all()
    kinds = pa.chunked_array([pa.array(np.where(values > 0, "up", "down"))])
    marks = marks_of(Category.of("kind", kinds), places, seen=Seen(np.zeros(len(points), bool)))
    assert not marks.values.any()


def cell_values(layer, cells):
    if isinstance(layer, Selection):
        return cells.shares(layer.selected)
    return net_shares(layer, cells) if isinstance(layer, Change) else cells.means(layer.values)


def test_compared_hexagon_maps_have_one_scale_so_that_a_colour_means_one_thing(points):
    places = place(points, hexagons=True)
    rng = np.random.default_rng(2)
    left = points[:, 0] < np.median(points[:, 0])
    even, lopsided = rng.random(len(points)) < 0.5, left & (rng.random(len(points)) < 0.9)
    for layers in (
        [Selection("A", even), Selection("B", lopsided)],
        [
            Change.between("B against A", even, even ^ (rng.random(len(points)) < 0.05)),
            Change.between("C against A", even, lopsided),
        ],
        [Number.of("A", rng.random(len(points))), Number.of("B", 5 * left + rng.random(len(points)))],
    ):
        alone = [marks_of(layer, places).bar["ticks"] for layer in layers]
        assert alone[0] != alone[1]
        ends = common_ends(layers, places.cells)
        together = [marks_of(layer, places, seen=Seen(ends=ends)) for layer in layers]
        assert together[0].bar == together[1].bar
        measured = [cell_values(layer, places.cells) for layer in layers]
        pairs = np.argsort(np.abs(measured[0][:, None] - measured[1][None, :]), axis=None)[:50]
        for a, b in zip(*np.unravel_index(pairs, (len(measured[0]), len(measured[1])))):
            assert abs(int(together[0].codes[a]) - int(together[1].codes[b])) <= 2
    assert common_ends([Selection("A", even)], None) == {}


def test_the_middle_says_all_rows_only_where_all_ratios_are_one(points):
    places = place(points, hexagons=True)
    half = np.arange(len(points)) % 2 == 0
    fifth = np.arange(len(points)) % 5 == 0
    for layers, said in (
        ([Selection("A", half), Selection("B", ~half)], "50 % of all rows"),
        ([Selection("A", half), Selection("B", fifth)], "35 %"),
    ):
        seen = Seen(ends=common_ends(layers, places.cells))
        middle = marks_of(layers[0], places, seen=seen).bar["ticks"][1][1]
        assert middle.replace(words.GAP, " ") == said
