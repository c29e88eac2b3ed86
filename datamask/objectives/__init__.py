"""Set functions, one per file: what a subset is worth.

`quality` is the mean quality; `pairwise`, `facility` and `disf` are diversity objectives; `joint` weighs them against
each other. `contract` says what each must give. `load` fetches one by its name in `datamask.catalogue`.
"""

from __future__ import annotations

import importlib

from datamask import catalogue


def load(name: str) -> type:
    """The `SetFunction` class of an objective by catalogue name or alias.

    Raises:
        OptionError: no objective has that name.
    """
    module, _, cls = catalogue.objective(name).code.partition(":")
    return getattr(importlib.import_module(module), cls)
