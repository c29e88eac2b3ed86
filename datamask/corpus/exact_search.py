"""Exact nearest neighbours by cosine: all pairs are compared, block against block.

Neither the N x N matrix nor a whole row of it ever exists. On a CPU each block of products is computed once and serves
both its rows and its columns, which halves the work; see `datamask.corpus.kernels` for the lists. On a GPU blocks go
through torch's top-k. Rows are rounded (`datamask.corpus.rounded_rows`), so the lists are the same however rows are put
into blocks.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy as np

from datamask.corpus.graph_checkpoint import NeighborLists, work_through
from datamask.corpus.rounded_rows import slack, widened
from datamask.corpus.threads import in_threads, one_blas_thread, thread_count
from datamask.errors import Stopped
from datamask.places import MEMORY, Place
from datamask.polling import Poll, no_poll
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Progress


class Base(Protocol):
    """Rounded rows, of an array or of several files."""

    def __len__(self) -> int: ...

    def __getitem__(self, which: Any, /) -> np.ndarray:
        """Rows of a slice, or of rising numbers."""


BLOCK = 1024
"""Rows and columns of a block on a CPU: 4 MiB of products per thread, still in the cache when they are looked at."""

FLOPS_PER_BLOCK = 2e10
"""Blocks are smaller where d is so large that one would take longer than some 0.2 s on one core."""

DEVICE_BLOCK = (4096, 16384)
"""Rows and columns of a block on a GPU: 256 MiB of products."""


def all_pairs(
    rows: np.ndarray,
    k: int,
    ties: np.ndarray,
    *,
    progress: Progress[NeighborLists] | None = None,
    work: Work = UNWATCHED,
    place: Place = MEMORY,
) -> NeighborLists:
    """The k most similar other rows of each row, on the CPU, as heaps.

    Every thread multiplies its own blocks with one BLAS thread: threads that share a product wait for each other at
    every block, which on a busy machine costs more than half of the time.

    Args:
        rows: int16 ``(N, d)``, rounded.
        k: others per row, below N.
        ties: uint64 ``(N,)``; of equally near rows the lower go first.
        progress: where what is done is kept, and gone on from; None: nowhere.
        work: as in `datamask.corpus.graph_checkpoint.work_through`; its threads, where it names none: one per core.
        place: of the lists.

    Raises:
        Stopped: from `work.poll`.
    """
    from datamask.corpus import kernels

    n, dim = rows.shape
    progress = progress or Progress()
    block = max(64, min(BLOCK, int((FLOPS_PER_BLOCK / (2 * dim)) ** 0.5)))
    count = -(-n // block) if k else 0
    locks = [threading.Lock() for _ in range(count)]
    # diagonal by diagonal: neighbours in the file come first, which in a sorted corpus fills the lists with good
    # entries early, and tasks that run together seldom want the same lists
    offsets = np.repeat(np.arange(count), np.arange(count, 0, -1))
    firsts = np.concatenate([np.arange(count - offset) for offset in range(count)] or [offsets])
    plan = f"all pairs of rounded rows in blocks of {block}"
    lists = NeighborLists.begun(n, k, len(firsts), plan, progress, place)
    names, no_cells = np.arange(n, dtype=np.int32), np.empty((n, 0), np.int32)
    heaps = ties, slack(dim), lists.similarities, lists.indices
    rooms = threading.local()

    def task(index: int) -> None:
        left, right = int(firsts[index]), int(firsts[index] + offsets[index])
        here, there = slice(left * block, (left + 1) * block), slice(right * block, (right + 1) * block)
        if not hasattr(rooms, "products"):
            rooms.products = np.empty(block * block, np.float32)
        mine, theirs = names[here], names[there]
        products = rooms.products[: len(mine) * len(theirs)].reshape(len(mine), len(theirs))
        (left_wide, left_inverses), (right_wide, right_inverses) = widened(rows[here]), widened(rows[there])
        np.dot(left_wide, right_wide.T, out=products)
        pair = products, rows[here], left_inverses, rows[there], right_inverses, mine, theirs
        with locks[left]:
            kernels.offer_rows(*pair, mine, *heaps)
        if right > left:
            with locks[right]:
                kernels.offer_columns(*pair, theirs, mine, no_cells, *heaps)

    with one_blas_thread():
        work_through(lists, task, progress, work=work)
    return lists


def on_device(
    rows: np.ndarray, k: int, device: str, *, progress: Progress[NeighborLists] | None = None, work: Work = UNWATCHED
) -> NeighborLists:
    """`all_pairs` on a torch device; blocks of rows are finished one by one.

    Which of rows that float32 cannot tell apart stand at the end of a list is as torch's top-k has it.
    """
    import torch

    n = len(rows)
    progress = progress or Progress()
    step, width = DEVICE_BLOCK
    plan = f"rounded rows by {step} on a device"
    lists = NeighborLists.begun(n, k, -(-n // step) if k else 0, plan, progress)
    tensor = torch.from_numpy(widened(rows)[0]).to(device)
    for number in np.flatnonzero(~lists.done):
        row = int(number) * step
        some = tensor[row : row + step]
        best = torch.empty(len(some), 0, device=device)
        where = torch.empty(len(some), 0, dtype=torch.int64, device=device)
        for column in range(0, n, width):
            try:
                work.poll()
            except Stopped:
                lists.save(progress)
                raise
            work.report(float((lists.done.sum() + column / n) / len(lists.done)), "Neighbor graph")
            products = some @ tensor[column : column + width].T
            low, high = max(row, column), min(row + len(some), column + products.shape[1])
            if low < high:  # a row is not its own neighbour; the caller puts it first
                own = torch.arange(low, high, device=device)
                products[own - row, own - column] = -torch.inf
            value, index = products.topk(min(k, products.shape[1]), dim=1)
            best, where = torch.cat([best, value], 1), torch.cat([where, index + column], 1)
            best, order = best.topk(min(k, best.shape[1]), dim=1)
            where = where.gather(1, order)
        lists.indices[row : row + step] = where.cpu().numpy()
        numbers = np.arange(row, row + len(some))
        lists.similarities[numbers] = cosines_with(rows, numbers, lists.indices[numbers])
        lists.done[number] = True
        if progress.due and not lists.done.all():
            lists.save(progress)
    return lists


def nearest(
    queries: np.ndarray,
    base: Base,
    k: int,
    ties: np.ndarray | None = None,
    *,
    names: np.ndarray | None = None,
    first: int = 0,
    threads: int | None = None,
    poll: Poll = no_poll,
) -> tuple[np.ndarray, np.ndarray]:
    """The k most similar base rows of each query, exact, on the CPU.

    Args:
        queries: int16 ``(Q, d)``, rounded. base: int16 ``(N, d)``, sliced and gathered by rising rows.
        ties: uint64, by number; of equally near rows the lower go first; None: by number.
        names: integers ``(Q,)``, what the queries are among the numbers of the base, to leave them out; None: nothing.
        first: number of the first base row.
        threads: None: one per core. poll: called from several threads.

    Returns:
        Numbers int32 and cosines float32, ``(Q, k)``, by falling cosine. Where the base has fewer than k, the rest is
        minus infinity.

    Raises:
        Stopped: from `poll`.
    """
    from datamask.corpus import kernels

    count = len(base)
    numbers = np.arange(first, first + count, dtype=np.int32)
    ties = np.arange(first + count, dtype=np.uint64) if ties is None else ties
    own = np.full(len(queries), -1, np.int32) if names is None else names.astype(np.int32)
    similarities, indices = kernels.empty_heaps(len(queries), k, len(ties))
    places, allowed = np.arange(len(queries), dtype=np.int32), slack(queries.shape[1])
    step = max(1, min(BLOCK, -(-len(queries) // (threads or thread_count(16)))))
    stop = threading.Event()

    def task(index: int) -> None:
        part = slice(index * step, (index + 1) * step)
        rows = queries[part]
        wide, inverses = widened(rows)
        for low in range(0, count, BLOCK):
            if stop.is_set():
                return
            block = np.asarray(base[low : low + BLOCK])
            block_wide, block_inverses = widened(block)
            kernels.offer_rows(
                np.dot(wide, block_wide.T),
                rows,
                inverses,
                block,
                block_inverses,
                own[part],
                numbers[low : low + BLOCK],
                places[part],
                ties,
                allowed,
                similarities,
                indices,
            )

    with one_blas_thread():
        in_threads(task, -(-len(queries) // step), threads=threads, poll=poll, stop=stop)
    return falling(indices, similarities, ties)


def falling(indices: np.ndarray, similarities: np.ndarray, ties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Heaps as lists by falling cosine, ties first.

    Args:
        indices, similarities: ``(n, k)``, numbers, of which those from ``len(ties)`` up are places without an entry.
    """
    of_entries = ties[np.minimum(indices, len(ties) - 1)]
    order = np.lexsort((indices, of_entries, -similarities), axis=-1)
    return np.take_along_axis(indices, order, -1), np.take_along_axis(similarities, order, -1)


def cosines_with(rows: np.ndarray, of: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Cosines of some rows with those that they list, float32 ``(n, k)``.

    Args:
        rows: int16 ``(N, d)``, rounded. of: int64 ``(n,)``. indices: int32 ``(n, k)``.
    """
    from datamask.corpus import kernels

    cosines = np.empty(indices.shape, np.float32)
    kernels.listed_cosines(rows, of, indices, cosines)
    return cosines
