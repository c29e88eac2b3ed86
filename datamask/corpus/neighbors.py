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
from datamask.corpus import neighbor_descent
from datamask.corpus.corpus import Corpus
from datamask.corpus.exact_search import all_pairs, cosines_with, falling, nearest, on_device
from datamask.corpus.graph_checkpoint import NeighborLists, graph_progress
from datamask.corpus.partition_search import Cells, cells_of, nearby_pairs
from datamask.corpus.rounded_rows import cosine_error, highest_product, longest_move, rounded, slack
from datamask.corpus.sampling import uniform_rows
from datamask.corpus.threads import in_threads
from datamask.errors import OptionError, Stopped
from datamask.measured import GraphFacts
from datamask.places import MEMORY, Place
from datamask.polling import Poll, no_poll
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Kept, Progress
from datamask.work.ledger import ledger
from datamask.work.result_file import Content, Entry, Implausible, require

EXACT_UP_TO = 200_000
"""Rows up to which ``auto`` compares all pairs on a CPU: some two minutes on two cores at 384 dimensions."""

CELLS_SHARE, SEARCH_SHARE = 0.05, 0.85
"""Of an approximate build: finding the cells to probe; the same and comparing their rows. The rest is NN-descent."""

LEAST_APPROXIMATE = 20_000
"""Rows below which all pairs are compared whatever is asked for: at 16,000 the two take equally long (benchmarks)."""

RECALL_ROWS, RECALLED_BY = 400, (1 << 62) - 1
"""Random rows on which recall is measured, and the seed that they are drawn by: not those that the search was tuned
on."""

ROWS_AT_ONCE, COSINE_ROWS = 8192, 1024

BUILDING_BYTES = 16
"""Of an entry of a list while lists are built: its row and cosine, before and after a pass of NN-descent."""

ROUNDED_BYTES = 4
"""Of a feature meanwhile: rounded, in the order of rows and in that of cells."""

GRAPH_VERSION = 4
"""Of the kept graph: raise it when what it means changes."""

COMPARED_ROWS, SEARCHED_ROWS = 2_000, 8
"""Random rows of a kept graph whose listed cosines are computed once more, and for which all rows are searched once
more: together well under a second."""


@dataclass(frozen=True)
class NeighborGraph:
    """Each row's K most similar rows.

    Attributes:
        indices: int32 ``(N, K)``; the row itself first, then others by falling cosine of the rounded rows, ties by the
            hash of the id.
        similarities: float32 ``(N, K)``, cosines of the rows; 1 for the row itself. They fall except where rounding has
            changed the order of two.
        listed: float32 ``(N, K)``, the falling cosines of the rounded rows; None: those are the same.
        exact: whether the lists are the true nearest neighbours of the rounded rows.
        recall: the share of the true neighbours that are listed, measured on `RECALL_ROWS` random rows; 1 where exact.
        move: how far a row lies from the rounded one, at most (`datamask.corpus.rounded_rows.longest_move`).
        slack: how far the products that say what is listed may be from cosines: 0 on a CPU, where these are computed.
        order: int64 ``(N,)``, the rows by the cells that they were searched in; None: there were none.
    """

    indices: np.ndarray
    similarities: np.ndarray
    exact: bool = True
    recall: float = 1.0
    listed: np.ndarray | None = None
    move: float = 0.0
    slack: float = 0.0
    order: np.ndarray | None = None

    @property
    def k(self) -> int:
        """K, the length of each list, the row itself included."""
        return int(self.indices.shape[1])

    def first(self, k: int) -> NeighborGraph:
        """The graph with lists cut to their first k entries (views)."""
        listed = None if self.listed is None else self.listed[:, :k]
        return replace(self, indices=self.indices[:, :k], similarities=self.similarities[:, :k], listed=listed)

    def by_cosine(self, place: Place = MEMORY) -> tuple[np.ndarray, np.ndarray]:
        """Copies of `indices` and `similarities`, those below 0 as 0, by falling cosine of the rows."""
        from datamask.corpus import kernels

        lists = place.copy(self.indices), place.copy(self.similarities)
        kernels.sort_lists(*lists)
        np.maximum(lists[1], 0.0, out=lists[1])
        return lists

    def highest_unlisted(self) -> np.ndarray:
        """The highest product of each row with one that an exact graph does not list, float64 ``(N,)``."""
        listed = self.similarities if self.listed is None else self.listed
        return highest_product(listed[:, -1] + np.float32(self.slack), self.move)

    @property
    def nbytes(self) -> int:
        """Bytes of the lists."""
        return self.indices.nbytes + self.similarities.nbytes + (0 if self.listed is None else self.listed.nbytes)

    def facts(self) -> GraphFacts:
        """Return what a record should say about the graph."""
        kind = "exact" if self.exact else "approximate"
        return GraphFacts(kind, self.k, self.recall, 0 if self.exact else min(RECALL_ROWS, len(self.indices)))


def build_neighbors(
    features: np.ndarray,
    k: int,
    *,
    ties: np.ndarray | None = None,
    search: str = "exact",
    device: str = "cpu",
    progress: Progress[NeighborLists] | None = None,
    work: Work = UNWATCHED,
    place: Place = MEMORY,
) -> NeighborGraph:
    """The graph of unit rows, each rounded as `datamask.corpus.rounded_rows` says.

    Args:
        features: float32 ``(N, d)``, rows of unit norm.
        k: K, list length with the row itself; at most N are given.
        ties: uint64 ``(N,)``, hashes of the ids: of equally near rows the lower go first, and samples are drawn by
            them; None: numbers of the rows.
        search: ``exact`` or ``approximate``, which runs on the CPU. The latter still compares all pairs where that is
            as quick: few rows, or features without structure; the graph says what it is.
        device: ``cpu`` or any torch device.
        progress: where what is done is kept, and gone on from; None: nowhere.
        work: asked between blocks, some ten times a second or more often; its threads: on a CPU, None: one per core.
        place: of the lists, and of what is made on the way.

    Raises:
        OptionError: k is below 1, or there is no such search.
        Stopped: from `work.poll`.
    """
    if k < 1:
        raise OptionError(f"the number of neighbors must be at least 1, got {k}")
    if search not in NEIGHBOR_SEARCHES[1:]:
        raise OptionError(f"the search for neighbors must be 'exact' or 'approximate', got {search!r}")
    rows, k = rounded(features, place=place), min(k, len(features))
    if ties is None:
        ties = np.arange(len(rows), dtype=np.uint64)
    if not compares_all(len(rows), search) and k > 1:
        cells = cells_of(rows, k - 1, ties, work=work.part(0.0, CELLS_SHARE), place=place)
        work = work.part(CELLS_SHARE, 1.0)
        if cells is not None:
            graph = _build_approximately(rows, k, cells, ties, progress or Progress(), work, place)
            return _with_true_cosines(graph, features, rows, cells.order, work, place)
    if str(device) == "cpu":
        lists, off = all_pairs(rows, k - 1, ties, progress=progress, work=work, place=place), 0.0
    else:
        lists = on_device(rows, k - 1, str(device), progress=progress, work=work)
        off = float(slack(rows.shape[1]))
    graph = replace(graph_of(*sorted_lists(lists, ties), place=place), slack=off)
    return _with_true_cosines(graph, features, rows, np.arange(len(rows)), work, place)


def _with_true_cosines(
    graph: NeighborGraph, features: np.ndarray, rounded_rows: np.ndarray, order: np.ndarray, work: Work, place: Place
) -> NeighborGraph:
    """The same graph with cosines of the rows next to those of rounded rows, by which it lists: so lists and what is
    solved on them depend on no order of sums, and values and bounds are of the true ones.

    Args:
        rounded_rows: int16 ``(N, d)``.
        order: int64 ``(N,)``, of the rows: neighbors of rows that follow one another are fetched once.
    """
    from datamask.corpus import kernels

    true = place.copy(graph.similarities)

    def task(number: int) -> None:
        rows = order[number * COSINE_ROWS : (number + 1) * COSINE_ROWS]
        kernels.true_cosines(features, graph.indices, true, rows)

    in_threads(task, -(-len(features) // COSINE_ROWS), threads=work.threads, poll=work.poll)
    move = longest_move(features, rounded_rows)
    return replace(graph, similarities=true, listed=graph.similarities, move=move)


def _build_approximately(
    rows: np.ndarray,
    k: int,
    cells: Cells,
    ties: np.ndarray,
    progress: Progress[NeighborLists],
    work: Work,
    place: Place,
) -> NeighborGraph:
    """The graph by a search of the cells and passes of NN-descent.

    A stop during a pass keeps the lists of the search; passes are short and start again.
    """
    searching, descending = work.part(0.0, SEARCH_SHARE), work.part(SEARCH_SHARE, 1.0)
    placed, placed_ties = place.taken(rows, cells.order), ties[cells.order]
    lists = nearby_pairs(placed, k - 1, cells, placed_ties, progress=progress, work=searching, place=place)
    (indices, similarities), done = sorted_lists(lists, placed_ties), lists.done
    del lists  # the lists of the pass take as much memory
    better, again = (indices, similarities), cells.passes > 1
    if again:  # there is no room for these lists beside those before and after the second pass
        progress.write(NeighborLists(similarities, indices, done, cells.plan))
        del indices, similarities
    try:
        for number in range(cells.passes):
            one = descending.part(number / cells.passes, (number + 1) / cells.passes)
            better = neighbor_descent.descend(placed, *better, placed_ties, work=one, place=place)
        graph = graph_of(*better, cells.order, place)
        recall = measured_recall(rows, graph, ties, threads=work.threads, poll=work.poll)
        return replace(graph, exact=False, recall=recall, order=cells.order)
    except Stopped:
        if not again:
            progress.write(NeighborLists(similarities, indices, done, cells.plan))
        raise


def measured_recall(
    features: np.ndarray,
    graph: NeighborGraph,
    ties: np.ndarray | None = None,
    *,
    threads: int | None = None,
    poll: Poll = no_poll,
) -> float:
    """The share of their true nearest others that the graph lists for random rows, from 0 to 1.

    A listed row counts if it is as near as the farthest of the true ones: which of equally near rows are listed is no
    error.

    Args:
        features: float32 ``(N, d)``, unit rows, or int16, rounded ones.
        ties: uint64 ``(N,)``, hashes of the ids: they say which rows are looked at; None: numbers of the rows.

    Raises:
        Stopped: from `poll`.
    """
    if graph.k < 2:
        return 1.0
    rows = features if features.dtype == np.int16 else rounded(features)
    ties = np.arange(len(rows), dtype=np.uint64) if ties is None else ties
    judged = uniform_rows(ties, RECALL_ROWS, RECALLED_BY)
    _, best = nearest(rows[judged], rows, graph.k - 1, ties, names=judged, threads=threads, poll=poll)
    listed = graph.indices[judged, 1:]
    return float((cosines_with(rows, judged, listed) >= best[:, -1:]).mean())


def sorted_lists(lists: NeighborLists, ties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Heaps as lists by falling cosine, in their place: the memory of both would be twice as much."""
    indices, similarities = lists.indices, lists.similarities
    for low in range(0, len(indices), ROWS_AT_ONCE):
        part = slice(low, low + ROWS_AT_ONCE)
        indices[part], similarities[part] = falling(indices[part], similarities[part], ties)
    return indices, similarities


def graph_of(
    indices: np.ndarray, similarities: np.ndarray, order: np.ndarray | None = None, place: Place = MEMORY
) -> NeighborGraph:
    """Lists with the row itself in front. order: int64 ``(N,)``, the row at each position; None: they are the rows."""
    n, k = indices.shape
    graph = NeighborGraph(place.empty((n, k + 1), np.int32), place.empty((n, k + 1), np.float32))
    for low in range(0, n, ROWS_AT_ONCE):
        part = np.arange(low, min(low + ROWS_AT_ONCE, n))
        rows = part if order is None else order[part]
        graph.indices[rows, 0], graph.similarities[rows, 0] = rows, 1.0
        graph.indices[rows, 1:] = indices[part] if order is None else order[indices[part]]
        graph.similarities[rows, 1:] = similarities[part]
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


def compares_all(n: int, search: str) -> bool:
    """Whether all pairs of n rows are compared in any case. search: ``exact`` or ``approximate``."""
    return search == "exact" or n < LEAST_APPROXIMATE


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
    asked for is replaced. What is kept is checked (`datamask.work.kept`, and cosines on random rows).

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
    needed = corpus.place.memory((BUILDING_BYTES * max(k, 0) + ROUNDED_BYTES * corpus.dim) * len(corpus))
    with ledger().reserve(needed, what, poll=work.poll) as room:
        graph = _neighbors_for(corpus, k, cache_dir, search, device, work)
        room.pass_to(graph, corpus.place.memory(graph.nbytes))
        return graph


def _neighbors_for(
    corpus: Corpus, k: int, cache_dir: str | os.PathLike[str] | None, search: str, device: str, work: Work
) -> NeighborGraph:
    progress = graph_progress(corpus.fingerprint, cache_dir)

    def build() -> NeighborGraph:
        ties = corpus.hashes()
        return build_neighbors(
            corpus.features,
            k,
            ties=ties,
            search=search,
            device=device,
            progress=progress,
            work=work,
            place=corpus.place,
        )

    def build_checked() -> NeighborGraph:
        graph = build()
        if progress.resumed and not _holds(graph, corpus.features):
            progress.clear()  # half a graph that could not be told to be wrong
            graph = build()
        return graph

    graph = stored_graph(corpus, cache_dir).find_or_compute(
        build_checked, work.poll, lambda kept: _serves(kept, k, search)
    )
    progress.clear()
    for lists in (graph.indices, graph.similarities, graph.listed):
        if lists is not None:
            lists.flags.writeable = False  # as those of a file are
    return graph.first(k)


def _serves(graph: NeighborGraph, k: int, search: str) -> bool:
    return graph.k >= k and (graph.exact or search == "approximate")


def stored_graph(corpus: Corpus, cache_dir: str | os.PathLike[str] | None) -> Kept[NeighborGraph]:
    """Describe the graph of a corpus in the cache."""
    return Kept(
        cache_dir,
        Entry(corpus.fingerprint, "neighbors", GRAPH_VERSION),
        read=lambda content: _checked_graph(content, corpus.features),
        write=lambda graph: Content(arrays={name: each for name, each in vars(graph).items() if each is not None}),
        mapped=True,
    )


def _checked_graph(content: Content, features: np.ndarray) -> NeighborGraph:
    """The graph that a file holds. Raises Implausible where it is none of these features."""
    arrays = content.arrays
    graph = NeighborGraph(
        arrays["indices"],
        arrays["similarities"],
        bool(arrays["exact"]),
        float(arrays["recall"]),
        arrays["listed"],
        float(arrays["move"]),
        float(arrays["slack"]),
        arrays.get("order"),
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
    listed = similarities if graph.listed is None else graph.listed
    require(indices.dtype == np.int32 and similarities.dtype == np.float32, "the lists are of another type")
    require(
        indices.ndim == 2 and indices.shape == similarities.shape and len(indices) == n and 1 <= graph.k <= n,
        "the lists are of another corpus",
    )
    require(indices.min() >= 0 and indices.max() < n, "the lists name rows that are not there")
    require((indices[:, 0] == np.arange(n)).all(), "the lists do not begin with the row itself")
    require(listed.dtype == np.float32 and listed.shape == indices.shape, "the cosines of rounded rows are missing")
    if graph.order is not None:
        rows = np.sort(graph.order)
        require(rows.dtype == np.int64 and np.array_equal(rows, np.arange(n)), "the order does not have every row once")
    for low in range(0, n, ROWS_AT_ONCE):
        part = slice(low, low + ROWS_AT_ONCE)
        # a comparison with what is no number is false
        require((np.abs(similarities[part]) <= 1.0).all(), "the similarities are no cosines")
        require((listed[part, 1:-1] >= listed[part, 2:]).all(), "the cosines of rounded rows do not fall")
    require(0.0 <= graph.recall <= 1.0 and (not graph.exact or graph.recall == 1.0), "the recall is no share")
    rounding = cosine_error(features.shape[1])
    require(0.0 <= 2.0 * graph.move <= rounding, "rows cannot be rounded so far")
    require(0.0 <= graph.slack <= slack(features.shape[1]), "products cannot be off so far")
    rows = np.random.default_rng(0).choice(n, min(n, COMPARED_ROWS), replace=False)
    names = np.sort(indices[rows], axis=1)
    require((names[:, 1:] > names[:, :-1]).all(), "a row is listed twice")
    for row in rows:
        cosines = features[indices[row, 1:]] @ features[row]
        for each in (similarities, listed):
            require(
                np.abs(cosines - each[row, 1:]).max(initial=0.0) <= rounding,
                "the similarities are not those of the rows",
            )
    if graph.exact and graph.k > 1:
        rows = rows[:SEARCHED_ROWS]
        cosines = features[rows] @ features.T
        cosines[np.arange(len(rows)), rows] = -np.inf
        farthest = np.partition(cosines, n - graph.k + 1, axis=1)[:, n - graph.k + 1]
        require((farthest <= listed[rows, -1] + rounding).all(), "nearer rows than those listed are there")


def _holds(graph: NeighborGraph, features: np.ndarray) -> bool:
    try:
        check_graph(graph, features)
    except Implausible:
        return False
    return True
