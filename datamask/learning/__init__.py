"""Learning a selection: masks, estimators, the learner, and solvers that need no masks.

`masks` samples without replacement; `estimators` turn masks and values into a step; `learner` is the loop's body over
an explicit state; `reinforce` and `counterfactual` are the two learners; `baselines` learn nothing; `newton`,
`relaxation` and `facility_solver` solve problems without masks, as `solvers` says. `load` fetches a learner by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from datamask import catalogue
from datamask.errors import OptionError

if TYPE_CHECKING:
    from datamask.learning.loop import Estimator


def load(name: str) -> Callable[..., Estimator]:
    """The learner class of an estimator by its name in `datamask.catalogue`: from a problem and settings to a learner.

    Raises:
        OptionError: no estimator has that name, or it is the mark of imported ids, which nothing finds.
    """
    entry = catalogue.estimator(name)
    if entry is catalogue.IMPORTED:
        raise OptionError("imported ids cannot be selected again; import them once more with `runs import`")
    module, _, cls = entry.code.partition(":")
    factory: Callable[..., Estimator] = getattr(importlib.import_module(module), cls)
    return factory
