"""A run over all rows in a process of its own: its driver is killed, and what was done is not done again."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs.detached import start_detached
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from tests.making.derivable_runs import shard
from tests.making.run_folders import wait_for
from tests.out_of_core.test_engines import alive

N, S = 3000, 300


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    place = tmp_path_factory.mktemp("corpus")
    for number in range(3):
        pq.write_table(shard(N // 3, seed=number, d=8), place / f"{number}.parquet")
    selection = SelectionConfig.from_options(
        objective="facility",
        select_ratio=S / N,
        lamb=0.3,
        device="cpu",
        workers=2,
        scratch_dir=str(tmp_path_factory.mktemp("scratch")),
    )
    return RunConfig(CorpusConfig((str(place),), rows=600), selection)


def written(folder: Path) -> dict[str, int]:
    """The tasks' files that are there, with when they were written."""
    files = {}
    try:
        with os.scandir(folder / "blocks") as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    files[entry.name] = entry.stat().st_mtime_ns
    except FileNotFoundError:  # not yet, not any more, or a file that was removed in this moment
        pass
    return files


def children(process: int) -> set[int]:
    """The processes that it has started."""
    return {int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()}


@pytest.mark.usefixtures("tasks_here")
def test_what_tasks_had_written_before_the_driver_was_killed_is_written_no_more(settings, tmp_path):
    whole = RunStore(tmp_path / "runs").create(settings)
    execute(whole)

    run = RunStore(tmp_path / "runs").create(settings)
    driver = start_detached(run)
    folder = Path(settings.selection.scratch_dir) / f"datamask-{run.id}"
    wait_for(lambda: len(written(folder)) >= 12)
    assert run.status().state == "running" and "rows" in run.whole
    workers = children(driver)
    os.kill(driver, signal.SIGKILL)
    assert workers
    # workers end with the driver's thread that began them, its lock with its last
    wait_for(lambda: not any(map(alive, workers)) and run.status().state == "interrupted")
    before = written(folder)
    # some may have been removed since: what no later task reads goes
    assert before

    start_detached(run)
    later: dict[str, int] = {}
    again: set[str] = set()
    while run.status().active:
        seen = written(folder)
        # the lists of all rows are put together by the driver, not by a task
        tasks = {name: when for name, when in seen.items() if not name.startswith("whole-")}
        again |= {name for name, when in tasks.items() if before.get(name, when) != when}
        later |= seen
        time.sleep(0.005)
    assert run.status().state == "done", run.status()
    assert not again and set(before) & set(later)
    assert run.selection().equals(whole.selection())
    wait_for(lambda: not folder.exists())  # the last thing that the driver does
