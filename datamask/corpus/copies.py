"""Families of near-copies, and which member of each to keep.

`exact` compares texts, or features where there is no text column. A cosine connects rows that the neighbor graph lists
at that similarity or above; a family is a connected component, so a chain of copies is one family even where its ends
differ more.

A row with m semantic duplicates among the other N - 1 has none of them in a uniform subsample of n rows that holds the
row with probability ``C(N - 1 - m, n - 1) / C(N - 1, n - 1)``, about ``(1 - n/N)^m``: the neighbor graph of the whole
corpus gives the mean rate of all subsamples of a size without another search.
"""

from __future__ import annotations

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.corpus.equal_rows import exact_families
from datamask.corpus.neighbors import NeighborGraph
from datamask.corpus.sampling import row_hash
from datamask.errors import OptionError
from datamask.work.context import UNWATCHED, Work

ROUNDING = 1e-6
"""Copies may miss their cosine by float32 rounding: ``--collapse 1`` still finds them."""

NEIGHBORS = 32
"""Neighbors per row for pages and commands that count duplicates. They share one graph; facility location at ratio 0.3
uses one this wide too."""


def families(
    corpus: Corpus, collapse: str, graph: NeighborGraph | None, *, seed: int = 0, work: Work = UNWATCHED
) -> np.ndarray:
    """The rows to keep: of each family of copies the best by quality, ties by `row_hash`.

    Args:
        corpus: N rows.
        collapse: ``none``, ``exact`` or a cosine above 0 and at most 1, as text.
        graph: the neighbour graph; only a cosine needs it.
        seed: of the tie-breaking hash. work: reads the texts that the corpus does not hold.

    Returns:
        Boolean ``(N,)`` mask.

    Raises:
        OptionError: `collapse` is none of these, or a cosine without a graph.
        InputError: texts cannot be read again. Stopped: from `work`.
    """
    mask: np.ndarray = winners(corpus, collapse, graph, seed=seed, work=work) == np.arange(len(corpus))
    return mask


def winners(
    corpus: Corpus, collapse: str, graph: NeighborGraph | None, *, seed: int = 0, work: Work = UNWATCHED
) -> np.ndarray:
    """For each row the row that is kept of its family, itself where it is kept: int64 ``(N,)``.

    Arguments and errors as of `families`.
    """
    if collapse == "none":
        return np.arange(len(corpus))
    if collapse == "exact":
        family = exact_families(corpus, work)
    else:
        cosine = _cosine(collapse)
        if graph is None:
            raise OptionError(f"--collapse {collapse} needs the neighbor graph, and none was given")
        family = near_families(graph, cosine)
    # the best first within each family; lexsort's last key is its first
    order = np.lexsort((row_hash(corpus.ids, seed), -corpus.quality, family))
    first = np.r_[True, np.diff(family[order]) != 0]
    winner = np.empty(len(corpus), np.int64)
    winner[order] = order[first][np.cumsum(first) - 1]
    return winner


def _cosine(collapse: str) -> float:
    try:
        cosine = float(collapse)
    except ValueError:
        cosine = np.nan
    if not 0 < cosine <= 1:
        raise OptionError(f"--collapse must be 'none', 'exact' or a cosine above 0 and at most 1, got {collapse!r}")
    return cosine


def near_families(graph: NeighborGraph, cosine: float) -> np.ndarray:
    """A family number for each row: connected components over listed pairs of at least this similarity."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(graph.indices)
    rows, places = np.nonzero(graph.similarities[:, 1:] >= cosine - ROUNDING)
    pairs = coo_array((np.ones(len(rows), bool), (rows, graph.indices[rows, places + 1])), shape=(n, n))
    family: np.ndarray = connected_components(pairs, directed=False)[1].astype(np.int64)
    return family


def near_copy_rate(graph: NeighborGraph, cosine: float = 0.95) -> float:
    """The share of rows that have another row at this cosine or above."""
    if graph.k < 2:
        return 0.0
    return float((graph.similarities[:, 1] >= cosine - ROUNDING).mean())


def subsample_rate(graph: NeighborGraph, cosine: float, rows: int) -> float:
    """Return the mean `near_copy_rate` of all uniform subsamples of a size.

    Args:
        graph: of the corpus, N rows. cosine: above 0, at most 1. rows: size of the subsamples, from 1 to N.

    Raises:
        OptionError: there are not so many rows.

    Example:
        >>> subsample_rate(graph, 0.95, len(corpus) // 2)  # doctest: +SKIP
        0.043
    """
    n = len(graph.indices)
    if not 1 <= rows <= n:
        raise OptionError(f"rows must be from 1 to the {n:,} of the corpus, got {rows:,}")
    # lists end, so a row with K - 1 listed duplicates may have more
    held = np.bincount((graph.similarities[:, 1:] >= cosine - ROUNDING).sum(axis=1), minlength=graph.k)
    alone = np.ones(len(held))
    for m in range(1, len(held)):
        alone[m] = alone[m - 1] * max(n - rows - (m - 1), 0) / max(n - 1 - (m - 1), 1)
    return 1.0 - float(held @ alone) / n
