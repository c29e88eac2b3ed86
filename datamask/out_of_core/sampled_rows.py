"""Tasks about uniform samples of the rows: what lists leave out, and how near the members are.

sample -> nearest, for each block       the nearest member of each sampled row, among all members
judges -> true_lists, for each block    the nearest rows of a few, among all rows: what share of them is listed
"""

from __future__ import annotations

import numpy as np

from datamask.corpus.exact_search import nearest as nearest_rows
from datamask.corpus.sampling import uniform_rows
from datamask.corpus.threads import one_blas_thread
from datamask.out_of_core.neighbour_lists import nearest_of_blocks
from datamask.out_of_core.partition import of_all, rows_of, unit_float32
from datamask.out_of_core.tasks import Argument, Made, opened, task

PIECE = 1024


@task
def sample(argument: Argument) -> Made:
    """So many uniformly drawn rows: where they are, and their features."""
    positions = uniform_rows(np.asarray(opened(argument, "atlas", 0)["ties"]), argument["drawn"], argument["draw"])
    return {"positions": positions, "features": rows_of(argument)[positions]}, {}


@task
def nearest(argument: Argument) -> Made:
    """How near the nearest member in a block is to each of the sampled rows, 0 at least."""
    rows = unit_float32(opened(argument, "sample", 0)["features"])
    features = opened(argument, "block")["features"]
    low, high = opened(argument, "atlas", 0)["block_starts"][argument["number"] :][:2]
    members = np.flatnonzero(opened(argument, "members", 0)["member"][low:high])
    best = np.zeros(len(rows), np.float32)
    with one_blas_thread():
        for start in range(0, len(members), PIECE):
            some = unit_float32(features[members[start : start + PIECE]])
            for at in range(0, len(rows), PIECE):
                part = slice(at, at + PIECE)
                np.maximum(best[part], (rows[part] @ some.T).max(axis=1), out=best[part])
    return {"best": best}, {}


@task
def true_lists(argument: Argument) -> Made:
    """The nearest rows of a block to each of the sampled rows, and how near they are."""
    sampled, atlas = opened(argument, "sample", 0), opened(argument, "atlas", 0)
    rows, own = np.asarray(sampled["features"]), np.asarray(sampled["positions"])
    ties, first = np.asarray(atlas["ties"]), int(atlas["block_starts"][argument["number"]])
    of_block = opened(argument, "block")["features"]
    near = nearest_rows(rows, of_block, argument["listed"] - 1, ties, names=own, first=first, threads=1)
    return dict(zip(("positions", "near"), near)), {}


@task
def recall(argument: Argument) -> Made:
    """The share of the true nearest rows that the sampled rows' lists hold."""
    _, near = nearest_of_blocks(argument, opened(argument, "atlas", 0)["ties"])
    listed = of_all(argument, "lists", "similarities")[np.asarray(opened(argument, "sample", 0)["positions"])]
    # of rows that are equally near, any may be listed
    held = listed[:, 1:] >= near[:, -1:]
    return {}, {"recall": float(held.mean()) if held.size else 1.0, "rows": len(held)}
