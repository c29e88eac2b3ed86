"""Commands that make or go on with a selection: `select`, `resume`; `prepare` makes shards for them."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datamask import catalogue
from datamask.cli import beyond_memory, blocks
from datamask.cli.arguments import given_values
from datamask.cli.common import (
    DONE,
    FAULT,
    STOPPED,
    check_device,
    command_work,
    deliver,
    of_run,
    repeat_amount,
    say_left_out,
    shell,
)
from datamask.cli.output import Progress, check_apart, check_output, print_json, say
from datamask.cli.own import check_typed
from datamask.cli.parser import inputs, run_config
from datamask.cli.streams import print_text
from datamask.config import RunConfig
from datamask.errors import InputError, OptionError, RunStateError
from datamask.evaluation.result import NO_RESULT
from datamask.options import BLOCK_OPTIONS
from datamask.repeat_counts import AS_SELECTED, refusal
from datamask.runs.attempt import attempt, fault_sentence
from datamask.runs.callbacks import Callbacks
from datamask.runs.detached import start_detached
from datamask.runs.rooted import rooted
from datamask.runs.store import Run, RunStore
from datamask.tables import OF_ROWS
from datamask.work import lanes
from datamask.work.pace import PhasePace


def select(options: argparse.Namespace) -> int:
    """`select`: a new run, from shards to the run folder and to OUT.parquet if it is given; or a step of its blocks."""
    if given_values(options, BLOCK_OPTIONS):
        return blocks.select(options)
    config = run_config(options)
    output = None if options.output is None else check_output(options.output, config.corpus.inputs)
    check_apart("runs_dir", options.runs_dir, config.corpus.inputs)
    if config.selection.scratch_dir is not None:
        check_apart("scratch_dir", config.selection.scratch_dir, config.corpus.inputs)
    check_device(config.selection.device)
    with command_work("without a run") as work:
        config = beyond_memory.settle(options, rooted(config), work)
    _check_weights(options, config, output)
    if options.dry_run:
        return _forecast(options, config)
    # absolute, so that the run can be resumed from any folder
    run = RunStore(options.runs_dir).create(rooted(config), output)
    return _detach(run, options) if options.detach else _work(run, output, options, new=True)


def _forecast(options: argparse.Namespace, config: RunConfig) -> int:
    """Say what the run takes; nothing is written."""
    from datamask.runs.forecast import forecast

    with command_work("without a run") as work:
        told = forecast(config, Path(options.runs_dir), work.poll)
    if options.json:
        print_json(told.to_dict())
    else:
        print_text(told.sentence)
    return DONE


def _check_weights(options: argparse.Namespace, config: RunConfig, output: str | None) -> None:
    """Refuse weights that this command cannot write, before there is a run.

    Raises:
        OptionError: these settings have no weights, or --weights names no file of its own.
    """
    amount = repeat_amount(options)
    if options.weights is None:
        if amount != AS_SELECTED:
            raise OptionError("--repeats and --repeat_tokens need --weights; add --weights OUT.parquet")
        return
    if why := refusal(config.selection):
        raise OptionError(f"--weights: {why}")
    if config.selection.scratch_dir is not None:
        raise OptionError(
            "a selection from all rows in mapped files keeps no weights; use --rows N, or leave --weights out"
        )
    if options.detach:
        raise OptionError(
            "--weights does not work with --detach; when the run is done, use `datamask runs export RUN --weights "
            "OUT.parquet`"
        )
    options.weights = check_output(options.weights, config.corpus.inputs, "weights", OF_ROWS)
    if options.weights == output:
        raise OptionError(f"--weights must be another file than --output, got {output} for both")


def resume(options: argparse.Namespace) -> int:
    """`resume`: go on with a run that did not finish; for a finished one, write its selection again."""
    run = RunStore(options.runs_dir).get(options.run)
    config = run.config
    output = options.output or run.facts().get("output")
    if output is not None:
        output = check_output(output, config.corpus.inputs)
    status = run.status()
    if status.state == "done":
        say(f"run {run.id} is done already")
        return deliver(run, output, status.result or NO_RESULT, options)
    if not status.resumable:
        raise RunStateError(f"run {run.id} is {status.state}; only a stopped, failed or interrupted run resumes")
    check_typed(run, options.objective)
    # a device that is not there is found by the attempt itself, which leaves the reason in the run's folder
    return _detach(run, options) if options.detach else _work(run, output, options)


def _detach(run: Run, options: argparse.Namespace) -> int:
    """Have the run done in a process of its own, and say how to see and to stop it."""
    typed = catalogue.objective_terms(options.objective) if options.objective else {}
    driver = start_detached(run, [name for name in typed if catalogue.is_own(name)])
    say(f"run {run.id} in {run.path} goes on by itself")
    say(f"see it with: {shell(of_run(['runs', 'show'], run.id, options))}")
    say(f"end it with: {shell(of_run(['runs', 'stop'], run.id, options))}")
    if options.json:
        print_json({"run_id": run.id, "path": str(run.path), "pid": driver, "status": run.status().state})
    else:
        print_text(run.id)
    return DONE


def _work(run: Run, output: str | None, options: argparse.Namespace, *, new: bool = False) -> int:
    say(f"run {run.id} in {run.path}")
    # loading torch on a cold machine takes longer than a queued run without an owner is believed
    pace = PhasePace(lanes.clock)
    progress = Progress(pace=pace)
    callbacks = Callbacks(note=progress.note, pace=pace)
    with run.queued(), command_work(progress=progress) as work:
        if not new:
            with run.writer() as writer:
                writer.set_status("queued")
        outcome = attempt(run, work, callbacks=callbacks)
    error = outcome.error
    if error is not None and outcome.faulty:
        traceback.print_exception(error)
        say(fault_sentence(error))
        return FAULT
    if error is not None:
        if new and isinstance(error, InputError) and not (run.path / "checkpoint.npz").exists():
            # nothing was learned and nothing can be resumed: a mistyped column leaves no run behind
            RunStore(options.runs_dir).remove(run.id)
        raise error
    facts = run.facts()
    say_left_out(facts.get("dropped") or {})
    if outcome.status.state != "done":
        resume = shell(of_run(["resume"], run.id, options))
        say(f"run {run.id} {outcome.status.state} at step {outcome.status.step:,}; go on with: {resume}")
        if getattr(options, "weights", None) is not None:
            export = shell([*of_run(["runs", "export"], run.id, options), "--weights", options.weights])
            say(f"the weights are written of a finished run; then: {export}")
        if options.json:
            print_json({"run_id": run.id, "status": outcome.status.state})
        return STOPPED
    return deliver(run, output, outcome.result or outcome.status.result or NO_RESULT, options)


def prepare(options: argparse.Namespace) -> int:
    """`prepare`: shards with texts in, shards with quality and features out."""
    from datamask.corpus.embedders import embedder_of
    from datamask.corpus.preparation import prepare_shards

    device = None if options.device in (None, "auto") else options.device
    paths, embedder = list(inputs(options)), embedder_of(options.embedder, device)
    ending = "without output" if embedder is None else "and keeping what is embedded"
    with command_work(ending) as work:
        report = prepare_shards(
            paths,
            options.output,
            text_column=options.text_column,
            id_column=options.id_column,
            make_ids=options.make_ids,
            split=options.split,
            drop_invalid=options.drop_invalid,
            embedder=embedder,
            tokenizer=options.tokenizer,
            dim=options.dim,
            seed=options.seed,
            work=work,
        )
    for note in report["notes"]:
        say(note)
    if options.json:
        print_json(report)
    else:
        print_text(_prepared(report, options.output))
    return DONE


def _prepared(report: Mapping[str, Any], output: str) -> str:
    """What `prepare` wrote, for people, and the command that comes next."""
    files = report["files"]
    lines = [
        f"Wrote {report['rows']:,} rows of {report['tokens']:,} tokens by column {report['columns']['length']} to "
        f"{files[0] if len(files) == 1 else f'{len(files):,} files in {output}'}."
    ]
    if report["embedder"] is not None:
        lines.append(f"Features: {report['dim']} dimensions by {report['embedder']} (digest {report['digest'][:12]}).")
    elif report["dim"] is not None:
        lines.append(f"Features: {report['dim']} dimensions by TF-IDF, fitted on {report['fitted_on']:,} texts.")
    following = ["select", output, "--select_ratio", "0.3", "--output", "ids.csv"]
    lines.append(f"Next: {shell(following)}")
    if report["numbers"]:
        by_own = shell([*following, "--quality_column", report["numbers"][0]])
        lines.append(f"  or, by your own column {report['numbers'][0]} as quality: {by_own}")
    return "\n".join(lines)
