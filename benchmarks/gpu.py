"""Whether a GPU selects what the CPU selects, and how long a million rows take on it.

    python -m benchmarks.gpu [--rows 1000000] [--dim 768] [--device cuda] [--output FILE]

Four parts, under ten minutes together on a card of 2023. A part that fails is told, and the next one begins.

- Agreement: 20,000 x 384 on both devices, solved and by masks. Values and marginals of one and the same mask; the joint
  value, on the CPU, of what each device selects; the ends of both scales; and the share of ids in common (ties and
  sampled masks may go another way).
- Beside the CPU: 63,666 x 384 on both devices, lambda 0.5, ratio 0.1: graph, solved, ten steps of 128 masks.
- Embedding: texts a second of a model of all-MiniLM-L6's size, with random weights, on both devices.
- Seconds: `--rows` x `--dim`, the same, beside a plain copy of the features and a plain matrix product of 16,384 of
  them with all, on the same card in the same run.

With ``--device cpu`` and few rows it tries the program itself.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from datamask import SelectionConfig, learning
from datamask.corpus.corpus import Corpus, Provenance
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.learning.loop import learn
from tests.making.bert import random_bert

CLUSTERS, RATIO, STEPS, MASKS = 200, 0.1, 10, 128
AGREEMENT_ROWS = 20_000
BESIDE_ROWS, BESIDE_DIM = 63_666, 384
OBJECTIVES = {
    "pairwise": ("solved", "masks"),
    "facility": ("solved", "masks"),
    "disf_fixed": ("solved", "masks"),
    "vendi": ("solved",),
}
PRODUCT_ROWS = 16_384
EMBEDDED_WORDS = 30_000


def corpus_of(rows: int, dim: int, seed: int = 0) -> Corpus:
    """Clustered unit rows with a quality that leans on the cluster."""
    rng = np.random.default_rng(seed)
    centres, level = rng.normal(size=(CLUSTERS, dim)).astype(np.float32), rng.normal(size=CLUSTERS)
    cluster = rng.integers(0, CLUSTERS, rows)
    features = np.empty((rows, dim), np.float32)
    for start in range(0, rows, 50_000):
        part = slice(start, start + 50_000)
        features[part] = centres[cluster[part]] + rng.normal(size=(len(cluster[part]), dim)).astype(np.float32)
        features[part] /= np.linalg.norm(features[part], axis=1, keepdims=True)
    provenance = Provenance(("made",), rows, rows, {"id": "id", "feature": "x", "quality": ["q"]})
    return Corpus(
        pa.array(np.arange(rows)),
        level[cluster] + rng.normal(size=rows),
        features,
        None,
        pa.table({"none": pa.nulls(rows)}).select([]),
        np.zeros(rows, np.int32),
        np.arange(rows),
        f"gpu-{rows}-{dim}-{seed}",
        provenance,
    )


def seconds(device: torch.device, call: Callable[[], Any]) -> tuple[float, Any]:
    """Wall time of a call until the device has done it, and what it gives."""
    start = time.perf_counter()
    answer = call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start, answer


def settings(objective: str, way: str) -> SelectionConfig:
    """A selection, solved or by masks."""
    by_masks = {"estimator": "counterfactual", "n_rollout": MASKS, "n_epochs": STEPS, "polish": "none"}
    return SelectionConfig.from_options(
        objective=objective, select_ratio=RATIO, **(by_masks if way == "masks" else {"estimator": "relaxed"})
    )


def agreement(device: torch.device, rows: int, dim: int) -> dict[str, Any]:
    """What both devices say of one problem."""
    corpus = corpus_of(rows, dim)
    half = torch.zeros(rows, dtype=torch.bool)
    half[:: round(1 / RATIO)] = True
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        pools = {
            name: Pool(corpus, where, Path(cache) / name)
            for name, where in (("cpu", torch.device("cpu")), ("device", device))
        }
        for objective, ways in OBJECTIVES.items():
            for way in ways:
                config = settings(objective, way)
                problems = {name: pose(pool, config) for name, pool in pools.items()}
                masks = {
                    name: learn(learning.load(config.estimator)(posed.problem, config)).mask.cpu()
                    for name, posed in problems.items()
                }
                judge, ends = problems["cpu"].problem.joint, [posed.diversity_anchors for posed in problems.values()]
                values = {name: judge.evaluate(mask).joint for name, mask in masks.items()}
                first, second = masks["cpu"], masks["device"]
                answers[f"{objective}, {way}"] = {
                    "joint": values,
                    "ends_apart": max(
                        abs(getattr(ends[0][objective], end) - getattr(ends[1][objective], end))
                        for end in ("random", "best")
                    ),
                    "ids_in_common": float((first & second).sum() / first.sum()),
                }
                tell(f"{objective}, {way}", answers[f"{objective}, {way}"])
            functions = [pool.function(objective, int(half.sum())) for pool in pools.values()]
            values_of = [function.value(half.to(function.device)) for function in functions]
            marginals = [function.final_marginals(half.to(function.device)).cpu() for function in functions]
            answers[f"{objective}, one mask"] = {
                "value_apart": abs(values_of[0] - values_of[1]),
                "marginals_apart": float((marginals[0] - marginals[1]).abs().max() / marginals[0].abs().max()),
            }
            tell(f"{objective}, one mask", answers[f"{objective}, one mask"])
    return answers


def timings(device: torch.device, corpus: Corpus) -> dict[str, float]:
    """Seconds of copy, product, graph, solving and masks."""
    answers: dict[str, float] = {}

    def keep(name: str, number: float) -> None:
        answers[name] = number
        tell(f"{device.type}, {name}", number)

    with tempfile.TemporaryDirectory() as cache:
        pool = Pool(corpus, device, Path(cache))
        seconds(device, lambda: pool.features[:1000] @ pool.features[:1000].T)  # the first product loads libraries
        keep("copy", seconds(device, pool.features.clone)[0])
        head = pool.features[:PRODUCT_ROWS]
        took, _ = seconds(device, lambda: [(head @ part.T).shape for part in pool.features.split(PRODUCT_ROWS)])
        keep(f"product of {len(head):,} rows with all", took)
        for objective in ("pairwise", "facility"):
            before = pool.seconds_graph
            posed, posed_problem = seconds(device, partial(pose, pool, settings(objective, "solved")))
            problem = posed_problem.problem
            graph = pool.seconds_graph - before
            keep(f"{objective}: ends of the scale", posed - graph)
            if graph:
                keep(f"{objective}: graph", graph)
            for way in ("solved", "masks"):
                config = settings(objective, way)
                estimator = learning.load(config.estimator)(problem, config)
                took, learned = seconds(device, partial(learn, estimator))
                keep(f"{objective}: {way}", took)
                keep(f"{objective}: {way}, joint", problem.joint.evaluate(learned.mask).joint)
    return answers


def timings_of_both(device: torch.device, rows: int, dim: int) -> dict[str, Any]:
    """Seconds of both devices on one corpus."""
    corpus = corpus_of(rows, dim, seed=2)
    return {str(where): timings(where, corpus) for where in (device, torch.device("cpu"))}


def embedding(device: torch.device) -> dict[str, float]:
    """Texts of some 130 tokens that `prepare --embedder st:` embeds a second, on both devices."""
    from datamask.corpus.embedders.sentences import SentenceModel

    words = [f"word{number}" for number in range(EMBEDDED_WORDS)]
    rng = np.random.default_rng(0)
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = random_bert(Path(scratch) / "minilm", words, hidden=384, layers=6)
        for where, batches in ((device, 8), (torch.device("cpu"), 2)):
            model = SentenceModel(folder, str(where))
            texts = [" ".join(rng.choice(words, rng.integers(60, 200))) for _ in range(model.batch)]
            model.transform(texts)  # loads libraries
            took, _ = seconds(where, partial(model.transform, batches * texts))
            rates[str(where)] = batches * len(texts) / took
            tell(f"{where}, texts a second", rates[str(where)])
    return rates


def tell(name: str, value: Any) -> None:
    """Print a number as soon as it is known."""
    print(f"{name}: {value}", flush=True)


def main() -> None:
    """All parts, printed and kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    device = torch.device(options.device)
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    report: dict[str, Any] = {
        "device": card,
        "cpu": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "rows": options.rows,
        "dim": options.dim,
    }
    parts = {
        "agreement": lambda: agreement(device, min(AGREEMENT_ROWS, options.rows), min(BESIDE_DIM, options.dim)),
        "embedding": lambda: embedding(device),
        "seconds": lambda: timings(device, corpus_of(options.rows, options.dim, seed=1)),
        "beside_the_cpu": lambda: timings_of_both(device, min(BESIDE_ROWS, options.rows), min(BESIDE_DIM, options.dim)),
    }
    for name, part in parts.items():
        try:
            report[name] = part()
        except Exception:  # the next part may well work
            report[name] = traceback.format_exc()
            print(report[name], file=sys.stderr, flush=True)
        if options.output is not None:
            options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
