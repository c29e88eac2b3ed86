"""The command line: the same calls the pages make. `datamask.cli_parser` has the options, `cli_output` the looks.

Exit codes: 0 done; 2 bad input, option or disk, with one sentence on stderr; 130 stopped, resumable; 1 a fault of the
program, with its traceback. Importing this loads no torch; commands that compute import what they need.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datamask import catalogue
from datamask.cli_common import absolute_corpus, check_device, rooted, stop_on_signals
from datamask.cli_explain import explain
from datamask.cli_lambdas import which_lambda
from datamask.cli_output import (
    Progress,
    board_text,
    check_apart,
    check_output,
    percent,
    print_json,
    say,
    score_text,
    summary_text,
    table_text,
)
from datamask.cli_own import check_objective, check_typed, permit_own
from datamask.cli_parser import corpus_config, import_config, inputs, parse, run_config
from datamask.cli_sweeps import study, sweep
from datamask.config.amounts import tokens_text
from datamask.errors import DatamaskError, InputError, OptionError, RunStateError, Stopped, poll_of
from datamask.runs import exports
from datamask.runs.attempt import attempt, fault_sentence, one_sentence
from datamask.runs.store import Run, RunStore

if TYPE_CHECKING:
    from datamask.corpus.corpus import Corpus

DONE, FAULT, BAD, STOPPED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` are the words after ``python -m datamask``. Returns the exit code."""
    try:
        options = parse(sys.argv[1:] if argv is None else argv)
        permit_own(options)
        if getattr(options, "run", None):
            options.run = _run_id(options.run, options.runs_dir)
        return HANDLERS[options.command](options)
    except SystemExit as leaving:  # argparse, after printing help or version
        return int(leaving.code or 0)
    except Stopped as stopped:
        say(one_sentence(stopped))
        return STOPPED
    except DatamaskError as error:
        say(one_sentence(error))
        return BAD
    except KeyboardInterrupt:
        say("interrupted")
        return STOPPED
    except BrokenPipeError:
        # whoever read our stdout has gone (`| head`); point it elsewhere so that closing it does not complain again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _run_id(word: str, runs_dir: str) -> str:
    """The run's id, where its folder was given as it is printed: ``runs/ID``."""
    path = Path(word)
    return path.name if len(path.parts) > 1 and path.parent.resolve() == Path(runs_dir).resolve() else word


# -- runs that compute -------------------------------------------------------------------------------------------------


def select(options: argparse.Namespace) -> int:
    """`select`: a new run, from shards to OUT.parquet."""
    config = run_config(options)
    output = check_output(options.output, config.corpus.inputs)
    check_apart("runs_dir", options.runs_dir, config.corpus.inputs)
    check_device(config.selection.device)
    # absolute, so that the run can be resumed from any folder
    run = RunStore(options.runs_dir).create(rooted(config), output)
    return _work(run, output, options, fresh=True)


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
        return _deliver(run, output, status.summary or {}, options)
    if not status.resumable:
        raise RunStateError(f"run {run.id} is {status.state}; only a stopped, failed or interrupted run resumes")
    check_typed(run, options.objective)
    # a device that is not there is found by the attempt itself, which leaves the reason in the run's folder
    return _work(run, output, options)


def _work(run: Run, output: str | None, options: argparse.Namespace, *, fresh: bool = False) -> int:
    say(f"run {run.id} in {run.path}")
    # loading torch on a cold machine takes longer than a queued run without an owner is believed
    with run.queued(), stop_on_signals() as stop, Progress() as progress:
        if not fresh:
            with run.writer() as writer:
                writer.set_status("queued")
        outcome = attempt(run, should_stop=stop.is_set, progress=progress, warn=progress.warn)
    if outcome.faulty:
        traceback.print_exception(outcome.error)
        say(fault_sentence(outcome.error))
        return FAULT
    if outcome.error is not None:
        if fresh and isinstance(outcome.error, InputError) and not (run.path / "checkpoint.npz").exists():
            # nothing was learned and nothing can be resumed: a mistyped column leaves no run behind
            RunStore(options.runs_dir).remove(run.id)
        raise outcome.error
    if outcome.status.state != "done":
        words = ["resume", run.id, *([] if options.runs_dir == "runs" else ["--runs_dir", options.runs_dir])]
        say(f"run {run.id} {outcome.status.state} at step {outcome.status.step:,}; go on with: {_shell(words)}")
        if options.json:
            print_json({"run_id": run.id, **(outcome.summary or {}), "status": outcome.status.state})
        return STOPPED
    return _deliver(run, output, outcome.summary or outcome.status.summary or {}, options)


def _deliver(run: Run, output: str | None, summary: dict, options: argparse.Namespace) -> int:
    if output is not None:
        exports.write_selection(run, output)
    if options.json:
        print_json({"run_id": run.id, **summary, "status": "done", "output": output})
    else:
        print(summary_text(run, summary, output))
    return DONE


def prepare(options: argparse.Namespace) -> int:
    """`prepare`: shards with texts in, shards with quality and features out."""
    from datamask.corpus.preparation import prepare_shards

    with stop_on_signals() as stop, Progress() as progress:
        found = prepare_shards(list(inputs(options)), options.output, text_column=options.text_column,
                               id_column=options.id_column, dim=options.dim, seed=options.seed, progress=progress,
                               should_stop=stop.is_set)
    if options.json:
        print_json(found)
    else:
        print("\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in found.items()))
    return DONE


def score(options: argparse.Namespace) -> int:
    """`score`: values of all objectives for id lists, and their overlaps beside what chance would give."""
    from datamask.corpus import open_corpus
    from datamask.evaluation import panel_rows, score_selection
    from datamask.evaluation.id_lists import overlaps, read_rows

    if options.center and options.panel:
        raise OptionError("--center and --panel exclude each other: the panel measures the features as they are")
    check_device(options.device)
    store = RunStore(options.runs_dir)
    with stop_on_signals() as stop, Progress() as progress:
        corpus = open_corpus(absolute_corpus(corpus_config(options)), progress=progress, should_stop=stop.is_set)
        lists = {path: read_rows(path, corpus) for path in dict.fromkeys(options.selection)}
        own = [name for name in catalogue.objective_terms(options.objective or "facility") if catalogue.is_own(name)]

        poll = poll_of(stop.is_set, "scoring was stopped; nothing was written")
        scores = [{"selection": path, "unknown_ids": found.unknown,
                   **score_selection(corpus, found.rows, store.cache_dir, options.device, progress, poll,
                                      center=bool(options.center), objectives=own)}
                  for path, found in lists.items()]
        board = _board(corpus, {path: found.rows for path, found in lists.items()}, store.cache_dir, options.device,
                       progress, poll) if options.panel else None
    result: dict[str, Any] = {"n": len(corpus), "selections": scores,
                              "overlaps": overlaps({path: found.rows for path, found in lists.items()}, len(corpus))}
    if board is not None:
        result["scoreboard"] = board
        for entry in scores:
            entry["panel"] = panel_rows(board, entry["selection"])
    if options.json:
        print_json(result)
        return DONE
    for entry in scores:
        print(score_text(entry))
    for pair in result["overlaps"]:
        print(f"{pair['a']} and {pair['b']} share {pair['shared']:,} samples: overlap {pair['overlap']:.3f}, by chance "
              f"{pair['chance']:.3f}")
    if board is not None:
        print(board_text(board))
    return DONE


def _board(corpus: Corpus, lists: dict[str, Any], cache_dir: Path, device: str, progress: Progress,
           poll: Callable[[], None]) -> dict[str, Any]:
    """The scoreboard of id lists; what each was made by stands in its file."""
    from datamask.evaluation import optimised_by, scoreboard
    from datamask.evaluation.id_lists import read_config

    made = {path: config for path in lists if (config := read_config(path)) is not None}
    board = scoreboard(corpus, lists, cache_dir, optimised={path: optimised_by(made[path]) for path in made},
                       cut=True, device=device, progress=progress, poll=poll)
    if unknown := [path for path in lists if path not in made]:
        board["notes"].append(f"How {', '.join(unknown)} came about is not known, so no measure is taken as its own.")
    return board


# -- runs to look at ---------------------------------------------------------------------------------------------------


def runs_list(options: argparse.Namespace) -> int:
    """`runs list`: newest first."""
    rows = [_listed(run) for run in RunStore(options.runs_dir).list()]
    if options.json:
        print_json({"runs": rows})
    elif rows:
        shown = [{**row, "quality": percent(row["quality"]), "diversity": percent(row["diversity"])} for row in rows]
        print(table_text(shown))
    else:
        say(f"there are no runs in {options.runs_dir} yet; `datamask select` makes one")
    return DONE


def _listed(run: Run) -> dict[str, Any]:
    status = run.status()
    row = {"run": run.id, "state": status.state, "objective": "?", "lambda": "?", "ratio": "?", "quality": None,
           "diversity": None, "name": ""}
    with contextlib.suppress(DatamaskError):  # a damaged run is listed by what is left of it
        config = run.config
        row |= {"objective": config.selection.objective, "lambda": config.selection.lamb,
                "ratio": tokens_text(budget) if (budget := config.selection.budget) else config.selection.select_ratio,
                "name": config.name}
    calibrated = (status.summary or {}).get("calibrated") or {}
    return row | {term: calibrated.get(term) for term in ("quality", "diversity")}


def runs_show(options: argparse.Namespace) -> int:
    """`runs show`: everything small that is known about one run."""
    run = RunStore(options.runs_dir).get(options.run)
    status, config = run.status(), run.config
    if options.json:
        print_json({"run_id": run.id, "path": str(run.path), "status": status.to_dict(), "config": config.to_dict(),
                    "facts": run.facts()})
        return DONE
    print(f"{config.name or run.id}: {status.state}" + (f", {status.message}" if status.message else ""))
    if config.notes:
        print(config.notes)
    if status.error:
        print(f"error: {status.error}")
    print(_shell(config.arguments(run.facts().get("output") or "OUT.parquet")) + "\n")
    if status.summary:
        print(summary_text(run, status.summary, None))
    else:
        print(f"step {status.step:,} of {status.total_steps:,}\nRun folder: {run.path}")
    return DONE


def _shell(words: Sequence[str]) -> str:
    return shlex.join(["python", "-m", "datamask", *words])


def runs_export(options: argparse.Namespace) -> int:
    """`runs export`: ids, rows or masks of a finished run."""
    run = RunStore(options.runs_dir).get(options.run)
    if not (options.ids or options.rows or options.mask):
        raise OptionError("runs export needs at least one of --ids OUT.csv, --rows OUT.parquet or --mask FOLDER")
    written: dict[str, Any] = {}
    with stop_on_signals() as stop, Progress() as progress:
        if options.ids:
            written["ids"] = exports.write_ids(run, options.ids)
        if options.rows:
            exports.filtered_rows(run, options.rows, progress=progress, should_stop=stop.is_set)
            written["rows"] = options.rows
        if options.mask:
            written["mask"] = [str(path) for path in exports.mask_per_shard(run, options.mask, progress=progress)]
    if options.json:
        print_json({"run_id": run.id, **written})
    else:
        for paths in written.values():
            print("\n".join(paths) if isinstance(paths, list) else paths)
    return DONE


def runs_import(options: argparse.Namespace) -> int:
    """`runs import`: a list of ids from anywhere as a finished run."""
    from datamask.runs.imports import import_ids

    config = import_config(options)
    check_apart("runs_dir", options.runs_dir, config.corpus.inputs)
    check_device(config.selection.device)
    config = replace(config, corpus=absolute_corpus(config.corpus), ids=str(Path(options.ids).expanduser().absolute()))
    with stop_on_signals() as stop, Progress() as progress:
        run = import_ids(RunStore(options.runs_dir), config, progress=progress, should_stop=stop.is_set)
    return _deliver(run, None, run.status().summary or {}, options)


HANDLERS = {"select": select, "sweep": sweep, "study": study, "resume": resume, "prepare": prepare, "score": score,
            "which-lambda": which_lambda, "explain": explain, "check-objective": check_objective,
            "runs list": runs_list, "runs show": runs_show,
            "runs export": runs_export, "runs import": runs_import}
