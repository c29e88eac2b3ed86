"""What blocks keep of a selection by facility location that is solved in one piece: cells against random rows.

    python -m benchmarks.blocks PATH [--blocks 64] [--select_ratio 0.1] [--lambdas 0,0.5] [--output FILE.json]

PATH: shards with id, quality and feature columns. For each lambda, *whole* is one run over all rows, *cells* and
*random* are the two ways to make blocks. Values are exact, of all rows against all selected ones, on the scale of
*whole*. `kept` is (cells - random) / (whole - random) in joint value: 1 loses nothing against one block.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.corpus import machine, seconds
from benchmarks.million import commit
from datamask import select as select_whole
from datamask.blocks import cutting, solving
from datamask.blocks.joining import join_blocks
from datamask.blocks.plan import Folder
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.corpus.corpus import Corpus
from datamask.evaluation.result import RunResult
from datamask.measured import Anchor
from datamask.objectives.joint import Scale

RESULT = Path(__file__).parent / "results" / "blocks.json"
ROWS_AT_ONCE = 2048


def values(corpus: Corpus, ids: pa.Array, ends: RunResult, lamb: float) -> dict[str, float]:
    """Values of a list of ids over all pairs, as shares of the attainable gain."""
    place = {name: row for row, name in enumerate(corpus.ids.to_pylist())}
    rows = np.array([place[name] for name in ids.to_pylist()])
    members = corpus.features[np.sort(rows)].T
    nearest = [
        (corpus.features[low : low + ROWS_AT_ONCE] @ members).max(axis=1) for low in range(0, len(corpus), ROWS_AT_ONCE)
    ]
    raw = float(np.maximum(np.concatenate(nearest), 0.0).mean(dtype=np.float64))

    def share(value: float, anchor: Anchor | None) -> float:
        assert anchor is not None
        return Scale.calibrated(anchor)(value)

    assert ends.anchors is not None
    quality = share(float(corpus.quality[rows].mean()), ends.anchors.quality)
    diversity = share(raw, ends.anchors.diversity["facility"])
    return {
        "selected": len(rows),
        "quality": quality,
        "diversity": diversity,
        "raw_diversity": raw,
        "joint": lamb * quality + (1 - lamb) * diversity,
    }


def by_blocks(config: RunConfig, count: int, by: str, work: Path) -> tuple[pa.Array, RunResult, dict[str, Any]]:
    """The ids of a selection by blocks, its own result, and what it took."""
    folder = Folder(work / f"{by}-{config.selection.lamb:g}")

    def every_block() -> None:
        for block in range(1, count + 1):
            solving.solve_block(folder, block)

    spent = {"cut": seconds(lambda: cutting.cut_blocks(config, count, by, folder))}
    spent |= {"pick": seconds(every_block), "swap": seconds(every_block)}
    plan = folder.plan()
    sizes = [sum(amounts) for amounts in plan.blocks]
    table, result, _ = join_blocks(folder)
    facts = {"seconds": spent, "rows_of_blocks": [min(sizes), max(sizes)]}
    return table.column(0), result, facts


def measure(path: str, count: int, ratio: float, lamb: float, work: Path) -> dict[str, Any]:
    """The three ways at one lambda."""
    selection = SelectionConfig.from_options(objective="facility", select_ratio=ratio, lamb=lamb)
    config = RunConfig(CorpusConfig((str(Path(path).absolute()),)), selection)
    corpus = open_corpus(config.corpus)
    taken = []
    spent = seconds(lambda: taken.append(select_whole(corpus, selection, cache_dir=work / "whole")))
    (whole,) = taken
    ways: dict[str, Any] = {"whole": {**values(corpus, whole.ids, whole.result, lamb), "seconds": spent}}
    for by in ("random", "cells"):
        ids, result, facts = by_blocks(config, count, by, work)
        ways[by] = {**values(corpus, ids, whole.result, lamb), **facts}
        estimate = result.estimate
        ways[by]["estimate"] = None if estimate is None else estimate.to_dict()
    joint = {name: way["joint"] for name, way in ways.items()}
    kept = (joint["cells"] - joint["random"]) / (joint["whole"] - joint["random"])
    return {"lamb": lamb, "kept": kept, "load_average": [round(load, 2) for load in os.getloadavg()], "ways": ways}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--blocks", type=int, default=64)
    parser.add_argument("--select_ratio", type=float, default=0.1)
    parser.add_argument("--lambdas", default="0,0.5")
    parser.add_argument("--output", default=str(RESULT))
    options = parser.parse_args()
    report: dict[str, Any] = {
        "corpus": Path(options.path.rstrip("/")).name,
        "blocks": options.blocks,
        "select_ratio": options.select_ratio,
        "commit": commit(),
        "machine": machine(),
        "lambdas": [],
    }
    with tempfile.TemporaryDirectory(prefix="datamask-bench-") as work:
        for lamb in map(float, options.lambdas.split(",")):
            report["lambdas"].append(measure(options.path, options.blocks, options.select_ratio, lamb, Path(work)))
            print(json.dumps(report["lambdas"][-1], indent=1), flush=True)
            Path(options.output).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
