"""The command that asks which lambda helps: `which-lambda`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datamask.cli.common import DONE, check_device, stop_on_signals
from datamask.cli.output import Progress, check_output, print_json, table_text
from datamask.cli.parser import corpus_config
from datamask.cli.streams import print_text
from datamask.config.lambda_question import JUDGES, LAMBDAS, STEERING, LambdaQuestion, Target, parse_lambdas, read_texts
from datamask.errors import OptionError
from datamask.files import user_path, write_text
from datamask.runs.rooted import absolute_corpus
from datamask.runs.store import RunStore


def which_lambda(options: argparse.Namespace) -> int:
    """`which-lambda`: selections over lambda, ratio and objective, judged by held-out text."""
    target, texts = target_of(options.target)
    named = examples_named(options.target)
    question = LambdaQuestion(
        objectives=tuple(options.objectives.split(",")),
        ratios=ratios_of(options.ratios),
        target=target,
        lambdas=LAMBDAS if options.lambdas is None else parse_lambdas(options.lambdas),
        seed=options.seed or 0,
        judge=options.judge,
        **training_text(options.judge, options.words, options.train_bytes),
        **({} if options.rows is None else {"rows": max(options.rows, 1_000)}),
    )
    corpus_wanted = absolute_corpus(corpus_config(options, question.seed))
    if options.output is not None:
        options.output = check_output(options.output, corpus_wanted.inputs)
    check_device(options.device)
    from datamask.corpus import open_corpus
    from datamask.evaluation.examples import read_examples
    from datamask.runs.lambdas import answer

    with stop_on_signals() as stop, Progress() as progress:
        corpus = open_corpus(corpus_wanted, progress=progress, should_stop=stop.is_set)
        examples = None if named is None else read_examples(*named, corpus)
        answered = answer(
            corpus,
            question,
            RunStore(options.runs_dir).cache_dir,
            texts=texts,
            examples=examples,
            device=options.device,
            progress=progress,
            should_stop=stop.is_set,
        )
    if options.output is not None:
        write_text(options.output, json.dumps(answered, indent=1))
    if options.json:
        print_json({**answered, "output": options.output})
    else:
        print_text(text_of(answered))
    return DONE


def target_of(text: str) -> tuple[Target, list[str]]:
    """The target that a word names: random, quality, COLUMN=VALUE, a file of texts, or a file of examples behind its
    kind; and the texts of a file of texts.

    Raises:
        OptionError: none of these. InputError: the file holds too few texts, or cannot be read.
    """
    if named := examples_named(text):
        from datamask.evaluation.examples import target_of_file

        return target_of_file(*named), []
    if text in ("random", "quality"):
        return Target(text), []
    if user_path(text).is_file():
        texts = read_texts(text)
        return Target.own(texts, Path(text).name), texts
    if text.startswith("high:"):
        return Target("score", text.removeprefix("high:")), []
    column, equals, value = text.partition("=")
    if not equals:
        raise OptionError(
            f"--target must be random, quality, COLUMN=VALUE or a file with one text per line, or high:COLUMN, "
            f"ids:FILE, features:FILE or examples:FILE, got {text!r}, and there is no such file"
        )
    return Target("column", column, value), []


def examples_named(text: str) -> tuple[str, str] | None:
    """Kind and path of a file of examples, as in ``ids:wanted.txt``; None: the target is none."""
    kind, colon, path = text.partition(":")
    # a file of texts may have such a name, and so may a column
    if (
        not colon
        or kind not in STEERING
        or user_path(text).is_file()
        or ("=" in path and not user_path(path).is_file())
    ):
        return None
    return kind, path


def training_text(judge: str, words: int | None, train_bytes: int | None) -> dict[str, int]:
    """How much each selection trains the judge on, where it is given.

    Raises:
        OptionError: it is given for the other judge.
    """
    for option, value, owner in (("words", words, "bigram"), ("train_bytes", train_bytes, "transformer")):
        if value is not None and judge in JUDGES and owner != judge:
            raise OptionError(f"--{option.replace('_', '-')} belongs to --judge {owner}, and --judge is {judge}")
    given = {"words": words, "train_bytes": train_bytes}
    return {option: value for option, value in given.items() if value is not None}


def ratios_of(text: str) -> tuple[float, ...]:
    """``0.1,0.3``.

    Raises:
        OptionError: no numbers.
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise OptionError(f"--ratios must be numbers such as 0.1,0.3, got {text!r}") from error


def text_of(answered: Mapping[str, Any]) -> str:
    """An answer for people."""
    parts = [answered["headline"]]
    for measure in answered["measures"]:
        parts.append(f"\n{measure['label']}: difference to a random selection in {measure['unit']}, lower is better")
        rows = [
            {
                "objective": curve["objective"],
                "ratio": curve["ratio"],
                "lambda": f"{point['lamb']:g}",
                "difference": f"{point['difference']:+.4f}",
                "from": f"{point['low']:+.4f}",
                "to": f"{point['high']:+.4f}",
                "level with best": "yes" if point["level"] else "no",
                "best": "best" if point["lamb"] == curve["best"] else "",
            }
            for curve in measure["curves"]
            for point in curve["points"]
        ]
        parts.append(table_text(rows))
        parts += [
            f"{point['name']}, ratio {point['ratio']:g}: {point['difference']:+.4f}, "
            f"{point['low']:+.4f} to {point['high']:+.4f}"
            for point in measure["named"]
        ]
        parts += [curve["sentence"] for curve in measure["curves"]]
    target = answered["target"]
    first = answered["measures"][0]["curves"][0]
    counts = answered["measures"][0]["counts"]
    trained = f"{first['words']:,} {counts} of each selection trained on ({answered['judge']}), " if counts else ""
    near = "" if "examples" in target else f"{target['near_copies']:,} near-copies of them left out, "
    parts.append(
        f"\n{target['texts']:,} texts of the target, {near}{trained}{answered['splits']} splits. "
        + " ".join(answered["notes"])
    )
    return "\n".join(parts)
