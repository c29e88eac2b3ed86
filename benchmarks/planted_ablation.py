"""Does an ablation name what is planted, and claim nothing where nothing is?

    python -m benchmarks.planted_ablation [--planted 20] [--null 200] [--workers 1] [--output FILE.json]

On made corpora of 2,000 rows (`tests/making/planted.py`). Planted: rows of the target's language have
middling quality and lie a little to one side; right is that the planted method, pair-wise similarity at the lambda that
selects most of them, is better than random. Null: the same corpora with features and scores shuffled over the texts,
and several targets, k-means regions; right is that no method is told apart from random or from the best simple baseline
on any target. The lambda that selects most wanted rows is counted by their kind, without the texts.

Facility location and pair-wise similarity take part, and every other method but the paper's preset: 5,000 steps of
learned masks take longer than all others together. Seeds that the file of results holds already are not done again, so
a stopped benchmark continues.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.million import commit
from datamask.ablation.question import METHODS, AblationQuestion
from datamask.analyses.ablation.compute import ablate
from datamask.config.target import Target
from datamask.corpus.corpus import Corpus
from tests.making.planted import WANTED, planted_corpus
from tests.making.pools import corpus_of

RESULTS = Path(__file__).parent / "results" / "planted-ablation.json"
ROWS = 2_000
LAMBDAS = (0.0, 0.2, 0.35, 0.5, 0.7, 0.8)
QUESTION = AblationQuestion(
    methods=tuple(name for name in METHODS if name != "masks"), objectives=("facility", "pairwise"), lambdas=LAMBDAS
)
PLANTED = "pairwise-0.8"
"""Of the tried lambdas the one that selects most wanted rows, in every seed (`wanted_shares`)."""


def shuffled(corpus: Corpus, seed: int) -> Corpus:
    """The same texts, with features and scores of other rows, both shuffled by themselves."""
    rng = np.random.default_rng([43, seed])
    return corpus_of(
        corpus.features[rng.permutation(len(corpus))],
        corpus.quality[rng.permutation(len(corpus))],
        text=corpus.metadata["text"].to_pylist(),
    )


def planted(seed: int) -> dict:
    """One corpus with a method that is best."""
    corpus, _, texts = planted_corpus(seed, n=ROWS)
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        result = ablate(corpus, replace(QUESTION, target=Target.own(texts)), folder, texts=texts, device="cpu")
    place = [method.name for method in result.methods].index(PLANTED)
    to_random, to_simple = result.to_random(place, 0), result.to_simple(place, 0)
    assert to_random is not None and to_simple is not None
    return {
        "right": to_random.verdict == "better",
        "to_random": to_random.verdict,
        "to_simple": to_simple.verdict,
        "difference": to_random.mean,
        "cpu_seconds": round(time.process_time() - start, 2),
    }


def null(seed: int) -> dict:
    """One corpus where no method can be better than another."""
    corpus = shuffled(planted_corpus(1_000 + seed, n=ROWS)[0], seed)
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        result = ablate(corpus, QUESTION, folder, device="cpu")
    claims = [
        {"method": cell["method"], "target": cell["target"], "against": against, "verdict": cell[against]["verdict"]}
        for cell in result.to_dict()["derived"]["cells"]
        for against in ("to_random", "to_simple")
        if cell[against]["verdict"] != "level"
    ]
    return {
        "right": not claims,
        "claims": claims,
        "targets": len(result.targets),
        "cpu_seconds": round(time.process_time() - start, 2),
    }


def wanted_shares(seed: int) -> dict[str, float]:
    """Share of wanted rows among what pair-wise similarity selects at each lambda, from the whole corpus."""
    from datamask import select

    corpus, kind, _ = planted_corpus(seed, n=ROWS)
    shares = {}
    for lamb in LAMBDAS:
        chosen = select(corpus, objective="pairwise", lamb=lamb, select_ratio=QUESTION.ratio).ids.to_numpy()
        shares[f"pairwise-{lamb:g}"] = float((kind[chosen] == WANTED).mean())
    return shares


def report_of(seeds: dict[str, dict[str, dict]]) -> dict:
    """What the file of results holds; the interval is Clopper and Pearson's."""
    from scipy.stats import binomtest

    counts = {}
    for kind, of_kind in seeds.items():
        if of_kind:
            right = sum(answer["right"] for answer in of_kind.values())
            ends = binomtest(len(of_kind) - right, len(of_kind)).proportion_ci(0.95, "exact")
            counts[kind] = {
                "of": len(of_kind),
                "right": right,
                "wrong_interval": [round(float(ends.low), 4), round(float(ends.high), 4)],
                "most_cpu_seconds": max(answer["cpu_seconds"] for answer in of_kind.values()),
            }
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "commit": commit(),
        "objectives": QUESTION.objectives,
        "counts": counts,
        "seeds": seeds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planted", type=int, default=20, help="seeds with a method that is best")
    parser.add_argument("--null", type=int, default=200, help="seeds without a difference to find")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    seeds: dict[str, dict[str, dict]] = {"planted": {}, "null": {}}
    if options.output.exists():
        seeds = json.loads(options.output.read_text())["seeds"]
    with ProcessPoolExecutor(options.workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for name, once, count in (("planted", planted, options.planted), ("null", null, options.null)):
            left = [seed for seed in range(count) if str(seed) not in seeds[name]]
            for seed, answer in zip(left, pool.map(once, left)):
                seeds[name][str(seed)] = answer
                options.output.write_text(json.dumps(report_of(seeds), indent=1) + "\n")
    for name, counted in report_of(seeds)["counts"].items():
        low, high = counted["wrong_interval"]
        print(f"{name}: {counted['right']} of {counted['of']} right; wrong in {low:.1%} to {high:.1%} (95 %)")


if __name__ == "__main__":
    main()
