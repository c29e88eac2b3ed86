"""How good is a set of ids: the corpus bound to its objectives, the anchors of their scales, and the scoreboard."""

from __future__ import annotations

from datamask.evaluation.scoreboard import score_selection

__all__ = ["score_selection"]
