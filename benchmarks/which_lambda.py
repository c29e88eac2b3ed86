"""Does "which lambda?" find the best lambda where there is one, and keep still where there is none?

    python -m benchmarks.which_lambda [--seeds 10] [--output FILE.json]

On made corpora whose answer is known (`tests/evaluation/lambdas/planted.py`). Planted: the best lambda is counted by
the kind of the selected rows, without their text; it counts as recovered if the search says "helps" and recommends it,
but neither end. Noise: quality and features know nothing of the texts; right is "cannot be told apart from random".
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

from datamask.config.lambda_question import LambdaQuestion, Target
from datamask.evaluation.lambdas import which_lambda
from datamask.evaluation.lambdas.holdout import RestrictedPool
from datamask.evaluation.lambdas.selecting import scales, select_all, settings
from datamask.evaluation.pool import Pool
from tests.evaluation.lambdas.planted import TRIED, WANTED, noise_corpus, planted_corpus


def planted(seed: int) -> dict:
    """One planted corpus: what was recommended, and what should have been."""
    corpus, kind, texts = planted_corpus(seed)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(corpus, torch.device("cpu"), Path(folder))
        config = settings("pairwise", 0.1, 0)
        selections = select_all(RestrictedPool(pool, np.arange(len(corpus))), scales(pool, config), config, TRIED)
        wanted = [float((kind[rows] == WANTED).mean()) for rows in selections]
        question = LambdaQuestion(("pairwise",), lambdas=TRIED, target=Target.own(texts))
        curve = which_lambda(corpus, question, folder, texts=texts)["measures"][0]["curves"][0]
    best, levels = TRIED[int(np.argmax(wanted))], curve["levels"]
    return {
        "seed": seed,
        "planted": best,
        "wanted_share": wanted,
        "verdict": curve["verdict"],
        "recommended": levels,
        "recovered": curve["verdict"] == "helps" and best in levels and not {0.0, 1.0} & set(levels),
        "seconds": time.perf_counter() - start,
    }


def noise(seed: int) -> dict:
    """One corpus without a difference to find, under two objectives."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        answer = which_lambda(noise_corpus(seed), LambdaQuestion(("facility", "pairwise"), lambdas=TRIED), folder)
    curves = answer["measures"][0]["curves"]
    return {
        "seed": seed,
        "verdicts": {curve["objective"]: curve["verdict"] for curve in curves},
        "no_difference": all(curve["verdict"] == "level" for curve in curves),
        "headline": answer["headline"],
        "seconds": time.perf_counter() - start,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", default=str(Path(__file__).parent / "results" / "which-lambda.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    made = {
        "planted": [planted(seed) for seed in range(options.seeds)],
        "noise": [noise(seed) for seed in range(options.seeds)],
    }
    report = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "seeds": options.seeds,
        "recovered": sum(run["recovered"] for run in made["planted"]),
        "no_difference": sum(run["no_difference"] for run in made["noise"]),
        **made,
    }
    Path(options.output).write_text(json.dumps(report, indent=1))
    print(
        f'recovered in {report["recovered"]} of {options.seeds} seeds, "no difference" on noise in '
        f"{report['no_difference']} of {options.seeds}"
    )


if __name__ == "__main__":
    main()
