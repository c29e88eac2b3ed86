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
