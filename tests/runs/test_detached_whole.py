"""A run over all rows in a process of its own: wherever it is killed, it goes on and ends as an unbroken one."""

from __future__ import annotations

import os
import signal

import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs.detached import start_detached
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from tests.making.derivable_runs import shard
from tests.making.run_folders import wait_for

N, S = 3000, 300


@pytest.mark.parametrize("objective", ["facility", "pairwise"])
def test_a_driver_that_is_killed_while_it_selects_from_all_rows_loses_no_row(objective, tmp_path):
    for number in range(3):
        pq.write_table(shard(N // 3, seed=number, d=8), tmp_path / f"{number}.parquet")
    selection = SelectionConfig.from_options(
        objective=objective, select_ratio=S / N, lamb=0.3, device="cpu", scratch_dir=str(tmp_path / "scratch")
    )
    inputs = tuple(str(tmp_path / f"{number}.parquet") for number in range(3))
    config, store = RunConfig(CorpusConfig(inputs, rows=600), selection), RunStore(tmp_path / "runs")
    whole, broken = store.create(config), store.create(config)
    execute(whole)
    driver = start_detached(broken)
    wait_for(lambda: "rows" in (broken.whole or {}))
    assert broken.status().state == "running"
    os.kill(driver, signal.SIGKILL)
    wait_for(lambda: broken.status().state == "interrupted")
    start_detached(broken)
    wait_for(lambda: not broken.status().active)
    assert broken.status().state == "done", broken.status()
    assert broken.selection().equals(whole.selection())
    wait_for(lambda: not list((tmp_path / "scratch").iterdir()))  # the last thing that the driver does
