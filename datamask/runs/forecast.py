"""What a selection takes before it runs: rows, columns, memory, disk and time, for `select --dry_run` and the pages.

The numbers follow from rows, dimensions and settings, and are meant to be right within a factor of two on an idle
machine. A token budget is taken to select an eighth of the rows or more: of fewer, facility makes longer neighbor
lists.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from datamask import catalogue
from datamask.config import RunConfig, SelectionConfig
from datamask.corpus.list_length import list_length
from datamask.corpus.neighbors import search_for
from datamask.corpus.opening import ID_BYTES, Look, look_at
from datamask.corpus.threads import thread_count
from datamask.errors import StoreError
from datamask.files import existing_parent
from datamask.memory import memory_bytes
from datamask.polling import Poll, no_poll
from datamask.runs.phases import LOADING_SECONDS, Phase, expected_seconds
from datamask.work.ledger import in_words

LIBRARY_BYTES = 500_000_000
"""Memory of the process before it holds a row."""

ROW_BYTES, ENTRY_BYTES = 200, 20
"""Memory of a row beside its features and columns, and of an entry of its neighbor list while lists are made."""

WRITTEN_BYTES, CACHED_BYTES = 50, 12
"""A row in the run folder, and an entry of its neighbor list in the cache."""

SOLVED = 0.4
"""Part of the seconds of `expected_seconds` that phases beside the graph took on 64,000 and 84,000 rows of 384 and 128
dimensions: the constants there are of fewer dimensions."""

READ_SECONDS, READ_DIM_SECONDS = 8e-7, 1.2e-8
"""Reading a row, and a dimension of it."""

LARGER_DISK = "name a larger disk with --scratch_dir or DATAMASK_RUNS_DIR, or take a uniform sample with --rows N"
"""What to do where the files have no room."""


@dataclass(frozen=True)
class Forecast:
    """What a selection takes.

    Attributes:
        rows: that it selects from. total_rows, dim: of the corpus.
        selected: S; None where a token budget leaves it open.
        columns: role -> name of the column, or names.
        mapped: whether it works on mapped arrays.
        memory_bytes: of the process at its peak. disk_bytes: that it needs at most, most of it in `folder`.
        minutes: on this machine.
    """

    rows: int
    total_rows: int
    dim: int
    selected: int | None
    columns: dict[str, str]
    mapped: bool
    memory_bytes: int
    disk_bytes: int
    folder: str
    minutes: float

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        count = "As many" if self.selected is None else f"{self.selected:,}"
        kept = "rows as fill the budget, " if self.selected is None else ""
        sample = f" (a sample of {self.total_rows:,})" if self.rows < self.total_rows else ""
        columns = ", ".join(f"{name} ({role})" for role, name in self.columns.items())
        return (
            f"{count} {kept}of {self.rows:,} rows{sample} of {self.dim:,} dimensions"
            f"{', in mapped files' if self.mapped else ''}. Columns: {columns}. {self.takes}"
        )

    @property
    def takes(self) -> str:
        """Time, memory and disk in sentences, and which of them this machine lacks."""
        most = memory_bytes()
        return (
            f"Takes about {time_text(60 * self.minutes)}, {in_words(self.memory_bytes)} of memory and {self.disk}."
            f"{f' That is more memory than this machine has ({in_words(most)}).' if most < self.memory_bytes else ''}"
            f"{'' if self.fits else f' That is more disk than is free; {LARGER_DISK}.'}"
        )

    @property
    def disk(self) -> str:
        """The disk that is needed, and what is free there."""
        return f"{in_words(self.disk_bytes)} of disk ({in_words(self.free_bytes)} free in {self.folder})"

    @property
    def free_bytes(self) -> int:
        """Bytes that are free in the folder now.

        Raises:
            StoreError: the folder cannot be looked at.
        """
        try:
            return shutil.disk_usage(existing_parent(Path(self.folder))).free
        except OSError as error:
            raise StoreError(f"the folder {self.folder} cannot be used: {error.strerror or error}") from error

    @property
    def fits(self) -> bool:
        """Whether the disk has room."""
        return self.disk_bytes <= self.free_bytes

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {**asdict(self), "free_bytes": self.free_bytes}


def forecast(config: RunConfig, root: Path, poll: Poll = no_poll) -> Forecast:
    """Say what a selection takes.

    Args:
        root: the folder of the runs.

    Raises:
        InputError: a shard that cannot be used. RemoteError: a store does not answer. Stopped: from `poll`.
    """
    selection, look = config.selection, look_at(config.corpus, poll)
    mapped = selection.scratch_dir is not None
    # in mapped files, --rows is the sample that pages draw
    rows = look.rows if mapped else min(look.rows, config.corpus.rows or look.fitting)
    selected = None if selection.budget is not None else selection.size(rows)
    columns = {role: name for role, name in look.columns.items() if name}
    memory, arrays, disk, seconds = _by_stages(selection, look, rows, selected or max(1, rows // 2))
    memory, disk = (memory, disk + arrays) if mapped else (memory + arrays, disk)
    folder = str(Path(selection.scratch_dir or root).absolute())
    return Forecast(rows, look.rows, look.dim, selected, columns, mapped, memory, disk, folder, seconds / 60)


def _by_stages(selection: SelectionConfig, look: Look, n: int, size: int) -> tuple[int, int, int, float]:
    """Bytes of memory at the peak, of arrays that may lie in files, and of disk; and seconds. The neighbor graph is
    taken not to be cached."""
    listed = list_length(size / n, n)
    graph = any(catalogue.objective(name).needs_neighbors for name, _ in selection.terms)
    phases = expected_seconds(
        selection,
        n,
        look.dim,
        listed=listed,
        approximate=search_for(n, selection.neighbors) == "approximate",
        graph=graph,
        cores=thread_count(n),
    )
    solving = phases[Phase.GRAPH] + SOLVED * (sum(phases.values()) - phases[Phase.GRAPH])
    seconds = LOADING_SECONDS + look.rows * (READ_SECONDS + READ_DIM_SECONDS * look.dim) + solving
    # features as they are read, and a second time for the objective or, rounded, for the graph
    beside = ID_BYTES * (1 + len(selection.beside))
    memory, arrays = LIBRARY_BYTES + n * (beside + ROW_BYTES), n * 8 * look.dim
    disk = n * WRITTEN_BYTES
    if graph:
        arrays += n * listed * ENTRY_BYTES
        disk += n * listed * CACHED_BYTES
    return memory, arrays, disk, seconds


HOUR, DAY, YEAR = 3600.0, 86_400.0, 365.25 * 86_400.0


def time_text(seconds: float) -> str:
    """Seconds as people say them, of any length: ``"8 s"``, ``"2.5 h"``, ``"40 days"``."""
    if seconds < 120:
        return "less than 1 s" if seconds < 1 else f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:,.0f} days" if seconds < 2 * YEAR else f"{seconds / YEAR:,.0f} years"
