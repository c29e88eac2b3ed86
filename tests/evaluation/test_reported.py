"""Values of a selection on an approximate graph: what they are, and that they are said to be it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from datamask import select
from datamask.config import SelectionConfig
from datamask.corpus import neighbors
from datamask.evaluation import reported
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.evaluation.selection import Selection
from datamask.learning.masks import top
from tests.making.pools import made_corpus, reading
from tests.reference import truth

SIZE = 240


@pytest.fixture
def approximate(monkeypatch):
    """1,200 rows are many enough for an approximate graph, and too many to compare with all members unasked."""
    monkeypatch.setattr(neighbors, "LEAST_APPROXIMATE", 100)
    monkeypatch.setattr(reported, "CHEAP_SIMILARITIES", 0)


def measured(tmp_path, objective="facility", **options):
    """A selection that no solver has a part in, so that rows whose nearest member is not listed are many."""
    corpus = made_corpus(1200, 12)
    config = SelectionConfig.from_options(
        objective=objective, neighbors="approximate", select_ratio=SIZE / 1200, estimator="top-quality", **options
    )
    pool = Pool(corpus, torch.device("cpu"), tmp_path, neighbors="approximate")
    posed = pose(pool, config)
    mask = top(torch.from_numpy(corpus.quality), SIZE, pool.ties(0))
    return corpus, mask, Selection.measured(corpus, config, posed, mask, None).summary


def test_the_diversity_is_a_lower_bound_beside_an_estimate_of_the_exact_one(tmp_path, approximate):
    corpus, mask, summary = measured(tmp_path)
    exact = truth.facility(corpus.features.astype(float), mask.nonzero().squeeze(1).numpy())
    assert summary["values"] == "estimate"
    assert summary["diversity"] <= exact + 1e-7
    assert summary["estimate"]["low"] - 1e-7 <= exact <= summary["estimate"]["high"]
    assert summary["estimate"]["rows"] == 1200, "all there are"
    assert json.loads(json.dumps(summary)) == summary


def test_exact_values_are_measured_where_they_cost_nothing(tmp_path, approximate, monkeypatch):
    monkeypatch.setattr(reported, "CHEAP_SIMILARITIES", 1200 * SIZE)
    corpus, mask, summary = measured(tmp_path)
    exact = truth.facility(corpus.features.astype(float), mask.nonzero().squeeze(1).numpy())
    assert (summary["values"], summary["estimate"]) == ("exact", None)
    assert summary["diversity"] == summary["objectives"]["facility"] == pytest.approx(exact, abs=1e-6)
    assert summary["joint"] == pytest.approx(0.5 * summary["quality"] + 0.5 * exact, abs=1e-6)


def test_shares_are_on_the_lists_whichever_values_are_reported(tmp_path, approximate, monkeypatch):
    """Their ends are: an exact value between listed ends would promise too much."""
    listed = measured(tmp_path)[2]
    monkeypatch.setattr(reported, "CHEAP_SIMILARITIES", 1200 * SIZE)
    exact = measured(tmp_path)[2]
    assert listed["calibrated"] == exact["calibrated"] and listed["anchors"] == exact["anchors"]
    ends = listed["anchors"]["diversity"]["facility"]
    share = (listed["diversity"] - ends["random"]) / (ends["best"] - ends["random"])
    assert listed["calibrated"]["diversity"] == pytest.approx(share, abs=1e-9)


def test_of_a_sum_only_the_part_read_off_lists_is_estimated(tmp_path, approximate):
    corpus, mask, summary = measured(tmp_path, "facility:0.25,pairwise:0.75")
    members, x = mask.nonzero().squeeze(1).numpy(), corpus.features.astype(float)
    exact = 0.25 * truth.facility(x, members) + 0.75 * truth.OBJECTIVES["pairwise"](x, members)
    assert summary["estimate"]["low"] - 1e-6 <= exact <= summary["estimate"]["high"] + 1e-6
    assert summary["estimate"]["value"] == pytest.approx(exact, abs=2e-6)


def test_the_scoreboard_reads_the_same_value_and_says_what_it_is(tmp_path, approximate):
    corpus, mask, summary = measured(tmp_path)
    ground = Ground(Pool(corpus, torch.device("cpu"), tmp_path, neighbors="approximate"))
    facility = reading(ground, "facility", np.flatnonzero(mask.numpy()))
    assert facility.value == pytest.approx(summary["diversity"], abs=1e-7)
    assert facility.note.startswith("a lower bound, on approximate lists; the exact value is ")
    assert f"{summary['estimate']['value']:.5g}" in facility.note


def test_objectives_without_lists_are_exact_on_any_graph(tmp_path, approximate):
    summary = measured(tmp_path, "pairwise")[2]
    assert (summary["values"], summary["estimate"]) == ("exact", None)


def test_an_exact_graph_has_exact_values(tmp_path):
    corpus = made_corpus(600, 8)
    selection = select(corpus, select_ratio=0.2, objective="facility")
    assert (selection.summary["values"], selection.summary["estimate"]) == ("exact", None)
