"""The command `ablate`, which compares methods on targets."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from datamask.ablation import wording
from datamask.ablation.offer import MODELS, compare_models
from datamask.ablation.question import METHODS, AblationQuestion
from datamask.ablation.result import AblationResult
from datamask.cli.common import DONE, check_device, command_work, read_rows_of
from datamask.cli.output import Progress, check_output, print_json, table_text
from datamask.cli.parser import corpus_config
from datamask.cli.streams import print_aside, print_text
from datamask.cli.targets import examples_named, lambdas_of, target_of, training_text
from datamask.errors import OptionError
from datamask.files import write_text
from datamask.runs.formats import to_plain
from datamask.runs.rooted import absolute_corpus
from datamask.runs.store import RunStore
from datamask.work.pace import RoundPace


def ablate(options: argparse.Namespace) -> int:
    """Compare methods on held-out text of one target or of several."""
    question, texts = question_of(options)
    named = None if options.target is None else examples_named(options.target)
    corpus_wanted = absolute_corpus(corpus_config(options, question.seed))
    if options.output is not None:
        options.output = check_output(options.output, corpus_wanted.inputs, among=())
    if options.confirm and question.judge != MODELS[0]:
        raise OptionError(f"--confirm runs the second proxy model after the {MODELS[0]} model; leave out --judge or it")
    check_device(options.device)
    from datamask.analyses.ablation.compute.kept_study import (
        CONFIRM_SEEDS,
        check_confirmation,
        compute,
        plan_confirmation,
    )
    from datamask.evaluation.examples import read_examples

    cache_dir: Path = RunStore(options.runs_dir).cache_dir
    pace = RoundPace()
    progress = Progress(pace=pace)
    with command_work(progress=progress) as work:
        corpus = read_rows_of(corpus_wanted, work)
        examples = None if named is None else read_examples(*named, corpus)
        if options.confirm:
            check_confirmation(corpus, examples)
        given: dict[str, Any] = {
            "texts": texts,
            "examples": examples,
            "device": options.device,
            "work": work,
            "pace": pace,
        }
        result = compute(corpus, question, cache_dir, **given, first=lambda early: print_aside(text_of(early)))
        agreement = None
        if options.confirm:
            second, minutes = plan_confirmation(result, options.device)
            about = f"about {max(1, round(minutes)):,} minutes on an idle machine"
            progress.note(f"Confirming with the transformer takes {about}.")
            by_second = compute(corpus, second, cache_dir, **given, seeds=CONFIRM_SEEDS)
            agreement = compare_models(result, [by_second])
    record = {**result.to_dict(), "headline": wording.headline(result), "agreement": agreement}
    if options.output is not None:
        write_text(options.output, json.dumps(to_plain(record), indent=1))
    if options.json:
        print_json({**record, "output": options.output})
    else:
        print_text(text_of(result, agreement))
    return DONE


def question_of(options: argparse.Namespace) -> tuple[AblationQuestion, list[str]]:
    """Return the question that the options ask, and the texts of a target that is a file of texts.

    Raises:
        OptionError: a value out of range. InputError: the file of texts cannot be read, or holds too few.
    """
    target, texts = (None, []) if options.target is None else target_of(options.target)
    chosen = {
        "methods": METHODS if options.methods is None else tuple(options.methods.split(",")),
        "objectives": () if options.objectives is None else tuple(options.objectives.split(",")),
        **({} if options.lambdas is None else {"lambdas": lambdas_of(options.lambdas)}),
        **({} if options.seed_rows is None else {"rows": options.seed_rows}),
        **training_text(options.judge, options.words, options.train_bytes),
    }
    question = AblationQuestion(
        target=target,
        label=options.label,
        ratio=options.select_ratio,
        seeds=options.seeds,
        seed=options.seed or 0,
        judge=options.judge,
        **chosen,
    )
    return question, texts


def text_of(result: AblationResult, agreement: float | None = None) -> str:
    """A result for people.

    Args:
        agreement: rank correlation of the two proxy models, where the second one was run.
    """
    # it loads pandas, for which no other command should wait
    from datamask.analyses.ablation import tables

    table = tables.methods(result) if result.several else tables.losses(result)
    # one number a row: a regret or a loss
    rows = table.map(lambda cell: f"{cell:.3f}" if isinstance(cell, float) else cell).to_dict("records")
    parts = [wording.headline(result), "", table_text([{str(name): row[name] for name in row} for row in rows])]
    if result.several:
        apart = "" if result.provisional else "; * can be told apart from random"
        parts += ["", f"Difference from random in {result.unit}, lower is better{apart}", ""]
        parts.append(_by_target(result))
    parts += ["", " ".join([wording.method_note(result), *wording.pool_note(result)])]
    if agreement is not None:
        parts.append(f"The two proxy models rank the methods with a rank correlation of {agreement:.2f}.")
    return "\n".join(parts)


def _by_target(result: AblationResult) -> str:
    rows = []
    for place, method in enumerate(result.methods):
        row = {"method": method.label}
        for at, target in enumerate(result.targets):
            difference = result.to_random(place, at)
            told = difference is not None and difference.verdict != "level"
            mean = result.means[place, at] - result.means[0, at]
            row[target.name] = f"{wording.signed(mean)}{'*' if told else ''}"
        rows.append(row)
    return table_text(rows)
