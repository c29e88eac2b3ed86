"""Bounds along the path of solutions over lambda: what is proved between solved lambdas, without solving anything.

The joint value of a fixed selection is a line in lambda, ``lambda Q + (1 - lambda) D``. So the best possible joint
value is a maximum of lines, which is convex in lambda: between two lambdas with proved upper bounds it lies below the
straight line through these bounds. From below, every selection known is worth its own line at every lambda. Both hold
for every objective, whatever its function looks like.
"""

from __future__ import annotations

from collections.abc import Iterable


def chord(bounds: Iterable[tuple[float, float]], lamb: float) -> float | None:
    """The least proved upper bound at a lambda that bounds at others imply.

    Args:
        bounds: lambdas and upper bounds of the joint value there, on one scale that does not depend on lambda.

    Returns:
        None where no two of them are on different sides of it.
    """
    proved = list(bounds)
    implied = [bound for other, bound in proved if other == lamb]
    for low, below in proved:
        for high, above in proved:
            if low < lamb < high:
                share = (lamb - low) / (high - low)
                implied.append((1 - share) * below + share * above)
    return min(implied, default=None)


def best_line(ends: Iterable[tuple[float, float]], lamb: float) -> tuple[int, float]:
    """Which selection is worth most at a lambda, and how much.

    Args:
        ends: quality and diversity of at least one selection, on the scale of the joint value.

    Raises:
        ValueError: there is none.
    """
    values = [lamb * quality + (1 - lamb) * diversity for quality, diversity in ends]
    if not values:
        raise ValueError("the best of no selections was asked for; pass at least one")
    place = max(range(len(values)), key=values.__getitem__)
    return place, values[place]
