"""How many principal components an objective of feature dimensions is defined on."""

from __future__ import annotations

MOST = 512
"""Dimensions up to which all are taken unless ``--components`` says otherwise: the work grows with d^3."""

ALL = "all"


def asked_components(components: str | None, dim: int) -> int:
    """Return the number of components asked for, at most d. None asks for all of 512 dimensions, else for 512."""
    if components == ALL or (components is None and dim <= MOST):
        return dim
    return MOST if components is None else min(int(components), dim)
