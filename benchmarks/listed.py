"""Facility over all rows: rounds of blocks against whole lists on disk, on the same lists of the same rows.

    python -m benchmarks.listed --work FOLDER [--rows 1000000] [--output FILE]

A clustered synthetic corpus of `--rows` x 128 lies in FOLDER as scratch; ratio 0.1, lambda 0.5, two workers. The rounds
come first and leave the lists of the blocks, which the whole lists are made of, so the CPU seconds of each are those of
the solver alone, but for the graph, which is counted apart. Joint values stand on one scale, that of the whole lists,
with what is covered estimated from the same 10,000 rows. Memory is anonymous, of the process and its workers together.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from datamask.config import SelectionConfig
from datamask.corpus.list_length import list_length
from datamask.out_of_core.cells import CellBlocks
from datamask.out_of_core.engines.local import LocalEngine
from datamask.out_of_core.facility import LISTED_BLOCK_ROWS, solve_facility
from datamask.out_of_core.feature_moments import FeatureMoments
from datamask.out_of_core.scratch import FORMAT, RECORD, Scratch, open_scratch

DIM, RATIO, LAMB, WORKERS = 128, 0.1, 0.5, 2
ROWS_AT_ONCE, CLUSTER_ROWS = 100_000, 250


def corpus(place: Path, rows: int) -> Scratch:
    """The scratch of a clustered corpus, made where it is not there."""
    if not (place / RECORD).exists():
        place.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(rows // CLUSTER_ROWS, DIM)).astype(np.float32) + np.float32(0.3)
        with (place / "000000.features").open("wb") as file:
            for low in range(0, rows, ROWS_AT_ONCE):
                n = min(ROWS_AT_ONCE, rows - low)
                features = centres[rng.integers(0, len(centres), n)] + 0.8 * rng.normal(size=(n, DIM))
                features /= np.linalg.norm(features, axis=1, keepdims=True)
                file.write(features.astype(np.float16).tobytes())
        rng.normal(size=rows).tofile(place / "000000.quality")
        rng.integers(0, 2**63, rows).astype(np.uint64).tofile(place / "000000.id_hash")
        moments = FeatureMoments(rows, np.zeros(DIM), np.ones(DIM)).to_dict()
        record = {"format": FORMAT, "dim": DIM, "rows": [rows], "files": ["a"], "lengths": False, "dropped": {}}
        (place / RECORD).write_text(json.dumps(record | {"digest": str(rows), "moments": moments}))
    return open_scratch(place)


class Memory:
    """Watches the anonymous memory of this process and its children, in bytes, from `began` on."""

    def __init__(self) -> None:
        self.own = self.all = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def began(self) -> None:
        """Forget what was before."""
        self.own = self.all = 0

    def _watch(self) -> None:
        while True:
            sizes = [_anonymous("self"), *(_anonymous(each) for each in _children())]
            self.own, self.all = max(self.own, sizes[0]), max(self.all, sum(sizes))
            time.sleep(0.2)


def _anonymous(process: str) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        return 1024 * int(status.split("RssAnon:")[1].split()[0])
    except (OSError, IndexError):
        return 0


def _children() -> list[str]:
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if int((path / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1]) == os.getpid():
                    found.append(path.name)
            except OSError:
                continue
    return found


def _cpu() -> float:
    of = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in of)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    scratch, size, memory = corpus(options.work / "scratch", options.rows), round(RATIO * options.rows), Memory()
    config = SelectionConfig.from_options(
        objective="facility", estimator="blocks", lamb=LAMB, select_ratio=RATIO, block_rows=LISTED_BLOCK_ROWS
    )
    record: dict[str, Any] = {"rows": options.rows, "dim": DIM, "cores": os.cpu_count()}

    def counted(name: str, work: Any) -> Any:
        memory.began()
        began, cpu = time.perf_counter(), _cpu()
        with LocalEngine(WORKERS) as engine:
            outcome = work(engine)
        record[name] = {
            "seconds": time.perf_counter() - began,
            "cpu_seconds": _cpu() - cpu,
            "own_memory": memory.own,
            "memory": memory.all,
        }
        print(name, record[name], flush=True)
        return outcome

    cells = CellBlocks(scratch, LISTED_BLOCK_ROWS, list_length(RATIO, options.rows))
    counted("graph", cells.prepare)
    solved = {
        name: counted(name, lambda engine, whole=whole: solve_facility(scratch, config, size, engine, whole=whole))
        for name, whole in (("rounds", False), ("lists", True))
    }
    ends = {"quality": solved["lists"].anchors["quality"], **solved["lists"].anchors["diversity"]}
    for name, solution in solved.items():
        shares = [
            (value - ends[term]["random"]) / (ends[term]["best"] - ends[term]["random"])
            for term, value in (("quality", solution.raw["quality"]), ("facility", solution.estimate.value))
        ]
        record[name] |= {
            "quality": shares[0],
            "diversity": shares[1],
            "joint": LAMB * shares[0] + (1 - LAMB) * shares[1],
        }
    record["lists"]["gap"] = solved["lists"].upper_bound - solved["lists"].bounded[1]
    record["recall"] = solved["lists"].graph.recall
    print(json.dumps(record, indent=1))
    if options.output:
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
