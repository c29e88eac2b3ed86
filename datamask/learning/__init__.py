"""Learning a selection: masks, estimators, the learner, and solvers that need no masks.

`masks` samples without replacement; `estimators` turn masks and values into a step; `learner` is the loop's body over
an explicit state; `reinforce` and `counterfactual` are the two learners; `baselines` learn nothing; `relaxation` and
`medoids` solve pair-wise and facility problems directly and serve as references. `load` fetches a learner by name.
"""

from __future__ import annotations

import importlib

from datamask import catalogue
from datamask.errors import OptionError


def load(name: str) -> type:
    """The learner class of an estimator by its name in `datamask.catalogue`.

    Raises:
        OptionError: no estimator has that name, or it is the mark of imported ids, which nothing finds.
    """
    entry = catalogue.estimator(name)
    if entry is catalogue.IMPORTED:
        raise OptionError("imported ids cannot be selected again; import them once more with `runs import`")
    module, _, cls = entry.code.partition(":")
    return getattr(importlib.import_module(module), cls)
