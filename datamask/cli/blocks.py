"""`select --blocks`, `--block`, `--join` and `--ray`: the steps of a selection by more than one machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from datamask.cli.arguments import given_values
from datamask.cli.common import DONE, check_device, command_work, shell
from datamask.cli.output import check_apart, check_output, percent, print_json
from datamask.cli.parser import given_options, run_config
from datamask.cli.streams import print_text
from datamask.config import CorpusConfig, SelectionConfig
from datamask.errors import OptionError
from datamask.files import user_path
from datamask.options import BLOCK_OPTIONS, CORPUS_OPTIONS, OPTIONS, BlockOptions
from datamask.process import asked_threads
from datamask.runs.rooted import rooted
from datamask.tables import write_table

if TYPE_CHECKING:
    from datamask.blocks.plan import Folder

WITHOUT = ("dry_run", "detach", "weights", "repeats", "repeat_tokens", "name", "notes")
"""Options of `select` that are of runs."""

GLOBAL = ("pin", "ban", "given", "prune", "collapse", "center")
"""Options that need all rows at once."""


def select(options: argparse.Namespace) -> int:
    """Do one step: cut the blocks, solve one of them, or join them."""
    asked = BlockOptions(**given_values(options, BLOCK_OPTIONS))
    for name in WITHOUT:
        if getattr(options, name):
            raise OptionError(f"--{name} is of runs, and blocks are none; leave it out")
    if threads := asked_threads():
        import torch

        torch.set_num_threads(threads)
    if asked.blocks is not None:
        return _cut(asked, options)
    step = "--block" if asked.join is None else "--join"
    given = [
        *options.inputs,
        *options.input,
        *(f"--{OPTIONS[n].word}" for n, value in given_options(options).items() if value is not None),
    ]
    given += [
        f"--{CORPUS_OPTIONS[n].word}" for n, value in given_values(options, CORPUS_OPTIONS).items() if value != []
    ]
    if given:
        raise OptionError(f"{step} takes its settings from the folder of the blocks, got {given[0]}; leave it out")
    if asked.join is None:
        return _solve(asked, options)
    if options.output is None:
        raise OptionError("--join needs a file for the ids; add --output OUT.parquet")
    from datamask.blocks.plan import Folder

    return _join(Folder(user_path(asked.join).absolute()), check_output(options.output), options)


def check_settings(corpus: CorpusConfig, config: SelectionConfig) -> None:
    """Refuse what blocks cannot do.

    Raises:
        OptionError: another objective or method, or a rule that needs all rows at once.
    """
    if config.objective != "facility":
        raise OptionError(
            f"--blocks is of --objective facility, got {config.objective}; select a sample with --rows N, write its "
            "rule with `datamask recipe RUN`, and use `datamask apply` for each shard"
        )
    if config.estimator != "relaxed":
        raise OptionError(f"--blocks solves by --estimator relaxed, got {config.estimator}; leave --estimator out")
    if config.lamb == 1:
        raise OptionError("--blocks needs --lamb below 1; for quality alone, use --estimator top-quality")
    for name in GLOBAL:
        if getattr(config, name) not in (OPTIONS[name].default, None):
            raise OptionError(f"--{name} needs all rows at once, and --blocks opens a part of them; leave it out")
    if corpus.quality_within is not None or any(column.transform != "raw" for column in corpus.quality_columns):
        raise OptionError(
            "--blocks opens a part of the rows, and ranks and z-scores are of all; write them into a column first, and "
            "name it with --quality_column NAME"
        )


def _cut(asked: BlockOptions, options: argparse.Namespace) -> int:
    from datamask.blocks.cutting import cut_blocks
    from datamask.blocks.plan import Folder

    config = run_config(options)
    check_settings(config.corpus, config.selection)
    if asked.ray is None and options.output is not None:
        raise OptionError("--output is of --join FOLDER, which writes the ids; leave it out of --blocks")
    if asked.ray is not None and options.output is None:
        raise OptionError("--ray also joins the blocks; add --output OUT.parquet")
    output = None if options.output is None else check_output(options.output, config.corpus.inputs)
    assert asked.into is not None and asked.blocks is not None
    for name, path in (("into", asked.into), ("scratch_dir", config.selection.scratch_dir)):
        if path is not None:
            check_apart(name, path, config.corpus.inputs)
    check_device(config.selection.device)
    folder = Folder(user_path(asked.into).absolute())
    with command_work("; the same command goes on") as work:
        plan = cut_blocks(rooted(config), asked.blocks, asked.blocks_by or "cells", folder, work)
        if asked.ray is not None:
            from datamask.cluster import solve_on_ray

            solve_on_ray(folder, asked.ray, work)
    if output is not None:
        return _join(folder, output, options)
    if options.json:
        print_json({"blocks": plan.count, "n": plan.rows, "selected": plan.size, "into": str(folder.path)})
    else:
        print_text(
            f"Cut {plan.rows:,} rows into {plan.count} blocks in {asked.into}.\n"
            f"Do each block twice: {shell(['select', '--block', 'I', '--into', asked.into])}\n"
            f"Then join them: {shell(['select', '--join', asked.into, '--output', 'OUT.parquet'])}"
        )
    return DONE


def _solve(asked: BlockOptions, options: argparse.Namespace) -> int:
    from datamask.blocks.plan import Folder
    from datamask.blocks.solving import solve_block

    assert asked.into is not None and asked.block is not None
    if options.output is not None:
        raise OptionError("--output is of --join FOLDER, which writes the ids; leave it out of --block")
    with command_work("without the block") as work:
        told = solve_block(Folder(user_path(asked.into).absolute()), asked.block, work)
    if options.json:
        print_json({"block": asked.block, "status": told})
    else:
        print_text(told)
    return DONE


def _join(folder: Folder, output: str, options: argparse.Namespace) -> int:
    from datamask.blocks.joining import join_blocks

    with command_work("without output") as work:
        table, result, plan = join_blocks(folder, work)
    write_table(output, table)
    estimate = result.estimate
    if options.json:
        print_json(
            {**result.to_dict(), "status": "done", "output": output, "blocks": plan.count, "sampled": plan.sampled}
        )
        return DONE
    value = f"{result.raw.diversity:.6g}"
    if estimate is not None:
        value += f" ({estimate.low:.6g} to {estimate.high:.6g}, from {estimate.rows:,} random rows)"
    print_text(
        f"Selected {len(table):,} of {plan.rows:,} rows from {plan.count} blocks.\n"
        f"Quality {percent(result.calibrated.quality)}, diversity {percent(result.calibrated.diversity)}, joint "
        f"{percent(result.calibrated.joint)}; raw quality {result.raw.quality:.6g}, raw diversity {value}.\n"
        f"0 % is a random subset of this size, 100 % the best that quality or diversity reaches alone, measured on "
        f"{plan.sampled:,} rows.\nSelection: {output}"
    )
    return DONE
