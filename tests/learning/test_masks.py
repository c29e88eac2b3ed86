"""Sampling without replacement against the exact law; the deterministic cut; inclusion probabilities."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.learning.masks import chances, gumbel_top_k, inclusion, tie_order, top
from tests.reference import truth


def test_gumbel_top_k_follows_plackett_luce(device):
    logits = np.array([1.5, -0.5, 0.0, 2.0, 0.3, -1.2])
    law = truth.plackett_luce(logits, 3)
    draws = 40_000
    masks = (
        gumbel_top_k(
            torch.tensor(logits, dtype=torch.float32, device=device), 3, draws, torch.Generator(device).manual_seed(1)
        )
        .cpu()
        .numpy()
    )
    assert (masks.sum(1) == 3).all()
    counts = dict.fromkeys(law, 0)
    for row in masks:
        counts[tuple(np.flatnonzero(row))] += 1
    statistic = sum((counts[k] - draws * p) ** 2 / (draws * p) for k, p in law.items())
    # chi-square with 19 degrees of freedom: its 99.9 % point is 43.8
    assert statistic < 43.8


def test_masks_depend_on_the_generator_alone():
    logits = torch.zeros(50)
    a = gumbel_top_k(logits, 7, 5, torch.Generator().manual_seed(3))
    b = gumbel_top_k(logits, 7, 5, torch.Generator().manual_seed(3))
    c = gumbel_top_k(logits, 7, 5, torch.Generator().manual_seed(4))
    assert torch.equal(a, b) and not torch.equal(a, c)


def test_extreme_logits_are_obeyed():
    logits = torch.full((40,), -200.0)
    logits[:4] = 200.0
    masks = gumbel_top_k(logits, 5, 30, torch.Generator().manual_seed(0))
    assert bool(masks[:, :4].all()) and bool((masks.sum(1) == 5).all())


def test_top_takes_the_best_and_cuts_ties_by_hash(rng):
    scores = torch.tensor([3.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    ties = torch.tensor([9, 5, -7, 6, 0, 1])
    assert top(scores, 3, ties).nonzero().squeeze(1).tolist() == [0, 2, 5]


def test_top_does_not_depend_on_the_order_of_rows(rng):
    scores = torch.from_numpy(rng.integers(0, 4, size=200)).float()
    ties = tie_order(rng.integers(0, 2**64, size=200, dtype=np.uint64))
    order = torch.from_numpy(rng.permutation(200))
    assert torch.equal(top(scores, 60, ties)[order], top(scores[order], 60, ties[order]))


@pytest.mark.parametrize("size", [1, 59, 60])
def test_top_has_exactly_the_size(size):
    assert int(top(torch.zeros(60), size, torch.arange(60)).sum()) == size


def test_tie_order_keeps_the_order_of_unsigned_hashes():
    hashes = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert bool((tie_order(hashes).diff() > 0).all())


@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0])
def test_inclusion_matches_frequencies(spread):
    n, size = 400, 120
    logits = torch.randn(n, generator=torch.Generator().manual_seed(0)) * spread
    p = inclusion(logits, size)
    drawn = gumbel_top_k(logits, size, 4000, torch.Generator().manual_seed(1)).float().mean(0)
    assert float(p.sum()) == pytest.approx(size, rel=1e-3)
    # 4 000 draws: a frequency's standard error is at most 0.008
    assert float((p - drawn).abs().max()) < 0.05


def by_halving(logits: np.ndarray, size: float, lengths: np.ndarray) -> np.ndarray:
    """The chances of a race in long doubles, its end looked for by halving alone."""
    rates = np.exp(logits.astype(np.longdouble) - logits.max())
    low, high = np.longdouble(-100), np.longdouble(200 + np.ptp(logits))
    for _ in range(120):
        middle = (low + high) / 2
        chance = -np.expm1(-rates * np.exp(middle))
        low, high = (low, middle) if (chance * lengths).sum() > size else (middle, high)
    return chance.astype(np.float64)


@pytest.mark.parametrize("by_length", [False, True])
@pytest.mark.parametrize("spread", [0.0, 1.0, 8.0, 100.0, 2000.0])
@pytest.mark.parametrize("share", [0.002, 0.1, 0.5, 0.95, 0.998])
def test_chances_are_those_that_halving_ends_at(spread, share, by_length):
    rng = np.random.default_rng(int(spread))
    for n in (2, 7, 500):
        logits = rng.normal(size=n) * spread
        if spread == 2000.0:
            logits = np.where(np.arange(n) < n // 2, 0.0, -1000.0)  # between the two groups the sum stands still
        lengths = rng.integers(1, 400, n).astype(float) if by_length else np.ones(n)
        size = share * lengths.sum()
        answer = chances(torch.from_numpy(logits), size, torch.from_numpy(lengths) if by_length else None).numpy()
        assert answer @ lengths == pytest.approx(size, rel=1e-12)
        np.testing.assert_allclose(answer, by_halving(logits, size, lengths), rtol=1e-7, atol=1e-11)


def test_rows_without_tokens_are_drawn_like_others():
    logits, lengths = torch.tensor([0.0, -3000.0, -3001.0]), torch.tensor([0.0, 3.0, 5.0])
    answer = chances(logits, 4.0, lengths)
    assert float(answer @ lengths.double()) == pytest.approx(4, rel=1e-12)
    assert float(answer[0]) == 1
    np.testing.assert_allclose(answer, by_halving(logits.numpy(), 4.0, lengths.numpy()), atol=1e-11)


@pytest.mark.parametrize("gap", [30.0, 5000.0, 1e36])
def test_the_second_group_fills_up_what_the_first_leaves_and_the_impossible_never_comes(gap):
    logits = torch.cat([torch.zeros(10), torch.full((10,), -gap), torch.tensor([-torch.inf])])
    answer = chances(logits, 15)
    assert answer[:10].numpy() == pytest.approx(1) and float(answer[20]) == 0
    if gap < 1e16:  # beyond, one more than the gap is the gap again
        assert answer[10:20].numpy() == pytest.approx(0.5)


@pytest.mark.parametrize("spread", [0.0, 5.0, 500.0])
def test_whoever_takes_all_takes_each(spread):
    logits = torch.randn(90, generator=torch.Generator().manual_seed(2)) * spread
    assert float(chances(logits, 90).min()) == pytest.approx(1, abs=1e-12)


def test_inclusion_survives_decided_logits():
    logits = torch.cat([torch.full((30,), 500.0), torch.full((70,), -500.0)])
    p = inclusion(logits, 30)
    assert float(p[:30].min()) > 0.8 and float(p[30:].max()) < 0.2
