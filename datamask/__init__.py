"""datamask: select a high-quality, diverse subset of a pre-training corpus (arXiv 2512.24265).

`open_corpus` reads shards or a table in memory into a `Corpus`. `select` returns a `Selection`; `start_run` selects in
a separate process. `load_recipe` makes a function of a recipe. `score_selection` measures a set of rows, `evaluate`
compares several. `CorpusConfig`, `SelectionConfig` and `RunConfig` are the settings. Importing this package loads none
of them: each is imported when it is first used.
"""

from __future__ import annotations

import importlib
import os

# Idle threads of OpenMP sleep, unless the environment says otherwise: where they spin, beside other work, a solver took
# seven times the CPU seconds and three times as long. It counts only before torch is loaded, hence here.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

__version__ = "1.0.0.dev0"

_HOMES = {
    "open_corpus": "datamask.corpus",
    "select": "datamask.api",
    "load_recipe": "datamask.recipes.row_filter",
    "start_run": "datamask.runs.detached",
    "score_selection": "datamask.evaluation",
    "evaluate": "datamask.evaluation",
    "CorpusConfig": "datamask.config",
    "SelectionConfig": "datamask.config",
    "RunConfig": "datamask.config",
    "Corpus": "datamask.corpus",
    "Selection": "datamask.evaluation.selection",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'datamask' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
