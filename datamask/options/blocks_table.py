"""The table of blocks: every option of a selection by more than one machine, in the order of the command line."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from datamask.errors import OptionError
from datamask.options.kinds import Choice, Folder, Text, Whole
from datamask.options.option import check_options, option, options_of

BLOCKS = "More than one machine"


@dataclass(frozen=True)
class BlockOptions:
    """Which step of a selection by blocks; None: not given."""

    _: KW_ONLY
    blocks: int | None = option(
        Whole(2),
        "Blocks",
        "cut the rows into N blocks that are solved apart (facility), into the folder of --into",
        "N",
        BLOCKS,
    )
    blocks_by: str | None = option(
        Choice({"cells": "rows of neighboring cells", "random": "random rows, as in the paper"}),
        "Rows of a block",
        "rows of a block: cells (rows near each other) or random, as in the paper",
        "HOW",
        BLOCKS,
        unset="cells",
    )
    block: int | None = option(
        Whole(1), "Block", "do the next step of block I of the folder of --into, unless it is done", "I", BLOCKS
    )
    into: str | None = option(Folder(), "Folder of the blocks", "folder of the blocks", "FOLDER", BLOCKS)
    join: str | None = option(
        Folder(),
        "Join",
        "join the blocks of a folder: write the ids to --output, with values of the whole",
        "FOLDER",
        BLOCKS,
    )
    ray: str | None = option(
        Text(),
        "Ray cluster",
        "do all steps of --blocks as tasks of a Ray cluster: its address, or auto",
        "ADDRESS|auto",
        BLOCKS,
    )

    def __post_init__(self) -> None:
        check_options(self, BLOCK_OPTIONS)
        steps = [name for name in ("blocks", "block", "join") if getattr(self, name) is not None]
        if len(steps) != 1:
            came = " and ".join(f"--{name}" for name in steps) or "none"
            raise OptionError(f"give one of --blocks N, --block I and --join FOLDER, got {came}")
        if (self.join is None) == (self.into is None):
            way_out = "name the folder by --join alone" if self.into else "add --into FOLDER"
            raise OptionError(f"--{steps[0]} {'takes no --into' if self.into else 'needs a folder'}; {way_out}")
        for name in ("blocks_by", "ray"):
            if self.blocks is None and getattr(self, name) is not None:
                raise OptionError(f"--{name} is of --blocks N, not of --{steps[0]}; leave it out")


BLOCK_OPTIONS = options_of(BlockOptions)
"""Every option by its name."""
