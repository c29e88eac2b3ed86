"""Exact nearest neighbours by cosine: all pairs are compared, block against block.

Neither the N x N matrix nor a whole row of it ever exists. On a CPU each block of products is computed once and serves
both its rows and its columns, which halves the work; see `datamask.corpus.kernels` for the lists. On a GPU blocks go
through torch's top-k.
"""

from __future__ import annotations

import threading
import time

import numpy as np

from datamask.corpus.graph_checkpoint import KEEP_SECONDS, GraphCheckpoint, NeighborLists, work_through
from datamask.corpus.threads import in_threads, one_blas_thread, thread_count
from datamask.errors import Stopped
from datamask.polling import Poll, no_poll
from datamask.work.context import UNWATCHED, Work

BLOCK = 1024
"""Rows and columns of a block on a CPU: 4 MiB of products per thread, still in the cache when they are looked at."""

FLOPS_PER_BLOCK = 2e10
"""Blocks are smaller where d is so large that one would take longer than some 0.2 s on one core."""

DEVICE_BLOCK = (4096, 16384)
"""Rows and columns of a block on a GPU: 256 MiB of products."""


def all_pairs(
    features: np.ndarray, k: int, *, checkpoint: GraphCheckpoint | None = None, work: Work = UNWATCHED
) -> NeighborLists:
    """The k most similar other rows of each row, on the CPU, as heaps.

    Every thread multiplies its own blocks with one BLAS thread: threads that share a product wait for each other at
    every block, which on a busy machine costs more than half of the time.

    Args:
        features: float32 ``(N, d)``, contiguous, rows of unit norm.
        k: others per row, below N.
        checkpoint: where what is done is kept, and gone on from; None: nowhere.
        work: as in `datamask.corpus.graph_checkpoint.work_through`; its threads, where it names none: one per core.

    Raises:
        Stopped: from `work.poll`.
    """
    from datamask.corpus import kernels

    n, dim = features.shape
    checkpoint = checkpoint or GraphCheckpoint()
    block = max(64, min(BLOCK, int((FLOPS_PER_BLOCK / (2 * dim)) ** 0.5)))
    count = -(-n // block) if k else 0
    locks = [threading.Lock() for _ in range(count)]
    # diagonal by diagonal: neighbours in the file come first, which in a sorted corpus fills the lists with good
    # entries early, and tasks that run together seldom want the same lists
    offsets = np.repeat(np.arange(count), np.arange(count, 0, -1))
    firsts = np.concatenate([np.arange(count - offset) for offset in range(count)] or [offsets])
    plan = f"all pairs in blocks of {block}"
    lists = checkpoint.lists(n, k, len(firsts), plan)
    similarities, indices = lists.similarities, lists.indices
    rooms = threading.local()

    def task(index: int) -> None:
        left, right = int(firsts[index]), int(firsts[index] + offsets[index])
        rows, columns = features[left * block :][:block], features[right * block :][:block]
        if not hasattr(rooms, "products"):
            rooms.products = np.empty(block * block, np.float32)
        products = rooms.products[: len(rows) * len(columns)].reshape(len(rows), len(columns))
        np.dot(rows, columns.T, out=products)
        row, column = left * block, right * block
        with locks[left]:
            kernels.offer_rows(products, row, column, row, similarities, indices, 0, len(rows))
        if right > left:
            with locks[right]:
                kernels.offer_columns(products, row, column, similarities, indices, 0, len(columns))

    with one_blas_thread():
        work_through(lists, task, checkpoint, plan, work=work)
    return lists


def on_device(
    features: np.ndarray, k: int, device: str, *, checkpoint: GraphCheckpoint | None = None, work: Work = UNWATCHED
) -> NeighborLists:
    """`all_pairs` on a torch device; blocks of rows are finished one by one. Ties fall as torch's top-k has them."""
    import torch

    n = len(features)
    checkpoint = checkpoint or GraphCheckpoint()
    step, width = DEVICE_BLOCK
    plan = f"rows by {step} on a device"
    lists = checkpoint.lists(n, k, -(-n // step) if k else 0, plan)
    tensor = torch.from_numpy(features).to(device)
    saved = time.monotonic()
    for number in np.flatnonzero(~lists.done):
        row = int(number) * step
        rows = tensor[row : row + step]
        best = torch.empty(len(rows), 0, device=device)
        where = torch.empty(len(rows), 0, dtype=torch.int64, device=device)
        for column in range(0, n, width):
            try:
                work.poll()
            except Stopped:
                checkpoint.save(lists, plan)
                raise
            work.report(float((lists.done.sum() + column / n) / len(lists.done)), "Neighbor graph")
            products = rows @ tensor[column : column + width].T
            low, high = max(row, column), min(row + len(rows), column + products.shape[1])
            if low < high:  # a row is not its own neighbour; the caller puts it first
                own = torch.arange(low, high, device=device)
                products[own - row, own - column] = -torch.inf
            value, index = products.topk(min(k, products.shape[1]), dim=1)
            best, where = torch.cat([best, value], 1), torch.cat([where, index + column], 1)
            best, order = best.topk(min(k, best.shape[1]), dim=1)
            where = where.gather(1, order)
        lists.similarities[row : row + step] = best.cpu().numpy()
        lists.indices[row : row + step] = where.cpu().numpy()
        lists.done[number] = True
        if time.monotonic() - saved > KEEP_SECONDS and not lists.done.all():
            checkpoint.save(lists, plan)
            saved = time.monotonic()
    return lists


def nearest(
    queries: np.ndarray, base: np.ndarray, k: int, *, base_rows: np.ndarray | None = None, poll: Poll = no_poll
) -> tuple[np.ndarray, np.ndarray]:
    """The k most similar base rows of each query, exact, on the CPU.

    Args:
        queries: float32 ``(Q, d)``.
        base: float32 ``(N, d)``.
        k: at most the number of base rows.
        base_rows: which rows of `base` count, gathered block by block; None: all.
        poll: called from several threads.

    Returns:
        Indices (into `base_rows` where given) int32 and similarities float32, ``(Q, k)``, by falling similarity.

    Raises:
        Stopped: from `poll`.
    """
    from datamask.corpus import kernels

    count = len(base) if base_rows is None else len(base_rows)
    similarities, indices = kernels.empty_heaps(len(queries), k)
    step = max(1, min(BLOCK, -(-len(queries) // thread_count(16))))

    def task(index: int) -> None:
        part = slice(index * step, (index + 1) * step)
        for low in range(0, count, BLOCK):
            poll()
            block = base[low : low + BLOCK] if base_rows is None else base[base_rows[low : low + BLOCK]]
            products = np.dot(queries[part], block.T)
            kernels.offer_rows(products, 0, low, kernels.NOWHERE, similarities[part], indices[part], 0, len(products))

    with one_blas_thread():
        in_threads(task, -(-len(queries) // step))
    order = np.lexsort((indices, -similarities), axis=-1)
    return np.take_along_axis(indices, order, -1), np.take_along_axis(similarities, order, -1)
