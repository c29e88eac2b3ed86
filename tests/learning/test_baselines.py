"""Baselines that learn nothing: SemDeDup by what it promises, and stops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask import learning
from datamask.config import SelectionConfig
from datamask.errors import Stopped
from datamask.learning.problem import Problem
from datamask.objectives.joint import Joint, Term
from datamask.objectives.pairwise import Pairwise
from datamask.objectives.quality import Quality
from tests.reference import truth

N, SIZE = 400, 90


def make(estimator, seed=0, eligible=None, x=None, q=None, size=SIZE):
    rng = np.random.default_rng(5)
    x = truth.unit_rows(rng, N, 6) if x is None else x
    q = rng.normal(size=len(x)) if q is None else q
    features = torch.from_numpy(x).float()
    quality = Quality(torch.from_numpy(q))
    joint = Joint(quality, (Term("pairwise", 1.0, Pairwise(features)),), 0.5)
    config = SelectionConfig.from_options(estimator=estimator, select_ratio=size / len(x), seed=seed)
    ties = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    problem = Problem(joint, size, torch.arange(len(x)) if eligible is None else eligible, ties, features)
    return learning.load(estimator)(problem, config), x, q


def run(learner):
    state = learner.init()
    assert learner.finished(state) is None
    state, record = learner.step(state)
    assert learner.finished(state) and record.step == learner.total_steps == 1
    mask = learner.result(state)
    assert int(mask.sum()) == learner.problem.size
    assert record.values == learner.problem.joint.evaluate(mask)
    assert learner.logits(state) is None
    return mask.numpy(), state


@pytest.mark.parametrize("eligible", [None, torch.arange(0, N, 2)])
def test_semdedup_keeps_the_best_and_no_pair_above_its_threshold(eligible):
    learner, x, q = make("semdedup", eligible=eligible)
    rows = learner.problem.eligible.numpy()
    mask, state = run(learner)
    kept = mask[rows]
    label = learner.labels(lambda: None)
    assert len(np.unique(label)) > 5 and not mask[np.setdiff1d(np.arange(N), rows)].any()
    threshold = float(learner.finished(state).split()[-1])
    near = x[rows] @ x[rows].T
    same = label[:, None] == label[None, :]
    better = q[rows][None, :] > q[rows][:, None]
    pairs = same & kept[:, None] & kept[None, :] & ~np.eye(len(rows), dtype=bool)
    assert near[pairs].max() <= threshold + 1e-4
    nearest_better = np.where(same & better, near, -np.inf).max(1)
    # whoever went had a better row at least that near, and the best of each cluster stays
    assert (nearest_better[~kept] >= threshold - 1e-4).all()
    assert kept[np.isneginf(nearest_better)].all()


def test_semdedup_keeps_the_best_of_copies():
    """Thirty families of four copies: exactly the best of each is left."""
    x = np.repeat(truth.unit_rows(np.random.default_rng(2), 30, 8), 4, axis=0)
    q = np.tile([0.1, 0.9, 0.5, 0.2], 30) + 0.001 * np.arange(120)
    assert set(np.flatnonzero(run(make("semdedup", x=x, q=q, size=30)[0])[0])) == set(range(1, 120, 4))


def test_semdedup_cuts_equal_rows_by_the_hash_and_keeps_the_size():
    x = np.tile(truth.unit_rows(np.random.default_rng(0), 1, 4), (60, 1))
    learner, _, _ = make("semdedup", x=x, q=np.zeros(60), size=20)
    mask, _ = run(learner)
    first = learner.problem.ties.argsort()[:20].tolist()
    # copies fall into one cluster: its leader, then by the hash
    assert set(np.flatnonzero(mask)) == set(first)


def test_semdedup_is_decided_by_the_seed():
    masks = [run(make("semdedup", seed=seed)[0])[0] for seed in (0, 0, 1)]
    assert (masks[0] == masks[1]).all() and (masks[0] != masks[2]).any()


@pytest.mark.parametrize("estimator", ["semdedup", "cluster-balanced"])
@pytest.mark.parametrize("after", [0, 2])
def test_they_can_be_stopped(estimator, after):
    learner, _, _ = make(estimator)
    left = [after]

    def stop():
        left[0] -= 1
        if left[0] < 0:
            raise Stopped("now")

    with pytest.raises(Stopped):
        learner.step(learner.init(), stop)


@pytest.mark.parametrize("estimator", ["semdedup", "cluster-balanced"])
def test_features_are_asked_for(estimator):
    learner, _, _ = make(estimator)
    bare = Problem(learner.problem.joint, SIZE, learner.problem.eligible, learner.problem.ties)
    with pytest.raises(ValueError, match="looks at features"):
        type(learner)(bare, learner.config)
