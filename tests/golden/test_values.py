"""Each configuration's values are those that are committed: to 1e-6 where solved, to 1e-3 where masks are sampled.

Bounds are held to 1e-4.

Another value is a change that people notice: where it is meant, write values.json anew (python -m tests.golden
--values), say so in the changelog, and compare ids with `make golden BASE=<commit>`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden import configurations
from tests.golden.__main__ import ROOT, VALUES, outcomes

COMMITTED = json.loads(VALUES.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All that need no other process (resuming has tests of its own), with one thread."""
    target: Path = tmp_path_factory.mktemp("golden") / "results.json"
    return outcomes(ROOT, target, configurations.QUICK)


def test_all_configurations_have_values():
    assert set(COMMITTED) == {*configurations.QUICK, *configurations.RESUMED}


@pytest.mark.parametrize("name", configurations.QUICK)
def test_the_values_are_those_committed(name, results):
    for term, expected in COMMITTED[name].items():
        sure = configurations.LIMITS[configurations.kind(name)]
        limit = configurations.BOUND_LIMIT if term == "upper_bound" else sure
        assert results[name][term] == (None if expected is None else pytest.approx(expected, abs=limit)), term
