"""The three-class picture: the most diverse samples, the best ones, and those selected, and how tight each class is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from datamask.corpus import row_hash
from datamask.dashboard.map.layers import Classes

NAMES = ("top-diverse", "top-quality", "selected")
ROLES = ("diversity", "quality", "accent")
SHAPES = ("triangle", "diamond", "circle")


@dataclass(frozen=True)
class Tightness:
    """How close the members of a class lie together.

    Attributes:
        name: of the class; size: its members.
        pairwise: mean cosine of its pairs, exact, float64.
        quality: mean quality; crowding: mean similarity to the nearest neighbours in the pool.
        shared: members that are selected too.
    """

    name: str
    size: int
    pairwise: float
    quality: float
    crowding: float
    shared: int


def top(values: np.ndarray, size: int, ids: pa.Array, seed: int = 0) -> np.ndarray:
    """Mask bool ``(N,)`` of the `size` greatest values; equal ones by the hash of their id, NaN last."""
    values = np.where(np.isfinite(values), values, -np.inf)
    order = np.lexsort((row_hash(ids, seed), -values))
    mask = np.zeros(len(values), bool)
    mask[order[:size]] = True
    return mask


def tightness(
    name: str, features: np.ndarray, mask: np.ndarray, quality: np.ndarray, crowding: np.ndarray, selected: np.ndarray
) -> Tightness:
    """Of one class.

    With unit rows and their sum s, the mean cosine of all pairs is ``(|s|^2 - S) / (S (S - 1))``: no pair is looked at.

    Args:
        features: float32 ``(N, d)``, rows of unit length, or of length 0. quality, crowding: ``(N,)``.
        mask, selected: bool ``(N,)``.
    """
    total = np.zeros(features.shape[1])
    squares = 0.0
    rows = np.flatnonzero(mask)
    for low in range(0, len(rows), 8192):
        block = features[rows[low : low + 8192]].astype(float)
        total += block.sum(axis=0)
        squares += float((block * block).sum())
    size = len(rows)
    long = float(total @ total)
    return Tightness(
        name,
        size,
        (long - squares) / (size * (size - 1)) if size > 1 else float("nan"),
        float(quality[mask].mean()) if size else float("nan"),
        float(crowding[mask].mean()) if size else float("nan"),
        int((mask & selected).sum()),
    )


def spread_words(diverse: Tightness, pool: Tightness) -> str:
    """How the most diverse class is tighter than all samples; empty where it is not.

    Measured on a sample corpus: what facility location selects for diversity alone is tighter than the pool, because
    crowds of copies far from the centre lower the mean cosine of the pool and are thinned out to one of each; the pool
    without copies is about as tight.
    """
    if not diverse.pairwise > pool.pairwise:
        return ""
    less = (
        f", but less crowded ({diverse.crowding:.2f} against {pool.crowding:.2f})"
        if diverse.crowding < pool.crowding
        else ""
    )
    return f"Top-diverse rows are tighter than all rows ({diverse.pairwise:.3f} against {pool.pairwise:.3f}){less}."


def layers(masks: tuple[np.ndarray, ...], together: bool, seed: int = 0) -> list[Classes]:
    """The classes on the map: in one panel, or each in one of its own.

    Together, a sample of several classes is drawn as one of them, at random: as if the classes were drawn on top of
    each other in random order.

    Args:
        masks: bool ``(N,)`` each, in the order of `NAMES`.
    """
    if not together:
        return [
            Classes(name[0].upper() + name[1:], mask.astype(np.uint8), (name,), (role,), (shape,))
            for name, mask, role, shape in zip(NAMES, masks, ROLES, SHAPES)
        ]
    lots = np.random.default_rng(seed).random((len(masks), len(masks[0])))
    member = np.stack(masks)
    codes = np.where(member.any(axis=0), np.where(member, lots, -1).argmax(axis=0) + 1, 0)
    return [
        Classes(
            "Top-diverse, top-quality and selected",
            codes.astype(np.uint8),
            NAMES,
            ROLES,
            SHAPES,
            tuple(int(mask.sum()) for mask in masks),
        )
    ]
