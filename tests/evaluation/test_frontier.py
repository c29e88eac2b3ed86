"""The frontier: certified points whose values are those of their masks, recomputed with plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.errors import OptionError, Stopped
from datamask.evaluation.frontier import frontier
from datamask.evaluation.pool import Pool
from datamask.work.context import Work
from tests.commands import TINY
from tests.reference import truth


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return Pool(open_corpus(CorpusConfig((TINY,))), torch.device("cpu"), tmp_path_factory.mktemp("cache"))


def options(**given):
    return SelectionConfig.from_options(**{"objective": "pairwise", "estimator": "relaxed", **given})


def test_every_point_is_certified_and_its_values_are_those_of_its_mask(pool):
    points = frontier(pool, options(), np.linspace(0, 1, 11))
    x, q = pool.corpus.features.astype(np.float64), pool.corpus.quality
    assert [point.lamb for point in points] == pytest.approx(np.linspace(0, 1, 11))
    for point in points:
        members = point.mask.nonzero()[0]
        assert len(members) == 360
        assert point.raw_quality == pytest.approx(q[members].mean(), rel=1e-9)
        assert point.raw_diversity == pytest.approx(truth.pairwise(x, members), rel=1e-6)
        assert point.joint == pytest.approx(point.lamb * point.quality + (1 - point.lamb) * point.diversity)
        assert 0 <= point.gap < 1e-3 and point.upper_bound == pytest.approx(point.joint + point.gap)
    # along a frontier of optima, quality rises with lambda and diversity falls
    assert (np.diff([p.quality for p in points]) > -1e-3).all()
    assert (np.diff([p.diversity for p in points]) < 1e-3).all()
    assert points[-1].quality == pytest.approx(1.0)
    # 0.999 rather than 1: the anchor's selection is a found one, and may be beaten by a hair
    assert points[0].diversity > 0.999


def test_other_objectives_go_by_their_estimator(pool):
    points = frontier(pool, options(objective="facility"), [0.2, 0.8])
    assert all(p.gap is not None and p.gap < 0.05 for p in points)
    points = frontier(pool, options(objective="disf", estimator="counterfactual", n_epochs=3), [0.5])
    assert points[0].gap is None and points[0].steps == 3


def test_it_refuses_and_stops(pool):
    with pytest.raises(OptionError, match="lamb"):
        frontier(pool, options(), [0.5, 1.5])

    def poll():
        raise Stopped("stop")

    with pytest.raises(Stopped):
        frontier(pool, options(), [0.5], Work(poll))
