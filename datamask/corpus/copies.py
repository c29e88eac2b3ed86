"""Families of near-copies, and which member of each to keep.

`exact` compares texts, or features where there is no text column; a column has groups of its own. A cosine connects
rows that the neighbor graph lists at that similarity or above; a family is a connected component, so a chain of copies
is one family even where its ends differ more.

A row with m semantic duplicates among the other N - 1 has none of them in a uniform subsample of n rows that holds the
row with probability ``C(N - 1 - m, n - 1) / C(N - 1, n - 1)``, about ``(1 - n/N)^m``: the neighbor graph of the whole
corpus gives the mean rate of all subsamples of a size without another search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from datamask.corpus.corpus import Corpus
from datamask.corpus.equal_rows import equal_features, exact_families
from datamask.corpus.neighbors import BUILDING_BYTES, ROUNDED_BYTES, NeighborGraph, build_neighbors, search_for
from datamask.corpus.rounded_rows import cosine_error, slack
from datamask.corpus.sampling import DRAWS, uniform_rows
from datamask.errors import OptionError
from datamask.options.duplicates import GROUPS, column_of
from datamask.polling import Poll
from datamask.work.context import UNWATCHED, Work
from datamask.work.ledger import ledger

ROUNDING = 1e-6
"""Copies may miss their cosine by float32 rounding: ``--collapse 1`` still finds them."""

NEIGHBORS = 32
"""Neighbors per row by which duplicates are found. Pages and commands share one graph; facility location at ratio 0.3
uses one this wide too."""

BLOCK = 4096
PRODUCTS_AT_ONCE = 16_000_000

JUDGED_ROWS, JUDGED_BY = 2_000, DRAWS + 5
"""Kept rows that are compared with all others where neighbors are approximate, and the seed of their draw."""


@dataclass(frozen=True)
class Duplicates:
    """Which row of each family is kept: the best by quality, ties by `row_hash`.

    Attributes:
        winner: int64 ``(N,)``, the row that is kept of each row's family, itself where it is kept.
        recall: the share of the true neighbors that were listed; 1 where all pairs were compared.
        judged: kept rows that were compared with all kept rows; 0 where nothing can be left. left: how many of them
            still have a duplicate.
    """

    winner: np.ndarray
    recall: float = 1.0
    judged: int = 0
    left: int = 0

    @property
    def kept(self) -> np.ndarray:
        """The rows to keep: bool ``(N,)``."""
        mask: np.ndarray = self.winner == np.arange(len(self.winner))
        return mask

    @property
    def removed(self) -> float:
        """The share of rows that are not kept."""
        return float(1 - self.kept.mean()) if len(self.winner) else 0.0

    def facts(self) -> dict[str, float] | None:
        """What a record says of them where some may be left; None where none is."""
        return {"recall": self.recall, "judged": self.judged, "left": self.left} if self.judged else None


def find_duplicates(
    corpus: Corpus,
    collapse: str,
    graph: NeighborGraph | None,
    *,
    seed: int = 0,
    device: str = "cpu",
    work: Work = UNWATCHED,
) -> Duplicates:
    """Find the duplicates of a corpus, and of each family the row to keep.

    Semantic duplicates are removed until none is left: rows whose lists may end before a duplicate, as those of many
    equal rows do, are compared again among those that are kept. Only what an approximate graph does not list may stay.

    Args:
        corpus: N rows.
        collapse: ``none``, ``exact``, a cosine above 0 and at most 1, as text, or ``column:NAME``.
        graph: the neighbor graph of these features; only a cosine needs it.
        seed: of the tie-breaking hash. device: that compares rows again.
        work: reads the texts that the corpus does not hold; is asked meanwhile.

    Raises:
        OptionError: `collapse` is none of these, a cosine without a graph, or a column that is not there.
        InputError: texts cannot be read again. Stopped: from `work`.

    Example:
        >>> find_duplicates(corpus, "exact", None).kept.sum()  # doctest: +SKIP
        5400
    """
    if collapse == "none":
        return Duplicates(np.arange(len(corpus)))
    hashes = corpus.hashes(seed)
    if collapse == "exact":
        return Duplicates(_best(exact_families(corpus, work), corpus.quality, hashes))
    if (column := column_of(collapse)) is not None:
        return Duplicates(_best(_column_families(corpus, column), corpus.quality, hashes))
    cosine = _cosine(collapse)
    if graph is None:
        raise OptionError(f"--collapse {collapse} needs the neighbor graph, and none was given")
    winner = _near_winners(corpus, cosine, graph.first(min(NEIGHBORS, graph.k)), hashes, device, work)
    if graph.exact:
        return Duplicates(winner)
    kept = np.flatnonzero(winner == np.arange(len(winner)))
    judged = uniform_rows(corpus.hashes()[kept], JUDGED_ROWS, JUDGED_BY)
    left = _with_another(corpus.features, kept, judged, cosine, work.poll)
    return Duplicates(winner, graph.recall, len(judged), left)


def removed_pairs(corpus: Corpus, found: Duplicates) -> pa.Table:
    """Return a row for each row that is removed, in input order: ``removed`` and ``kept``, ids, and their ``cosine``.

    The cosine may lie below that of semantic duplicates where a chain of them leads from one row to the other.
    """
    gone = np.flatnonzero(~found.kept)
    stays, cosines = found.winner[gone], np.empty(len(gone))
    for low in range(0, len(gone), BLOCK):
        part = slice(low, low + BLOCK)
        left, right = (corpus.features[rows[part]].astype(np.float64) for rows in (gone, stays))
        cosines[part] = np.einsum("ij,ij->i", left, right)
    ids = [corpus.ids.take(pa.array(rows)) for rows in (gone, stays)]
    return pa.table([*ids, pa.array(np.clip(cosines, -1, 1))], names=["removed", "kept", "cosine"])


def _cosine(collapse: str) -> float:
    try:
        cosine = float(collapse)
    except ValueError:
        cosine = np.nan
    if not 0 < cosine <= 1:
        raise OptionError(
            f"--collapse must be 'none', 'exact', a cosine above 0 and at most 1, or '{GROUPS}NAME', got {collapse!r}"
        )
    return cosine


def _column_families(corpus: Corpus, name: str) -> np.ndarray:
    """A family number for each row, equal for equal values of a column: int64 ``(N,)``. A row without a value is alone.

    Raises:
        OptionError: there is no such column, or its values are lists.
    """
    if name not in corpus.metadata.column_names:
        raise OptionError(
            f"--collapse: the corpus has no column {name!r}; it has "
            f"{', '.join([*corpus.metadata.column_names, *corpus.provenance.unread]) or 'no metadata columns'}"
        )
    values = corpus.metadata[name]
    if pt.is_nested(values.type):
        raise OptionError(f"--collapse: column {name!r} must hold one value for each row, got {values.type}")
    if pt.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pt.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    codes = pc.fill_null(values.combine_chunks().dictionary_encode().indices, -1).to_numpy().astype(np.int64)
    return np.where(codes < 0, len(codes) + np.arange(len(codes)), codes)


def _best(family: np.ndarray, quality: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """The best row of each row's family, int64 ``(n,)``."""
    # the best first within each family; lexsort's last key is its first
    order = np.lexsort((hashes, -quality, family))
    first = np.r_[True, np.diff(family[order]) != 0]
    winner = np.empty(len(family), np.int64)
    winner[order] = order[first][np.cumsum(first) - 1]
    return winner


def _near_winners(
    corpus: Corpus, cosine: float, graph: NeighborGraph, hashes: np.ndarray, device: str, work: Work
) -> np.ndarray:
    """The kept row of each row, int64 ``(N,)``: no two kept rows reach the cosine, as far as lists can tell."""
    features = corpus.features
    family = near_families(graph, cosine, equal_features(features, work.poll))
    rows, asked, ended = np.arange(len(corpus)), "exact" if graph.exact else "auto", False
    best = winner = _best(family, corpus.quality, hashes)
    while not ended:
        kept = best == np.arange(len(rows))
        rows = rows[kept & may_hide(graph, cosine, features.shape[1])]
        if len(rows) < 2:
            break
        needed = (BUILDING_BYTES * NEIGHBORS + (ROUNDED_BYTES + 4) * features.shape[1]) * len(rows)
        with ledger().reserve(needed, f"Comparing {len(rows):,} rows again", poll=work.poll):
            some, search = features[rows], search_for(len(rows), asked, device)
            graph = build_neighbors(some, NEIGHBORS, ties=hashes[rows], search=search, device=device, work=work)
            best = _best(near_families(graph, cosine), corpus.quality[rows], hashes[rows])
            ended = bool((best == np.arange(len(rows))).all())
            if ended and graph.exact:  # the listed rows miss the cosine by less than the rounding of a list
                best = _best(_families_by_products(some, cosine, work.poll), corpus.quality[rows], hashes[rows])
        merged = np.arange(len(corpus))
        merged[rows] = rows[best]
        winner = merged[winner]
    return winner


def may_hide(graph: NeighborGraph, cosine: float, dim: int) -> np.ndarray:
    """Where a list may end before a row of at least this cosine: bool ``(n,)``."""
    if graph.k >= len(graph.indices):
        return np.zeros(len(graph.indices), bool)
    listed = graph.similarities if graph.listed is None else graph.listed
    # lists are cut by rounded rows
    hides: np.ndarray = listed[:, -1] >= cosine - ROUNDING - cosine_error(dim) - float(slack(dim))
    return hides


def near_families(graph: NeighborGraph, cosine: float, equal: np.ndarray | None = None) -> np.ndarray:
    """A family number for each row: connected components over listed pairs of at least this similarity.

    Args:
        equal: int64 ``(N,)``, numbers of families that are one in any case; None: there are none.
    """
    rows, places = np.nonzero(graph.similarities[:, 1:] >= cosine - ROUNDING)
    others = graph.indices[rows, places + 1]
    if equal is not None:
        rows, others = np.r_[rows, np.arange(len(equal))], np.r_[others, equal]
    return _components(rows, others, len(graph.indices))


def _families_by_products(features: np.ndarray, cosine: float, poll: Poll) -> np.ndarray:
    """As `near_families`, of all pairs."""
    rows, others = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for low in range(0, len(features), step := max(1, PRODUCTS_AT_ONCE // len(features))):
        poll()
        first, second = np.nonzero(features[low : low + step] @ features.T >= cosine - ROUNDING)
        rows.append(first + low)
        others.append(second)
    return _components(np.concatenate(rows), np.concatenate(others), len(features))


def _components(rows: np.ndarray, others: np.ndarray, n: int) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = coo_array((np.ones(len(rows), bool), (rows, others)), shape=(n, n))
    family: np.ndarray = connected_components(pairs, directed=False)[1].astype(np.int64)
    return family


def _with_another(features: np.ndarray, rows: np.ndarray, judged: np.ndarray, cosine: float, poll: Poll) -> int:
    """How many of some rows have another row at this cosine. judged: places in `rows`."""
    some, found = features[rows[judged]], np.zeros(len(judged), bool)
    for low in range(0, len(rows), BLOCK):
        poll()
        products = some @ features[rows[low : low + BLOCK]].T
        own = np.flatnonzero((judged >= low) & (judged < low + BLOCK))
        products[own, judged[own] - low] = -1.0
        found |= (products >= cosine - ROUNDING).any(axis=1)
    return int(found.sum())


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
