"""Masks: samples without replacement, and the one deterministic way to cut the top S.

The law of all masks here is Plackett-Luce: S draws without replacement from softmax(L), which Gumbel-top-k samples
exactly (the S largest of ``L + Gumbel(0, 1)``; Vieira 2014, Kool et al. 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from datamask.objectives.contract import chunks
from datamask.polling import Poll, no_poll

NOISE_AT_ONCE = 8_000_000
"""Noise values per chunk of masks: 32 MB, under 0.3 s on two cores."""

NEWTON_STEPS = 200
"""More than halving an interval of any width takes; some ten are what it needs."""


def gumbel_top_k(
    logits: Tensor,
    size: int,
    count: int,
    generator: torch.Generator,
    poll: Poll = no_poll,
    cut: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Draw `count` masks of `size` members without replacement from softmax(logits).

    Args:
        logits: float32 ``(n,)``.
        size: S, from 1 to n.
        count: G.
        generator: on the device of the logits; the masks depend on its state alone.
        cut: from keys ``(n,)`` to a mask, where a selection must obey rules; None: the `size` largest.

    Returns:
        bool ``(G, n)``.
    """
    n = len(logits)
    masks = torch.zeros(count, n, dtype=torch.bool, device=logits.device)
    for part in chunks(count, NOISE_AT_ONCE // n):
        poll()
        noise = torch.empty(part.stop - part.start, n, device=logits.device).exponential_(generator=generator)
        keys = logits - noise.clamp_min_(torch.finfo(noise.dtype).tiny).log_()
        if cut is not None:
            masks[part] = torch.stack([cut(row) for row in keys])
            continue
        masks[part].scatter_(1, keys.topk(size, dim=1, sorted=False).indices, True)
    return masks


def top(scores: Tensor, size: int, ties: Tensor) -> Tensor:
    """The mask of the `size` highest scores; equal scores are cut by the smaller tie value, never by position.

    Args:
        scores: ``(n,)``; ``-inf`` marks rows that may not be taken unless nothing else is left, and so does NaN.
        ties: int64 ``(n,)``, distinct or nearly so (a hash of seed and id).

    Returns:
        bool ``(n,)`` with exactly `size` members.
    """
    scores = torch.where(scores.isnan(), -torch.inf, scores)
    threshold = scores.topk(size, sorted=False).values.min()
    mask = scores > threshold
    level = (scores == threshold).nonzero().squeeze(1)
    missing = size - int(mask.sum())
    mask[level[ties[level].topk(missing, largest=False, sorted=False).indices]] = True
    return mask


def inclusion(logits: Tensor, size: float, lengths: Tensor | None = None) -> Tensor:
    """Approximate inclusion probabilities of the sampler, float32 ``(n,)``, adding up to `size`.

    With lengths ``(n,)``, `size` is a budget of tokens, and the tokens are what adds up to it.

    Given the clock time t at which the S-th exponential race of rate exp(L_i) ends, sample i is in with probability
    ``1 - exp(-t exp(L_i))``; t is set by the sum. Exact as n grows; used by diagnostics only.
    """
    return chances(logits, size, lengths).float()


def chances(logits: Tensor, size: float, lengths: Tensor | None = None) -> Tensor:
    """The probabilities of `inclusion` in float64, to the rounding of their sum.

    Newton's method looks for log t, on the logarithm of the sum, which is nearly a straight line until the sum levels
    off; where a step would leave the interval known to hold log t, that is halved instead.
    """
    shifted = logits.double() - logits.max()
    weights = torch.ones_like(shifted) if lengths is None else lengths.double()
    low, high = -60.0, 60.0 - float(shifted.masked_fill(shifted.isinf(), 0.0).min())
    # a chance is at most its rate, so log t is at least this
    log_time = math.log(size) - float(torch.log(shifted.exp() @ weights))
    for _ in range(NEWTON_STEPS):
        log_time = min(max(log_time, low), high)
        rates = torch.exp((shifted + log_time).clamp_max(50.0))
        chance = -torch.expm1(-rates)
        total, slope = float(chance @ weights), float((rates * (1 - chance)) @ weights)
        if total == size:
            break
        low, high = (low, log_time) if total > size else (log_time, high)
        step = math.log(size / total) * total / slope if slope else math.copysign(math.inf, size - total)
        halved = not low <= log_time + step <= high
        log_time = (low + high) / 2 if halved else log_time + step
        # Newton's error is squared by each step; an interval without a number inside holds nothing more to look for
        if abs(step) < 1e-9 or (halved and log_time in (low, high)):
            break
    return -torch.expm1(-torch.exp((shifted + log_time).clamp_max(50.0)))


def tie_order(hashes: np.ndarray, device: torch.device | str = "cpu") -> Tensor:
    """Turn uint64 hashes ``(n,)`` into int64 tie values that keep their order."""
    return torch.from_numpy((hashes ^ np.uint64(1 << 63)).view(np.int64)).to(device)
