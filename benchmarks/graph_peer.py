"""The neighbor graph by another library, run by the interpreter of an environment that has it.

    PYTHON graph_peer.py NAME[:EFFORT] FEATURES.npy K THREADS OUT.npy

Writes the K nearest rows of every row, int32 ``(N, K)``, and prints seconds, CPU seconds, peak memory and version as
one line of JSON. FEATURES: float32 ``(N, d)``, rows of unit length. EFFORT is each library's own measure of the work
of a search: probed cells (faiss-ivf), kept candidates (usearch), searched leaves (scann).
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def faiss(features: np.ndarray, k: int, threads: int, effort: int) -> np.ndarray:
    """Compare all pairs."""
    import faiss as library

    library.omp_set_num_threads(threads)
    index = library.IndexFlatIP(features.shape[1])
    index.add(features)
    return index.search(features, k)[1]


def faiss_ivf(features: np.ndarray, k: int, threads: int, effort: int) -> np.ndarray:
    """Compare each row with the rows of the `effort` nearest of 1,024 cells."""
    import faiss as library

    library.omp_set_num_threads(threads)
    dim, cells = features.shape[1], min(1024, len(features) // 40)
    index = library.IndexIVFFlat(library.IndexFlatIP(dim), dim, cells, library.METRIC_INNER_PRODUCT)
    index.train(features)
    index.add(features)
    index.nprobe = effort
    return index.search(features, k)[1]


def usearch(features: np.ndarray, k: int, threads: int, effort: int) -> np.ndarray:
    """Walk a hierarchical small-world graph with `effort` kept candidates."""
    from usearch.index import Index

    index = Index(ndim=features.shape[1], metric="ip", dtype="f32", expansion_search=effort)
    index.add(np.arange(len(features)), features, threads=threads)
    return np.asarray(index.search(features, k, threads=threads).keys)


def scann(features: np.ndarray, k: int, threads: int, effort: int) -> np.ndarray:
    """Score quantized rows of the `effort` nearest leaves, and 4 K of them exactly."""
    import scann as library

    leaves = round(2 * math.sqrt(len(features)))
    builder = library.scann_ops_pybind.builder(features, k, "dot_product")
    builder = builder.tree(num_leaves=leaves, num_leaves_to_search=effort, training_sample_size=len(features))
    searcher = builder.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(4 * k).build()
    searcher.set_num_threads(threads)
    return np.asarray(searcher.search_batched_parallel(features)[0])


SEARCHES: dict[str, tuple[Any, str]] = {
    "faiss": (faiss, "faiss-cpu"),
    "faiss-ivf": (faiss_ivf, "faiss-cpu"),
    "usearch": (usearch, "usearch"),
    "scann": (scann, "scann"),
}
"""By name: the search, and the package that it needs."""


def main() -> None:
    who, path, k, threads, out = sys.argv[1:]
    name, _, effort = who.partition(":")
    search, package = SEARCHES[name]
    features = np.load(path)
    start, cpu = time.perf_counter(), time.process_time()
    indices = search(features, int(k), int(threads), int(effort or 0))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    # where a search finds fewer than K rows, the row itself fills the list: it counts as not found
    rows = np.arange(len(indices))[:, None]
    missing = (indices < 0) | (indices >= len(indices))
    np.save(out, np.where(missing, rows, indices).astype(np.int32))
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    version = importlib.metadata.version(package)
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, "compile": 0.0, "version": [package, version]}))


if __name__ == "__main__":
    main()
