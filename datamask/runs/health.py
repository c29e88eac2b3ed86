"""Did learning converge, and if not, what to change: the sentence that `runs show`, `select` and the page print.

It is made of what stands in the run folder, so that all of them say the same of a run, finished or not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from datamask.catalogue import NOT_FINITE
from datamask.config import SelectionConfig
from datamask.measured import Anchors
from datamask.runs.store import Run

Metrics = Mapping[str, np.ndarray]

BESIDE = ("swaps", "anneals", "refills", "dual_steps")
"""Counted in records of the way that are no step of a learner."""

DIVERGED = 0.15
"""Share of what had been gained over a random subset that may be lost again. Learning jitters by some percent where it
has settled; a run that loses more has left the place it had found."""

LEAST_LOSS = 0.05
"""Share of the attainable gain that must be lost before it counts: less is how readouts differ anyway."""

SETTLED_EVALUATIONS = 3
"""Evaluations in a row that must lie that low: one may be chance."""

SPREAD_LEFT = 0.01
"""Spread over the masks, as share of the first steps', below which they are all alike."""

TOO_EARLY = 0.5
"""Share of the steps before which that is a collapse; after it, it is an end."""

FEWEST_STEPS = 10
"""Steps before anything is said about spreads and noise: fewer tell them badly."""

LAST_STEPS = 0.25
"""Share of the steps, the last ones, in which a run that has settled gains nothing."""

RISING = 0.01
"""Share of the whole gain that they may still bring. On the tiny sample settled runs gained at most 0.3 % there, and
REINFORCE with 20 or 120 steps in place of its 5,000 1.1 to 14 %."""

HEARD = 1.0
"""Signal over noise of a logit, over the whole run, below which chance has decided more than the objective."""


def learning(run: Run) -> str:
    """Whether the learning of masks converged, and if not, why and what to change.

    Empty of a method without a step size, which proves its answer or learns nothing, and before the first value.
    """
    metrics, config, facts = of_steps(run.metrics()), run.config.selection, run.facts()
    done = finite(metrics, "step")
    if config.max_lr is None or not len(done) or not len(finite(metrics, "joint")):
        return ""
    planned, steps = int(facts.get("planned_steps") or config.n_epochs or 0), int(done[-1])
    cause = (
        (f"{NOT_FINITE}. {_smaller_steps(config)}" if run.status().ending == NOT_FINITE else "")
        or _collapse(metrics, config, planned)
        or _fall(metrics, config, facts)
        or _rise(metrics, config, facts, planned)
        or _noise(metrics, config, planned)
    )
    if cause:
        return f"Learning did not converge: {cause}"
    decided = finite(metrics, "decided")
    if not len(decided):
        return ""
    counted = f"{planned:,} steps" if steps >= planned else f"{steps:,} of at most {planned:,} steps"
    return f"{_percent(decided[-1])} of rows converged after {counted}."


def of_steps(metrics: Metrics) -> Metrics:
    """The records of a learner's steps, without those of swaps and of bounds."""
    if not len(beside := [metrics[name] for name in BESIDE if name in metrics]):
        return metrics
    steps = ~np.isfinite(beside).any(0)
    return {name: column[steps] for name, column in metrics.items()}


def reach(config: SelectionConfig, facts: Mapping[str, Any]) -> float:
    """Joint value between a random subset and both terms at their best, on the run's scale; 0 where unknown."""
    if config.scale == "calibrated":
        return 1.0
    anchors = Anchors.from_dict(facts.get("anchors") or {})
    weighted = [(config.lamb, anchors.quality)]
    weighted += [((1 - config.lamb) * weight, anchors.diversity.get(name)) for name, weight in config.terms]
    return float(sum(weight * (anchor.best - anchor.random) for weight, anchor in weighted if anchor))


def finite(metrics: Metrics, name: str) -> np.ndarray:
    """The known values of a column, in their order; empty where there is none."""
    values = metrics.get(name)
    return np.zeros(0) if values is None else values[np.isfinite(values)]


def _collapse(metrics: Metrics, config: SelectionConfig, planned: int) -> str:
    spread = metrics.get("batch_joint_std")
    if config.estimator != "reinforce" or spread is None or len(spread) <= FEWEST_STEPS:
        return ""
    # masks of one value have a spread of rounding alone, which `flat` tells from a small one
    flat = metrics.get("flat", np.zeros(len(spread))) > 0
    spread = np.where(flat, 0.0, np.nan_to_num(spread))
    # a median of neighbors: a single step may be alike by chance
    smooth = np.array([np.median(spread[k : k + SETTLED_EVALUATIONS]) for k in range(len(spread) - 2)])
    if not spread[:SETTLED_EVALUATIONS].any():
        return (
            "all masks of a step have the same value, so nothing is learned from them. "
            f"Check that quality differs between rows, or {_more_masks(config)}."
        )
    apart = np.flatnonzero(smooth > SPREAD_LEFT * spread[:SETTLED_EVALUATIONS].max())
    first = int(apart[-1]) + 1 if len(apart) else 0
    if first >= len(smooth) or metrics["step"][first] > TOO_EARLY * planned:
        return ""
    return f"the masks are all alike from step {metrics['step'][first]:,.0f} on. {_smaller_steps(config)}"


def _fall(metrics: Metrics, config: SelectionConfig, facts: Mapping[str, Any]) -> str:
    values, start = finite(metrics, "joint"), _start(metrics, facts)
    best = float(values.max())
    gained, lost = best - start, best - float(values[-SETTLED_EVALUATIONS:].max())
    if not (gained > 0 and lost > max(DIVERGED * gained, LEAST_LOSS * reach(config, facts))):
        return ""
    return f"{_percent(lost / gained)} of the gain over a random subset was lost again. {_smaller_steps(config)}"


def _rise(metrics: Metrics, config: SelectionConfig, facts: Mapping[str, Any], planned: int) -> str:
    # swaps find what is left after few steps as well as after many (`SelectionConfig.planned_steps`)
    if finite(metrics, "step")[-1] < planned or config.polish == "swaps":
        return ""
    best = np.fmax.accumulate(np.nan_to_num(metrics["joint"], nan=-np.inf))
    before = best[metrics["step"] <= (1 - LAST_STEPS) * planned]
    if not len(before) or not best[-1] - before[-1] > RISING * (best[-1] - _start(metrics, facts)):
        return ""
    return f"the value still rose in the last steps. Raise the maximum steps (n_epochs) above {planned:,}."


def _noise(metrics: Metrics, config: SelectionConfig, planned: int) -> str:
    signal = finite(metrics, "signal")
    if len(signal) < FEWEST_STEPS:
        return ""
    # signals add up and noises in quadrature, over the steps of which a row takes part in `partial`; what lies ahead
    # counts too, at the rate of the steps so far, and only what even two standard errors leave faint
    partial = config.partial or 1.0
    likely = (signal.mean() + 2.0 * signal.std() / math.sqrt(len(signal))) * planned * partial
    if max((np.cumsum(signal) * partial).max(), likely) >= HEARD**2:
        return ""
    return f"its steps are mostly noise. {_more_masks(config).capitalize()}."


def _start(metrics: Metrics, facts: Mapping[str, Any]) -> float:
    """The joint value of a random subset, or the first one where that is not known."""
    random = ((facts.get("references") or {}).get("random") or {}).get("joint")
    return float(finite(metrics, "joint")[0] if random is None else random)


def _smaller_steps(config: SelectionConfig) -> str:
    more = f" or {_more_masks(config)}" if config.estimator == "reinforce" else ""
    return f"Lower the first step size (max_lr) below {config.max_lr:g}{more}."


def _more_masks(config: SelectionConfig) -> str:
    return f"raise the masks per step (n_rollout) above {config.n_rollout:,}"


def _percent(share: float) -> str:
    return f"{round(100 * share)} %"
