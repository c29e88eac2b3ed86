"""Out of core: ends of the scales, values and bounds are those of all rows, as the shards have them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from datamask.errors import InputError
from datamask.out_of_core import solvers
from tests.making.whole_runs import done_run, units_of, written_shards
from tests.reference import truth

ALONE = {"pairwise": truth.pairwise, "disf_fixed": truth.disf_fixed}
SAMPLE = 1000
FEW = 1000
"""Rows of a block whose memory does not hold the rows of these tests."""


NEARLY_EQUAL = [("float16", 30.0), ("float32", 30.0), ("float64", 1000.0), ("float32", 0.5)]


@pytest.mark.parametrize(("kind", "offset"), NEARLY_EQUAL)
@pytest.mark.parametrize("objective", ALONE)
def test_no_selection_is_above_the_bound_and_values_are_those_of_the_definition(objective, kind, offset, tmp_path):
    """All selections of few rows, which nearly coincide: rounded to float16 they would be others."""
    rng = np.random.default_rng(8)
    for case in range(2):
        rows, size = int(rng.integers(8, 12)), int(rng.integers(2, 7))
        features, quality = (rng.normal(size=(rows, 3)) + offset).astype(kind), rng.normal(size=rows)
        lamb = float(rng.choice([0.0, 0.3, 0.7]))
        place = written_shards(tmp_path / str(case) / "shards", features, quality)
        options = {"objective": objective, "lamb": lamb, "select_ratio": size / rows}
        summary, members = done_run(place, **options)
        ends = {"quality": summary["anchors"]["quality"], **summary["anchors"]["diversity"]}
        x = units_of(features)

        def joint(subset, ends=ends, x=x, quality=quality, lamb=lamb):
            raw = {"quality": quality[subset].mean(), objective: ALONE[objective](x, subset)}
            shares = {name: (raw[name] - e["random"]) / ((e["best"] - e["random"]) or 1) for name, e in ends.items()}
            return lamb * shares["quality"] + (1 - lamb) * shares[objective]

        assert summary["objectives"][objective] == pytest.approx(ALONE[objective](x, members), rel=1e-9, abs=1e-12)
        best = max(joint(np.array(subset)) for subset in itertools.combinations(range(rows), size))
        assert summary["upper_bound"] >= best - 1e-9
        assert summary["upper_bound"] >= summary["calibrated"]["joint"]


def _clouds(rng, rows, dim):
    centres = rng.normal(size=(6, dim)) + 0.6
    return centres[rng.integers(0, 6, rows)] + 0.5 * rng.normal(size=(rows, dim))


def _isotropic(rng, rows, dim):
    return rng.normal(size=(rows, dim))


# Where features have no common direction many selections are nearly the best, and swaps end at another in each home.
@pytest.mark.parametrize(("made", "center", "near"), [(_clouds, True, 1e-5), (_isotropic, False, 3e-4)])
def test_the_ends_of_the_scales_are_those_in_memory(made, center, near, tmp_path, monkeypatch):
    """Also where the sample is a tenth of the rows: the best end contains 1 / (S - 1)."""
    monkeypatch.setattr(solvers, "BLOCK_ROWS", FEW)
    rng = np.random.default_rng(1)
    features = made(rng, 10_000, 8).astype(np.float32)
    place = written_shards(tmp_path / "shards", features, rng.normal(size=10_000))
    options = {"objective": "pairwise:1,disf_fixed:1", "lamb": 0.4, "select_ratio": 0.3, "center": center}
    inside, _ = done_run(place, scratch=False, **options)
    outside, _ = done_run(place, rows=SAMPLE, **options)
    assert outside["anchors"]["quality"] == pytest.approx(inside["anchors"]["quality"])
    for name, ends in inside["anchors"]["diversity"].items():
        found, reach = outside["anchors"]["diversity"][name], ends["best"] - ends["random"]
        assert found["random"] == pytest.approx(ends["random"], abs=1e-6 * reach)
        assert -near <= (found["best"] - ends["best"]) / reach <= 1e-4, name
    assert outside["calibrated"]["joint"] >= inside["calibrated"]["joint"] - 1e-5


@pytest.mark.parametrize(("made", "lamb"), [(_clouds, 0.5), (_isotropic, 0.0)])
def test_facility_selects_the_rows_that_it_selects_in_memory(made, lamb, tmp_path):
    """On features that rounding changes, the more the fewer dimensions: tens of the 200 rows were others in memory.

    With quality the ends of the scale count too, which are of rounded rows over scratch and of true ones in memory.
    """
    rng = np.random.default_rng(0)
    place = written_shards(tmp_path / "shards", made(rng, 2000, 6).astype("float32"), rng.normal(size=2000))
    options = {"objective": "facility", "lamb": lamb, "select_ratio": 0.1}
    (inside, here), (outside, there) = done_run(place, scratch=False, **options), done_run(place, **options)
    assert len(np.setdiff1d(here, there)) <= (2 if lamb else 0)
    for name, value in inside["calibrated"].items():
        assert outside["calibrated"][name] == pytest.approx(value, abs=1e-3 if lamb else 1e-4), name


def _heavy(rng, rows, dim):
    return rng.standard_t(3, size=(rows, dim))


def _offset(rng, rows, dim):
    return rng.normal(size=(rows, dim)) + 3 * rng.normal(size=dim)


@pytest.mark.parametrize(
    ("made", "size", "center", "rows"),
    [
        (_heavy, 20, False, 400),
        (_offset, 400, True, None),
        (_clouds, 400, True, 400),
    ],
)
def test_a_selection_is_worth_the_same_in_memory_and_out_of_core(made, size, center, rows, tmp_path):
    """Also where the sample is a third of the rows. No bound says what the best end is: two searches end apart."""
    rng = np.random.default_rng(2)
    features, quality = made(rng, 1200, 12).astype(np.float32), rng.normal(size=1200)
    options = {"objective": "disf_fixed", "lamb": 0.5, "select_ratio": size / 1200, "center": center}
    inside, _ = done_run(written_shards(tmp_path / "a" / "shards", features, quality), scratch=False, **options)
    outside, members = done_run(written_shards(tmp_path / "b" / "shards", features, quality), rows=rows, **options)
    common = features.astype(np.float64).mean(axis=0) if center else 0.0
    value = truth.disf_fixed(units_of(features - common), members)
    ends = (summary["anchors"]["diversity"]["disf_fixed"] for summary in (inside, outside))
    shares = [(value - each["random"]) / (each["best"] - each["random"]) for each in ends]
    assert shares[0] == pytest.approx(shares[1], abs=1e-6)
    assert outside["calibrated"]["diversity"] == pytest.approx(shares[0], abs=1e-6)


def test_the_end_of_few_members_is_nearly_that_in_memory_where_memory_cannot_hold_all_rows(tmp_path, monkeypatch):
    """20 of 1,500 rows of 24 dimensions: a rule of 276 unknowns says little of so few, and swaps find the rest."""
    monkeypatch.setattr(solvers, "BLOCK_ROWS", FEW)
    rng = np.random.default_rng(2)
    features, quality = rng.standard_t(3, size=(1500, 24)).astype(np.float32), rng.normal(size=1500)
    place = written_shards(tmp_path / "shards", features, quality)
    options = {"objective": "disf_fixed", "lamb": 0.5, "select_ratio": 20 / 1500}
    inside, _ = done_run(place, scratch=False, **options)
    outside, _ = done_run(place, **options)
    ends, found = (summary["anchors"]["diversity"]["disf_fixed"] for summary in (inside, outside))
    assert found["best"] >= ends["best"] - 0.02 * (ends["best"] - ends["random"])


@pytest.mark.parametrize("objective", ALONE)
def test_a_single_row_is_refused_before_anything_is_written(objective, tmp_path):
    place = written_shards(tmp_path / "shards", np.eye(6, 3, dtype=np.float32) + 0.1, np.arange(6.0))
    with pytest.raises(InputError, match="must have from 2 to 5, got 1; choose another --select_ratio"):
        done_run(place, objective=objective, lamb=0.5, select_ratio=1 / 6)
    assert not (tmp_path / "scratch").exists()
