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
from datamask.runs.folders import scratch_place
from datamask.runs.phases import LOADING_SECONDS, Phase, expected_seconds

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


@dataclass(frozen=True)
class Forecast:
    """What a selection takes.

    Attributes:
        rows: that it selects from. total_rows, dim: of the corpus.
        selected: S; None where a token budget leaves it open.
        columns: role -> name of the column, or names.
        all_rows: whether it works on mapped arrays.
        memory_bytes: of the process at its peak. disk_bytes: that it needs at most. minutes: on this machine.
    """

    rows: int
    total_rows: int
    dim: int
    selected: int | None
    columns: dict[str, str]
    all_rows: bool
    memory_bytes: int
    disk_bytes: int
    minutes: float

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        count = "As many" if self.selected is None else f"{self.selected:,}"
        kept = "rows as fill the budget, " if self.selected is None else ""
        sample = f" (a sample of {self.total_rows:,})" if self.rows < self.total_rows else ""
        columns = ", ".join(f"{name} ({role})" for role, name in self.columns.items())
        lacks = memory_bytes() < self.memory_bytes
        return (
            f"{count} {kept}of {self.rows:,} rows{sample} of {self.dim:,} dimensions"
            f"{', in mapped files' if self.all_rows else ''}. Columns: {columns}. Takes about "
            f"{time_text(60 * self.minutes)}, {bytes_text(self.memory_bytes)} of memory and "
            f"{bytes_text(self.disk_bytes)} of disk."
            f"{f' That is more memory than this machine has ({bytes_text(memory_bytes())}).' if lacks else ''}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON."""
        return asdict(self)


def forecast(config: RunConfig, poll: Poll = no_poll) -> Forecast:
    """Say what a selection takes.

    Raises:
        InputError: a shard that cannot be used. RemoteError: a store does not answer. Stopped: from `poll`.
    """
    selection, look = config.selection, look_at(config.corpus, poll)
    beyond = selection.scratch_dir is not None or (selection.all_rows and look.rows > look.fitting)
    # on all rows, --rows is the sample that pages draw
    rows = look.rows if beyond else min(look.rows, config.corpus.rows or look.fitting)
    selected = None if selection.budget is not None else selection.size(rows)
    columns = {role: name for role, name in look.columns.items() if name}
    memory, arrays, disk, seconds = _by_stages(selection, look, rows, selected or max(1, rows // 2))
    memory, disk = (memory, disk + arrays) if beyond else (memory + arrays, disk)
    return Forecast(rows, look.rows, look.dim, selected, columns, beyond, memory, disk, seconds / 60)


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


def room(config: RunConfig, told: Forecast, root: Path) -> tuple[str, bool]:
    """Where the mapped files of a run lie, what they need and what is free there, in words; whether they fit.

    Args:
        root: the folder of the runs.

    Raises:
        StoreError: the folder cannot be looked at.
    """
    place = scratch_place(config.selection, root)
    try:
        free = shutil.disk_usage(existing_parent(place)).free
    except OSError as error:
        raise StoreError(f"the folder for mapped files, {place}, cannot be used: {error.strerror or error}") from error
    needed, there = bytes_text(told.disk_bytes), bytes_text(free)
    sentence = f"Mapped files lie in {place}: they need {needed}, and {there} are free there."
    if told.disk_bytes <= free:
        return sentence, True
    return (
        f"{sentence} That does not fit: make room, or name a larger disk, with --scratch_dir or DATAMASK_RUNS_DIR.",
        False,
    )


def bytes_text(count: float) -> str:
    """Bytes as people say them: ``"1.2 GB"``."""
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1e3:,.1f} kB"


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
