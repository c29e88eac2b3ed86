"""Areas of a layout and their names: contiguous, disjoint, what lies inside, and no two names alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import ndimage

from datamask.corpus import open_corpus
from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.data import demo
from datamask.dashboard.map import map_layout
from datamask.dashboard.map.areas import ACROSS, LEAST, MOST, areas_of
from datamask.dashboard.map.named_regions import load, names_of, regions_of
from datamask.runs.store import RunStore


def clumps(seed: int, count: int, rows: int = 4_000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    of = rng.choice(count, rows, p=rng.dirichlet(np.ones(count)))
    around = rng.gamma(1.0, 0.3, rows)[:, None] * rng.normal(size=(rows, 2))
    return (rng.uniform(-5, 5, (count, 2))[of] + around).astype(np.float32)


@pytest.fixture(scope="module")
def of_demo(tmp_path_factory):
    """The demo corpus, and the cache with its layout and regions."""
    runs_dir = tmp_path_factory.mktemp("demo") / "runs"
    demo.install(runs_dir)
    return open_corpus(demo.config()), RunStore(runs_dir).cache_dir


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 5, 60])
def test_an_area_is_one_piece_and_holds_the_rows_drawn_inside(seed, count):
    points = clumps(seed, count)
    areas = areas_of(points)
    # which cell each row lies in, and which area is there
    rows = pd.DataFrame(points.astype(float), columns=["x", "y"])
    cell = pd.DataFrame({axis: np.floor((rows[axis] - at) / areas.side) for axis, at in zip("xy", areas.corner)})
    on_grid = ((cell >= 0) & (cell < 3 * ACROSS)).all(axis=1)
    found = np.full(len(points), -1)
    found[on_grid] = areas.cells[cell.y[on_grid].astype(int), cell.x[on_grid].astype(int)]
    assert (areas.codes == found).all()
    sizes = pd.Series(areas.codes[areas.codes >= 0]).value_counts(sort=False).sort_index()
    assert sizes.index.tolist() == list(range(len(areas.peaks))) and sizes.is_monotonic_decreasing
    assert (sizes >= LEAST).all() and (areas.codes >= 0).mean() > 0.9
    for place, (x, y) in enumerate(areas.peaks):
        _, pieces = ndimage.label(areas.cells == place)
        assert pieces == 1, "neighbors share a side"
        across, up = (int((value - at) // areas.side) for value, at in zip((x, y), areas.corner))
        assert areas.cells[up, across] == place


def test_areas_are_at_most_so_many_where_they_touch_and_islands_are_not_merged():
    assert len(areas_of(clumps(0, 300, 20_000)).peaks) <= MOST
    islands = np.repeat(np.stack(np.meshgrid(np.arange(6), np.arange(6)), -1).reshape(-1, 2), 40, axis=0)
    found = areas_of((islands + np.random.default_rng(0).normal(0, 0.02, islands.shape)).astype(np.float32))
    assert len(found.peaks) == 36 and (np.bincount(found.codes) == 40).all()


def test_few_rows_and_rows_in_one_place_make_at_most_one_area():
    assert areas_of(np.zeros((LEAST, 2), np.float32)).codes.tolist() == [0] * LEAST
    assert areas_of(np.zeros((LEAST - 1, 2), np.float32)).codes.tolist() == [-1] * (LEAST - 1)


def test_regions_of_the_demo_are_those_of_its_layout(of_demo):
    corpus, cache_dir = of_demo
    kept = load(corpus, cache_dir, "UMAP")
    points = map_layout.layout(corpus, cache_dir).points
    made = regions_of(points, corpus.texts)
    assert kept.names == made.names and (kept.codes == made.codes).all() and (kept.places == made.places).all()
    assert 14 <= len(set(kept.names)) == len(kept.names) <= MOST
    assert not any(letter.isdigit() for name in kept.names for letter in name)


def test_a_name_is_what_sets_the_texts_apart_and_no_two_are_alike():
    texts = ["the cat and the dog"] * 30 + ["the plot and the axis"] * 30 + [None, "the end", "elsewhere"]
    codes = np.array([0] * 30 + [1] * 30 + [0, 1, -1], np.int32)
    names = names_of(codes, pa.chunked_array([pa.array(texts)]))
    assert [set(name.split(", ")) for name in names] == [{"cat", "dog"}, {"axis", "plot"}]
    # of two that would have one name, both get a word more; one word in two forms is enough
    texts = ["matrix matrices sparse alpha"] * 9 + ["matrix matrices sparse beta"] * 9 + ["other things"] * 30
    names = names_of(np.repeat([0, 1, 2], [9, 9, 30]), pa.chunked_array([pa.array(texts)]))
    assert len(set(names)) == 3 and {"alpha", "beta"} <= {word for name in names for word in name.split(", ")}
    assert not any("matrices" in name and "matrix," in name for name in names)


def test_without_words_of_its_own_an_area_is_no_region():
    points = np.repeat([[0.0, 0.0], [5.0, 5.0]], 30, axis=0).astype(np.float32)
    texts = ["this has been done here by them"] * 30 + ["birds fly"] * 30
    found = regions_of(points, pa.chunked_array([pa.array(texts)]))
    assert len(found.names) == 1 and set(found.names[0].split(", ")) == {"birds", "fly"}
    assert found.codes.tolist() == [-1] * 30 + [0] * 30 and found.places.shape == (1, 2)
    assert regions_of(points, None).names == () and (regions_of(points, None).codes == -1).all()


def test_regions_are_kept_with_the_layout(of_demo, tmp_path):
    corpus, _ = of_demo
    stored_layout(corpus, tmp_path).keep(Layout(clumps(0, 9, len(corpus)), 0.4, len(corpus)))
    map_layout.stored_crowding(corpus, tmp_path).keep(np.zeros(len(corpus), np.float32))
    assert not map_layout.prepared(corpus, tmp_path, "UMAP")
    map_layout.prepare(corpus, tmp_path)
    assert map_layout.prepared(corpus, tmp_path, "UMAP") and len(load(corpus, tmp_path, "UMAP").names) > 1
