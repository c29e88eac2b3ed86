"""Estimators: from sampled masks and their values to a step of the logits. Pure functions, no state.

Notation: M ``(G, n)`` masks, f ``(G,)`` their values, L ``(n,)`` logits, m ``(n,)`` marginals.
"""

from __future__ import annotations

import torch
from torch import Tensor


def advantage(values: Tensor) -> Tensor:
    """Group-relative advantage ``(f - mean) / std`` as in GRPO, ``(G,)``; zeros when the group does not differ."""
    centred = values - values.mean()
    spread = values.std()
    # a spread at the rounding of the values themselves is no signal
    if not spread > 4 * torch.finfo(values.dtype).eps * values.abs().max():
        return torch.zeros_like(values)
    return centred / spread


def reinforce_step(masks: Tensor, values: Tensor) -> Tensor:
    """The paper's step ``(1/G) sum_j A_j M_j``, float32 ``(n,)``; zero when all values are equal.

    Its mean is ``Cov(f, M) / std(f)`` (up to (G-1)/G): the gradient of E f for conditional Bernoulli masks.
    """
    return advantage(values) @ masks.float() / len(masks)


def signal_to_noise(masks: Tensor, values: Tensor) -> float:
    """Signal-to-noise of the REINFORCE step, from the agreement of its two half-groups; NaN for G < 4.

    With independent halves ``a, b`` of the step, ``a.b`` estimates the squared signal and ``|a - b|^2 / 2`` the squared
    noise of a half, so the whole step's ratio is ``sqrt(2 a.b / noise)`` (0 when the halves disagree).
    """
    half = len(masks) // 2
    if half < 2:
        return float("nan")
    centred = values - values.mean()
    a = centred[:half] @ masks[:half].float() / half
    b = centred[half:2 * half] @ masks[half:2 * half].float() / half
    a, b = a - a.mean(), b - b.mean()
    noise = float((a - b).square().sum()) / 2
    return (2 * max(float(a @ b), 0.0) / noise) ** 0.5 if noise > 0 else float("nan")


def counterfactual_step(marginals: Tensor) -> Tensor:
    """Marginals as a step in nats per unit sd: centred and scaled, ``(n,)``; zeros when all are equal.

    It follows the gradient of E f in the inclusion probabilities; the factor ``pi (1 - pi)`` of the logit gradient is
    left out on purpose, because with it decided samples can no longer change their mind.
    """
    centred = marginals - marginals.mean()
    spread = centred.std()
    if not spread > 0:
        return torch.zeros_like(marginals)
    return centred / spread
