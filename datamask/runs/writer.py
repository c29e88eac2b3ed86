"""The one module that writes what lies in run folders; `datamask.runs.store` states the contract and reads it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from datamask.errors import RunStateError, StoreError
from datamask.evaluation.result import RunResult
from datamask.files import replacing, sweep
from datamask.runs.folders import require_folder
from datamask.runs.formats import (
    load_sealed,
    read_json,
    read_metrics,
    reading,
    save_sealed,
    to_plain,
    write_json,
    write_table,
)
from datamask.runs.labels import Label
from datamask.runs.records import RECORD
from datamask.runs.status import ENDED_STATES, SUMMARY, WRITTEN_STATES, RunStatus
from datamask.schemas import check
from datamask.tables import as_found
from datamask.work.locks import FileLock

BEAT_SECONDS = 0.5

WAY_OUT = "delete it to start this run from its beginning"
"""What to do about a damaged checkpoint."""


def write_label(folder: Path, label: Label) -> None:
    """Write what people added to a run. Any process may; the last one wins."""
    require_folder(folder)
    sweep(folder)  # nobody may ever work on a done run again, so what a killed writer left goes now
    write_json(folder / "label.json", label.to_dict())


def request_stop(folder: Path) -> None:
    """Ask whoever works on the run to stop. Any process may."""
    require_folder(folder)
    try:
        (folder / "stop").touch()
    except OSError as error:
        raise StoreError(f"{folder / 'stop'} cannot be written: {error.strerror}") from error


class RunWriter:
    """What the holder of a run's lock may do; a context manager that takes the lock and gives it back.

    Entering takes the lock and repairs what a killed writer left: a torn last metrics line is cut off, and unfinished
    files are removed. A stop request that was meant for an earlier attempt is forgotten; one made while the run was
    queued still counts.

    All methods raise `StoreError` when the disk refuses; nothing half written is left in a file that is replaced whole.
    One thread at a time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = FileLock(folder / "lock")
        self._metrics: int | None = None
        self._last_beat = -BEAT_SECONDS
        self._status = RunStatus()

    def __enter__(self) -> RunWriter:
        require_folder(self.folder)
        if not self._lock.acquire():
            raise RunStateError(f"run {self.folder.name} is already running in another worker; stop it first, or wait")
        try:
            # removed while we waited for the lock: we hold a lock on a folder without a name
            require_folder(self.folder)
            self._status = _read_status(self.folder)
            if self._status.state != "queued":
                self._forget_stop()
            self._repair_metrics()
            sweep(self.folder)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._close_metrics()
        self._lock.release()

    # -- facts and status ---------------------------------------------------------------------------------------

    def update_facts(self, **facts: Any) -> None:
        """Add to, or replace in, the facts of config.json: fingerprint, n, selected, anchors ..."""
        path = self.folder / "config.json"
        with reading(path):
            record = read_json(path)
            check(record, RECORD)
        record["facts"] = {**record.get("facts", {}), **facts}
        write_json(path, record)

    def set_status(self, state: str, **fields: Any) -> None:
        """Replace status.json; entries of the record that are not named stay as they were.

        Going to ``running`` sets `started` and clears the last attempt's ending; going to an ended state sets `ended`;
        going back to ``queued`` sets `queued` and forgets stop requests.
        """
        if state not in WRITTEN_STATES:
            raise ValueError(f"state must be one of {', '.join(WRITTEN_STATES)}, got {state!r}")
        now = time.time()
        values = {**self._status.to_dict(), "state": state, "heartbeat": now, "pid": os.getpid()}
        if state != self._status.state:
            if state in ("queued", "running"):
                values |= {"ended": None, "error": "", "traceback": "", "ending": "", "message": ""}
                values["queued" if state == "queued" else "started"] = now
            else:
                values["ended"] = now
        if state == "queued":
            self._forget_stop()
        status = RunStatus.from_dict(to_plain({**values, **fields}))
        write_json(self.folder / "status.json", status.to_dict())
        self._status = status

    def beat(self, step: int, total_steps: int, message: str = "") -> None:
        """Say that the worker lives and how far it is.

        At most one write per `BEAT_SECONDS`; what lies between is remembered, and goes with the next write.
        """
        self._status = replace(
            self._status, step=int(step), total_steps=int(total_steps), message=message, heartbeat=time.time()
        )
        if time.monotonic() - self._last_beat < BEAT_SECONDS:
            return
        write_json(self.folder / "status.json", self._status.to_dict(), sync=False)
        self._last_beat = time.monotonic()

    def finish(self, state: str, result: RunResult | None = None, ending: str = "", **fields: Any) -> None:
        """The last word on a run: ``done``, ``stopped`` or ``failed``. Written after everything else.

        `message`, unless given, becomes the ending: what was being done is no longer being done.

        Raises:
            RunStateError: ``done`` without a selection.parquet.
        """
        if state not in ENDED_STATES:
            raise ValueError(f"state must be one of done, stopped, failed, got {state!r}")
        if state == "done" and not (self.folder / "selection.parquet").is_file():
            raise RunStateError(f"run {self.folder.name} cannot be done before its selection is written")
        self._close_metrics()
        if result is not None:
            fields[SUMMARY] = result.to_dict()
        self.set_status(state, ending=ending, **{"message": ending, **fields})
        self._forget_stop()

    # -- metrics ------------------------------------------------------------------------------------------------

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Append one line to metrics.jsonl, whole; only a process killed in the middle leaves a torn one."""
        line = (json.dumps(to_plain(record), allow_nan=False) + "\n").encode()
        path = self.folder / "metrics.jsonl"
        try:
            if self._metrics is None:
                # O_NONBLOCK: opening a pipe that nobody reads would wait for ever
                self._metrics = os.open(
                    path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o666
                )
            size = os.fstat(self._metrics).st_size
            try:
                while line:
                    line = line[os.write(self._metrics, line) :]
            except OSError:
                # a disk that filled up in the middle of the line; not a file (a device) cannot be cut, nor needs it
                with contextlib.suppress(OSError):
                    os.ftruncate(self._metrics, size)
                raise
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error

    def truncate_metrics(self, step: int) -> None:
        """Drop the records past `step`: those a killed run wrote after its last checkpoint."""
        self._close_metrics()
        content = read_metrics(self.folder)
        if content:
            lines = content.splitlines(keepends=True)
            with replacing(self.folder / "metrics.jsonl") as part:
                part.write_bytes(b"".join(line for line in lines if _step_of(line) <= step))

    # -- arrays and tables --------------------------------------------------------------------------------------

    def save_checkpoint(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
        """Replace checkpoint.npz: named arrays of plain numbers, and `meta` as JSON."""
        save_sealed(self.folder / "checkpoint.npz", arrays, meta)

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is one to go on from."""
        return (self.folder / "checkpoint.npz").is_file()

    def load_checkpoint(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The arrays and meta of the last `save_checkpoint`; None if there was none. Executes no code from the file.

        Raises:
            StoreError: the file is damaged, or was altered.
        """
        path = self.folder / "checkpoint.npz"
        if not os.path.lexists(path):
            return None
        try:
            return load_sealed(path)
        except StoreError as error:
            raise StoreError(f"{error}; {WAY_OUT}") from error

    def refused_checkpoint(self, reason: object) -> StoreError:
        """The error for a checkpoint that can be read and makes no sense."""
        return StoreError(f"{self.folder / 'checkpoint.npz'} is damaged: {reason}; {WAY_OUT}")

    def write_rows(self, table: pa.Table) -> None:
        """Replace rows.parquet: one row per sample of the corpus, in input order."""
        write_table(self.folder / "rows.parquet", table)

    def write_selection(self, table: pa.Table, metadata: Mapping[str, Any]) -> None:
        """Replace selection.parquet; `metadata` (the config) goes as JSON under the parquet metadata key `datamask`."""
        stored = {**(table.schema.metadata or {}), b"datamask": json.dumps(to_plain(metadata)).encode()}
        write_table(self.folder / "selection.parquet", as_found(table.replace_schema_metadata(stored)))

    def write_left_out(self, table: pa.Table) -> None:
        """Replace left_out.parquet: the rows of a mapped corpus that could not be used."""
        write_table(self.folder / "left_out.parquet", table)

    def write_recipe(self, text: str) -> None:
        """Replace recipe.json: the rule of a run on mapped arrays."""
        with replacing(self.folder / "recipe.json") as part:
            part.write_text(text, encoding="ascii")

    # -- helpers ------------------------------------------------------------------------------------------------

    def _forget_stop(self) -> None:
        try:
            (self.folder / "stop").unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self.folder / 'stop'} cannot be removed: {error.strerror}") from error

    def _repair_metrics(self) -> None:
        if not (self.folder / "metrics.jsonl").is_file():
            return
        content = read_metrics(self.folder)
        if content and not content.endswith(b"\n"):
            with replacing(self.folder / "metrics.jsonl") as part:
                part.write_bytes(content[: content.rfind(b"\n") + 1])

    def _close_metrics(self) -> None:
        handle, self._metrics = self._metrics, None
        if handle is not None:
            os.close(handle)


def _step_of(line: bytes) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return float("inf")


def _read_status(folder: Path) -> RunStatus:
    path = folder / "status.json"
    with reading(path):
        return RunStatus.from_dict(read_json(path))
