"""Does each judge of "which lambda?" prefer what is planted, and keep still where nothing is?

    python -m benchmarks.planted [--judge bigram|transformer] [--noise 100] [--trapped 100] [--output FILE.json]

On made corpora (`tests/evaluation/lambdas/planted.py`). Trapped: a hidden good region, a mass of near-copies that
speaks its language, and a trap of high scores; right is that the good region is shown to be better than random, than
the copies and than the trap, and the trap is not shown to be better than random. Noise: a whole search where quality
and features know nothing of the texts; right is "cannot be told apart from a random selection".

The transformer is the model that `which-lambda` trains, on few bytes: these languages are simple. Seeds that the file
of results holds already are not done again, so a stopped benchmark goes on.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from datamask.config.lambda_question import JUDGES, LambdaQuestion
from datamask.evaluation.lambdas import proxy_models, which_lambda
from datamask.evaluation.lambdas.transformer import SMALL
from tests.evaluation.lambdas.planted import comes_out, judged_selections, noise_corpus, trapped_corpus

TRAINING = {"bigram": 4_000, "transformer": 20_000}
"""Words, or bytes, of each selection that is trapped."""

NOISE_WORDS, NOISE_BYTES = 4_000, 5_000
LAMBDAS = {"bigram": (0.0, 0.25, 0.5, 0.75, 1.0), "transformer": (0.0, 1.0)}
NOISE_ROWS = 1_200
ASKED = 6_000
"""Bytes that the transformer must predict of a half-split of noise."""


def trapped(judge: str, seed: int) -> dict:
    """One corpus with a good region, and what the judge says of it, of copies and of the trap."""
    start = time.perf_counter()
    answers = judged_selections(*trapped_corpus(seed), judge, TRAINING[judge])
    return {"right": comes_out(answers), "answers": answers, "seconds": round(time.perf_counter() - start, 2)}


def noise(judge: str, seed: int) -> dict:
    """One corpus without a difference to find."""
    start = time.perf_counter()
    question = LambdaQuestion(
        ("pairwise",), (0.1,), LAMBDAS[judge], words=NOISE_WORDS, judge=judge, train_bytes=NOISE_BYTES
    )
    with tempfile.TemporaryDirectory() as folder:
        answer = which_lambda(noise_corpus(seed, n=NOISE_ROWS), question, folder, device="cpu")
    (curve,) = answer["measures"][0]["curves"]
    return {
        "right": curve["verdict"] == "level",
        "verdict": curve["verdict"],
        "against_random": curve["against_random"],
        "seconds": round(time.perf_counter() - start, 2),
    }


def report_of(judge: str, seeds: dict[str, dict[str, dict]]) -> dict:
    """What the file of results holds."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "judge": judge,
        "parameters": SMALL.parameters if judge == "transformer" else None,
        "right": {kind: sum(answer["right"] for answer in of_kind.values()) for kind, of_kind in seeds.items()},
        "of": {kind: len(of_kind) for kind, of_kind in seeds.items()},
        "seeds": seeds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", choices=JUDGES, default="bigram")
    parser.add_argument("--noise", type=int, default=100, help="seeds without a difference to find")
    parser.add_argument("--trapped", type=int, default=100, help="seeds with a good region")
    parser.add_argument("--output")
    options = parser.parse_args()
    torch.set_num_threads(1)
    proxy_models.ASKED_BYTES = ASKED
    output = Path(options.output or Path(__file__).parent / "results" / f"planted-{options.judge}.json")
    seeds: dict[str, dict[str, dict]] = {"trapped": {}, "noise": {}}
    if output.exists():
        seeds = json.loads(output.read_text())["seeds"]
    for name, once, count in (("noise", noise, options.noise), ("trapped", trapped, options.trapped)):
        for seed in range(count):
            if str(seed) not in seeds[name]:
                seeds[name][str(seed)] = once(options.judge, seed)
                output.write_text(json.dumps(report_of(options.judge, seeds), indent=1))
    report = report_of(options.judge, seeds)
    right, of = report["right"], report["of"]
    print(
        f"{options.judge}: the good region comes out in {right['trapped']} of {of['trapped']} seeds, "
        f'"cannot be told apart" on noise in {right["noise"]} of {of["noise"]}'
    )


if __name__ == "__main__":
    main()
