"""Swaps by blocks for the DiSF with fixed scale: against every single swap in float64, under rules, and stopped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from datamask.errors import Stopped
from datamask.learning import block_swaps as module
from datamask.learning.batch_swaps import batch_swaps
from datamask.learning.block_swaps import block_swaps, polish_by_blocks
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.learning.solvers import solver_of
from datamask.objectives.disf_fixed import DiSFFixed
from datamask.objectives.joint import Joint, Term
from datamask.objectives.quality import Quality
from datamask.polling import no_poll
from tests.learning.test_certificates import make, mask_of
from tests.learning.test_limits import random_rules


@pytest.mark.parametrize("lamb", [0.0, 0.6])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("many", [0, 1000], ids=["hopeful rows", "all rows"])
def test_where_it_ends_no_single_swap_helps(seed, lamb, many, monkeypatch):
    monkeypatch.setattr(module, "MANY_ROWS", many)
    monkeypatch.setattr(module, "ENOUGH", 0.0)
    monkeypatch.setattr(module, "ENOUGH_OF_A_ROUND", 0.0)
    monkeypatch.setattr(module, "PASSES", 100)
    monkeypatch.setattr(module, "BLOCK", 64)  # all rows at once: every pair meets
    rng = np.random.default_rng(seed)
    problem, f = make(rng, "disf_fixed", 30, 9, lamb)
    start = mask_of(rng.choice(30, 9, replace=False), 30)
    members = block_swaps(problem, start).nonzero().squeeze(1).tolist()
    here = f(members)
    assert len(members) == 9 and here >= f(start.nonzero().squeeze(1).tolist()) - 1e-9
    others = [i for i in range(30) if i not in members]
    best = max(f([*(m for m in members if m != out), into]) for out in members for into in others)
    assert best <= here + 1e-5 * abs(here)


@pytest.mark.parametrize("seed", range(6))
def test_rules_hold_and_the_pinned_stay(seed):
    rng = np.random.default_rng([seed, 1])
    problem, f = make(rng, "disf_fixed", 40, 12, 0.3)
    problem = replace(problem, limits=random_rules(rng, 40, 12))
    start = problem.subset(torch.from_numpy(rng.normal(size=40)))
    swapped = polish(problem, start)
    assert problem.allowed(swapped) and bool(swapped[problem.pinned].all())
    assert f(swapped.nonzero().squeeze(1).tolist()) >= f(start.nonzero().squeeze(1).tolist())


@pytest.mark.parametrize("size", [0, 30])
def test_where_there_is_no_side_to_swap_with_nothing_changes(size, monkeypatch):
    monkeypatch.setattr(module, "MANY_ROWS", 0)
    problem, _ = make(np.random.default_rng(3), "disf_fixed", 30, 9, 0.5)
    pinned = mask_of(np.arange(9) if size == 0 else np.zeros(0, int), 30)
    if size == 0:
        limits = random_rules(np.random.default_rng(1), 30, 9)
        problem = replace(problem, limits=replace(limits, pinned=pinned.numpy()))
    start = pinned if size == 0 else torch.ones(30, dtype=torch.bool)
    assert torch.equal(block_swaps(problem, start), start)


def test_many_blocks_end_higher_than_swaps_all_at_once():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(3000, 64)) ** 3  # a few rows dominate every moment, as in sparse texts
    function = DiSFFixed.bind(torch.from_numpy(features / np.linalg.norm(features, axis=1, keepdims=True)).float())
    joint = Joint(Quality(torch.from_numpy(rng.normal(size=3000))), (Term("disf_fixed", 1.0, function),), 0.0)
    problem = Problem(joint, 300, torch.arange(3000), torch.from_numpy(rng.permutation(3000)))
    start = mask_of(rng.choice(3000, 300, replace=False), 3000)
    at_random, by_blocks, at_once = map(
        function.value, (start, polish(problem, start), batch_swaps(problem, start, no_poll))
    )
    assert by_blocks - at_once > 0.01 * (at_once - at_random)


@pytest.mark.parametrize("size", [12, 200])
def test_no_single_swap_among_many_blocks_helps(size):
    """Random blocks of 256 hold few members: the best swap there is mostly lies between two of them."""
    rng = np.random.default_rng(3)
    function = DiSFFixed.bind(torch.from_numpy(rng.standard_t(3, size=(2000, 16))).float())
    joint = Joint(Quality(torch.zeros(2000)), (Term("disf_fixed", 1.0, function),), 0.0)
    problem = Problem(joint, size, torch.arange(2000), torch.arange(2000))
    mask = block_swaps(problem, mask_of(rng.choice(2000, size, replace=False), 2000))
    members, others = mask.nonzero().squeeze(1), (~mask).nonzero().squeeze(1)
    marginals = function.final_marginals(mask)
    gains = marginals[others][:, None] - marginals[members][None, :] + function.interaction(members, others, size)
    assert float(gains.max()) <= 1e-5 * -function.value(mask)


def test_it_serves_this_objective_alone_and_stops():
    rng = np.random.default_rng(0)
    problem, _ = make(rng, "disf_fixed", 20, 5, 0.5)
    assert solver_of(problem).polish is polish_by_blocks
    others = [make(rng, name, 20, 5, 0.5)[0] for name in ("disf", "pairwise", "pairwise+disf_fixed")]
    others.append(make(rng, "disf_fixed", 20, 5, 1.0)[0])  # no diversity counts there
    assert not any(solver_of(other).polish is polish_by_blocks for other in others)

    def poll():
        raise Stopped("stop")

    with pytest.raises(Stopped):
        block_swaps(problem, mask_of(range(5), 20), poll)
