"""Small runs for the tests of the run folder."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.errors import InputError, Stopped
from datamask.evaluation.result import RunResult
from datamask.runs.callbacks import Callbacks
from datamask.runs.store import Run, RunStore
from datamask.work.context import UNWATCHED

ROOT = Path(__file__).parents[2]

STEPS = 100_000
"""Of a slow run, 10 ms each: more than any test waits for."""


def config(name: str = "", **selection) -> RunConfig:
    """A run's settings on a shard that need not exist."""
    return RunConfig(CorpusConfig(("shard.parquet",)), SelectionConfig.from_options(**selection), name)


def finished(
    root: Path, shards: dict[str, pa.Table], considered: dict[str, list[int]], selected: dict[str, list[int]], **options
) -> Run:
    """A done run over real shards: writes them, and the tables a worker would have written.

    Args:
        shards: file name -> its table, with an ``id`` column.
        considered: file name -> the rows that are in the corpus.
        selected: file name -> those of them that are selected.
    """
    rows = []
    for name, table in shards.items():
        pq.write_table(table, root / name)
        ids = table["id"].to_pylist()
        rows += [
            {"id": ids[row], "source_file": str(root / name), "source_row": row, "selected": row in selected[name]}
            for row in considered[name]
        ]
    table = pa.Table.from_pylist(rows)
    code = table.schema.get_field_index("source_file")
    table = table.set_column(code, "source_file", table["source_file"].dictionary_encode())
    run = RunStore(root / "runs").create(config(**options))
    with run.writer() as writer:
        writer.set_status("running")
        writer.update_facts(columns={"id": "id"}, files=[str(root / name) for name in shards])
        writer.write_rows(table)
        chosen = [row for row in rows if row["selected"]]
        writer.write_selection(
            pa.table({"id": [row["id"] for row in chosen], "rank": list(range(1, len(chosen) + 1))}),
            run.config.to_dict(),
        )
        writer.finish("done", None, "converged", summary={"selected": len(chosen)})
    return run


def fake_execute(run: Run, work=UNWATCHED, *, pool=None, callbacks=None) -> RunResult | None:
    """Stands in for `datamask.runs.execute.execute`, keeping its promises; the run's name says what happens.

    ``quick`` ends at once, ``slow`` works until it is stopped, ``mistake`` has bad input, ``bug`` a fault of the
    program, ``disk`` no room, ``early`` is stopped while the corpus opens.
    """
    with run.writer() as writer:
        behaviour = run.config.name
        writer.set_status("running", total_steps=STEPS)
        if behaviour == "mistake":
            raise InputError("shard.parquet: no column\n'quality'")
        if behaviour == "bug":
            raise ZeroDivisionError("division by zero")
        if behaviour == "disk":
            raise OSError(errno.ENOSPC, "No space left on device", "cache.npz")
        if behaviour == "early":
            raise Stopped("stopped while opening")
        step = 0
        pace = (callbacks or Callbacks()).pace
        pace.plan({"learning": STEPS / 100})
        pace.begin("learning", 0.0)
        while behaviour == "slow":
            step += 1
            pace.at(step / STEPS)
            if work.stopping() or step == STEPS:
                writer.save_checkpoint({"x": np.arange(3)}, {"step": step})
                writer.finish("stopped", ending="stopped on request", step=step)
                return None
            writer.beat(step, STEPS, "learning")
            work.report(step / STEPS, f"step {step} of {STEPS:,}")
            time.sleep(0.01)
        writer.write_selection(pa.table({"id": ["a", "b"], "rank": [1, 2]}), run.config.to_dict())
        summary = {
            "run_id": run.id,
            "n": 10,
            "selected": 2,
            "quality": 0.5,
            "diversity": -0.25,
            "joint": 0.125,
            "calibrated": {"quality": 0.9, "diversity": 0.8, "joint": 0.85},
            "upper_bound": None,
            "seconds_total": 1.5,
            "status": "done",
        }
        writer.finish("done", None, "step limit", step=7, summary=summary)
        return RunResult.from_dict(summary)


def install_fake_execute() -> None:
    """Put the fake where `datamask.runs.attempt` looks for the real one, in this process."""
    module = types.ModuleType("datamask.runs.execute")
    module.execute = fake_execute
    sys.modules["datamask.runs.execute"] = module


def wait_for(condition, seconds: float = 120.0) -> float:
    """Poll until `condition` holds; fails after `seconds`. Returns how long it took."""
    start = time.perf_counter()
    while not condition():
        assert time.perf_counter() - start < seconds, "it never came true"
        time.sleep(0.005)
    return time.perf_counter() - start


def names(folder: Path) -> list[str]:
    """What lies in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def in_another_process(code: str, *words: object) -> subprocess.Popen:
    """A Python process that says a line when it has come so far, and then waits to be killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout.readline().strip() == "ready"
    return process


def kill(process: subprocess.Popen) -> None:
    """End it as `kill -9` does."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
