"""What a fit is given, what is made of what it gives back, and how many neighbours the map keeps.

Exact copies are collapsed first: with them, UMAP tears the map into hundreds of far islands, one per family. Of very
many rows a sample is fitted. Every row left out is placed afterwards: a copy on its twin, any other row amid its
nearest fitted rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.corpus.equal_rows import equal_features
from datamask.corpus.exact_search import nearest
from datamask.corpus.neighbors import NeighborGraph
from datamask.corpus.principal import principal_axes, project
from datamask.corpus.rounded_rows import rounded
from datamask.polling import Poll, no_poll
from datamask.work.context import UNWATCHED, Work

NEIGHBORS = 30
COMPONENTS = 50
PLACED_BY = 5

JUDGED_BY = 15
"""Nearest neighbours that a map should keep."""

JUDGED_ROWS = 5_000
JUDGED_AMONG_ALL = 2_000
"""Rows whose neighbours are looked at; fewer where they must be found among all rows first."""


@dataclass(frozen=True)
class FittedRows:
    """Which M rows of a corpus are fitted.

    Attributes:
        rows: int64 ``(M,)``, rising rows of the corpus.
        twin: int64 ``(N,)``, the place in `rows` of the row itself or of its exact copy; -1 where there is none.
        distinct: int64, rising: all rows without copies, of which `rows` are some or all.
    """

    rows: np.ndarray
    twin: np.ndarray
    distinct: np.ndarray

    @property
    def all_fitted(self) -> bool:
        return len(self.rows) == len(self.distinct)


@dataclass(frozen=True)
class FitInput:
    """What is known of M fitted rows.

    Attributes:
        points: float32 ``(M, 50)``, the first principal components.
        indices, similarities: int32 and float32 ``(M, 30)``, nearest fitted rows, the row itself first.
    """

    points: np.ndarray
    indices: np.ndarray
    similarities: np.ndarray


def fitted_rows(corpus: Corpus, fit_all: int | None = None, fit_sample: int | None = None) -> FittedRows:
    """All rows without copies, or of more than `fit_all` a uniform sample of `fit_sample` (None: all of them)."""
    family = equal_features(corpus.features)
    rows = distinct = np.unique(family)
    if fit_all is not None and len(rows) > fit_all:
        hashes = corpus.hashes()[rows]
        rows = np.sort(rows[np.argsort(hashes, kind="stable")[:fit_sample]])
    place = np.full(len(corpus), -1)
    place[rows] = np.arange(len(rows))
    return FittedRows(rows, place[family], distinct)


def fit_input(corpus: Corpus, fitted: FittedRows, graph: NeighborGraph | None, poll: Poll = no_poll) -> FitInput:
    """Points and neighbour lists of the fitted rows.

    Args:
        corpus: the corpus.
        fitted: from `fitted_rows`.
        graph: of the whole corpus, where there is one.
        poll: called while neighbours are looked for.

    Raises:
        Stopped: from `poll`.
    """
    rows = fitted.rows
    mean, axes = principal_axes(corpus.features, COMPONENTS)
    points = np.empty((len(rows), axes.shape[1]), np.float32)
    for low in range(0, len(rows), 8192):
        points[low : low + 8192] = project(corpus.features[rows[low : low + 8192]], mean, axes)
    k = max(1, min(NEIGHBORS, len(rows) - 1))
    indices = np.empty((len(rows), k), np.int32)
    similarities = np.ones((len(rows), k), np.float32)
    indices[:, 0] = np.arange(len(rows))
    incomplete = np.ones(len(rows), bool)
    if graph is not None:
        for low in range(0, len(rows), 8192):
            block = slice(low, low + 8192)
            incomplete[block] = _translate(graph, rows[block], fitted.twin, low, indices[block], similarities[block])
    todo = np.flatnonzero(incomplete)
    base = rounded(corpus.features, rows) if len(todo) else np.empty((0, corpus.dim), np.int16)
    for low in range(0, len(todo), 4096):
        part = todo[low : low + 4096]
        indices[part, 1:], similarities[part, 1:] = nearest(base[part], base, k - 1, names=part, poll=poll)
    return FitInput(points, indices, similarities.clip(-1, 1))


def _translate(
    graph: NeighborGraph, rows: np.ndarray, twin: np.ndarray, first: int, indices: np.ndarray, similarities: np.ndarray
) -> np.ndarray:
    """Fill lists of fitted rows from lists of all rows, each family once; True where a list is too short."""
    k = indices.shape[1]
    listed = twin[graph.indices[rows]]
    own = np.arange(first, first + len(rows))[:, None]
    # a family is listed once: in sorted order, equal places stand side by side
    order = np.argsort(listed, axis=1, kind="stable")
    ranked = np.take_along_axis(listed, order, 1)
    repeated = np.zeros(listed.shape, bool)
    np.put_along_axis(repeated, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], 1)
    usable = (listed >= 0) & (listed != own) & ~repeated
    place = np.cumsum(usable, axis=1)
    incomplete: np.ndarray = place[:, -1] < k - 1
    usable &= (place <= k - 1) & ~incomplete[:, None]
    shape = (int((~incomplete).sum()), k - 1)
    indices[~incomplete, 1:] = listed[usable].reshape(shape)
    similarities[~incomplete, 1:] = graph.similarities[rows][usable].reshape(shape)
    return incomplete


def place_all(corpus: Corpus, fitted: FittedRows, places: np.ndarray, work: Work = UNWATCHED) -> np.ndarray:
    """Map places of all rows, float32 ``(N, 2)``, from those of the fitted rows ``(M, 2)``.

    Args:
        work: told the share of rows that have their place.

    Raises:
        Stopped: from `work.poll`.
    """
    points = np.empty((len(corpus), 2), np.float32)
    has_twin = fitted.twin >= 0
    points[has_twin] = places[fitted.twin[has_twin]]
    left_out = np.flatnonzero(~has_twin)
    base = rounded(corpus.features, fitted.rows)
    for low in range(0, len(left_out), 4096):
        work.report(low / len(left_out), f"Placing {len(left_out):,} more rows beside those")
        part = left_out[low : low + 4096]
        near, cosines = nearest(rounded(corpus.features, part), base, min(PLACED_BY, len(fitted.rows)), poll=work.poll)
        # the nearest few may lie on two islands: the mean would fall between them, the weighted median does not
        weights = np.maximum(cosines, 1e-6) ** 8
        points[part] = _weighted_median(places[near], weights)
    return points


def _weighted_median(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Per axis: points ``(n, m, 2)``, weights ``(n, m)`` to ``(n, 2)``."""
    order = np.argsort(points, axis=1)
    ranked = np.take_along_axis(points, order, 1)
    mass = np.cumsum(np.take_along_axis(np.repeat(weights[..., None], 2, -1), order, 1), axis=1)
    middle = (mass >= mass[:, -1:] / 2).argmax(axis=1)
    median: np.ndarray = np.take_along_axis(ranked, middle[:, None], 1)[:, 0]
    return median


def neighbors_kept(
    corpus: Corpus,
    fitted: FittedRows,
    inputs: FitInput | None,
    points: np.ndarray,
    poll: Poll = no_poll,
    judged: int | None = None,
) -> float:
    """The share of each row's 15 nearest others that are among its 15 nearest on the map, from 0 to 1.

    Copies count once. Of very many rows a uniform sample is judged, always against all.

    Args:
        points: ``(N, 2)``, where the map has every row, those included that were placed afterwards.
        inputs: has the lists of nearest rows where all were fitted; else, or where it is None, they are looked for.
        judged: at most so many rows; None: `JUDGED_ROWS`, or `JUDGED_AMONG_ALL`.

    Raises:
        Stopped: from `poll`.
    """
    from scipy.spatial import cKDTree

    distinct, listed = fitted.distinct, inputs.indices if inputs is not None and fitted.all_fitted else None
    k = min(JUDGED_BY, len(distinct) - 1 if listed is None else listed.shape[1] - 1)
    if k < 1:
        return 1.0
    judged = judged or (JUDGED_AMONG_ALL if listed is None else JUDGED_ROWS)
    places = np.arange(len(distinct))
    if len(places) > judged:
        places = np.sort(np.random.default_rng(0).choice(len(places), judged, replace=False))
    if listed is not None:
        lists = listed[places, 1 : k + 1]
    else:
        base = rounded(corpus.features, distinct)
        lists, _ = nearest(base[places], base, k, names=places, poll=poll)
    drawn = cKDTree(points[distinct]).query(points[distinct[places]], k + 1)[1]
    shared = (_others(drawn, places)[:, :, None] == lists[:, None, :]).any(axis=2)
    return float(shared.sum(axis=1).mean() / k)


def _others(lists: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Lists of k + 1 without each row's own place, or without the last where that is not listed: ``(n, k)``."""
    others = lists != own[:, None]
    others[others.all(axis=1), -1] = False
    without_own: np.ndarray = lists[others].reshape(len(lists), -1)
    return without_own
