"""What NN-descent after a search of few cells saves, and what facility location loses by it.

    python -m benchmarks.descent PATH [PATH ...] [--ratio 0.1] [--lambdas 0.3,0.5,0.7] [--output FILE.json]

Two neighbor graphs are built of each corpus in one process, one after the other: by cells alone with an aim of 0.99, as
before NN-descent, and as `datamask.corpus.neighbors.build_neighbors` builds them now. CPU seconds count all threads;
recall is measured on the same 400 rows. Facility location then selects with either graph at each lambda, and all
selections are judged alike: the mean quality of the members, and the mean similarity of the same 20,000 rows to their
nearest member, compared with every member. On both scales 0 is a random selection and 1 the best: top quality, and
facility at lambda 0 with the first graph.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus import machine
from benchmarks.million import commit
from datamask import CorpusConfig, open_corpus, select
from datamask.config import SelectionConfig
from datamask.corpus import neighbors, partition_search
from datamask.corpus.corpus import Corpus
from datamask.corpus.list_length import list_length
from datamask.corpus.neighbors import NeighborGraph
from datamask.corpus.rounded_rows import rounded
from datamask.files import write_text
from datamask.work.context import Work

RESULTS = Path(__file__).parent / "results" / "descent.json"
AIM_BEFORE, JUDGED_ROWS, PIECE = 0.99, 20_000, 4096


def cells_alone(features: np.ndarray, k: int, threads: int) -> NeighborGraph:
    """The graph as it was built before NN-descent."""
    rows, ties = rounded(features), np.arange(len(features), dtype=np.uint64)
    cells = partition_search.cells_of(rows, k - 1, ties, recall=AIM_BEFORE)
    if cells is None:
        raise SystemExit("cells save nothing on this corpus, so all pairs are compared")
    placed = ties[cells.order]
    lists = partition_search.nearby_pairs(rows[cells.order], k - 1, cells, placed, work=Work(threads=threads))
    graph = neighbors.graph_of(*neighbors.sorted_lists(lists, placed), cells.order)
    return replace(graph, exact=False, recall=neighbors.measured_recall(rows, graph))


def built_now(features: np.ndarray, k: int, threads: int) -> NeighborGraph:
    """The approximate graph."""
    return neighbors.build_neighbors(features, k, search="approximate", work=Work(threads=threads))


def nearest_members(judged: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The similarity of each row to its nearest member, at least 0, float64."""
    best = np.zeros(len(judged), np.float32)
    for first in range(0, len(judged), PIECE):
        part = slice(first, first + PIECE)
        for low in range(0, len(members), PIECE):
            np.maximum(best[part], (judged[part] @ members[low : low + PIECE].T).max(axis=1), out=best[part])
    return best.astype(np.float64)


def measure(corpus: Corpus, ratio: float, lambdas: list[float], threads: int) -> dict[str, object]:
    """Both graphs of a corpus and what is selected with them."""
    features, n = np.ascontiguousarray(corpus.features, np.float32), len(corpus)
    size = math.floor(ratio * n + 0.5)
    k = list_length(size / n, n)
    ways = {"cells alone": cells_alone, "cells and NN-descent": built_now}
    for make in ways.values():  # what is compiled is compiled before the clock starts
        make(features[:30_000].copy(), k, threads)
    rng = np.random.default_rng(0)
    judged = features[np.sort(rng.choice(n, min(JUDGED_ROWS, n), replace=False))]
    quality, random = corpus.quality.astype(np.float64), rng.permutation(n)[:size]
    graphs: dict[str, dict[str, Any]] = {}
    folders = {}
    with tempfile.TemporaryDirectory(prefix="datamask-bench-") as folder:
        for name, make in ways.items():
            began = time.process_time()
            graph = make(features, k, threads)
            seconds = time.process_time() - began
            folders[name] = Path(folder) / name.replace(" ", "-")
            neighbors.stored_graph(corpus, folders[name]).keep(graph)
            graphs[name] = {"cpu": seconds, "recall": graph.recall, "selections": {}}

        def selected(name: str, lamb: float) -> tuple[np.ndarray, float]:
            config = SelectionConfig.from_options(
                objective="facility", lamb=lamb, select_ratio=ratio, neighbors="approximate"
            )
            began = time.process_time()
            selection = select(corpus, config, cache_dir=folders[name])
            return np.flatnonzero(selection.mask), time.process_time() - began

        best, _ = selected("cells alone", 0.0)
        ends = nearest_members(judged, features[random]).mean(), nearest_members(judged, features[best]).mean()
        least, most = quality.mean(), np.sort(quality)[-size:].mean()
        for lamb in lambdas:
            for name, found in graphs.items():
                rows, seconds = selected(name, lamb)
                shares = {
                    "quality": (quality[rows].mean() - least) / (most - least),
                    "diversity": (nearest_members(judged, features[rows]).mean() - ends[0]) / (ends[1] - ends[0]),
                }
                joint = lamb * shares["quality"] + (1 - lamb) * shares["diversity"]
                found["selections"][f"{lamb:g}"] = {**shares, "joint": joint, "cpu": seconds}
                print(name, lamb, json.dumps(found["selections"][f"{lamb:g}"]), flush=True)
    return {"rows": n, "dim": corpus.dim, "k": k, "graphs": graphs}


def table(report: dict[str, Any]) -> str:
    """The results as markdown."""
    first, *_ = report["corpora"].values()
    lambdas = list(first["graphs"]["cells alone"]["selections"])
    lines = [
        "# NN-descent after a search of few cells",
        "",
        f"Commit {report['commit']}; {json.dumps(report['machine'])}; {report['threads']} threads, cores shared with "
        "other programs. Ratio of both in one process; see `benchmarks/descent.py`.",
        "",
        "| corpus | graph | CPU seconds | ratio | recall | "
        + " | ".join(f"joint at λ {lamb} (quality, diversity)" for lamb in lambdas)
        + " | CPU seconds of a selection |",
        "|---" * (6 + len(lambdas)) + "|",
    ]
    for name, corpus in report["corpora"].items():
        before = corpus["graphs"]["cells alone"]["cpu"]
        for way, found in corpus["graphs"].items():
            of_lambdas = found["selections"].values()
            cells = [
                f"{name}, {corpus['rows']:,} x {corpus['dim']}, K {corpus['k']}",
                way,
                f"{found['cpu']:.1f}",
                f"{found['cpu'] / before:.2f}",
                f"{found['recall']:.4f}",
                *(f"{each['joint']:.4f} ({each['quality']:.3f}, {each['diversity']:.3f})" for each in of_lambdas),
                f"{np.mean([each['cpu'] for each in of_lambdas]):.1f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="corpora")
    parser.add_argument("--ratio", type=float, default=0.1)
    parser.add_argument("--lambdas", default="0.3,0.5,0.7")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    corpora: dict[str, Any] = {}
    report = {"commit": commit(), "machine": machine(), "threads": options.threads, "corpora": corpora}
    lambdas = [float(lamb) for lamb in options.lambdas.split(",")]
    for path in options.paths:
        corpus = open_corpus(CorpusConfig((path,)))
        corpora[Path(path).name] = measure(corpus, options.ratio, lambdas, options.threads)
        write_text(options.output, json.dumps(report, indent=1) + "\n")
        write_text(options.output.with_suffix(".md"), table(report))
    print(table(report))


if __name__ == "__main__":
    main()
