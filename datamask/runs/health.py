"""Is a learning run well? Judges its metrics, and says in words what is wrong and what to do about it.

Pure functions of what stands in the run folder, so that the command line, the summary and the page say the same.

    divergence   the value falls well below the best it has had
    collapse     the masks have become all alike while most of the run lies ahead, or the selection is that of one term
    dominated    one term makes up nearly all of the reward, so that lambda has no say
    flat         the masks of a step have one value, so that REINFORCE learns nothing from them
    faint        over all its steps a logit's signal does not rise above its noise
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from datamask.config import SelectionConfig
from datamask.measured import Anchors

Metrics = Mapping[str, np.ndarray]

BESIDE = ("swaps", "refills", "dual_steps")
"""Counted in records of the way that are no step of a learner."""

DIVERGED = 0.15
"""Share of what had been gained over a random subset that may be lost again. Learning jitters by some percent where it
has settled; a run that loses more has left the place it had found."""

LEAST_LOSS = 0.05
"""Share of the attainable gain that must be lost before it counts: less is how readouts differ anyway."""

SETTLED_EVALUATIONS = 3
"""Evaluations in a row that must lie that low: one may be chance."""

SAME_SELECTION = 0.95
"""Overlap from which a selection is that of one term alone. Two terms that both count keep it well below: at lambda 0.5
selections of the sample overlap with either by 0.3 to 0.8."""

BALANCED = (0.3, 0.7)
"""Lambdas between which both terms are meant to count. Beyond them one term's own selection may be the right answer: of
two terms that vary alike, lambda 0.2 alone gives one 94 % of the variance."""

DOMINATED = 0.95
"""Share of the reward's variance from which the other terms are lost in it."""

UNHEARD = 0.1
"""Share of its own attainable gain below which a term has got nothing. The variance alone does not tell: on small
batches diversity varies most by chance, and exact credits have heavy tails, while both terms may still gain."""

SPREAD_LEFT = 0.01
"""Spread over the masks, as share of the first steps', below which they are all alike."""

TOO_EARLY = 0.5
"""Share of the steps before which that is a collapse; after it, it is an end."""

FLAT_STEPS = 0.1
"""Share of steps without any difference between their masks that is more than a moment. Counted until `TOO_EARLY`:
later the masks of a learner that has decided are alike, as they should be."""

FEWEST_STEPS = 10
"""Steps before anything is said about variances and noise: fewer tell them badly."""

HEARD = 1.0
"""Signal over noise of a logit, over the whole run, below which chance has decided more than the objective."""


@dataclass(frozen=True)
class Concern:
    """Something wrong with a run: its `name` (see the module), what is wrong, and what to do about it."""

    name: str
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.what} {self.advice}"


def concerns(metrics: Metrics, config: SelectionConfig, facts: Mapping[str, Any]) -> tuple[Concern, ...]:
    """What is wrong with a run so far, worst first; empty for a healthy one, and for one that takes no steps.

    Args:
        metrics: columns of metrics.jsonl. facts: of the run folder, for the value of a random subset and how many steps
            there are.
    """
    metrics = of_steps(metrics)
    # fewer than the settings say where there are many rows; a run from before steps were planned takes all of them
    planned = facts.get("planned_steps") or config.n_epochs
    checks = [
        _divergence(metrics, config, facts),
        _collapse(metrics, config, planned),
        _one_sided(metrics, config, planned),
        _dominated(metrics, config, facts),
        _flat(metrics, config, planned),
        _faint(metrics, config, planned),
    ]
    # masks that have become all alike are the same story as their flat steps and their lost signal, and a selection of
    # one term's the same as its share of the reward
    covered = {"flat", "faint"} if checks[1] is not None else set()
    covered |= {"dominated"} if checks[2] is not None else set()
    return tuple(concern for concern in checks if concern is not None and concern.name not in covered)


def of_steps(metrics: Metrics) -> Metrics:
    """The records of a learner's steps, without those of swaps and of bounds, which say nothing about its masks."""
    if not len(beside := [metrics[name] for name in BESIDE if name in metrics]):
        return metrics
    steps = ~np.isfinite(beside).any(0)
    return {name: column[steps] for name, column in metrics.items()}


def signal_so_far(metrics: Metrics, config: SelectionConfig) -> np.ndarray:
    """Signal over noise that a logit has gathered up to each step, ``(T,)``; empty where no step tells its noise.

    Signals add up and noises in quadrature: after t steps, of which a row takes part in `partial`, the ratio is
    ``sqrt(t * partial)`` times a single step's.
    """
    signal = finite(metrics, "signal")
    if not len(signal):
        return signal
    steps = np.arange(1, len(signal) + 1)
    mean = np.cumsum(signal) / steps
    ratio: np.ndarray = np.sqrt(np.maximum(mean, 0.0) * steps * (config.partial or 1.0))
    return ratio


def reward_shares(metrics: Metrics, config: SelectionConfig) -> dict[str, float]:
    """Share of the reward's variance due to each term, over all steps so far: ``quality`` and the objectives.

    Of REINFORCE a step weighs by its variance over the masks, which makes these the shares of the pooled variance.
    """
    names = [name for name in metrics if name.startswith("share_")]
    if not names:
        return {}
    shares = np.stack([metrics[name] for name in names])
    measured = np.isfinite(shares).all(0)
    if not measured.any():
        return {}
    weights = np.ones(measured.sum())
    if config.estimator == "reinforce":
        weights = metrics["batch_joint_std"][measured] ** 2
    return {
        name.removeprefix("share_"): float(np.average(row[measured], weights=weights))
        for name, row in zip(names, shares)
    }


def gains(metrics: Metrics, config: SelectionConfig, facts: Mapping[str, Any]) -> dict[str, float]:
    """How far the latest subset is from random (0) to the best (1) in ``quality`` and ``diversity``, where known."""
    if config.scale == "calibrated":
        terms = {name: finite(metrics, name) for name in ("quality", "diversity")}
        return {name: float(values[-1]) for name, values in terms.items() if len(values)}
    shares_of_gain, anchors = {}, Anchors.from_dict(facts.get("anchors") or {})
    # a raw weighted sum of objectives has no anchor of its own
    for name, anchor in (("quality", anchors.quality), ("diversity", anchors.diversity.get(config.objective))):
        values = finite(metrics, f"raw_{name}")
        if len(values) and anchor and anchor.best > anchor.random:
            shares_of_gain[name] = float((values[-1] - anchor.random) / (anchor.best - anchor.random))
    return shares_of_gain


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


def _divergence(metrics: Metrics, config: SelectionConfig, facts: Mapping[str, Any]) -> Concern | None:
    values = finite(metrics, "joint")
    # without a step size nothing runs away: `relaxed` ends with the best rounding met, however later ones fall
    if len(values) <= SETTLED_EVALUATIONS or config.max_lr is None:
        return None
    random = ((facts.get("references") or {}).get("random") or {}).get("joint")
    start = values[0] if random is None else float(random)
    best = float(values.max())
    gained, lost = best - start, best - float(values[-SETTLED_EVALUATIONS:].max())
    if not (gained > 0 and lost > max(DIVERGED * gained, LEAST_LOSS * reach(config, facts))):
        return None
    return Concern(
        "divergence",
        f"The value has fallen: {_percent(lost / gained)} of what had been gained over a random subset is lost again.",
        f"Lower --max_lr (now {config.max_lr:g}){_more_masks(config)}.",
    )


def _collapse(metrics: Metrics, config: SelectionConfig, total: int | None) -> Concern | None:
    spread = metrics.get("batch_joint_std")
    if config.estimator != "reinforce" or total is None or spread is None or len(spread) <= FEWEST_STEPS:
        return None
    spread = np.nan_to_num(spread)
    steps = metrics["step"]
    first = np.median(spread[:SETTLED_EVALUATIONS])
    # a median of neighbours: a single step may be alike by chance
    smooth = np.array([np.median(spread[k : k + SETTLED_EVALUATIONS]) for k in range(len(spread) - 2)])
    collapsed = np.flatnonzero(smooth < SPREAD_LEFT * first)
    if not len(collapsed) or steps[collapsed[0]] > TOO_EARLY * total:
        return None
    return Concern(
        "collapse",
        f"The sampled masks have been all alike since step {steps[collapsed[0]]:,.0f} of {total:,}, "
        "so the later steps learn nothing.",
        f"Lower --max_lr (now {config.max_lr:g}){_more_masks(config)}.",
    )


def _one_sided(metrics: Metrics, config: SelectionConfig, total: int | None) -> Concern | None:
    if not BALANCED[0] <= config.lamb <= BALANCED[1]:
        return None
    # a run that starts from quality begins with quality's own selection
    if config.init == "quality" and metrics["step"][-1] < TOO_EARLY * (total or 0):
        return None
    overlaps = {
        name.removeprefix("overlap_"): finite(metrics, name)[-1]
        for name in metrics
        if name.startswith("overlap_") and len(finite(metrics, name))
    }
    same = [name for name, value in overlaps.items() if value >= SAME_SELECTION]
    # where the best by either term are the same rows, there is nothing to balance
    if len(same) != 1 or len(overlaps) < 2:
        return None
    return Concern(
        "collapse",
        f"The selection is almost the one that {same[0]} alone would make (overlap "
        f"{_percent(overlaps[same[0]])}), although --lamb is {config.lamb:g}.",
        _balance(config),
    )


def _dominated(metrics: Metrics, config: SelectionConfig, facts: Mapping[str, Any]) -> Concern | None:
    shares = reward_shares(metrics, config)
    if len(shares) < 2 or not BALANCED[0] <= config.lamb <= BALANCED[1] or len(metrics["step"]) < FEWEST_STEPS:
        return None
    name, share = max(shares.items(), key=lambda term: term[1])
    others = "diversity" if name == "quality" else "quality"
    gained = gains(metrics, config, facts).get(others)
    if share <= DOMINATED or gained is None or gained >= UNHEARD:
        return None
    return Concern(
        "dominated",
        f"{_percent(min(share, 1.0))} of the reward's variance is due to {name}, and "
        f"{others} is {_percent(gained)} of the way from random to its best.",
        _balance(config),
    )


def _flat(metrics: Metrics, config: SelectionConfig, total: int | None) -> Concern | None:
    flat = finite(metrics, "flat")
    flat = flat[: math.ceil(TOO_EARLY * (total or 0))]
    if not len(flat) or not flat.mean() > FLAT_STEPS:
        return None
    return Concern(
        "flat",
        f"In {_percent(float(flat.mean()))} of the first steps all {config.n_rollout} masks had "
        "one value, so these steps taught nothing.",
        "Check that the quality column differs between rows, raise --n_rollout, or use --estimator counterfactual.",
    )


def _faint(metrics: Metrics, config: SelectionConfig, total: int | None) -> Concern | None:
    signal, heard = finite(metrics, "signal"), signal_so_far(metrics, config)
    if len(heard) < FEWEST_STEPS or not total:
        return None
    # what lies ahead counts too, at the rate of the steps so far; and only what even two standard errors leave faint
    rows = total * (config.partial or 1.0)
    likely = signal.mean() + 2.0 * signal.std() / math.sqrt(len(signal))
    ahead = math.sqrt(max(signal.mean(), 0.0) * rows)
    if max(heard.max(), math.sqrt(max(likely, 0.0) * rows)) >= HEARD:
        return None
    return Concern(
        "faint",
        f"Over all {total:,} steps a logit's signal is only {ahead:.1g} times its noise: "
        "chance decides more than the objective.",
        "Take more masks (--n_rollout), more steps or a larger "
        "--partial, or use --estimator counterfactual, whose credit is exact.",
    )


def _more_masks(config: SelectionConfig) -> str:
    more = f" or raise --n_rollout (now {config.n_rollout})" if config.estimator == "reinforce" else ""
    best_kept = "; the best selection met on the way is kept" if config.estimator == "counterfactual" else ""
    return more + best_kept


def _balance(config: SelectionConfig) -> str:
    if config.scale == "raw":
        return "Use --scale calibrated, which puts both terms on one scale, or move --lamb."
    return "Move --lamb toward the other term."


def _percent(share: float) -> str:
    return f"{round(100 * share)} %"
