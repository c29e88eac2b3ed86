"""Small corpora as scratch, with clusters, and an engine that does tasks one after the other in this process."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig
from datamask.errors import Stopped
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.engines.replies import function_of
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.scratch_writing import write_scratch
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.work.context import Work


def clustered(rows: int, dim: int = 16, clusters: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit features float32 ``(rows, dim)`` around so many centres, and qualities."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(clusters, dim)) + 0.3
    features = centres[rng.integers(0, clusters, rows)] + 0.6 * rng.normal(size=(rows, dim))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features.astype(np.float32), rng.normal(size=rows)


def scratch_of(folder: Path, features: np.ndarray, quality: np.ndarray, shards: int = 3) -> Scratch:
    """The scratch of a corpus of these rows in so many shards."""
    place = folder / "shards"
    place.mkdir(parents=True)
    for number, rows in enumerate(np.array_split(np.arange(len(features)), shards)):
        table = pa.table(
            {
                "id": pa.array([f"row-{row:07d}" for row in rows]),
                "quality": quality[rows],
                "features": pa.FixedSizeListArray.from_arrays(pa.array(features[rows].ravel()), features.shape[1]),
            }
        )
        pq.write_table(table, place / f"{number:03d}.parquet")
    return write_scratch(WholeCorpus.open(CorpusConfig((str(place),))), folder / "scratch")


class SerialEngine(Engine):
    """Does tasks one after the other, here.

    Attributes:
        calls: (task without its module, number) of every call. backwards: whether the last is done first.
    """

    def __init__(self, backwards: bool = False) -> None:
        self.calls: list[tuple[str, int]] = []
        self.backwards = backwards

    def run(self, task, arguments, *, poll, on_done=None):
        function, results = function_of(task), {}
        places = range(len(arguments))
        for place in reversed(places) if self.backwards else places:
            poll()
            self.calls.append((task.rpartition(":")[2], arguments[place]["number"]))
            results[place] = function(dict(arguments[place]))
            if on_done is not None:
                on_done(place, results[place])
        return [results[place] for place in places]

    def close(self) -> None:
        pass

    @property
    def workers(self) -> int:
        return 1


def with_stops(attempt, most: int, more: int = 0):
    """What work comes to that is stopped again and again, and goes on each time.

    Args:
        attempt: does it by an engine, in a context. most: calls until the first stop. more: that many after each.

    Returns:
        What the last attempt returns, and the calls of all.
    """
    calls: list[tuple[str, int]] = []
    while True:
        engine = SerialEngine()

        def poll(engine=engine, most=most) -> None:
            if len(engine.calls) >= most:
                raise Stopped("stopped")

        try:
            return attempt(engine, Work(poll)), calls + engine.calls
        except Stopped:
            calls += engine.calls
            most += more


def loaded(argument) -> dict:
    """A task: which of these a worker has loaded."""
    return {"modules": [name for name in ("numba", "torch") if name in sys.modules]}


def forget_dual(scratch: Scratch) -> None:
    """Remove what the passes of earlier solutions came to."""
    shutil.rmtree(scratch.folder / "dual", ignore_errors=True)
