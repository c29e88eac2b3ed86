"""What the paper says of lengths, redundancy and learning curves, measured on any corpus (docs/paper.md).

    python -m benchmarks.paper PART CORPUS [--rows N] [--length_column NAME] [--steps N] [--seed N] [--output FILE]

Selections keep 30 % of the rows, at lambda 0.5 where quality counts. Parts:

- ``lengths``: mean length of the rows that each method selects, as a share of the corpus's mean.
- ``redundancy``: by decile of quality, the mean cosine of two rows of the decile, the mean cosine of a row to its
  nearest other row of the corpus, and the share of rows with another at a cosine of 0.9 or more.
- ``curves``: REINFORCE from equal logits and from quality, for diversity alone and jointly with quality: quality and
  diversity of the selection at the start, after a tenth and a third of the steps, and at the end.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.corpus import machine
from benchmarks.million import commit
from datamask import CorpusConfig, open_corpus, select
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.evaluation.token_lengths import token_lengths
from datamask.learning.reinforce import Reinforce

RATIO, LAMB, NEAR = 0.3, 0.5, 0.9
OBJECTIVES = ("pairwise", "facility", "disf")
BASELINES = ("random", "top-quality", "cluster-balanced", "semdedup")
DECILES = 10


def lengths(corpus: Corpus, cache: Path, seed: int, steps: int) -> dict[str, Any]:
    """By method, the mean length of what it selects over that of all rows."""
    length = token_lengths(corpus)
    methods: dict[str, dict[str, Any]] = {name: {"estimator": name, "objective": "pairwise"} for name in BASELINES}
    for name in OBJECTIVES:
        methods |= {f"{name} alone": {"objective": name, "lamb": 0.0}, f"{name} with quality": {"objective": name}}
    shares = {}
    for name, words in methods.items():
        selection = select(corpus, cache_dir=cache, select_ratio=RATIO, **{"lamb": LAMB, "seed": seed, **words})
        shares[name] = float(length[selection.mask].mean() / length.mean())
    return {"mean_length": float(length.mean()), "share_of_mean": shares}


def redundancy(corpus: Corpus, cache: Path, seed: int, steps: int) -> dict[str, Any]:
    """Three measures of redundancy in each decile of quality, worst first."""
    nearest = Pool(corpus, torch.device("cpu"), cache).graph(2).similarities[:, 1]
    features = corpus.features
    rows = []
    for part in np.array_split(np.argsort(corpus.quality, kind="stable"), DECILES):
        total, n = features[part].sum(0, dtype=np.float64), len(part)
        rows.append(
            {
                "quality": float(corpus.quality[part].mean()),
                "pair_cosine": float((total @ total - n) / (n * (n - 1))),
                "nearest_cosine": float(nearest[part].mean()),
                "near_rows": float((nearest[part] >= NEAR).mean()),
            }
        )
    return {"deciles": rows}


def curves(corpus: Corpus, cache: Path, seed: int, steps: int) -> dict[str, Any]:
    """Calibrated quality and diversity of the readout along REINFORCE's steps, by where it starts and what counts."""
    points = sorted({1, max(1, steps // 10), max(1, steps // 3), steps})
    pool, arms = Pool(corpus, torch.device("cpu"), cache), {}
    for init in ("same", "quality"):
        for name, lamb in (("diversity alone", 0.0), ("joint", LAMB)):
            config = SelectionConfig.from_options(
                estimator="reinforce", objective="pairwise", lamb=lamb, select_ratio=RATIO, init=init, n_epochs=steps,
                seed=seed, polish="none",
            )  # fmt: skip
            learner = Reinforce(pose(pool, config).problem, config)
            state, arm = learner.init(), {}
            for step in range(steps + 1):
                if step in (0, *points):
                    values = learner.problem.joint.evaluate(learner.readout(state))
                    arm[str(step)] = {"quality": values.quality, "diversity": values.diversity}
                if step < steps:
                    state, _ = learner.step(state)
            arms[f"{name}, from {'quality' if init == 'quality' else 'equal logits'}"] = arm
    return {"arms": arms}


PARTS: dict[str, Callable[[Corpus, Path, int, int], dict[str, Any]]] = {
    "lengths": lengths,
    "redundancy": redundancy,
    "curves": curves,
}


def main(arguments: list[str] | None = None) -> None:
    """Measure one part and print it, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("corpus")
    parser.add_argument("--rows", type=int, help="a uniform sample of so many (all)")
    parser.add_argument("--length_column", help="tokens or characters per row (found by name)")
    parser.add_argument("--steps", type=int, default=500, help="of REINFORCE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="a JSON file to which the part is added, under CORPUS and its name")
    options = parser.parse_args(arguments)
    config = CorpusConfig((options.corpus,), rows=options.rows, length_column=options.length_column)
    corpus = open_corpus(config)
    with tempfile.TemporaryDirectory() as cache:
        measured = PARTS[options.part](corpus, Path(cache), options.seed, options.steps)
    entry = {
        "part": options.part,
        "corpus": Path(options.corpus).resolve().name,
        "n": len(corpus),
        "seed": options.seed,
        **measured,
        "commit": commit(),
        "machine": machine(),
    }
    print(json.dumps(entry, indent=1))
    if options.output is not None:
        kept = json.loads(options.output.read_text("utf-8")) if options.output.is_file() else {}
        kept[f"{entry['corpus']}, {options.part}"] = entry
        options.output.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
