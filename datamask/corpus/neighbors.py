"""The exact k-nearest-neighbour graph of a corpus, by cosine, and its cache on disk.

All pairs are compared, block against block, so that neither the N x N matrix nor a whole row of it ever exists. On a
CPU each block of products is computed once and serves both its rows and its columns, which halves the work; see
`datamask.corpus.kernels` for the lists. On a GPU blocks go through torch's top-k.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.corpus.locking import only_one
from datamask.corpus.threads import Progress, ShouldStop, in_threads, one_blas_thread, thread_count
from datamask.errors import OptionError, Stopped, StoreError
from datamask.files import replacing

log = logging.getLogger(__name__)

BLOCK = 1024
"""Rows and columns of a block on a CPU: 4 MiB of products per thread, still in the cache when they are looked at."""

FLOPS_PER_BLOCK = 2e10
"""Blocks are smaller where d is so large that one would take longer than some 0.2 s on one core."""

DEVICE_BLOCK = (4096, 16384)
"""Rows and columns of a block on a GPU: 256 MiB of products."""


@dataclass(frozen=True)
class NeighborGraph:
    """Each row's K most similar rows.

    Attributes:
        indices: int32 ``(N, K)``; the row itself first, then others by falling similarity, ties by rising index.
        similarities: float32 ``(N, K)``, cosines clipped to [-1, 1]; 1 for the row itself.
        exact: whether the lists are the true nearest neighbours, up to float32 rounding.
    """

    indices: np.ndarray
    similarities: np.ndarray
    exact: bool = True

    @property
    def k(self) -> int:
        """K, the length of each list, the row itself included."""
        return self.indices.shape[1]

    def first(self, k: int) -> NeighborGraph:
        """The graph with lists cut to their first k entries (views)."""
        return NeighborGraph(self.indices[:, :k], self.similarities[:, :k], self.exact)


def build_neighbors(features: np.ndarray, k: int, *, device: str = "cpu", threads: int | None = None,
                    progress: Progress | None = None, should_stop: ShouldStop | None = None) -> NeighborGraph:
    """The exact graph of unit rows.

    Args:
        features: float32 ``(N, d)``, rows of unit norm.
        k: K, list length with the row itself; at most N are given.
        device: ``cpu`` or any torch device. Ties are broken by index on the CPU only.
        threads: on a CPU; None: one per core.
        progress: called with the share done.
        should_stop: polled between blocks, some ten times a second or more often.

    Raises:
        OptionError: k is below 1.
        Stopped: `should_stop` answered true.
    """
    if k < 1:
        raise OptionError(f"the number of neighbours must be at least 1, got {k}")
    features = np.ascontiguousarray(features, np.float32)
    k = min(k, len(features))
    if str(device) == "cpu":
        found = _cpu(features, k - 1, threads or thread_count(len(features)), progress, should_stop)
    else:
        found = _torch(features, k - 1, str(device), progress, should_stop)
    return _sorted(*found)


def _cpu(features: np.ndarray, k: int, threads: int, progress: Progress | None, should_stop: ShouldStop | None
         ) -> tuple[np.ndarray, np.ndarray]:
    """The k most similar other rows of each row, as heaps: similarities and indices ``(N, k)``.

    Every thread multiplies its own blocks with one BLAS thread: threads that share a product wait for each other at
    every block, which on a busy machine costs more than half of the time.
    """
    from datamask.corpus import kernels

    n, dim = features.shape
    similarities, indices = kernels.empty_heaps(n, k)
    if k == 0:
        return similarities, indices
    block = max(64, min(BLOCK, int((FLOPS_PER_BLOCK / (2 * dim)) ** 0.5)))
    count = -(-n // block)
    locks = [threading.Lock() for _ in range(count)]
    # diagonal by diagonal: neighbours in the file come first, which in a sorted corpus fills the lists with good
    # entries early, and tasks that run together seldom want the same lists
    offsets = np.repeat(np.arange(count), np.arange(count, 0, -1))
    firsts = np.concatenate([np.arange(count - offset) for offset in range(count)])
    done = itertools.count(1)
    latest = 0
    rooms = threading.local()

    def task(index: int) -> None:
        nonlocal latest
        left, right = int(firsts[index]), int(firsts[index] + offsets[index])
        rows, columns = features[left * block:][:block], features[right * block:][:block]
        if not hasattr(rooms, "products"):
            rooms.products = np.empty(block * block, np.float32)
        products = rooms.products[:len(rows) * len(columns)].reshape(len(rows), len(columns))
        np.dot(rows, columns.T, out=products)
        row, column = left * block, right * block
        with locks[left]:
            kernels.offer_rows(products, row, column, row, similarities, indices, 0, len(rows))
        if right > left:
            with locks[right]:
                kernels.offer_columns(products, row, column, similarities, indices, 0, len(columns))
        latest = next(done)

    def tick() -> None:
        if progress is not None:
            progress(latest / len(firsts), "Neighbour graph")

    with one_blas_thread():
        in_threads(task, len(firsts), threads=threads, should_stop=should_stop, tick=tick)
    return similarities, indices


def _torch(features: np.ndarray, k: int, device: str, progress: Progress | None, should_stop: ShouldStop | None
           ) -> tuple[np.ndarray, np.ndarray]:
    """The same on a torch device."""
    import torch

    n = len(features)
    similarities, indices = np.empty((n, k), np.float32), np.empty((n, k), np.int32)
    if k == 0:
        return similarities, indices
    tensor = torch.from_numpy(features).to(device)
    step, width = DEVICE_BLOCK
    for row in range(0, n, step):
        rows = tensor[row:row + step]
        best = torch.empty(len(rows), 0, device=device)
        where = torch.empty(len(rows), 0, dtype=torch.int64, device=device)
        for column in range(0, n, width):
            if should_stop is not None and should_stop():
                raise Stopped("building the neighbour graph was stopped")
            if progress is not None:
                progress((row + step * column / n) / n, "Neighbour graph")
            products = rows @ tensor[column:column + width].T
            low, high = max(row, column), min(row + len(rows), column + products.shape[1])
            if low < high:  # a row is not its own neighbour; the caller puts it first
                own = torch.arange(low, high, device=device)
                products[own - row, own - column] = -torch.inf
            value, index = products.topk(min(k, products.shape[1]), dim=1)
            best, where = torch.cat([best, value], 1), torch.cat([where, index + column], 1)
            best, order = best.topk(min(k, best.shape[1]), dim=1)
            where = where.gather(1, order)
        similarities[row:row + step] = best.cpu().numpy()
        indices[row:row + step] = where.cpu().numpy()
    return similarities, indices


def nearest(queries: np.ndarray, base: np.ndarray, k: int, *, base_rows: np.ndarray | None = None,
            threads: int | None = None, should_stop: ShouldStop | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The k most similar base rows of each query, exact, on the CPU.

    Args:
        queries: float32 ``(Q, d)``.
        base: float32 ``(N, d)``.
        k: at most the number of base rows.
        base_rows: which rows of `base` count, gathered block by block; None: all.
        threads, should_stop: as in `build_neighbors`.

    Returns:
        Indices (into `base_rows` where given) int32 and similarities float32, ``(Q, k)``, by falling similarity.

    Raises:
        Stopped: `should_stop` answered true.
    """
    from datamask.corpus import kernels

    count = len(base) if base_rows is None else len(base_rows)
    similarities, indices = kernels.empty_heaps(len(queries), k)
    step = max(1, min(BLOCK, -(-len(queries) // thread_count(16))))

    def task(index: int) -> None:
        part = slice(index * step, (index + 1) * step)
        for low in range(0, count, BLOCK):
            if should_stop is not None and should_stop():
                raise Stopped("looking for neighbours was stopped")
            block = base[low:low + BLOCK] if base_rows is None else base[base_rows[low:low + BLOCK]]
            products = np.dot(queries[part], block.T)
            kernels.offer_rows(products, 0, low, kernels.NOWHERE, similarities[part], indices[part], 0, len(products))

    with one_blas_thread():
        in_threads(task, -(-len(queries) // step), threads=threads)
    order = np.lexsort((indices, -similarities), axis=-1)
    return np.take_along_axis(indices, order, -1), np.take_along_axis(similarities, order, -1)


def _sorted(similarities: np.ndarray, indices: np.ndarray, chunk: int = 8192) -> NeighborGraph:
    """Lists in any order to sorted lists with the row itself in front."""
    n, k = indices.shape
    result = NeighborGraph(np.empty((n, k + 1), np.int32), np.empty((n, k + 1), np.float32))
    result.indices[:, 0] = np.arange(n)
    result.similarities[:, 0] = 1.0
    for low in range(0, n, chunk):
        part = slice(low, low + chunk)
        order = np.lexsort((indices[part], -similarities[part]), axis=-1)
        result.indices[part, 1:] = np.take_along_axis(indices[part], order, -1)
        result.similarities[part, 1:] = np.take_along_axis(similarities[part], order, -1).clip(-1.0, 1.0)
    return result


def neighbors_for(corpus: Corpus, k: int, cache_dir: str | os.PathLike | None, *, device: str = "cpu",
                  threads: int | None = None, progress: Progress | None = None,
                  should_stop: ShouldStop | None = None) -> NeighborGraph:
    """The graph of a corpus, from ``<cache_dir>/<fingerprint>/neighbors.npz`` where it is there with at least k.

    Of several callers, threads or processes, one builds and the others wait for it. A damaged file is built anew; a
    cache that cannot be written is logged and does without.

    Raises:
        OptionError: k is below 1.
        Stopped: `should_stop` answered true, while building or waiting.
    """
    k = min(k, len(corpus))
    if cache_dir is None:
        return build_neighbors(corpus.features, k, device=device, threads=threads, progress=progress,
                                should_stop=should_stop)
    path = cache_path(corpus.fingerprint, cache_dir)
    with only_one(path.with_suffix(".lock"), should_stop):
        graph = load_neighbors(path, len(corpus))
        if graph is not None and graph.k >= k:
            return graph.first(k)
        graph = build_neighbors(corpus.features, k, device=device, threads=threads, progress=progress,
                                should_stop=should_stop)
        try:
            with replacing(path) as part, part.open("wb") as file:
                np.savez(file, indices=graph.indices, similarities=graph.similarities, exact=graph.exact)
        except StoreError as error:
            log.warning("The neighbour graph is not cached: %s", error)
        return graph


def cache_path(fingerprint: str, cache_dir: str | os.PathLike) -> Path:
    """Where `neighbors_for` keeps the graph of a corpus."""
    return Path(cache_dir) / fingerprint / "neighbors.npz"


def load_neighbors(path: str | os.PathLike, n: int) -> NeighborGraph | None:
    """The graph kept in a cache file, or None where it is missing, damaged or of another corpus size."""
    try:
        with np.load(path, allow_pickle=False) as file:
            graph = NeighborGraph(file["indices"], file["similarities"], bool(file["exact"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        log.warning("%s is damaged and will be built anew: %s", path, error)
        return None
    fits = (graph.indices.ndim == 2 and graph.indices.shape == graph.similarities.shape and len(graph.indices) == n
            and graph.indices.dtype == np.int32 and graph.similarities.dtype == np.float32
            and graph.indices.min(initial=0) >= 0 and graph.indices.max(initial=0) < n)
    return graph if fits else None
