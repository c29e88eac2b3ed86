"""Tasks that select: each block alone, one price for all, then turns against what the others hold, then swaps.

    alone, for each block -> merge
    cover, for each block -> again (or swap), for each block of the turn's colour -> turn      for every turn
    cover, for each block -> value

What each round is, says `datamask.learning.block_greedy`, which does the same in memory: on the same lists and blocks
the members are the same. A selection is a file of one byte for each position.

A block is told of the others by two numbers for each row: how near its nearest listed member is and, where that is in
the block itself, how near the nearest one in any other block is.
"""

from __future__ import annotations

import math

import numpy as np

from datamask.corpus.sampling import hash_under
from datamask.out_of_core.array_file import ArrayFile
from datamask.out_of_core.tasks import Argument, Made, opened, task

SIGN = np.uint64(1 << 63)


def bonus_and_order(argument: Argument, file: ArrayFile) -> tuple[np.ndarray, np.ndarray]:
    """What a member of a block adds by itself, float64, and what decides ties, int64, ``(n,)`` each."""
    bonus = (file["quality"] - argument["mean_quality"]) * argument["bonus"]
    return bonus, (hash_under(file["id_hash"], argument["seed"]) ^ SIGN).view(np.int64)


def lists_in(reverse: ArrayFile) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Who lists each row of a block: offsets, places of the listers, similarities."""
    return np.asarray(reverse["offsets"]), np.asarray(reverse["listing"]), np.asarray(reverse["near"])


def shares(starts: np.ndarray, size: int) -> np.ndarray:
    """Of S members how many each block has that has the share of its rows, int64 ``(B,)``."""
    rows = np.asarray(starts[1:], np.float64)
    return np.diff(np.floor(rows / rows[-1] * size + 0.5).astype(np.int64), prepend=0)


@task
def alone(argument: Argument) -> Made:
    """Lazy greedy on a block that knows itself alone: rows in the order of picking, and gains, which never rise."""
    from datamask.learning.medoids import greedy, picked_gains

    number, reverse = argument["number"], opened(argument, "reverse")
    bonus, order = bonus_and_order(argument, opened(argument, "block"))
    starts = opened(argument, "atlas", 0)["block_starts"]
    size = int(shares(starts, argument["size"])[number]) if argument["alone"] else argument["size"]
    low, high = reverse["lister_starts"][number : number + 2]
    best = np.full(len(reverse["listers"]), np.inf)
    best[low:high] = 0.0  # rows of other blocks count as covered, whatever lists them
    lists = lists_in(reverse)
    picks = greedy(*lists, bonus, min(size, len(bonus)), order, best=best.copy())
    gains = picked_gains(*lists, bonus, best, picks)
    return {"picks": picks.astype(np.int32), "gains": gains, "order": order[picks]}, {"picks": len(picks)}


@task
def merge(argument: Argument) -> Made:
    """The S picks with the largest gains over all blocks; where blocks have equal shares, all picks."""
    starts = np.asarray(opened(argument, "atlas", 0)["block_starts"])
    solved = [opened(argument, "solved", number) for number in range(argument["blocks"])]
    gains = [each["gains"] for each in solved]
    price, ties = -np.inf, np.int64(np.iinfo(np.int64).max)
    if sum(map(len, gains)) > argument["size"]:
        price = np.partition(np.concatenate(gains), -argument["size"])[-argument["size"]]
        above = sum(int(np.searchsorted(-each, -price)) for each in gains)
        at_price = np.concatenate([each["order"][own == price] for each, own in zip(solved, gains)])
        ties = np.partition(at_price, argument["size"] - above - 1)[argument["size"] - above - 1]
    member = np.zeros(int(starts[-1]), np.uint8)
    for first, each, own in zip(starts, solved, gains):
        taken = (own > price) | ((own == price) & (each["order"] <= ties))
        member[first + each["picks"][taken]] = 1
    return {"member": member}, {"members": int(member.sum()), "price": None if price == -np.inf else float(price)}


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


class BlockAgainstOthers:
    """What a block needs for its turn.

    Attributes:
        number: of the block. reverse: its file. bonus, order: of its rows. low, high: their positions. member: bool
            ``(n,)``, which of them are.
        best: float64 ``(m,)``, how well others cover the rows that list rows of the block.
    """

    def __init__(self, argument: Argument) -> None:
        from datamask.learning.turns import colours_of_round
        from datamask.out_of_core import list_kernels

        colour = colours_of_round(argument["blocks"], argument["round"], argument["seed"])
        self.number = int(np.flatnonzero(colour == argument["colour"])[argument["number"]])
        self.reverse = opened(argument, "reverse", self.number)
        self.bonus, self.order = bonus_and_order(argument, opened(argument, "block", self.number))
        starts = opened(argument, "atlas", 0)["block_starts"]
        self.low, self.high = (int(end) for end in starts[self.number : self.number + 2])
        self.member = np.array(opened(argument, "members", 0)["member"][self.low : self.high]).view(bool)
        listers, edges = self.reverse["listers"], self.reverse["lister_starts"]
        self.best = np.empty(len(listers))
        for other in range(argument["blocks"]):
            some = slice(int(edges[other]), int(edges[other + 1]))
            if some.stop > some.start:
                file = opened(argument, "cover", other)
                best, beside, owner = (np.asarray(file[name]) for name in ("best", "other", "owner"))
                self.best[some] = list_kernels.outside(best, beside, owner, np.asarray(listers[some]), self.number)

    def made(self, picks: np.ndarray) -> Made:
        """The file of its new members."""
        changed = len(picks) - int(self.member[picks].sum())
        return {"picks": np.sort(picks).astype(np.int32)}, {"block": self.number, "changed": changed}


@task
def again(argument: Argument) -> Made:
    """A block solved anew by lazy greedy against what the others hold, as many members as before."""
    from datamask.learning.medoids import greedy

    own = BlockAgainstOthers(argument)
    return own.made(greedy(*lists_in(own.reverse), own.bonus, int(own.member.sum()), own.order, best=own.best))


@task
def value(argument: Argument) -> Made:
    """What a selection comes to over all blocks."""
    blocks = [opened(argument, "cover", number).facts for number in range(argument["blocks"])]
    return {}, {name: math.fsum(facts[name] for facts in blocks) for name in ("covered", "quality", "members", "lost")}


@task
def turn(argument: Argument) -> Made:
    """The selection after a turn: new members in the blocks whose turn it was."""
    starts = opened(argument, "atlas", 0)["block_starts"]
    member = np.array(opened(argument, "members", 0)["member"])
    changed = 0
    for number in range(argument["turned"]):
        file = opened(argument, "solved", number)
        low, high = (int(end) for end in starts[file.facts["block"] : file.facts["block"] + 2])
        member[low:high] = 0
        member[low + file["picks"]] = 1
        changed += file.facts["changed"]
    return {"member": member}, {"members": int(member.sum()), "changed": changed}
