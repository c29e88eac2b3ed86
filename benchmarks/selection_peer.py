"""Facility location by another library, run by the interpreter of an environment that has it.

    PYTHON selection_peer.py NAME FEATURES.npy SIZE OUT.npy MEMORY NEIGHBORS

Writes the selected rows, int64 ``(SIZE,)``, and prints seconds, CPU seconds and peak memory as one line of JSON.
FEATURES: float32 ``(N, d)``, rows of unit length. MEMORY: bytes that the library may use; one that needs more fails.
NEIGHBORS: list length of the sparse mode of submodlib.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


def similarities(features: np.ndarray) -> np.ndarray:
    """Cosines of all pairs, none below 0: float32 ``(N, N)``."""
    near = features @ features.T
    return np.maximum(near, 0, out=near)


def apricot(features: np.ndarray, size: int, neighbors: int) -> np.ndarray:
    """Pick greedily, lazily, from all pairs."""
    from apricot import FacilityLocationSelection

    near = similarities(features)
    return FacilityLocationSelection(size, metric="precomputed", optimizer="lazy").fit(near).ranking


def submodlib(features: np.ndarray, size: int, neighbors: int) -> np.ndarray:
    """Pick greedily, lazily, from all pairs."""
    from submodlib import FacilityLocationFunction

    near = similarities(features)
    return lazy_greedy(FacilityLocationFunction(n=len(features), mode="dense", sijs=near, separate_rep=False), size)


def submodlib_sparse(features: np.ndarray, size: int, neighbors: int) -> np.ndarray:
    """Pick greedily, lazily, from lists of neighbors."""
    from submodlib import FacilityLocationFunction

    listed = min(neighbors, len(features))
    return lazy_greedy(
        FacilityLocationFunction(n=len(features), mode="sparse", data=features, metric="cosine", num_neighbors=listed),
        size,
    )


def lazy_greedy(function, size: int) -> np.ndarray:
    """Maximize a function of submodlib."""
    picks = function.maximize(budget=size, optimizer="LazyGreedy", stopIfZeroGain=False, show_progress=False)
    return np.array([row for row, _ in picks])


def kmedoids(features: np.ndarray, size: int, neighbors: int) -> np.ndarray:
    """Swap medoids eagerly (FasterPAM) from random ones, on the distances of all pairs."""
    import kmedoids as library

    distances = 1 - similarities(features)
    return library.fasterpam(distances, size, random_state=0, n_cpu=1).medoids


def onebatch(features: np.ndarray, size: int, neighbors: int) -> np.ndarray:
    """Swap medoids on the distances to one batch of rows (OneBatchPAM)."""
    from onebatch import OneBatchPAM

    return OneBatchPAM(size, distance="cosine", random_state=0).fit(features).medoid_indices_


def pyversity_cover(features: np.ndarray, size: int, neighbors: int) -> np.ndarray:
    """Pick greedily what covers a concave function of all similarities best."""
    import pyversity

    scores = np.zeros(len(features), np.float32)
    return pyversity.diversify(features, scores, size, strategy="cover", diversity=1.0).indices


def gist(features: np.ndarray, size: int, neighbors: int) -> np.ndarray:
    """Keep the least distance of two selected rows as large as it can be (GIST, without weights)."""
    import gist as library

    utility, distance = library.LinearUtility(np.zeros(len(features))), library.CosineDistance()
    return library.gist(features, utility, distance, k=size, lam=1.0, seed=0).indices


SELECTIONS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "apricot": apricot,
    "submodlib": submodlib,
    "submodlib-sparse": submodlib_sparse,
    "kmedoids": kmedoids,
    "onebatch": onebatch,
    "pyversity-cover": pyversity_cover,
    "gist-select": gist,
}
"""By name. The last two maximize other functions of diversity: their values say what these are worth as facility."""


def main() -> None:
    who, path, size, out, memory, neighbors = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    select, features = SELECTIONS[who], np.load(path)
    select(features[:100], 10, int(neighbors))  # compiled before the clock starts
    start, cpu = time.perf_counter(), time.process_time()
    rows = select(features, int(size), int(neighbors))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    np.save(out, np.asarray(rows, dtype=np.int64))
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak}))


if __name__ == "__main__":
    main()
