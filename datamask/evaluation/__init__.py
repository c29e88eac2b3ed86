"""How good is a set of ids: the corpus bound to its objectives, the anchors of their scales, and the scoreboard."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "score_selection": ("datamask.evaluation.scoring", "score_selection"),
    "scoreboard": ("datamask.evaluation.comparing", "scoreboard"),
    "panel_rows": ("datamask.evaluation.comparing", "panel_rows"),
    "optimised_by": ("datamask.evaluation.verdicts", "optimised_by"),
    # the public name, as in `datamask.evaluate(corpus, {"mine": rows}, "runs/.kept")`
    "evaluate": ("datamask.evaluation.comparing", "scoreboard"),
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # the scoreboard needs torch; `id_lists`, which only compares ids, must not pay for it
    if name not in _HOMES:
        raise AttributeError(f"module 'datamask.evaluation' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
