"""A projection of somebody's own, as small as one can be; its fit runs in the child like any other."""

import numpy as np

from datamask.corpus.projections import Projection


def fit(points, indices, similarities, seed, say):
    say(0.5, f"rings of {len(points)} rows")
    angles = np.arctan2(points[:, 1], points[:, 0])
    return np.c_[np.cos(angles), np.sin(angles)]


RING = Projection("Ring", "ring", "Ring bends the corpus.", "gaps mean nothing", fit=fit)
