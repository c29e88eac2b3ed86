"""How many neighbors facility location lists of each row, wherever the rows lie."""

from __future__ import annotations

import math


def list_length(ratio: float, n: int) -> int:
    """K such that a random selection of this ratio leaves about exp(-8) of the rows without a listed member.

    At least 64, which the certificates and the map want too, at most 512 (memory), at most n.
    """
    return min(n, max(64, min(512, math.ceil(8.0 / ratio))))
