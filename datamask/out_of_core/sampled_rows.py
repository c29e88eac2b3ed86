"""Tasks about uniform samples of the rows: what lists leave out, and what random selections are worth.

sample -> nearest, for each block       the nearest member of each sampled row, among all members
judges -> true_lists, for each block    the nearest rows of a few, among all rows: what share of them is listed
random                                  a uniformly random selection
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from datamask.corpus.sampling import hash_under
from datamask.corpus.threads import one_blas_thread
from datamask.out_of_core.partition import unit_float32
from datamask.out_of_core.tasks import Argument, Made, once, opened

PIECE = 1024

ROUNDING = 1e-6
"""Cosines of the same pair may differ by so much, where they were computed by different products."""


def _smallest(argument: Argument, count: int) -> np.ndarray:
    """Positions of the rows with the smallest hashes of id and `draw`: a uniform sample, int64, rising."""
    starts, kept = np.asarray(opened(argument, "atlas", 0)["block_starts"]), []
    for number, first in enumerate(starts[:-1]):
        hashes = hash_under(opened(argument, "block", number)["id_hash"], argument["draw"])
        some = np.argpartition(hashes, count)[:count] if count < len(hashes) else np.arange(len(hashes))
        kept.append((hashes[some], first + some))
    hashes, positions = (np.concatenate(each) for each in zip(*kept))
    if count < len(hashes):
        positions = positions[np.argpartition(hashes, count)[:count]]
    return np.sort(positions)


def sample(argument: Argument) -> dict[str, Any]:
    """So many uniformly drawn rows: where they are, and their features."""
    return once(argument, _sample)


def _sample(argument: Argument) -> Made:
    positions = _smallest(argument, argument["drawn"])
    starts = np.asarray(opened(argument, "atlas", 0)["block_starts"])
    edges = np.searchsorted(positions, starts)
    features = [
        opened(argument, "block", number)["features"][positions[low:high] - starts[number]]
        for number, (low, high) in enumerate(itertools.pairwise(edges.tolist()))
    ]
    return {"positions": positions, "features": np.concatenate(features)}, {}


def nearest(argument: Argument) -> dict[str, Any]:
    """How near the nearest member in a block is to each of the sampled rows, 0 at least."""
    return once(argument, _nearest)


def _nearest(argument: Argument) -> Made:
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


def true_lists(argument: Argument) -> dict[str, Any]:
    """The nearest rows of a block to each of the sampled rows, and how near they are."""
    return once(argument, _true_lists)


def _true_lists(argument: Argument) -> Made:
    sampled = opened(argument, "sample", 0)
    rows, own = unit_float32(sampled["features"]), np.asarray(sampled["positions"])
    features = opened(argument, "block")["features"]
    low, high = (int(end) for end in opened(argument, "atlas", 0)["block_starts"][argument["number"] :][:2])
    listed = argument["listed"] - 1
    near, positions = np.full((len(rows), listed), -np.inf, np.float32), np.full((len(rows), listed), -1)
    with one_blas_thread():
        for start in range(0, high - low, PIECE):
            some = np.arange(low + start, min(low + start + PIECE, high))
            products = rows @ unit_float32(features[some - low]).T
            products[own[:, None] == some] = -np.inf
            near = np.concatenate([near, products], axis=1)
            positions = np.concatenate([positions, np.broadcast_to(some, products.shape)], axis=1)
            best = np.argpartition(-near, listed - 1, axis=1)[:, :listed]
            near, positions = (np.take_along_axis(each, best, 1) for each in (near, positions))
    positions[near == -np.inf] = -1
    return {"near": near, "positions": positions}, {}


def shortfalls(argument: Argument) -> dict[str, Any]:
    """How much nearer the nearest of all members is to each sampled row than the nearest listed one."""
    return once(argument, _shortfalls)


def _shortfalls(argument: Argument) -> Made:
    covers = [opened(argument, "cover", number) for number in range(argument["blocks"])]
    best = np.max([opened(argument, "nearest", number)["best"] for number in range(argument["blocks"])], axis=0)
    listed = np.concatenate(_of_blocks(argument, lambda number, inside: covers[number]["best"][inside]))
    short = (best - listed).astype(np.float64)
    short[short < ROUNDING] = 0.0
    return {"shortfalls": short}, {"covered": math.fsum(each.facts["covered"] for each in covers)}


def recall(argument: Argument) -> dict[str, Any]:
    """The share of the true nearest rows that the sampled rows' lists hold."""
    return once(argument, _recall)


def _recall(argument: Argument) -> Made:
    files = [opened(argument, "nearest", number) for number in range(argument["blocks"])]
    listed = files[0]["near"].shape[1]
    near = -np.sort(-np.concatenate([file["near"] for file in files], axis=1), axis=1)[:, :listed]
    lists = _of_blocks(argument, lambda number, inside: opened(argument, "lists", number)["similarities"][inside])
    # of rows that are equally near, any may be listed
    held = np.concatenate(lists)[:, 1:] >= near[:, -1:] - ROUNDING
    return {}, {"recall": float(held.mean()) if held.size else 1.0, "rows": len(held)}


def _of_blocks(argument: Argument, read: Callable[[int, np.ndarray], np.ndarray]) -> list[np.ndarray]:
    """What `read` says of the sampled rows of each block, given its number and their places in it."""
    positions = np.asarray(opened(argument, "sample", 0)["positions"])
    starts = np.asarray(opened(argument, "atlas", 0)["block_starts"])
    edges = np.searchsorted(positions, starts)
    return [
        read(number, positions[low:high] - starts[number])
        for number, (low, high) in enumerate(itertools.pairwise(edges.tolist()))
    ]


def random(argument: Argument) -> dict[str, Any]:
    """A uniformly random selection of S rows."""
    return once(argument, _random)


def _random(argument: Argument) -> Made:
    positions = _smallest(argument, argument["size"])
    member = np.zeros(int(opened(argument, "atlas", 0)["block_starts"][-1]), np.uint8)
    member[positions] = 1
    return {"member": member}, {"members": len(positions)}


def selected(argument: Argument) -> dict[str, Any]:
    """A selection by row of the scratch, in the place of position."""
    return once(argument, _selected)


def _selected(argument: Argument) -> Made:
    starts = np.asarray(opened(argument, "atlas", 0)["block_starts"])
    member = opened(argument, "members", 0)["member"]
    by_row = np.zeros(len(member), np.uint8)
    for number, (low, high) in enumerate(itertools.pairwise(starts.tolist())):
        by_row[opened(argument, "block", number)["rows"]] = member[low:high]
    return {"selected": by_row}, {"members": int(by_row.sum())}
