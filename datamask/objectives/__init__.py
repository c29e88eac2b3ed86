"""Set functions, one per file: what a subset is worth.

`quality` is the mean quality; `pairwise`, `facility` and `disf` are diversity objectives; `joint` weighs them against
each other. `contract` says what each must give. `load` fetches one by its name in `datamask.catalogue`; `own` guards
those that are not there, named ``module:Class``.
"""

from __future__ import annotations

import importlib

from datamask import catalogue
from datamask.objectives import own
from datamask.objectives.contract import SetFunction


def load(name: str) -> type[SetFunction]:
    """The `SetFunction` class of an objective by catalogue name or alias, or one's own by ``module:Class``.

    Raises:
        OptionError: no objective has that name, or it is one's own and `own.permit` has not been called for it.
    """
    entry = catalogue.objective(name)
    if catalogue.is_own(entry.name):
        return own.load(entry.name)
    module, _, cls = entry.code.partition(":")
    objective: type[SetFunction] = getattr(importlib.import_module(module), cls)
    return objective


def cache_name(name: str) -> str:
    """An objective's name for what is cached of it; for one's own it changes with its code."""
    entry = catalogue.objective(name)
    if not catalogue.is_own(entry.name):
        return entry.name
    return f"own-{entry.name.partition(':')[2]}-{own.code_digest(entry.name)[:16]}"
