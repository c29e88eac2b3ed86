"""What wide embeddings cost, against an earlier commit: every objective on corpora of 1,024 and 4,096 dimensions.

    python -m benchmarks.wide --work FOLDER --base COMMIT [--lifted PATH] [--rounds 3] [--threads 1] [--limit 900]
                              [--only PART ...] [--output FILE]

A part is CORPUS ROWSxDIMENSIONS OBJECTIVE, such as ``made 600x4096 pairwise``; each is kept in the output as it is
done, and not done again. A table stands beside the output. The corpora:

- ``made``, ``made flat``: made rows whose singular values fall as i^-0.6 over all dimensions, in 200 clusters of
  unequal size, with a common offset. The second has a smaller offset and closer clusters.
- ``lifted``: the rows of PATH, a folder of shards in the paper's columns, under a random rotation into more
  dimensions, with 5 % noise.

The trees select in turn, from an empty cache, at ratio 0.3 and lambda 0.5: CPU seconds of the command, and the values
of the selection. Loops are compiled before. The earlier tree is ended after `--limit` CPU seconds. At 4,096 dimensions
it may take hours, so this one selects alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.disf import joint_on
from benchmarks.million import ROOT, commit, timed

CLUSTERS, SHARD = 200, 10_000
FALL = 0.6
"""Singular values fall as ``i ** -FALL``, as those of text embeddings do."""

KINDS = {"made": (0, 1.0, 1.0), "made flat": (1, 0.3, 0.5)}
"""Seed, length of the common offset and of the clusters' centers, both in lengths of a row's own part."""

NOISE = 0.05
OBJECTIVES = ("pairwise", "facility", "disf", "disf_fixed", "vendi")
SIZES = ((600, 1024), (600, 4096), (30_000, 1024), (30_000, 4096))
ALONE_FROM = 4096
"""Dimensions from which on the earlier tree is left out."""


def rotation(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Orthonormal rows, float32 ``(rows, columns)``."""
    return np.linalg.qr(rng.normal(size=(columns, rows)))[0].T.astype(np.float32)


def made(kind: str, rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, float32 ``(rows, dim)``, and quality ``(rows,)`` of a made corpus."""
    seed, offset, centers = KINDS[kind]
    rng = np.random.default_rng(seed)
    scale = (np.arange(1, dim + 1) ** -FALL).astype(np.float32)
    length = float(np.linalg.norm(scale))
    share = 1 / np.arange(1, CLUSTERS + 1) ** 0.8
    cluster = rng.choice(CLUSTERS, rows, p=share / share.sum())
    own = rng.normal(size=(rows, dim)).astype(np.float32) * scale
    own += centers * (rng.normal(size=(CLUSTERS, dim)).astype(np.float32) * scale)[cluster]
    direction = rng.normal(size=dim).astype(np.float32)
    own += offset * length / np.linalg.norm(direction) * direction
    quality = rng.normal(size=CLUSTERS)[cluster] + rng.normal(size=rows)
    return own @ rotation(rng, dim, dim), quality


def lifted(corpus: Path, rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, float32 ``(rows, dim)``, and quality ``(rows,)`` of rows drawn from a folder of shards."""
    table = pa.concat_tables(
        [pq.read_table(path, columns=["quality_score", "feature_arr"]) for path in sorted(corpus.glob("*.parquet"))]
    )
    rng = np.random.default_rng(0)
    table = table.take(np.sort(rng.permutation(len(table))[:rows])).combine_chunks()
    column = table["feature_arr"].combine_chunks()
    features = np.asarray(column.flatten()).reshape(len(table), -1).astype(np.float32)
    if dim > features.shape[1]:
        noise = rng.normal(size=(len(table), dim)).astype(np.float32)
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        features = features @ rotation(rng, features.shape[1], dim) + NOISE / np.sqrt(dim) * lengths * noise
    return features, table["quality_score"].to_numpy()


def built(work: Path, kind: str, rows: int, dim: int, corpus: Path | None = None) -> Path:
    """A folder of shards in the paper's columns, written where it is missing; features are float16."""
    target = work / f"{kind.replace(' ', '-')}-{rows}-{dim}"
    if not (target / "part-000.parquet").exists():
        features, quality = lifted(corpus, rows, dim) if corpus is not None else made(kind, rows, dim)
        target.mkdir(parents=True, exist_ok=True)
        for shard in reversed(range(-(-len(features) // SHARD))):  # the first one last: it says that all are there
            part = slice(shard * SHARD, min((shard + 1) * SHARD, len(features)))
            flat = pa.array(features[part].astype(np.float16).ravel())
            columns = {
                "chunk_id": pa.array([f"row-{row}" for row in range(part.start, part.stop)]),
                "quality_score": pa.array(quality[part]),
                "feature_arr": pa.FixedSizeListArray.from_arrays(flat, features.shape[1]),
            }
            pq.write_table(pa.table(columns), target / f"part-{shard:03d}.parquet")
    return target


def tree_of(work: Path, base: str, warm: Path) -> Path:
    """A working tree of a commit, with its loops compiled by a selection of each objective."""
    tree = work / f"tree-{commit(base)}"
    if not tree.exists():
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(tree.resolve()), base], cwd=ROOT, check=True
        )
    for objective in OBJECTIVES:
        timed(warm.resolve(), tree, "all", ("--objective", objective))
    return tree


def table(results: dict[str, Any]) -> str:
    """A row per part: CPU seconds of both trees, joint values on the base's scale, and this tree's memory; medians."""
    lines = [
        "| corpus | objective | CPU seconds, here | base | ratio | joint here | base | gap here | base | MiB here |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]

    def cell(turns: list[dict[str, Any]], name: str, form: str) -> str:
        values = [turn[name] for turn in turns if turn.get(name) is not None]
        if values:
            return format(statistics.median(values), form)
        return f"not after {turns[0]['not_after']}" if name == "cpu_seconds" and turns else ""

    for name, part in results.items():
        here, base = ([dict(turn[tree]) for turn in part["turns"] if tree in turn] for tree in ("here", "base"))
        ends: dict[str, Any] = next((turn["anchors"] for turn in (*base, *here) if "anchors" in turn), {})
        for turn in (*here, *base):
            if "joint" in turn:
                turn["joint"] = joint_on(ends, turn)
        pairs = [
            turn["here"]["cpu_seconds"] / turn["base"]["cpu_seconds"]
            for turn in part["turns"]
            if "cpu_seconds" in turn.get("base", ())
        ]
        seconds, joints, gaps = (
            [cell(tree, key, form) for tree in (here, base)]
            for key, form in (("cpu_seconds", ".1f"), ("joint", ".6f"), ("gap", ".5f"))
        )
        ratio = f"{statistics.median(pairs):.2f}" if pairs else ""
        memory = f"{statistics.median(turn['peak_memory_bytes'] for turn in here) / 2**20:,.0f}"
        corpus, objective = name.rsplit(" ", 1)
        lines.append("| " + " | ".join([corpus, objective, *seconds, ratio, *joints, *gaps, memory]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Do the parts that are asked for and not done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="where corpora and the base's tree are made and kept")
    parser.add_argument("--base", required=True, help="the commit to compare with")
    parser.add_argument("--lifted", type=Path, help="a folder of shards in the paper's columns, of 384 dimensions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="all", help="a number, or all")
    parser.add_argument("--limit", type=int, default=900, help="CPU seconds for a selection by the base")
    parser.add_argument("--only", nargs="*", help="words that a part's name must hold, such as pairwise or 30000x1024")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "wide.json")
    options = parser.parse_args()
    results = json.loads(options.output.read_text()) if options.output.is_file() else {}
    kinds = [*KINDS, *(["lifted"] if options.lifted else [])]
    warm, tree = ROOT / "sample_data" / "tiny", None
    for objective in OBJECTIVES:
        timed(warm, ROOT, "all", ("--objective", objective))
    for kind, (rows, dim), objective in (
        (kind, size, objective) for size in SIZES for kind in kinds for objective in OBJECTIVES
    ):
        name = f"{kind} {rows}x{dim} {objective}"
        if name in results or not all(word in name.split() for word in options.only or ()):
            continue
        before = os.getloadavg()[0]
        corpus = built(options.work, kind, rows, dim, options.lifted if kind == "lifted" else None).resolve()
        words = ("--objective", objective, "--select_ratio", "0.3", "--lamb", "0.5")
        if dim < ALONE_FROM and tree is None:
            tree = tree_of(options.work, options.base, warm)
        base = tree if dim < ALONE_FROM else None
        turns = []
        for _ in range(options.rounds):
            turn = {} if base is None else {"base": timed(corpus, base, options.threads, words, options.limit)}
            turns.append(turn | {"here": timed(corpus, ROOT, options.threads, words)})
        results[name] = {
            "turns": turns,
            "base": None if base is None else commit(options.base),
            "commit": commit(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
            "load_before_and_after": [before, os.getloadavg()[0]],
        }
        options.output.write_text(json.dumps(results, indent=1) + "\n")
        options.output.with_suffix(".md").write_text(table(results))
        print(table({name: results[name]}), flush=True)
    if tree is not None:
        subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
