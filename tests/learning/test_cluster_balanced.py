"""Cluster-balanced: as equal as any subset is, by trying them all; the clip; ends of the range; rules and budgets."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import torch

from datamask import learning
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.cluster_balanced import balanced_order
from datamask.learning.limits import Limits
from datamask.learning.problem import Problem
from datamask.objectives.joint import Joint, Term
from datamask.objectives.pairwise import Pairwise
from datamask.objectives.quality import Quality
from datamask.quotas import Groups
from tests.reference import truth


def problem_of(x, q, size, limits=None):
    features = torch.from_numpy(x).float()
    joint = Joint(Quality(torch.from_numpy(q)), (Term("pairwise", 1.0, Pairwise(features)),), 0.5)
    ties = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    return Problem(joint, size, torch.arange(len(x)), ties, features, limits)


def run(problem, seed=0, **options):
    config = SelectionConfig.from_options(estimator="cluster-balanced", seed=seed, **options)
    learner = learning.load("cluster-balanced")(problem, config)
    state, record = learner.step(learner.init())
    learner.check(state)
    mask = learner.result(state)
    assert record.values == problem.joint.evaluate(mask)
    return set(mask.nonzero().squeeze(1).tolist()), learner.finished(state)


def clouds(sizes, seed=0, spread=0.02):
    """Rows in so many clouds far from each other, and which cloud each is in."""
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(len(sizes)), sizes)
    x = np.eye(len(sizes) + 2)[which] + spread * rng.normal(size=(len(which), len(sizes) + 2))
    return x / np.linalg.norm(x, axis=1, keepdims=True), rng.normal(size=len(which)), which


def most_equal(labels, size, clip, quality, pinned=frozenset()):
    """By trying every subset: the most equal counts within the clip, and the best quality that goes with them."""
    most = {k: np.ceil(clip * count - 1e-9) for k, count in Counter(labels.tolist()).items()}
    best = None
    for subset in itertools.combinations(range(len(labels)), size):
        counts = Counter(labels[list(subset)].tolist())
        if not pinned <= set(subset) or any(
            counts[k] > max(most[k], len([p for p in pinned if labels[p] == k])) for k in counts
        ):
            continue
        key = (-sum(c * c for c in counts.values()), round(sum(quality[i] for i in subset if i not in pinned), 9))
        if best is None or key > best[0]:
            best = (key, set(subset))
    return best[1] if best else None


@pytest.mark.parametrize("seed", range(40))
def test_it_is_as_equal_as_any_subset_within_the_clip_and_then_the_best(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(4, 11))
    size, clip = int(rng.integers(1, m)), float(rng.choice([0.3, 0.5, 0.75, 1.0]))
    labels, quality = rng.integers(0, 4, m), rng.normal(size=m)
    pinned = rng.random(m) < rng.choice([0.0, 0.2])
    size = max(size, int(pinned.sum()))
    order, within = balanced_order(labels, np.ones(m), quality, rng.permutation(m), pinned, clip)
    assert sorted(order.tolist()) == list(range(m))
    expected = most_equal(labels, size, clip, quality, frozenset(np.flatnonzero(pinned).tolist()))
    if expected is None:
        assert within.sum() < size
    else:
        free = [row for row in order.tolist() if not pinned[row]]
        assert set(free[: size - int(pinned.sum())]) | set(np.flatnonzero(pinned)) == expected
        assert within[list(expected)].all()


@pytest.mark.parametrize("inside", ["random", "best"])
def test_far_clouds_are_found_and_share_equally(inside):
    x, q, which = clouds([50, 20, 6, 30])
    members, ending = run(problem_of(x, q, 46), clusters=4, inside=inside)
    # six of the small one, all that there are, and of the 40 others 13 or 14 each
    counts = np.bincount(which[list(members)])
    assert counts[2] == 6 and sorted(counts[[0, 1, 3]]) == [13, 13, 14]
    assert ending == "equal shares of at most 4 clusters"
    best = {row for cloud in range(4) for row in np.flatnonzero(which == cloud)[np.argsort(-q[which == cloud])][:13]}
    assert (best <= members) == (inside == "best")


def test_the_clip_goes_from_equal_to_proportional_shares():
    x, q, which = clouds([60, 30, 10])
    problem = problem_of(x, q, 30)
    equal, between, proportional = (
        np.bincount(which[list(run(problem, clusters=3, clip=clip)[0])]).tolist() for clip in (1.0, 0.5, 0.3)
    )
    assert equal == [10, 10, 10] and proportional == [18, 9, 3]
    assert between[2] == 5 and sorted(between[:2]) == [12, 13]
    assert run(problem, clusters=3, clip=0.5)[1] == "equal shares of at most 3 clusters, none used beyond 0.5 of it"
    with pytest.raises(
        OptionError, match=r"--clip 0\.2 leaves 20 of 100 rows, but 30 are to be selected; raise it to 0\.3,"
    ):
        run(problem, clusters=3, clip=0.2)


def test_inside_a_cluster_every_row_has_the_same_chance():
    """The order of rows whose quality is not looked at is that of the hash: over many hashes all come alike often."""
    labels, rng = np.repeat([0, 1, 2], [2, 5, 9]), np.random.default_rng(0)
    counts = np.zeros(16)
    for _ in range(2_000):
        ties = rng.permutation(16)
        counts[balanced_order(labels, np.ones(16), np.zeros(16), ties, np.zeros(16, bool), 1.0)[0][:8]] += 1
    share = counts / 2_000  # two of the first, and three of each other
    assert share == pytest.approx(np.repeat([1.0, 3 / 5, 3 / 9], [2, 5, 9]), abs=4 * 0.5 / np.sqrt(2_000))


@pytest.mark.parametrize("size", [1, 2, 7, 11])
@pytest.mark.parametrize("clusters", [1, 5, 12, 1_000])
def test_any_number_of_clusters_and_of_rows(size, clusters):
    rng = np.random.default_rng(4)
    x, q = truth.unit_rows(rng, 12, 3), rng.normal(size=12)
    members, ending = run(problem_of(x, q, size), clusters=clusters, inside="best")
    assert len(members) == size and f"at most {min(clusters, 12)} cluster" in ending
    if clusters in (1, 12, 1_000):  # one that holds all, or each row alone: nothing to balance, so the best
        assert members == set(np.argsort(-q)[:size].tolist())


@pytest.mark.parametrize("inside", ["random", "best"])
@pytest.mark.parametrize("distinct", [1, 3])
def test_fewer_distinct_rows_than_clusters(distinct, inside):
    """Copies come into one cluster, so distinct rows share equally, whatever number of clusters was asked for."""
    rng = np.random.default_rng(3)
    which = np.arange(40) % distinct
    x = truth.unit_rows(rng, distinct, 5)[which]
    members, _ = run(problem_of(x, rng.normal(size=40), 14), clusters=20, inside=inside)
    counts = np.bincount(which[list(members)], minlength=distinct)
    assert counts.sum() == 14 and np.ptp(counts) <= 1


def test_equal_qualities_are_cut_by_the_hash():
    x = np.tile(truth.unit_rows(np.random.default_rng(0), 1, 4), (20, 1))
    problem = problem_of(x, np.zeros(20), 6)
    for inside in ("random", "best"):
        assert run(problem, clusters=4, inside=inside)[0] == set(problem.ties.argsort()[:6].tolist())


def test_pins_and_quotas_come_first():
    x, q, which = clouds([20, 20, 20])
    pinned = np.zeros(60, bool)
    pinned[:8] = True  # eight of the first cloud, where equal shares would be five
    group = np.arange(60) % 2
    limits = Limits(15, pinned, quotas=Groups(group, np.array([0, 0]), np.array([15, 6]), ("even", "odd")))
    members, ending = run(problem_of(x, q, 15, limits), clusters=3, clip=0.3)
    assert set(range(8)) <= members and np.bincount(group[list(members)])[1] <= 6
    assert np.bincount(which[list(members)])[0] == 8  # more than the clip, but no more than the pins
    assert ending.endswith("none used beyond 0.3 of it, as far as pins and quotas allow")


def test_a_budget_is_shared_in_tokens():
    x, q, which = clouds([40, 40, 40])
    lengths = np.array([2.0, 10.0, 50.0])[which]
    limits = Limits(240.0, np.zeros(120, bool), lengths)
    members, _ = run(problem_of(x, q, 20, limits), clusters=3)
    tokens = np.bincount(which[list(members)], lengths[list(members)])
    # as near to 80 tokens each as rows of 50 allow; equal numbers of rows would be 8, 40 and 200 tokens
    assert tokens.sum() == 240 and np.ptp(tokens) < 50
    with pytest.raises(
        OptionError, match=r"--clip 0\.05 leaves 124 of 2,480 tokens, but 240 are to be selected; raise it"
    ):
        run(problem_of(x, q, 20, limits), clusters=3, clip=0.05)
