"""Swaps for any objective: the worst members against the best others, many at once, half as many if that fails.

Members are ranked by frozen-size marginals; where the objective knows the exact second-order term of a swap, the last,
single swaps are exact. Under a token budget rows are ranked by what they add per token, a swap may leave the budget as
full as before or a row short of it, and a single row may come in or leave alone where there is room.
"""

from __future__ import annotations

import torch
from torch import Tensor

from datamask.learning.problem import Problem
from datamask.learning.trace import Trace, TracePoint, no_trace
from datamask.polling import Poll

ROUNDS = 40
PAIRS = 256
"""Worst members and best others whose pairs are looked at exactly in a round of single swaps."""

LEAST_GAIN = 1e-9
"""Relative gain below which a swap counts as rounding."""


def batch_swaps(problem: Problem, mask: Tensor, poll: Poll, trace: Trace = no_trace) -> Tensor:
    """Swap as long as the exact joint value rises, bool ``(n,)``."""
    joint, size = problem.joint, int(mask.sum())
    rows, fixed = problem.eligible, problem.pinned[problem.eligible]
    value, swap_count = joint.evaluate(mask, poll).joint, 0
    width = min(size, len(problem.eligible) - size)
    for _ in range(ROUNDS):
        quality, diversity = joint.final_marginals(mask, poll)
        gain = joint.lamb * quality + (1 - joint.lamb) * diversity
        score, chosen = problem.limits.priority(gain[rows]), mask[rows]
        pairs = min(width, int(chosen.sum()), int((~chosen).sum()))
        inside = score.masked_fill(~chosen | fixed, torch.inf).topk(pairs, largest=False)
        outside = score.masked_fill(chosen, -torch.inf).topk(pairs)
        promising = outside.values > inside.values
        count = min(width, int(promising.sum()))
        if count <= 1:
            trial = _best_move(problem, mask, score, gain, poll)
            if trial is None:
                break
            count = 1
        elif problem.limits.by_tokens:
            # the rest of the members first, then whoever adds most per token, those that left last
            trial = problem.subset(
                score.masked_fill(chosen, torch.inf).index_fill(0, inside.indices[:count], -torch.inf)
            )
        else:
            trial = mask.clone()
            trial[rows[inside.indices[:count]]] = False
            trial[rows[outside.indices[:count]]] = True
            if problem.limits.limited and not problem.allowed(trial):
                width = count // 2
                continue
        values = joint.evaluate(trial, poll)
        if values.joint > value + LEAST_GAIN * max(1.0, abs(value)):
            swap_count += int((trial & ~mask).sum())
            trace(TracePoint({"swaps": swap_count}, values=values))
            mask, value, width = trial, values.joint, min(2 * count, width)
        elif count == 1:
            break
        else:
            width = count // 2
    return mask


def _best_move(problem: Problem, mask: Tensor, score: Tensor, gain: Tensor, poll: Poll) -> Tensor | None:
    """The mask after the best single swap among the worst members and the best others; None if none promises a gain.

    Under a budget one row may also come in alone, or leave alone.

    Args:
        score: ``(m,)``, by eligible row, who is looked at. gain: ``(n,)``, marginals on the run's scale.
    """
    joint, limits, chosen = problem.joint, problem.limits, mask[problem.eligible]
    poll()
    members, others = int(chosen.sum()), int((~chosen).sum())
    inside = score.masked_fill(~chosen, torch.inf).topk(min(PAIRS, members), largest=False).indices
    outside = score.masked_fill(chosen, -torch.inf).topk(min(PAIRS, others)).indices
    worst, best = problem.eligible[inside], problem.eligible[outside]
    change = gain[best][:, None] - gain[worst][None, :]
    for term in joint.counting:
        second = term.function.interaction_at(mask, worst, best, problem.size)
        if second is not None:
            change = change + (1 - joint.lamb) * term.weight * term.scale.slope * second
    if limits.limited:
        change = change.masked_fill(~limits.swappable(inside, outside, chosen), -torch.inf)
        alone = torch.where(limits.addable(outside, chosen), gain[best], -torch.inf)
        change = torch.cat([change, alone[:, None]], 1)
        leaving = torch.where(limits.removable(inside, chosen), -gain[worst], -torch.inf)
        change = torch.cat([change, torch.cat([leaving, leaving.new_full((1,), -torch.inf)])[None, :]], 0)
    row, column = divmod(int(change.argmax()), change.shape[1])
    if not float(change[row, column]) > 0:
        return None
    trial = mask.clone()
    trial[worst[column : column + 1]] = False
    trial[best[row : row + 1]] = True
    return trial
