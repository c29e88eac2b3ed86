"""What UMAP is given, and what is made of what it gives back.

Exact copies are collapsed first: with them, UMAP tears the map into hundreds of far islands, one per family. Above
`FIT_ALL` rows a sample is fitted. Every row left out is placed afterwards: a copy on its twin, any other row amid its
nearest fitted rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datamask.corpus.copies import exact_families
from datamask.corpus.corpus import Corpus
from datamask.corpus.exact_search import nearest
from datamask.corpus.neighbors import NeighborGraph
from datamask.corpus.principal import principal_axes, project
from datamask.corpus.sampling import row_hash
from datamask.corpus.threads import Progress, ShouldStop

FIT_ALL = 300_000
FIT_SAMPLE = 100_000
NEIGHBORS = 30
COMPONENTS = 50
PLACED_BY = 5
JUDGED_BY = 15


@dataclass(frozen=True)
class LayoutInput:
    """M fitted rows.

    Attributes:
        rows: int64 ``(M,)``, rising rows of the corpus.
        twin: int64 ``(N,)``, the place in `rows` of the row itself or of its exact copy; -1 where there is none.
        points: float32 ``(M, 50)``, the first principal components.
        indices, similarities: int32 and float32 ``(M, 30)``, nearest fitted rows, the row itself first.
    """

    rows: np.ndarray
    twin: np.ndarray
    points: np.ndarray
    indices: np.ndarray
    similarities: np.ndarray


def fitted_rows(corpus: Corpus, fit_all: int | None = None, fit_sample: int | None = None
                ) -> tuple[np.ndarray, np.ndarray]:
    """`LayoutInput.rows` and `LayoutInput.twin`."""
    fit_all, fit_sample = fit_all or FIT_ALL, fit_sample or FIT_SAMPLE
    family = exact_families(corpus.features)
    rows = np.unique(family)
    if len(rows) > fit_all:
        hashes = row_hash(corpus.ids, 0)[rows]
        rows = np.sort(rows[np.argsort(hashes, kind="stable")[:fit_sample]])
    place = np.full(len(corpus), -1)
    place[rows] = np.arange(len(rows))
    return rows, place[family]


def layout_input(corpus: Corpus, rows: np.ndarray, twin: np.ndarray, graph: NeighborGraph | None,
                 should_stop: ShouldStop | None = None) -> LayoutInput:
    """Points and neighbour lists of the fitted rows.

    Args:
        corpus: the corpus.
        rows, twin: from `fitted_rows`.
        graph: of the whole corpus, where there is one.
        should_stop: polled while neighbours are looked for.

    Raises:
        Stopped: `should_stop` answered true.
    """
    mean, axes = principal_axes(corpus.features, COMPONENTS)
    points = np.empty((len(rows), axes.shape[1]), np.float32)
    for low in range(0, len(rows), 8192):
        points[low:low + 8192] = project(corpus.features[rows[low:low + 8192]], mean, axes)
    k = max(1, min(NEIGHBORS, len(rows) - 1))
    indices = np.empty((len(rows), k), np.int32)
    similarities = np.ones((len(rows), k), np.float32)
    indices[:, 0] = np.arange(len(rows))
    short = np.ones(len(rows), bool)
    if graph is not None:
        for low in range(0, len(rows), 8192):
            part = slice(low, low + 8192)
            short[part] = _translate(graph, rows[part], twin, low, indices[part], similarities[part])
    todo = np.flatnonzero(short)
    for low in range(0, len(todo), 4096):
        part = todo[low:low + 4096]
        found, cosines = nearest(corpus.features[rows[part]], corpus.features, k, base_rows=rows,
                                 should_stop=should_stop)
        # its own place may come second, behind a row that rounding makes as near, or last
        others = found != part[:, None]
        others[others.all(axis=1), -1] = False
        indices[part, 1:] = found[others].reshape(len(part), k - 1)
        similarities[part, 1:] = cosines[others].reshape(len(part), k - 1)
    return LayoutInput(rows, twin, points, indices, similarities.clip(-1, 1))


def _translate(graph: NeighborGraph, rows: np.ndarray, twin: np.ndarray, first: int, indices: np.ndarray,
               similarities: np.ndarray) -> np.ndarray:
    """Fill lists of fitted rows from lists of all rows, each family once; True where a list is too short."""
    k = indices.shape[1]
    listed = twin[graph.indices[rows]]
    own = np.arange(first, first + len(rows))[:, None]
    # a family is listed once: in sorted order, equal places stand side by side
    order = np.argsort(listed, axis=1, kind="stable")
    ranked = np.take_along_axis(listed, order, 1)
    again = np.zeros(listed.shape, bool)
    np.put_along_axis(again, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], 1)
    good = (listed >= 0) & (listed != own) & ~again
    place = np.cumsum(good, axis=1)
    short = place[:, -1] < k - 1
    good &= (place <= k - 1) & ~short[:, None]
    shape = (int((~short).sum()), k - 1)
    indices[~short, 1:] = listed[good].reshape(shape)
    similarities[~short, 1:] = graph.similarities[rows][good].reshape(shape)
    return short


def place_all(corpus: Corpus, given: LayoutInput, fitted: np.ndarray, should_stop: ShouldStop | None = None,
              progress: Progress | None = None) -> np.ndarray:
    """Map places of all rows, float32 ``(N, 2)``, from those of the fitted rows ``(M, 2)``.

    Args:
        progress: called with the share of rows that have their place, and words.

    Raises:
        Stopped: `should_stop` answered true.
    """
    points = np.empty((len(corpus), 2), np.float32)
    known = given.twin >= 0
    points[known] = fitted[given.twin[known]]
    rest = np.flatnonzero(~known)
    for low in range(0, len(rest), 4096):
        if progress is not None:
            progress(low / len(rest), f"Placing {len(rest):,} more rows beside those")
        part = rest[low:low + 4096]
        found, cosines = nearest(corpus.features[part], corpus.features, min(PLACED_BY, len(given.rows)),
                                 base_rows=given.rows, should_stop=should_stop)
        # the nearest few may lie on two islands: the mean would fall between them, the weighted median does not
        weights = np.maximum(cosines, 1e-6) ** 8
        points[part] = _weighted_median(fitted[found], weights)
    return points


def _weighted_median(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Per axis: points ``(n, m, 2)``, weights ``(n, m)`` to ``(n, 2)``."""
    order = np.argsort(points, axis=1)
    ranked = np.take_along_axis(points, order, 1)
    mass = np.cumsum(np.take_along_axis(np.repeat(weights[..., None], 2, -1), order, 1), axis=1)
    middle = (mass >= mass[:, -1:] / 2).argmax(axis=1)
    return np.take_along_axis(ranked, middle[:, None], 1)[:, 0]


def neighbors_kept(given: LayoutInput, fitted: np.ndarray, sample: int = 5000) -> float:
    """The share of each fitted row's 15 nearest others that are among its 15 nearest on the map, from 0 to 1."""
    from scipy.spatial import cKDTree

    k = min(JUDGED_BY, given.indices.shape[1] - 1)
    if k < 1:
        return 1.0
    rows = np.arange(len(fitted))
    if len(rows) > sample:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), sample, replace=False))
    near = cKDTree(fitted).query(fitted[rows], k + 1)[1]
    shared = (near[:, :, None] == given.indices[rows, None, 1:k + 1]).any(axis=2) & (near != rows[:, None])
    return float(shared.sum(axis=1).clip(max=k).mean() / k)
