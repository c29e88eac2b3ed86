"""`apply` killed while it writes: what it leaves is whole, and the same command ends as if it had never been."""

from __future__ import annotations

import signal
import subprocess
import sys

import pyarrow.parquet as pq

from datamask.recipes import write_recipe
from tests.making.derivable_runs import shard
from tests.making.run_folders import ROOT, wait_for
from tests.recipes.test_apply import _apply, made

KILLED = """
import sys, time
from pathlib import Path
from datamask.cli import main
from datamask.recipes.batches import Judge

judged = Judge.__call__
def slow(self, place, first, batch):
    if place == 2 and first:
        Path(sys.argv[4]).touch()
        time.sleep(600)
    return judged(self, place, first, batch)
Judge.__call__ = slow
main(["apply", *sys.argv[1:3], "--output", sys.argv[3]])
"""


def test_what_is_killed_leaves_whole_files_and_goes_on_from_there(tmp_path):
    folder, output, hangs = tmp_path / "in", tmp_path / "out", tmp_path / "hangs"
    folder.mkdir()
    for number, name in enumerate("abc"):
        pq.write_table(shard(200, number), folder / f"{name}.parquet", row_group_size=50)
    write_recipe(made(), tmp_path / "recipe.json")
    whole = _apply(made(), folder, tmp_path / "whole")
    words = [str(tmp_path / "recipe.json"), str(folder), str(output), str(hangs)]
    child = subprocess.Popen([sys.executable, "-c", KILLED, *words], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: hangs.exists() and all((output / f"{name}.ids.parquet").exists() for name in "ab"))
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    for name in "ab":
        assert pq.read_table(output / f"{name}.ids.parquet").num_rows
    assert not (output / "c.ids.parquet").exists()
    again = _apply(made(), folder, output)
    assert again["reused"] == 2 and again["kept"] == whole["kept"]
    for name in "abc":
        first, second = (pq.read_table(place / f"{name}.ids.parquet") for place in (output, tmp_path / "whole"))
        assert first.equals(second)
    left = {path.name for path in output.iterdir()} - {path.name for path in (tmp_path / "whole").iterdir()}
    assert not left
