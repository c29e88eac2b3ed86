"""Copies inside a selection: how many members have another member that says the same."""

from __future__ import annotations

import numpy as np

from datamask.corpus.copies import ROUNDING
from datamask.corpus.equal_rows import exact_families
from datamask.corpus.neighbors import NeighborGraph
from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.measures.reading import Measured, Reading
from datamask.options.duplicates import compared_by
from datamask.polling import Poll, no_poll
from datamask.work.context import Work

NEAR = 0.95
"""Cosine from which two samples count as near-copies."""

ROWS_AT_ONCE = 65_536
SIMILARITIES_AT_ONCE = 8_000_000


def near_copies_inside(
    features: np.ndarray, graph: NeighborGraph, rows: np.ndarray, cosine: float = NEAR, poll: Poll = no_poll
) -> np.ndarray:
    """Which members have another member at this cosine or above: bool ``(S,)``, exact where the graph is.

    A list whose every entry is that near may end before the member that matters; such rows are compared with all
    members.
    """
    inside = np.zeros(len(features), bool)
    inside[rows] = True
    has_copy, full = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    for low in range(0, len(rows), ROWS_AT_ONCE):
        poll()
        part = rows[low : low + ROWS_AT_ONCE]
        near = graph.similarities[part, 1:] >= cosine - ROUNDING
        has_copy[low : low + ROWS_AT_ONCE] = (near & inside[graph.indices[part, 1:]]).any(1)
        full[low : low + ROWS_AT_ONCE] = near.all(1)
    open_ = np.flatnonzero(full & ~has_copy) if graph.k < len(features) else np.empty(0, np.int64)
    for low in range(0, len(open_), step := max(1, SIMILARITIES_AT_ONCE // len(rows))):
        poll()
        part = open_[low : low + step]
        products = features[rows[part]] @ features[rows].T
        products[np.arange(len(part)), part] = -1.0  # its own
        has_copy[part] = products.max(1) >= cosine - ROUNDING
    return has_copy


def nearest_cosine(rows: np.ndarray, among: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """Cosine of each row to the nearest of `among`: float64 ``(n,)``. All are compared with all, block by block."""
    nearest = np.empty(len(rows))
    for low in range(0, len(rows), step := max(1, SIMILARITIES_AT_ONCE // max(len(among), 1))):
        poll()
        nearest[low : low + step] = (rows[low : low + step] @ among.T).max(axis=1)
    return nearest


def near_copy_rate(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Share of members with another member at cosine 0.95 or above."""
    graph, everyone = ground.graph(), ground.everyone()
    pool = near_copies_inside(ground.corpus.features, graph, everyone, poll=ground.poll).mean()
    note = f"in the whole corpus {pool:.3f}" + ("" if graph.exact else "; on an approximate neighbor graph")
    return [
        entry.measured(
            {
                name: _rate(
                    ground, rows, note, near_copies_inside(ground.corpus.features, graph, rows, poll=ground.poll)
                )
                for name, rows in selections.items()
            }
        )
    ]


def exact_copy_rate(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Share of members that have an exact duplicate among the members."""
    family = exact_families(ground.corpus, Work(ground.poll))
    whole = np.bincount(family, minlength=len(family))
    same = compared_by(ground.corpus.provenance.columns)
    note = f"the same {same}; in the whole corpus {(whole[family] > 1).mean():.3f}"
    readings = {}
    for name, rows in selections.items():
        sizes = np.bincount(family[rows], minlength=len(family))
        readings[name] = _rate(ground, rows, note, sizes[family[rows]] > 1)
    return [entry.measured(readings, circular=("near_copies",))]


def _rate(ground: Ground, rows: np.ndarray, note: str, hit: np.ndarray) -> Reading:
    return Reading(float(hit.mean()), ground.mean_draws(hit, rows), "bootstrap", note, bounds=(0.0, 1.0))
