"""Which samples are settled, as layers: by the proof's columns and by counts of parts; and why there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.dashboard.linked import settled_rows
from datamask.dashboard.linked.settled_rows import (
    BY_PARTS,
    BY_PROOF,
    INELIGIBLE,
    INSIDE,
    LEANING,
    OPEN,
    OUTSIDE,
    agreed,
)
from datamask.dashboard.map.hexagons import bin_hexagons
from datamask.dashboard.map.layers import Blank, Classes, Number
from datamask.dashboard.map.marks import marks_of
from datamask.dashboard.map.places import place
from datamask.evaluation.result import NO_RESULT, RunResult


def test_codes_of_the_proof():
    settled = np.array([1, 0, -1, -1, 0, 1], np.int8)
    eligible = np.array([1, 1, 1, 0, 0, 1], bool)
    codes = settled_rows.proof_codes(settled, eligible)
    assert codes.tolist() == [INSIDE, OUTSIDE, OPEN, INELIGIBLE, INELIGIBLE, INSIDE]


def test_core_flips_and_repetition():
    appeared = np.array([16, 16, 10, 10, 16, 0])
    selected = np.array([16, 15, 5, 2, 0, 0])
    own = np.array([True, True, True, False, False, True])
    found = agreed(appeared, selected, own)
    assert found.core.tolist() == [True, True, False, False, False, False]
    assert found.flips.tolist() == [False, False, True, False, False, False]
    assert found.kept == 0.5 and found.repeated == pytest.approx((1 + 15 / 16 + 0.5) / 3)


def test_codes_of_the_parts():
    appeared = np.array([20, 20, 20, 20, 20, 20, 0, 10, 10])
    selected = np.array([20, 18, 14, 6, 2, 0, 0, 5, 8])
    codes = settled_rows.part_codes(agreed(appeared, selected, selected > 9))
    assert codes.tolist() == [INSIDE, INSIDE, OPEN, OPEN, OUTSIDE, OUTSIDE, INELIGIBLE, OPEN, LEANING]


@pytest.mark.parametrize(("name", "codes"), [(BY_PROOF, [1, 2, 3, 0]), (BY_PARTS, [1, 2, 3, 4])])
def test_points_have_a_shape_for_each_kind_and_hexagons_a_share(name, codes):
    codes = np.repeat(np.array(codes, np.uint8), 50)
    points = np.random.default_rng(0).normal(size=(200, 2))
    drawn = settled_rows.layer(name, codes, None)
    assert isinstance(drawn, Classes) and len(drawn.names) == len(drawn.roles) == len(drawn.shapes) == codes.max()
    assert ("50 rows could not be selected" in drawn.note) == (name == BY_PROOF)
    told = marks_of(drawn, place(points, False))
    assert [said.rpartition(" ")[2] for _, _, said in told.key] == ["50"] * int(codes.max())
    cells = bin_hexagons(points, 1.0)
    shared = settled_rows.layer(name, codes, cells)
    assert isinstance(shared, Number) and np.isnan(shared.values).sum() == (codes == INELIGIBLE).sum()
    for cell in range(len(cells.counts)):
        held = codes[(cells.cell == cell) & (codes != INELIGIBLE)]
        if len(held):
            assert cells.means(shared.values)[cell] == pytest.approx(np.isin(held, (OPEN, LEANING)).mean())
    assert shared.high == pytest.approx(np.nanmax(cells.means(shared.values)))
    assert isinstance(settled_rows.layer(name, np.zeros(200, np.uint8), cells), Blank)


def test_why_there_is_nothing():
    def of(summary=None, **options):
        return settled_rows.no_proof(SelectionConfig.from_options(**options), RunResult.from_dict(summary or {}))

    assert "the proof of facility classifies no row" in of(objective="facility")
    assert "pins, quotas, given rows or a budget" in of(objective="pairwise", pin="ids.txt")
    assert "no bound" in of(objective="pairwise")
    assert "too loose" in of({"upper_bound": 1.0}, objective="pairwise")
    imported = SelectionConfig(estimator=catalogue.IMPORTED.name)
    assert "imported ids" in settled_rows.no_proof(imported, NO_RESULT) and "imported" in settled_rows.never(imported)
    ruled = SelectionConfig.from_options(objective="pairwise", pin="ids.txt")
    assert "have another meaning" in settled_rows.never(ruled)
    assert settled_rows.never(SelectionConfig.from_options(objective="pairwise")) == ""
