"""The methods of an ablation as settings of a selection: what the ablation computes, and what a run of one is."""

from __future__ import annotations

import numpy as np

from datamask import catalogue
from datamask.ablation.question import DUPLICATES
from datamask.ablation.result import AblationResult, Method
from datamask.config import SelectionConfig
from datamask.config.selection import RULES

GREEDY_LAMBDA = 0.7
"""Of greedy on facility location: where facility location did best in the pilot on independent scores."""

ROWS_PER_CLUSTER, CLUSTERS = 20, 100
"""The cluster-balanced baseline has its usual number of clusters, or fewer where there are few rows."""


def settings_of(method: Method, ratio: float, rows: int, seed: int = 0) -> SelectionConfig:
    """The settings of a run of a method.

    Args:
        ratio: the select ratio. rows: of the corpus.

    Example:
        >>> settings_of(Method("facility-0.7", "Facility location", objective="facility", lamb=0.7), 0.1, 500).lamb
        0.7
    """
    if method.along_lambda:
        return SelectionConfig.from_options(objective=method.objective, lamb=method.lamb, select_ratio=ratio, seed=seed)
    return single(method.name, ratio, rows, seed)


EQUAL = (
    "estimator",
    "select_ratio",
    "budget",
    "prune",
    "collapse",
    *RULES,
    "scale",
)
"""Settings that say which selection it is; the objective and lambda do where they have a say."""


def equal(one: SelectionConfig, other: SelectionConfig) -> bool:
    """Whether two settings are of the same selection, regardless of seed and device.

    Example:
        >>> equal(SelectionConfig.from_options(lamb=0.5), SelectionConfig.from_options(lamb=0.5, seed=1))
        True
    """
    names = EQUAL + (("objective", "lamb") if catalogue.estimator(one.estimator).guided else ())
    return all(getattr(one, name) == getattr(other, name) for name in names)


def method_of(result: AblationResult, settings: SelectionConfig, rows: int) -> int | None:
    """The place of the method that a selection is made by; None: the result did not try it at this ratio.

    Args:
        rows: of the corpus.
    """
    ratio = result.question.ratio
    places = range(len(result.methods))
    return next((k for k in places if equal(settings, settings_of(result.methods[k], ratio, rows))), None)


def single(name: str, ratio: float, rows: int, seed: int) -> SelectionConfig:
    """The settings of a method that is not tried over lambda.

    Args:
        rows: of the pool.
    """
    common = {"select_ratio": ratio, "seed": seed, "objective": "pairwise"}
    if name == DUPLICATES:
        return SelectionConfig.from_options(**common, estimator="random", collapse="exact")
    if name == "greedy":
        return SelectionConfig.from_options(
            **{**common, "objective": "facility"}, estimator="greedy", lamb=GREEDY_LAMBDA
        )
    if name == "masks":
        return SelectionConfig.from_options(**common, preset="paper")
    if name == "cluster-balanced":
        clusters = int(np.clip(rows // ROWS_PER_CLUSTER, 2, CLUSTERS))
        return SelectionConfig.from_options(**common, estimator=name, clusters=clusters)
    return SelectionConfig.from_options(**common, estimator=name)
