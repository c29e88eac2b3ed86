"""Which blocks are solved side by side: colours, which take turns in a round."""

from __future__ import annotations

import numpy as np

COLOURS = 4


def colours_of_round(blocks: int, number: int, seed: int, colours: int = COLOURS) -> np.ndarray:
    """Which turn each block has in a round, int64 ``(B,)``: drawn anew for each round."""
    return np.random.default_rng([seed % 2**32, number]).integers(0, colours, blocks)
