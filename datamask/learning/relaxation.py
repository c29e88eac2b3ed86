"""The pair-wise problem without masks: maximise a concave function of inclusion probabilities, with a proof.

``F(p) = linear . p - weight (||X'p||^2 - S) / (S (S - 1))`` over ``p in [0, 1]^n, sum p = S`` is concave and equals the
objective on masks, so for any p and its gradient g no mask is worth more than ``F(p) + max over masks v of g . (v -
p)`` (the Frank-Wolfe gap; Jaggi 2013). The maximum is the sum of the S largest entries of g.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from datamask.learning.masks import top
from datamask.objectives.contract import Poll, chunks, no_poll
from datamask.objectives.pairwise import ROWS_AT_ONCE


@dataclass(frozen=True)
class Relaxation:
    """Where Frank-Wolfe ended.

    Attributes:
        weights: p, float32 ``(n,)``.
        gradient: of F at p, float64 ``(n,)``; its top S is the rounding.
        value: F(p), float64. upper_bound: no mask of S members is worth more.
        iterations: steps taken.
    """

    weights: Tensor
    gradient: Tensor
    value: float
    upper_bound: float
    iterations: int


def relax_pairwise(features: Tensor, size: int, linear: Tensor, weight: float = 1.0, *, ties: Tensor,
                   iterations: int = 60, tolerance: float = 1e-6, poll: Poll = no_poll) -> Relaxation:
    """Frank-Wolfe with exact line search on the pair-wise relaxation.

    Args:
        features: float32 ``(n, d)``, unit rows. size: S, from 2 to n - 1.
        linear: ``(n,)``, what each member adds by itself (quality over S, scaled). weight: of the pair-wise term.
        ties: int64 ``(n,)``.
        iterations, tolerance: stop after so many steps, or once the gap is below the tolerance.

    Returns:
        The last iterate, its value and its bound, both evaluated in float64.
    """
    n, d = features.shape
    wide = torch.float32 if features.device.type == "mps" else torch.float64
    linear = linear.to(wide)
    scale = weight / max(size * (size - 1), 1)

    def ascent(p: Tensor, s: Tensor) -> Tensor:
        return linear - 2.0 * scale * (features @ s.float()).to(wide)

    # steps in float32, where a product is one pass over the features; only the proof needs float64
    p = torch.full((n,), size / n, device=features.device)
    s = (p @ features).to(wide)
    for done in range(1, iterations + 1):
        poll()
        gradient = ascent(p, s)
        vertex = top(gradient, size, ties).float()
        gap = float(gradient @ (vertex - p).to(wide))
        if gap <= tolerance or done == iterations:
            break
        moved = (vertex @ features).to(wide) - s
        # F along the direction is a parabola: slope `gap`, curvature 2 scale ||moved||^2
        curvature = 2.0 * scale * float(moved @ moved)
        share = min(1.0, gap / curvature) if curvature > 0 else 1.0
        p = p + share * (vertex - p)
        s = s + share * moved

    exact = p.to(wide)
    s = torch.zeros(d, dtype=wide, device=features.device)
    for part in chunks(n, ROWS_AT_ONCE):
        poll()
        s += exact[part] @ features[part].to(wide)
    gradient = torch.empty_like(exact)
    for part in chunks(n, ROWS_AT_ONCE):
        poll()
        gradient[part] = linear[part] - 2.0 * scale * (features[part].to(wide) @ s)
    # p may have left sum p = S by a rounding; both terms below are exact for the p at hand
    value = float(linear @ exact - scale * (s @ s - size))
    gap = float(gradient.topk(size).values.sum() - gradient @ exact)
    bound = value + gap
    return Relaxation(p, gradient, value, bound, done)
