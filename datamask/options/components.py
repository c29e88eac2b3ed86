"""How many principal components an objective of feature dimensions is defined on."""

from __future__ import annotations

COMPONENTS = 512
"""Components of vendi unless ``--components`` says otherwise: its work grows with d^3."""

ALL = "all"


def asked_components(components: str | None, dim: int, default: int | None) -> int:
    """Return the number of components asked for, at most d. None asks for the objective's default, or else for all."""
    if components == ALL or (components is None and default is None):
        return dim
    return min(int(components or default or dim), dim)
