"""The task that says how a selection covers the rows of a block; a selection is a file of one byte per position."""

from __future__ import annotations

import numpy as np

from datamask.out_of_core.array_file import ArrayFile
from datamask.out_of_core.tasks import Argument, Made, opened, task


def lists_in(reverse: ArrayFile) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Who lists each row of a block: offsets, places of the listers, similarities."""
    return np.asarray(reverse["offsets"]), np.asarray(reverse["listing"]), np.asarray(reverse["near"])


@task
def cover(argument: Argument) -> Made:
    """How members cover the rows of a block, and what that and its members' quality come to."""
    from datamask.out_of_core import list_kernels

    number, lists = argument["number"], opened(argument, "lists")
    starts = np.asarray(opened(argument, "atlas", 0)["block_starts"])
    member = opened(argument, "members", 0)["member"]
    low, high = (int(end) for end in starts[number : number + 2])
    best, other = np.empty(high - low, np.float32), np.empty(high - low, np.float32)
    owner = np.empty(high - low, np.int32)
    list_kernels.coverage(
        np.asarray(lists["positions"]),
        np.asarray(lists["similarities"]),
        np.asarray(member),
        starts,
        best,
        other,
        owner,
    )
    own = np.asarray(member[low:high]).view(bool)
    facts = {
        "covered": float(best.sum(dtype=np.float64)),
        "lost": int((owner < 0).sum()),
        "quality": float(opened(argument, "block")["quality"][own].sum()),
        "members": int(own.sum()),
    }
    return {"best": best, "other": other, "owner": owner}, facts
