"""What the tasks of blocks take: memory as it is said before, and files as much as is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from datamask.errors import OptionError
from datamask.out_of_core import facility
from datamask.out_of_core.facility import CELL_BYTES, LIST_BYTES, disk_bytes, worker_bytes
from datamask.out_of_core.feature_moments import FeatureMoments
from datamask.out_of_core.scratch import FORMAT, Scratch, open_scratch
from tests.making.run_folders import ROOT
from tests.making.shards import SerialEngine, clustered, scratch_of

MEASURED = """
import json, sys, threading, time
from pathlib import Path
from datamask.out_of_core import partition
from datamask.out_of_core.cells import CellBlocks
from datamask.out_of_core.scratch import open_scratch
from tests.making.shards import SerialEngine

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])

peak, most, over = 0, {}, threading.Event()

def watch():
    global peak
    while not over.is_set():
        peak = max(peak, anonymous())
        time.sleep(0.002)

class Measured(SerialEngine):
    def run(self, task, arguments, **options):
        global peak
        before = peak = anonymous()
        results = super().run(task, arguments, **options)
        most[task] = max(most.get(task, 0), peak - before)
        return results

watcher = threading.Thread(target=watch)
watcher.start()
partition.PART_ROWS = int(sys.argv[1])
for folder in sys.argv[2:]:  # the first, a small one, loads libraries and compiled loops
    most.clear()
    scratch, engine = open_scratch(folder), Measured()
    cells = CellBlocks(scratch, -(-scratch.rows // 3), 80)
    cells.prepare(engine)
    files = sum(path.stat().st_size for path in cells.folder.iterdir())
over.set()
watcher.join()
print(json.dumps([most, files]))
"""


def raw_scratch(place: Path, rows: int, dim: int) -> Scratch:
    """The scratch of random rows, written without shards."""
    place.mkdir()
    features, quality = clustered(rows, dim, 300)
    features.astype(np.float16).tofile(place / "000000.features")
    quality.tofile(place / "000000.quality")
    np.random.default_rng(0).permutation(rows).astype(np.uint64).tofile(place / "000000.id_hash")
    record = {"format": FORMAT, "dim": dim, "rows": [rows], "files": ["a"], "lengths": False, "dropped": {}}
    moments = FeatureMoments(rows, np.zeros(dim), np.ones(dim)).to_dict()
    (place / "scratch.json").write_text(json.dumps(record | {"digest": "d", "moments": moments}))
    return open_scratch(place)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own account of memory")
def test_no_task_takes_more_than_was_said(tmp_path, monkeypatch):
    rows, dim, part_rows = 60_000, 16, 8192
    folders = [str(raw_scratch(tmp_path / str(count), count, dim).folder) for count in (3000, rows)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(part_rows), *folders], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    most, files = json.loads(done.stdout)
    count = rows // 10
    assert len(most) > 8
    # what grows with the block, without what a process and its libraries take
    monkeypatch.setattr(facility, "PART_ROWS", part_rows)
    grows = LIST_BYTES * 80 * (rows // 3 + part_rows)
    assert worker_bytes(rows, dim, count, rows // 3) == 150_000_000 + grows
    assert worker_bytes(10**7, 768, 10**5, 1000) == 150_000_000 + CELL_BYTES * 20_000 * 768, "the centres of cells"
    # blocks are not all of the same size
    assert max(most.values()) <= 1.1 * grows + 10_000_000, most
    assert files <= disk_bytes(rows, dim, count)


def test_a_disk_without_room_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    scratch = scratch_of(tmp_path, *clustered(500))
    needed = disk_bytes(500, 16, 50)
    monkeypatch.setattr(facility.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": needed - 1}))
    with pytest.raises(OptionError, match=r"has 0\.0 GB free; name a larger disk with --scratch_dir"):
        facility.check_room(scratch, 50)
    monkeypatch.setattr(facility.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": needed}))
    facility.check_room(scratch, 50)
    # what is there already is not needed once more
    cells = facility.CellBlocks(scratch, 200, 80)
    cells.prepare(SerialEngine())
    present = sum(path.stat().st_size for path in cells.folder.iterdir())
    monkeypatch.setattr(facility.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": needed - present}))
    facility.check_room(scratch, 50)
