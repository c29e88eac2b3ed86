"""Which lambda, for six targets on one real corpus: the tables of docs/which-lambda.md.

    python -m benchmarks.which_lambda_targets CORPUS --texts DOCSTRINGS.txt --work DIR [--seeds 0 1]

The answers of `which-lambda` for each target and seed are kept in DIR, and one that is there is not asked for again.
What the document needs of them goes to benchmarks/results/which-lambda-targets.json; its tables are printed, and a test
holds the document to them.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.evidence_document import signed, table
from benchmarks.million import commit
from datamask.cli.targets import target_of
from datamask.config.lambda_question import LambdaQuestion
from datamask.evaluation.lambdas.wording import spans, spoken

RESULTS = Path(__file__).parent / "results" / "which-lambda-targets.json"
HELD_OUT, DOCSTRINGS = "held-out text", "docstrings"
KINDS = ("hamradio", "games", "science", "libs")
TARGETS = (HELD_OUT, *KINDS, DOCSTRINGS)
NATS, DISTANCE = "cross_entropy", "coverage"
UNITS, DIGITS = {NATS: "nats per word", DISTANCE: "cosine distance"}, {NATS: 3, DISTANCE: 4}
OBJECTIVES = ("facility", "pairwise")
VERDICTS = {"helps": "**helps**", "level": "cannot be told apart", "hurts": "does not help"}


def answer(target: str, seed: int, corpus: str, texts: str, work: Path) -> dict[str, Any]:
    """The answer for a target; kept in `work`."""
    from datamask import CorpusConfig, open_corpus
    from datamask.runs.lambdas import answer as computed

    path = work / f"{target.replace(' ', '-')}-{seed}.json"
    if not path.exists():
        asked, own = target_of({HELD_OUT: "random", DOCSTRINGS: texts}.get(target, f"domain={target}"))
        question = LambdaQuestion(target=asked, seed=seed)
        found = computed(open_corpus(CorpusConfig((corpus,))), question, work / "runs" / ".cache", texts=own)
        path.write_text(json.dumps(found, indent=1))
    whole: dict[str, Any] = json.loads(path.read_text())
    return whole


def kept_of(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Of an answer what the document needs: by measure random's value and spread, and the curves by objective."""
    measures = {}
    for measure in whole["measures"]:
        measures[measure["name"]] = {
            "random": {name: measure["random"][0][name] for name in ("value", "spread", "luck")},
            **{
                curve["objective"]: {
                    "points": [
                        {name: point[name] for name in ("lamb", "difference", "low", "high", "level")}
                        for point in curve["points"]
                    ],
                    **{name: curve[name] for name in ("best", "verdict", "against_random", "levels", "sentence")},
                }
                for curve in measure["curves"]
            },
        }
    of_selections = {name: whole["measures"][0]["curves"][0][name] for name in ("selected", "words")}
    return {"target": whole["target"], **of_selections, "measures": measures}


def interval(difference: Mapping[str, float], digits: int = 3) -> str:
    """A difference and the ends of its interval."""
    middle, low, high = (signed(difference[name], digits) for name in ("difference", "low", "high"))
    return f"{middle} [{low}, {high}]"


def levels(curve: Mapping[str, Any]) -> str:
    """The lambdas level with the best in words: ``0 to 0.2 and 0.5``; ``all`` of them."""
    if all(point["level"] for point in curve["points"]):
        return "all"
    return spoken(spans(curve)).removeprefix("lambda ")


def tables(results: Mapping[str, Any], seed: int = 0) -> dict[str, str]:
    """The document's tables by name."""
    by_target = {target: results["answers"][target][str(seed)] for target in TARGETS}
    of_nats = {target: kept["measures"][NATS] for target, kept in by_target.items()}
    held_out = by_target[HELD_OUT]["measures"]
    lambdas = [point["lamb"] for point in of_nats[HELD_OUT]["facility"]["points"]]

    def named(lamb: float, top: str) -> str:
        return f"{lamb:g} ({top})" if top and lamb == 1 else f"{lamb:g}"

    top_quality = "quality alone: top quality"
    both = [(measure, objective) for measure in (NATS, DISTANCE) for objective in OBJECTIVES]
    whole = table(
        [
            ("lambda", *(f"{objective}, {UNITS[measure]}" for measure, objective in both)),
            *(
                [
                    named(lamb, top_quality),
                    *(
                        interval(held_out[measure][objective]["points"][place], DIGITS[measure])
                        for measure, objective in both
                    ),
                ]
                for place, lamb in enumerate(lambdas)
            ),
        ]
    )
    verdicts = [
        [
            target,
            *itertools.chain.from_iterable(
                (f"{VERDICTS[curve['verdict']]} {interval(curve['against_random'])}", levels(curve))
                for curve in (nats[objective] for objective in OBJECTIVES)
            ),
        ]
        for target, nats in of_nats.items()
    ]
    level = "lambdas level with its best"
    made = {"held-out": whole, "verdicts": table([("target", "facility", level, "pairwise", level), *verdicts])}
    for objective, top in (("facility", ""), ("pairwise", "top quality")):
        made[objective] = table(
            [
                ("lambda", *TARGETS[1:]),
                *(
                    [
                        named(lamb, top),
                        *(interval(of_nats[target][objective]["points"][place]) for target in TARGETS[1:]),
                    ]
                    for place, lamb in enumerate(lambdas)
                ),
            ]
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="with ids, texts, features, quality and a column `domain`")
    parser.add_argument("--texts", required=True, help="the file of docstrings, one a line")
    parser.add_argument("--work", type=Path, required=True, help="answers and caches are kept here")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    answers = {
        target: {
            str(seed): kept_of(answer(target, seed, options.corpus, options.texts, options.work))
            for seed in options.seeds
        }
        for target in TARGETS
    }
    results = {"commit": commit(), "answers": answers}
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    for name, drawn in tables(results).items():
        print(f"{name}\n\n{drawn}\n")


if __name__ == "__main__":
    main()
