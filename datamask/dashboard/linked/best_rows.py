"""The rows that are best by quality, by diversity, by both or by neither, as a layer of the map.

Best by quality is what λ 1 selects, best by diversity what λ 0 selects: the two ends that the meters call 100 %. They
belong to the problem, not to a selection, so a row keeps its color at every λ.
"""

from __future__ import annotations

import numpy as np

from datamask.dashboard.map.layers import Blank, Classes, Layer

NAME = "best by quality or diversity"
"""In the menus of the map."""

TITLE = NAME[0].upper() + NAME[1:]
NAMES = ("best by quality", "best by diversity", "both")
NEITHER = "neither"
ROLES = ("quality", "diversity", "text")
SHAPES = ("diamond", "triangle", "circle")

ABOUT = f"*{TITLE}*: what λ 1 selects, what λ 0 selects, what both select, and the rest."


def layer(best: np.ndarray | None, diverse: np.ndarray | None, refusal: str) -> Layer:
    """The four kinds of rows; an empty panel with the reason where an end is not solved.

    Args:
        best, diverse: bool ``(N,)``, what λ 1 and λ 0 select; None: not solved. refusal: why λ cannot be moved; empty
            where it can.
    """
    if best is None or diverse is None:
        return Blank(TITLE, refusal or "needs the selections at λ 0 and λ 1; move λ below the map to solve them")
    codes = best.astype(np.uint8) + 2 * diverse.astype(np.uint8)
    return Classes(TITLE, codes, NAMES, ROLES, SHAPES, rest=NEITHER)
