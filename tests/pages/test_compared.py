"""Compare on the Map: the current selection against a run, its numbers, its map, and the address that keeps it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pages.reading import compared_runs, titles


@pytest.fixture
def runs(finished, opened, mapped):
    quality = opened.corpus.quality
    return [
        finished(scores, name=name, objective="pairwise")
        for name, scores in (("one", quality), ("two", np.roll(quality, 7)))
    ]


def kept(run) -> np.ndarray:
    return run.rows()["selected"].to_numpy().astype(bool)


def test_the_shown_run_is_held_against_the_one_before(page, opened, runs):
    first, second = map(kept, runs)
    app = page(corpus=opened.key, run=runs[1].id)
    app.button(key="map_compare").click().run()
    assert not app.exception
    shown = compared_runs(app)
    overlap = (first & second).sum() / (first | second).sum()
    assert shown[""].tolist() == ["A", "B"] and shown["Overlap"][1].startswith(f"{100 * overlap:.0f} % (")
    assert titles(app) == ["B · two against A · one"]
    assert app.query_params["against"] in (runs[0].id, [runs[0].id])
    # the address brings it back, in another session
    again = page(corpus=opened.key, run=runs[1].id, against=runs[0].id)
    assert titles(again) == titles(app) and compared_runs(again).equals(shown)
    app.button(key="map_compare_end").click().run()
    assert titles(app) == ["Selected by two"] and not app.table and "against" not in app.query_params


def test_it_ends_where_the_other_run_is_the_current_selection_or_gone(page, opened, runs):
    for against in (runs[1].id, "20200101-000000-never-00000000", "../x"):
        app = page(corpus=opened.key, run=runs[1].id, against=against)
        assert not app.exception and not app.table and titles(app) == ["Selected by two"]


def test_one_run_alone_is_compared_with_nothing(page, opened, finished, mapped):
    run = finished(objective="pairwise")
    app = page(corpus=opened.key, run=run.id)
    assert "map_compare" not in [button.key for button in app.button]
