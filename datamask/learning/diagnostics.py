"""Diagnostics of a learning step: how the sampled masks differ, why, and how far the step stands out from chance.

Pure functions; what they give goes into metrics.jsonl under the names below.

    batch_{joint,quality,diversity}_{mean,std}   value of the step's G masks on the step's pool, and their spread
    share_quality, share_<objective>             share of the reward's variance due to that term; together 1
    flat                                         1 where the G masks had one value, so that the step moved nothing
    snr, signal                                  signal-to-noise ratio of the step, and its square with its sign
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from datamask.learning.estimators import advantage
from datamask.objectives.joint import MaskValues


def spreads(masks: MaskValues) -> dict[str, float]:
    """Mean and spread over the G masks of the step; no spread of a single mask."""
    metrics = {}
    for name, values in (("joint", masks.joint), ("quality", masks.quality), ("diversity", masks.diversity)):
        metrics[f"batch_{name}_mean"] = float(values.mean())
        if len(values) > 1:
            metrics[f"batch_{name}_std"] = float(values.std())
    return metrics


def variance_shares(parts: Mapping[str, Tensor]) -> dict[str, float]:
    """Share of the variance of a sum due to each of its parts, covariances split evenly: ``share_<name>``.

    ``Cov(part, sum) / Var(sum)``: its own variance and half of what each pair of parts has in common. The shares add up
    to 1; one is negative where a part works against the sum.

    Args:
        parts: name -> values that add up to the reward, ``(k,)`` each: of k masks, or the credits of k samples.

    Returns:
        Nothing where the sum does not vary.
    """
    if not parts:
        return {}
    centred = {name: part.double() - part.double().mean() for name, part in parts.items()}
    total = torch.stack(tuple(centred.values())).sum(0)
    variance = float(total @ total)
    largest = max(float(part.double().abs().max()) for part in parts.values())
    # float32 values that differ by rounding alone do not vary
    if not variance > len(total) * (4 * torch.finfo(torch.float32).eps * largest) ** 2:
        return {}
    return {f"share_{name}": float(part @ total) / variance for name, part in centred.items()}


def flat(values: Tensor) -> float:
    """1.0 where the masks of a step, ``(G,)``, have one value up to rounding, so that REINFORCE learns nothing."""
    return float(not bool(advantage(values).any()))


def halves(credited: Tensor, values: Tensor) -> float:
    """Squared signal-to-noise of the REINFORCE step, signed, by how its two half-groups agree; NaN for G < 4.

    Args:
        credited: ``(G, n)``, the masks, or the scores that stand for them; values: ``(G,)``.
    """
    half = len(credited) // 2
    if half < 2:
        return math.nan
    steps = []
    for part in (slice(0, half), slice(half, 2 * half)):
        step = (values[part] - values[part].mean()) @ credited[part].float()
        steps.append(step - step.mean())
    # a whole group has half the noise of either half
    return 2 * agreement(*steps)


def agreement(first: Tensor, second: Tensor) -> float:
    """Squared signal-to-noise of a step, signed, from two independent ones ``(n,)``; NaN where they are the same.

    ``a . b`` estimates the squared signal, ``|a - b|^2 / 2`` the squared noise of one.
    """
    noise = float((first - second).square().sum()) / 2
    return float(first @ second) / noise if noise > 0 else math.nan


def signal_to_noise(squared: float) -> dict[str, float]:
    """``signal``, the signed square, and ``snr``, its root: 0 where the two steps contradict each other."""
    if not math.isfinite(squared):
        return {}
    return {"signal": squared, "snr": math.sqrt(max(squared, 0.0))}


def overlap(a: Tensor, b: Tensor) -> float:
    """Jaccard overlap of two selections, bool ``(n,)``: those in both over those in either."""
    return float((a & b).sum()) / max(float((a | b).sum()), 1.0)
