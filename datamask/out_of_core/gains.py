"""Tasks that say what single rows are worth to a selection, as far as the lists tell.

nearest_members, for each block -> gains, for each block
"""

from __future__ import annotations

import numpy as np

from datamask.out_of_core.rounds import lists_in
from datamask.out_of_core.tasks import Argument, Made, opened, task


@task
def nearest_members(argument: Argument) -> Made:
    """The two nearest listed members of each row of a block."""
    from datamask.out_of_core import list_kernels

    lists, member = opened(argument, "lists"), opened(argument, "members", 0)["member"]
    positions = np.asarray(lists["positions"])
    best, second = np.empty(len(positions), np.float32), np.empty(len(positions), np.float32)
    owner = np.empty(len(positions), positions.dtype)
    list_kernels.two_nearest(positions, np.asarray(lists["similarities"]), np.asarray(member), best, second, owner)
    return {"best": best, "second": second, "owner": owner}, {}


@task
def gains(argument: Argument) -> Made:
    """What each row of a block would add to the sum over all rows, or, as a member, what would be lost without it."""
    from datamask.out_of_core import list_kernels

    number, reverse = argument["number"], opened(argument, "reverse")
    low, high = (int(end) for end in opened(argument, "atlas", 0)["block_starts"][number : number + 2])
    listers, edges = reverse["listers"], reverse["lister_starts"]
    best, second = np.empty(len(listers), np.float32), np.empty(len(listers), np.float32)
    owner = np.empty(len(listers), np.int64)
    for other in range(argument["blocks"]):
        some = slice(int(edges[other]), int(edges[other + 1]))
        if some.stop > some.start:
            file, rows = opened(argument, "nearest", other), np.asarray(listers[some])
            best[some], second[some], owner[some] = (file[name][rows] for name in ("best", "second", "owner"))
    member = np.asarray(opened(argument, "members", 0)["member"][low:high])
    return {"gains": list_kernels.gains_of(*lists_in(reverse), best, second, owner, member, low)}, {}
