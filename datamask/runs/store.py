"""The run folder: how worker and watcher meet. This module reads; `datamask.runs.writer` writes what lies in one, and
`datamask.runs.folders` makes and removes them.

The contract, proved by tests/runs/test_store.py, test_run_files.py, test_run_locks.py, test_labels.py and
test_deleted.py:

*Layout.* ``<root>/<run_id>/`` with config.json (settings and facts), status.json, metrics.jsonl, checkpoint.npz,
rows.parquet, selection.parquet; label.json (`Label`, if anything of it was given), driver.log (what a
driver of its own printed), ``stop`` (a request), and the lock files ``lock`` and ``queue``. Of a run on mapped
arrays (the fact ``whole``) rows.parquet has the rows of a sample, left_out.parquet those that could not be used, where
there are any, and recipe.json the rule where there is one. A folder is a run if its name matches
``^[a-z0-9-]{1,200}$`` and it holds an ordinary file status.json; anything else under the root is ignored. A run id is
never used as a path before it matched. No reader waits: a pipe or device in the place of a file is a damaged file, and
so is one whose entries are not of the types `datamask.runs.records` says.

*Who may write.* Whoever holds the run's ``lock`` (`Run.writer`), and nobody else, writes settings, status, metrics,
checkpoint and tables. Any process or thread may create a run, `relabel` it, `request_stop`, and read. A run is removed
only while nobody holds its lock. One that is discarded lies in ``<root>/.deleted/`` as ``<seconds since
1970>-<run_id>``, listed nowhere, for a day, and can be restored; after it, it is removed when the next run is made or
discarded.

*What a reader sees.* Every file but metrics.jsonl is replaced whole: the old or the new, never half, after `kill -9` or
a full disk too. metrics.jsonl is appended line by line; its last line may be torn and is then ignored.

*What finished means.* status.json says ``done``, and it says so last: selection.parquet is complete by then. A run that
is ``stopped`` or ``failed`` keeps its checkpoint and can be resumed.

*Interrupted.* Never written, only derived: the status says ``running`` and nobody holds ``lock``; or it says ``queued``
for more than `QUEUE_GRACE` seconds and nobody holds ``queue`` or ``lock``, that is, the process that meant to run it is
gone. The kernel frees both locks when their process ends, however it ends.

*Threads.* `RunStore` and `Run` hold no open files and no state: share them freely. What a process has read of a
config.json or status.json it remembers while the file stays as it is. A `RunWriter` belongs to one thread at a time.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from datamask.config import RunConfig
from datamask.corpus.readers.ids import held_ids
from datamask.errors import MADE_BY_ANOTHER, InputError, NoRoomError, RunStateError, StoreError, VersionError
from datamask.files import open_regular
from datamask.measured import Anchors, GraphFacts
from datamask.memo import FileMemo
from datamask.parquet import UNREADABLE, reason, unfit
from datamask.runs import writer
from datamask.runs.folders import (
    RUN_ID,
    DeletedRun,
    create_folder,
    deleted_runs,
    discard_folder,
    new_run_id,
    remove_deleted,
    remove_folder,
    restore_folder,
    sweep_root,
    valid_id,
)
from datamask.runs.formats import MOST_BYTES, read_json, read_metrics, reading
from datamask.runs.labels import Label, clean_tags
from datamask.runs.records import RunRecord
from datamask.runs.status import RunStatus
from datamask.runs.writer import RunWriter
from datamask.work.cache import FOLDER
from datamask.work.locks import FileLock, is_held

REMEMBERED = 1000
"""Runs whose files are remembered: a page asks many times how each of them stands."""

REMEMBERED_BYTES = 4 * MOST_BYTES
"""Of their records: those of runs on a hundred thousand shards are large."""

_RECORDS: FileMemo[RunRecord] = FileMemo(REMEMBERED, REMEMBERED_BYTES)
_STATUSES: FileMemo[RunStatus] = FileMemo(REMEMBERED)
_VALID: FileMemo[None] = FileMemo(REMEMBERED)
"""The tables that this process has found whole."""

ROW_COLUMNS: dict[str, tuple[str, Callable[[pa.DataType], bool]]] = {
    "source_file": (
        "texts",
        lambda kind: pt.is_string(kind) or (pt.is_dictionary(kind) and pt.is_string(kind.value_type)),
    ),
    "source_row": ("whole numbers", pt.is_integer),
    "selected": ("true or false", pt.is_boolean),
    "eligible": ("true or false", pt.is_boolean),
    "given": ("true or false", pt.is_boolean),
    "logit": ("numbers", pt.is_floating),
    "score": ("numbers", pt.is_floating),
    "marginal_quality": ("numbers", pt.is_floating),
    "marginal_diversity": ("numbers", pt.is_floating),
    "weight": ("numbers", pt.is_floating),
    "tokens": ("numbers", pt.is_floating),
}
"""The columns of rows.parquet that somebody reads by name, beside the id column: what each holds, in words."""

_ANY = ("the ids of the rows", lambda kind: True)

QUEUE_GRACE = 10.0
"""Seconds a run may say queued before its owner must hold the queue lock: from `create` to the worker's start."""


def default_root() -> str:
    """The folder of all runs where none is named: DATAMASK_RUNS_DIR, else ``runs`` under the working directory."""
    return os.environ.get("DATAMASK_RUNS_DIR") or "runs"


class RunStore:
    """The runs under one folder, which is made when the first run is."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    @property
    def cache_dir(self) -> Path:
        """Where neighbour graphs, layouts and anchors are kept, per corpus fingerprint."""
        return self.root / FOLDER

    def create(self, config: RunConfig, output: str | None = None, run_id: str | None = None) -> Run:
        """Make the folder of a new, queued run.

        Args:
            output: where the selection is to be copied when the run is done; only recorded.
            run_id: None makes one from time and objective.

        Raises:
            InputError: `run_id` has characters other than a-z, 0-9 and hyphen.
            RunStateError: there is a run of that id.
            StoreError: the runs folder cannot be written.
        """
        name = new_run_id(config) if run_id is None else valid_id(run_id)
        sweep_root(self.root)
        self._remove_expired()
        return Run(create_folder(self.root, name, config, output))

    def get(self, run_id: str) -> Run:
        """The run of that id.

        Raises:
            InputError: the id is malformed, or there is no such run.
        """
        folder = self.root / valid_id(run_id)
        if not os.path.isfile(folder / "status.json"):  # noqa: PTH113 (no rights to look are no run either)
            raise InputError(f"there is no run {run_id!r} in {self.root}; `runs list` shows those there are")
        return Run(folder)

    def list(self) -> list[Run]:
        """All runs, newest first, broken ones included (their status says what is wrong).

        Raises:
            StoreError: the runs folder is there but cannot be listed.
        """
        try:
            entries = list(self.root.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"the runs folder {self.root} cannot be listed: {error.strerror}") from error
        runs = [Run(e) for e in entries if RUN_ID.fullmatch(e.name) and os.path.isfile(e / "status.json")]  # noqa: PTH113
        return sorted(runs, key=lambda run: (run.created, run.id), reverse=True)

    def remove(self, run_id: str) -> None:
        """Delete a run and all its files; of one that is a link to a folder elsewhere, the link.

        Raises:
            RunStateError: it is running.
        """
        run = self.get(run_id)
        remove_folder(run.path)

    def discard(self, run_id: str) -> DeletedRun:
        """Delete a run so that it can be restored for a day; with it stays what it would go on with.

        Raises:
            RunStateError: it is queued or running. StoreError: it cannot be moved.
        """
        run = self.get(run_id)
        if run.status().active:
            raise RunStateError(f"run {run_id} is {run.status().state}; stop it before deleting it")
        self._remove_expired()
        return discard_folder(run.path)

    def deleted(self) -> Sequence[DeletedRun]:
        """The runs that were discarded and can be restored, the latest first."""
        return [deleted for deleted in deleted_runs(self.root) if not deleted.expired]

    def restore(self, run_id: str) -> Run:
        """Bring the run of that id back that was discarded last.

        Raises:
            InputError: none of that id can be restored. RunStateError: there is a run of that id by now.
            StoreError: it cannot be moved.
        """
        for deleted in self.deleted():
            if deleted.run_id == valid_id(run_id):
                return Run(restore_folder(deleted))
        raise InputError(f"there is no deleted run {run_id!r} in {self.root}; a deleted run is kept for a day")

    def _remove_expired(self) -> None:
        """Remove for good what was discarded more than a day ago; what cannot be removed now is tried again later."""
        for deleted in deleted_runs(self.root):
            if deleted.expired:
                with contextlib.suppress(StoreError, RunStateError, OSError):
                    remove_deleted(deleted, self.root)


class Run:
    """One run folder; every call gives what stands there now."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.id = self.path.name

    def __repr__(self) -> str:
        return f"Run({self.id})"

    # -- small files --------------------------------------------------------------------------------------------

    @property
    def config(self) -> RunConfig:
        """The settings, with the name and notes of the latest `relabel`.

        Of a run on mapped arrays, those of the sample that pages draw: that corpus has the rows of rows.parquet.

        Raises:
            StoreError: config.json cannot be read.
        """
        label, record = self.label(), self._record()
        config = record.config.renamed(label.name, label.notes)
        sample_rows = (record.facts.get("whole") or {}).get("sample_rows")
        if sample_rows is None:
            return config
        return replace(config, corpus=replace(config.corpus, rows=sample_rows))

    @property
    def whole(self) -> dict[str, Any] | None:
        """Of a run on mapped arrays, what it says of all rows (`datamask.runs.records`); else None.

        Raises:
            StoreError: config.json cannot be read.
        """
        whole: dict[str, Any] | None = self._record().facts.get("whole")
        return whole

    def facts(self) -> dict[str, Any]:
        """What was found out about the run: ``fingerprint, n, selected, total_rows, dim, anchors, versions, columns,
        command, output ...``, and ``created``; each of the type `datamask.runs.records` says.

        Raises:
            StoreError: config.json cannot be read, or something in it is of another type.
        """
        record = self._record()
        return {"created": record.created, **record.facts}

    def anchors(self) -> Anchors | None:
        """Return the ends of the run's scales: of its result, before that as it began; None: not measured yet.

        Raises:
            StoreError: config.json cannot be read.
        """
        result, record = self.status().result, self._record().facts.get("anchors")
        if result is not None and result.anchors is not None:
            return result.anchors
        return None if record is None else Anchors.from_dict(record)

    def graph(self) -> GraphFacts | None:
        """Return what is known about the neighbor graph; None where there is none, or not yet.

        Raises:
            StoreError: config.json cannot be read.
        """
        record = self._record().facts.get("neighbors")
        return None if record is None else GraphFacts.from_dict(record)

    @property
    def created(self) -> float:
        """When it was made, seconds since 1970; for a damaged record, its folder's time."""
        with contextlib.suppress(StoreError):
            if (created := self._record().created) is not None:
                return created
        with contextlib.suppress(OSError):
            return self.path.stat().st_mtime
        return 0.0

    def status(self) -> RunStatus:
        """How it stands now. Never raises: a damaged or removed folder is a failed run with a sentence."""
        status = self._written_status()
        if not status.active or self._owned(status):
            return status
        # its owner may have finished between our reading the file and asking the lock: what it wrote last counts
        status = self._written_status()
        if not status.active or self._owned(status):
            return status
        if status.state == "running":
            message = f"interrupted at step {status.step:,}: its process ended without a word"
        else:
            message = "interrupted before it began: the process that had queued it ended"
        return replace(status, state="interrupted", message=message)

    def _written_status(self) -> RunStatus:
        try:
            path = self.path / "status.json"
            status = _STATUSES.get(path, lambda: RunStatus.from_dict(read_json(path)))
            self._record()
            return status
        except FileNotFoundError:
            reason = f"run {self.id} has been removed" if not self.path.exists() else "its status.json is gone"
        except (OSError, ValueError) as error:
            reason = f"its record is damaged: {error}"
        message = ""
        if self._of_another_version():  # which may also know states of its own
            message, reason = MADE_BY_ANOTHER, f"it was {MADE_BY_ANOTHER}"
        return RunStatus(state="failed", message=message, error=f"This run cannot be read: {reason}.", created=None)

    def _of_another_version(self) -> bool:
        try:
            self._record()
        except StoreError as error:
            return isinstance(error.__cause__, VersionError)
        return False

    def _owned(self, status: RunStatus) -> bool:
        if is_held(self.path / "lock"):
            return True
        if status.state == "running":
            return False
        waited = time.time() - (status.queued or status.created or 0.0)
        # queued in the future, by a clock that ran ahead, says nothing about its owner
        return abs(waited) < QUEUE_GRACE or is_held(self.path / "queue")

    def _record(self) -> RunRecord:
        path = self.path / "config.json"
        with reading(path):
            return _RECORDS.get(path, lambda: RunRecord.from_dict(read_json(path)))

    def label(self) -> Label:
        """What people added to it; never raises."""
        with contextlib.suppress(OSError, ValueError):
            return Label.from_dict(read_json(self.path / "label.json"))
        return Label()

    # -- what the worker measured and found ---------------------------------------------------------------------

    def metrics(self) -> dict[str, np.ndarray]:
        """The columns of metrics.jsonl, float64 ``(records,)`` each, NaN where a record lacks the number.

        Empty before the first record. Lines that are no JSON object (a torn last one) are left out.
        """
        columns: dict[str, array[float]] = {}
        count = 0
        # line by line into numbers: a dictionary for each of some hundred thousand steps takes ten times the memory
        for line in io.BytesIO(read_metrics(self.path)):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(record, dict):
                continue
            for name, value in record.items():
                if name not in columns:
                    columns[name] = array("d", [math.nan]) * count
                columns[name].append(_number(value))
            count += 1
            if len(record) < len(columns):
                for name in columns.keys() - record.keys():
                    columns[name].append(math.nan)
        return {name: np.array(column) for name, column in columns.items()}

    def rows(self, columns: Sequence[str] | None = None, optional: Sequence[str] = ()) -> pa.Table:
        """All N rows of the corpus in input order.

        Args:
            columns: these, each of its type in `ROW_COLUMNS`; None: all there are, of any type.
            optional: these too, where the table has them.

        Raises:
            RunStateError: the run has not got that far. StoreError: the table is damaged, or lacks one of `columns`.
        """
        if columns is None:
            return self._table("rows.parquet")
        schema = self._schema("rows.parquet")
        wanted = [*columns, *(name for name in optional if name in schema.names)]
        for name in wanted:
            self._check_column(schema, name, *ROW_COLUMNS.get(name, _ANY))
        table = self._table("rows.parquet", wanted)
        for name in wanted:
            if name in ROW_COLUMNS and table[name].null_count and not pt.is_floating(table[name].type):
                raise self._damaged(f"has rows without a value in its column {name!r}", ROW_COLUMNS[name][0])
        return table

    def mask(self) -> np.ndarray:
        """Return which rows of the corpus are selected, bool ``(N,)``.

        Raises:
            RunStateError, StoreError: as `rows`.
        """
        selected: np.ndarray = self.rows(["selected"])["selected"].to_numpy(zero_copy_only=False).astype(bool)
        return selected

    def id_column(self, table: pa.Table) -> str:
        """The name of the id column of `table`, which is all of `rows`: as the record has it, else the first.

        Raises:
            StoreError: the table has no such column, or the record cannot be read.
        """
        name = str(self.facts().get("columns", {}).get("id", table.column_names[0]))
        self._check_column(table.schema, name, *_ANY)
        return name

    def _check_column(self, schema: pa.Schema, name: str, holds: str, fits: Callable[[pa.DataType], bool]) -> None:
        """Refuse a rows.parquet without column `name`, with two, or with another type in it."""
        count = schema.names.count(name)
        if count == 0:
            raise self._damaged(f"has no column {name!r}, only {', '.join(schema.names)}", holds)
        if count > 1:
            raise self._damaged(f"has {count} columns {name!r}", holds)
        if not fits(schema.field(name).type):
            raise self._damaged(f"has {schema.field(name).type} in its column {name!r}", holds)

    def _damaged(self, problem: str, holds: str) -> StoreError:
        return StoreError(
            f"{self.path / 'rows.parquet'} {problem}, where there must be one of {holds}: this file or the config.json "
            "beside it is damaged; put both back from a copy, or run the selection again"
        )

    def selection(self) -> pa.Table:
        """The selected rows, strongest first.

        Raises:
            RunStateError: the run has not finished. StoreError: the table is damaged.
        """
        return held_ids(self._table("selection.parquet"))

    def left_out(self) -> pa.Table | None:
        """``source_file``, ``source_row`` of the rows that a run on mapped arrays could not use.

        None: there were none, or it is no such run.

        Raises:
            StoreError: the table is damaged.
        """
        return self._table("left_out.parquet") if (self.path / "left_out.parquet").is_file() else None

    @property
    def has_rows(self) -> bool:
        """Whether `rows` would give a table."""
        return (self.path / "rows.parquet").is_file()

    @property
    def has_selection(self) -> bool:
        """Whether `selection` would give a table."""
        return (self.path / "selection.parquet").is_file()

    @property
    def keeps_progress(self) -> bool:
        """Whether resuming goes on from a checkpoint that an attempt left."""
        return (self.path / "checkpoint.npz").is_file()

    def _table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        with self._opened(name) as file:
            table = pq.read_table(file, columns=None if columns is None else list(columns))
            # whoever follows a dictionary index that lies outside its dictionary reads foreign memory
            _VALID.get(
                file.fileno(), lambda: table.validate(full=True), aspect=None if columns is None else tuple(columns)
            )
        return table

    def _schema(self, name: str) -> pa.Schema:
        with self._opened(name) as file:
            return pq.read_schema(file)

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO]:
        path = self.path / name
        if not path.is_file():
            raise RunStateError(
                f"run {self.id} has no {name} yet: it is {self.status().state}; wait for it to finish, or resume it"
            )
        try:
            with open_regular(path) as file:
                yield file
        except MemoryError as error:
            raise NoRoomError(f"{path} {unfit(error)}") from error
        except UNREADABLE as error:
            raise StoreError(f"{path} is damaged: {reason(error)}") from error

    # -- what any process may do --------------------------------------------------------------------------------

    def relabel(
        self,
        name: str | None = None,
        notes: str | None = None,
        tags: Sequence[str] | None = None,
        archived: bool | None = None,
    ) -> None:
        """Give it another name, other notes or tags, put it away or bring it back; None keeps what there is."""
        label = self.label()
        given: dict[str, Any] = {
            "name": name,
            "notes": notes,
            "tags": None if tags is None else clean_tags(tags),
            "archived": archived,
        }
        writer.write_label(
            self.path, replace(label, **{key: value for key, value in given.items() if value is not None})
        )

    def request_stop(self) -> None:
        """Ask whoever works on it, in whatever process, to stop; it keeps a checkpoint."""
        writer.request_stop(self.path)

    def stop_requested(self) -> bool:
        """Whether a stop request is waiting to be obeyed."""
        return (self.path / "stop").exists()

    @contextlib.contextmanager
    def queued(self) -> Iterator[None]:
        """Hold the run's place in a queue: while inside, a queued status is believed whatever its age.

        Raises:
            RunStateError: some other queue holds it.
        """
        lock = FileLock(self.path / "queue")
        if not lock.acquire():
            raise RunStateError(f"run {self.id} is already waiting in another queue")
        try:
            yield
        finally:
            lock.release()

    def writer(self) -> RunWriter:
        """A context manager that takes the run's lock and may write.

        Raises, on entering:
            RunStateError: somebody holds the lock.
            StoreError: the run is gone, or the disk refuses.
        """
        return RunWriter(self.path)


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, (int, float)) else float("nan")
    except OverflowError:  # a whole number of hundreds of digits
        return float("nan")
