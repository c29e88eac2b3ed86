"""How good is a set of ids: the corpus bound to its objectives, the anchors of their scales, and the scoreboard."""

from __future__ import annotations

import importlib

__all__ = ["score_selection"]


def __getattr__(name: str):
    # the scoreboard needs torch; `id_lists`, which only compares ids, must not pay for it
    if name != "score_selection":
        raise AttributeError(f"module 'datamask.evaluation' has no attribute {name!r}")
    return importlib.import_module("datamask.evaluation.scoreboard").score_selection
