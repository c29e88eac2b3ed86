"""Facility location where features nearly coincide, against the definition in float64 and all selections."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from datamask import select
from tests.making.pools import corpus_of

PROBLEMS, AT_ONCE = 500, 25


def nearly_equal(rng, n, d):
    """Rows near a few directions, by 0.00003 to 0.03, or near one that all share."""
    if rng.random() < 0.3:
        return rng.normal(size=(n, d)) + 30
    directions = rng.normal(size=(int(rng.integers(1, 4)), d)) + 0.3
    return directions[rng.integers(0, len(directions), n)] + 10.0 ** rng.uniform(-4.5, -1.5) * rng.normal(size=(n, d))


@pytest.mark.parametrize("first", range(0, PROBLEMS, AT_ONCE))
def test_values_are_those_of_the_definition_and_no_selection_is_above_the_bound(first, tmp_path):
    for seed in range(first, first + AT_ONCE):
        rng = np.random.default_rng([seed, 8])
        # all rows are listed, or more are there than a list holds
        n, most = ((6, 12), 11) if seed % 2 else ((66, 90), 3)
        n, d = int(rng.integers(*n)), int(rng.integers(2, 9))
        size, lamb = int(rng.integers(1, min(n, most))), float(rng.choice([0.0, 0.3, 0.7]))
        features, quality = nearly_equal(rng, n, d), rng.normal(size=n)
        found = select(
            corpus_of(features, quality),
            objective="facility",
            lamb=lamb,
            scale=str(rng.choice(["raw", "calibrated"])),
            select_ratio=size / n,
            device="cpu",
            cache_dir=tmp_path,
        )
        x = features / np.linalg.norm(features, axis=1, keepdims=True)
        products, of_size = np.maximum(x @ x.T, 0.0), np.array(list(itertools.combinations(range(n), size)))
        covered = products[:, of_size].max(2).mean(0)
        of_found = products[:, found.rows].max(1).mean()
        said = found.summary
        assert said["values"] == "exact" and said["objectives"]["facility"] == pytest.approx(of_found, abs=1e-6)
        ends = said["anchors"]["diversity"]["facility"]
        if said["scale"] == "calibrated":
            if ends["best"] == ends["random"]:
                continue  # nothing to select by
            covered = (covered - ends["random"]) / (ends["best"] - ends["random"])
            of_quality = said["anchors"]["quality"]
            quality = (quality - of_quality["random"]) / (of_quality["best"] - of_quality["random"])
        joint = lamb * quality[of_size].mean(1) + (1 - lamb) * covered
        assert said["upper_bound"] >= joint.max() - 1e-12
