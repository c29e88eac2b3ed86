"""The k-nearest-neighbour graph of a corpus, by cosine: one per corpus, kept on disk, shared by all who need it.

`datamask.corpus.exact_search` compares all pairs; `datamask.corpus.partition_search` only those from nearby parts of
the corpus, and `datamask.corpus.neighbor_descent` those of neighbors' neighbors. The recall of these two together is
measured on random rows and kept with the graph. The next caller continues a build that was stopped or killed
(`datamask.corpus.graph_checkpoint`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np

from datamask.config import NEIGHBOR_SEARCHES
from datamask.corpus.corpus import Corpus
from datamask.corpus.graph_checkpoint import GraphCheckpoint, NeighborLists
from datamask.corpus.partition_search import Probing
from datamask.errors import OptionError, Stopped
from datamask.measured import GraphFacts
from datamask.polling import Poll, no_poll
from datamask.work.context import UNWATCHED, Work
from datamask.work.ledger import ledger
from datamask.work.result_file import Content, Entry, Implausible, require
from datamask.work.stored import StoredResult

EXACT_UP_TO = 200_000
"""Rows up to which ``auto`` compares all pairs on a CPU: some two minutes on two cores at 384 dimensions."""

CELLS_SHARE, SEARCH_SHARE = 0.05, 0.85
"""Of an approximate build: finding the cells to probe; the same and comparing their rows. The rest is NN-descent."""

LEAST_APPROXIMATE = 20_000
"""Rows below which all pairs are compared whatever is asked for: at 16,000 the two take equally long (benchmarks)."""

RECALL_ROWS = 400
"""Random rows on which recall is measured; not those that the search was tuned on."""

BUILDING_BYTES = 16
"""Of an entry of a list while lists are built: its row and cosine, twice while they are sorted."""

ROUNDING = 1e-6

GRAPH_VERSION = 1
"""Of the kept graph: raise it when what it means changes."""

COMPARED_ROWS, SEARCHED_ROWS = 2_000, 8
"""Random rows of a kept graph whose listed cosines are computed once more, and for which all rows are searched once
more: together well under a second."""

KEPT_ROUNDING = 1e-4
"""Cosines that were computed elsewhere, on a GPU say, may differ by so much."""


@dataclass(frozen=True)
class NeighborGraph:
    """Each row's K most similar rows.

    Attributes:
        indices: int32 ``(N, K)``; the row itself first, then others by falling similarity, ties by rising index.
        similarities: float32 ``(N, K)``, cosines clipped to [-1, 1]; 1 for the row itself.
        exact: whether the lists are the true nearest neighbours, up to float32 rounding.
        recall: the share of the true neighbours that are listed, measured on `RECALL_ROWS` random rows; 1 where exact.
    """

    indices: np.ndarray
    similarities: np.ndarray
    exact: bool = True
    recall: float = 1.0

    @property
    def k(self) -> int:
        """K, the length of each list, the row itself included."""
        return int(self.indices.shape[1])

    def first(self, k: int) -> NeighborGraph:
        """The graph with lists cut to their first k entries (views)."""
        return NeighborGraph(self.indices[:, :k], self.similarities[:, :k], self.exact, self.recall)

    def facts(self) -> GraphFacts:
        """Return what a record should say about the graph."""
        kind = "exact" if self.exact else "approximate"
        return GraphFacts(kind, self.k, self.recall, 0 if self.exact else min(RECALL_ROWS, len(self.indices)))


def build_neighbors(
    features: np.ndarray,
    k: int,
    *,
    search: str = "exact",
    device: str = "cpu",
    checkpoint: GraphCheckpoint | None = None,
    work: Work = UNWATCHED,
) -> NeighborGraph:
    """The graph of unit rows.

    Args:
        features: float32 ``(N, d)``, rows of unit norm.
        k: K, list length with the row itself; at most N are given.
        search: ``exact`` or ``approximate``, which runs on the CPU. The latter still compares all pairs where that is
            as quick: few rows, or features without structure; the graph says what it is.
        device: ``cpu`` or any torch device. Ties are broken by index on the CPU only.
        checkpoint: where what is done is kept, and gone on from; None: nowhere.
        work: asked between blocks, some ten times a second or more often; its threads: on a CPU, None: one per core.

    Raises:
        OptionError: k is below 1, or there is no such search.
        Stopped: from `work.poll`.
    """
    from datamask.corpus import exact_search, partition_search

    if k < 1:
        raise OptionError(f"the number of neighbors must be at least 1, got {k}")
    if search not in NEIGHBOR_SEARCHES[1:]:
        raise OptionError(f"the search for neighbors must be 'exact' or 'approximate', got {search!r}")
    features = np.ascontiguousarray(features, np.float32)
    k = min(k, len(features))
    if search == "approximate" and len(features) >= LEAST_APPROXIMATE and k > 1:
        probing = partition_search.probing(features, k - 1, work=work.part(0.0, CELLS_SHARE))
        work = work.part(CELLS_SHARE, 1.0)
        if probing is not None:
            return _build_approximately(features, k, probing, checkpoint or GraphCheckpoint(), work)
    if str(device) == "cpu":
        lists = exact_search.all_pairs(features, k - 1, checkpoint=checkpoint, work=work)
    else:
        lists = exact_search.on_device(features, k - 1, str(device), checkpoint=checkpoint, work=work)
    return _sorted(lists)


def _build_approximately(
    features: np.ndarray, k: int, probing: Probing, checkpoint: GraphCheckpoint, work: Work
) -> NeighborGraph:
    """The graph by a search of the probed cells and one pass of NN-descent.

    A stop during the pass keeps the lists of the search; the pass itself is short and starts again.
    """
    from datamask.corpus import neighbor_descent, partition_search

    searching, descending = work.part(0.0, SEARCH_SHARE), work.part(SEARCH_SHARE, 1.0)
    lists = partition_search.nearby_pairs(features, k - 1, probing, checkpoint=checkpoint, work=searching)
    _fill_up(features, lists, work.poll)
    graph, done = _sorted(lists), lists.done
    del lists  # the lists of the pass take as much memory
    try:
        order = np.argsort(probing.cell, kind="stable").astype(np.int32)
        better = neighbor_descent.descend(features, graph.indices, graph.similarities, order, work=descending)
        graph_after = NeighborGraph(*better, exact=False)
        return replace(graph_after, recall=measured_recall(features, graph_after, poll=work.poll))
    except Stopped:
        checkpoint.save(NeighborLists(graph.similarities[:, 1:], graph.indices[:, 1:], done), probing.plan)
        raise


def _fill_up(features: np.ndarray, lists: NeighborLists, poll: Poll) -> None:
    """Give rows that were compared with too few others their true neighbours."""
    from datamask.corpus.exact_search import nearest

    n, k = lists.indices.shape
    incomplete = np.flatnonzero((lists.indices == n).any(axis=1))
    if len(incomplete):
        near, cosines = nearest(features[incomplete], features, k + 1, poll=poll)
        others = near != incomplete[:, None]
        others[others.all(axis=1), -1] = False  # behind copies of itself it may have fallen out
        lists.indices[incomplete] = near[others].reshape(len(incomplete), k)
        lists.similarities[incomplete] = cosines[others].reshape(len(incomplete), k)


def measured_recall(
    features: np.ndarray, graph: NeighborGraph, *, rows: int = RECALL_ROWS, seed: int = 1, poll: Poll = no_poll
) -> float:
    """The share of their true nearest others that the graph lists for random rows, from 0 to 1.

    Cosines are compared in float64. A listed row counts if it is as near as the farthest of the true ones: which of
    equally near rows are listed is no error.

    Raises:
        Stopped: from `poll`.
    """
    from datamask.corpus.exact_search import nearest

    n, k = len(features), graph.k - 1
    if k < 1:
        return 1.0
    judged = np.sort(np.random.default_rng(seed).choice(n, min(rows, n), replace=False))
    candidates, _ = nearest(features[judged], features, min(n, k + 9), poll=poll)
    hits = 0
    for row, near in zip(judged, candidates):
        own = features[row].astype(np.float64)
        best = np.sort(features[near[near != row]].astype(np.float64) @ own)[::-1]
        listed = features[graph.indices[row, 1:]].astype(np.float64) @ own
        hits += int((listed >= best[k - 1] - ROUNDING).sum())
    return hits / (len(judged) * k)


def _sorted(lists: NeighborLists, chunk: int = 8192) -> NeighborGraph:
    """Lists in any order to sorted lists with the row itself in front."""
    n, k = lists.indices.shape
    graph = NeighborGraph(np.empty((n, k + 1), np.int32), np.empty((n, k + 1), np.float32))
    graph.indices[:, 0] = np.arange(n)
    graph.similarities[:, 0] = 1.0
    for low in range(0, n, chunk):
        part = slice(low, low + chunk)
        order = np.lexsort((lists.indices[part], -lists.similarities[part]), axis=-1)
        graph.indices[part, 1:] = np.take_along_axis(lists.indices[part], order, -1)
        graph.similarities[part, 1:] = np.take_along_axis(lists.similarities[part], order, -1).clip(-1.0, 1.0)
    return graph


def search_for(n: int, search: str = "auto", device: str = "cpu") -> str:
    """``exact`` or ``approximate``: what ``auto`` means for n rows on a device.

    Raises:
        OptionError: there is no such search.
    """
    if search not in NEIGHBOR_SEARCHES:
        raise OptionError(f"--neighbors must be auto, exact or approximate, got {search!r}")
    if search != "auto":
        return search
    return "exact" if n <= EXACT_UP_TO or str(device) != "cpu" else "approximate"


def neighbors_for(
    corpus: Corpus,
    k: int,
    cache_dir: str | os.PathLike[str] | None,
    *,
    search: str = "auto",
    device: str = "cpu",
    work: Work = UNWATCHED,
) -> NeighborGraph:
    """The graph of a corpus, from the cache where it is kept with at least k neighbours.

    Of several callers, threads or processes, one builds and the others wait for it. A build that was stopped or killed
    is gone on with. An exact graph serves whatever is asked for; an approximate one that is found where an exact one is
    asked for is replaced. What is kept is checked (`datamask.work.stored`, and cosines on random rows).

    Args:
        search: ``auto``, ``exact`` or ``approximate``; see `search_for` and `build_neighbors`.
        others: as in `build_neighbors`.

    Raises:
        OptionError: k is below 1, or there is no such search. NoRoomError: others hold the memory that it needs.
        Stopped: from `work.poll`, while building or waiting.
    """
    k = min(k, len(corpus))
    search = search_for(len(corpus), search, device)
    what = f"A neighbor graph of {len(corpus):,} rows"
    with ledger().reserve(BUILDING_BYTES * max(k, 0) * len(corpus), what, poll=work.poll) as room:
        graph = _neighbors_for(corpus, k, cache_dir, search, device, work)
        room.pass_to(graph, graph.indices.nbytes + graph.similarities.nbytes)
        return graph


def _neighbors_for(
    corpus: Corpus, k: int, cache_dir: str | os.PathLike[str] | None, search: str, device: str, work: Work
) -> NeighborGraph:
    checkpoint = GraphCheckpoint(cache_dir, corpus.fingerprint)

    def build() -> NeighborGraph:
        return build_neighbors(corpus.features, k, search=search, device=device, checkpoint=checkpoint, work=work)

    def build_checked() -> NeighborGraph:
        graph = build()
        if checkpoint.resumed and not _holds(graph, corpus.features):
            checkpoint.clear()  # half a graph that could not be told to be wrong
            graph = build()
        return graph

    graph = stored_graph(corpus, cache_dir).find_or_compute(
        build_checked, work.poll, lambda kept: kept.k >= k and (kept.exact or search == "approximate")
    )
    if checkpoint.used:
        checkpoint.clear()
    return graph.first(k)


def stored_graph(corpus: Corpus, cache_dir: str | os.PathLike[str] | None) -> StoredResult[NeighborGraph]:
    """Describe the graph of a corpus in the cache."""
    return StoredResult(
        cache_dir,
        Entry(corpus.fingerprint, "neighbors", GRAPH_VERSION),
        read=lambda content: _checked_graph(content, corpus.features),
        write=lambda graph: Content(arrays=vars(graph)),
    )


def _checked_graph(content: Content, features: np.ndarray) -> NeighborGraph:
    """The graph that a file holds. Raises Implausible where it is none of these features."""
    arrays = content.arrays
    # a file from before recall was kept holds an exact graph
    graph = NeighborGraph(
        arrays["indices"], arrays["similarities"], bool(arrays["exact"]), float(arrays.get("recall", 1.0))
    )
    check_graph(graph, features)
    return graph


def check_graph(graph: NeighborGraph, features: np.ndarray) -> None:
    """Refuse what is no graph of these rows: form and order of all lists, cosines on random rows.

    Args:
        features: float32 ``(N, d)``, rows of unit norm.

    Raises:
        Implausible: the reason.
    """
    indices, similarities, n = graph.indices, graph.similarities, len(features)
    require(indices.dtype == np.int32 and similarities.dtype == np.float32, "the lists are of another type")
    require(
        indices.ndim == 2 and indices.shape == similarities.shape and len(indices) == n and 1 <= graph.k <= n,
        "the lists are of another corpus",
    )
    require(indices.min() >= 0 and indices.max() < n, "the lists name rows that are not there")
    require((indices[:, 0] == np.arange(n)).all(), "the lists do not begin with the row itself")
    require(np.isfinite(similarities).all() and np.abs(similarities).max() <= 1.0, "the similarities are no cosines")
    require((similarities[:, 1:-1] >= similarities[:, 2:]).all(), "the similarities do not fall")
    require(0.0 <= graph.recall <= 1.0 and (not graph.exact or graph.recall == 1.0), "the recall is no share")
    rows = np.random.default_rng(0).choice(n, min(n, COMPARED_ROWS), replace=False)
    listed = np.sort(indices[rows], axis=1)
    require((listed[:, 1:] > listed[:, :-1]).all(), "a row is listed twice")
    for row in rows:
        cosines = features[indices[row, 1:]] @ features[row]
        require(
            np.abs(cosines - similarities[row, 1:]).max(initial=0.0) <= KEPT_ROUNDING,
            "the similarities are not those of the rows",
        )
    if graph.exact and graph.k > 1:
        rows = rows[:SEARCHED_ROWS]
        cosines = features[rows] @ features.T
        cosines[np.arange(len(rows)), rows] = -np.inf
        farthest = np.partition(cosines, n - graph.k + 1, axis=1)[:, n - graph.k + 1]
        require((farthest <= similarities[rows, -1] + KEPT_ROUNDING).all(), "nearer rows than those listed are there")


def _holds(graph: NeighborGraph, features: np.ndarray) -> bool:
    try:
        check_graph(graph, features)
    except Implausible:
        return False
    return True
