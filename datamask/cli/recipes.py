"""The commands `recipe` and `apply`: the rule behind a run's selection, and rows of any number of shards kept by it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datamask.cli.common import DONE, command_work
from datamask.cli.output import check_apart, check_output, percent, print_json, say
from datamask.cli.parser import inputs
from datamask.cli.streams import print_text
from datamask.errors import OptionError
from datamask.files import user_path, write_text
from datamask.recipes import Recipe, read_recipe, write_recipe
from datamask.recipes.apply import KINDS
from datamask.recipes.apply import apply as apply_to_shards
from datamask.recipes.batches import Judge
from datamask.recipes.share_cut import TOLERANCE, check_cuttable, cut_at_share
from datamask.recipes.sql import duckdb_sql
from datamask.runs.store import Run, RunStore
from datamask.tables import is_file


def recipe(options: argparse.Namespace) -> int:
    """`recipe`: a finished run's rule, as JSON, or as SQL."""
    if not (options.output or options.sql):
        raise OptionError("recipe needs --output RECIPE.json or --sql OUT.sql; give at least one of them")
    from_file = options.run.endswith(".json") and user_path(options.run).is_file()
    run = None if from_file else RunStore(options.runs_dir).get(options.run)
    avoided = () if run is None else run.config.corpus.inputs
    outputs = [path and check_output(path, avoided, among=()) for path in (options.output, options.sql)]
    made = read_recipe(options.run) if run is None else _recipe_of(run)
    query = None if options.sql is None else duckdb_sql(made)
    if outputs[0] is not None:
        write_recipe(made, outputs[0])
    if outputs[1] is not None and query is not None:
        write_text(outputs[1], query)
    learned = made.learned
    for note in made.notes:
        say(f"note: {note}")
    if options.json:
        facts = ("run", "rows", "selected", "kept", "share_kept", "otherwise", "beyond_the_run")
        print_json(
            {
                "output": outputs[0],
                "sql": outputs[1],
                **{name: learned.get(name) for name in facts},
                "all_rows": made.all_rows or None,
                "notes": list(made.notes),
            }
        )
    else:
        if not from_file:
            print_text(
                f"Of {learned['rows']:,} rows it selects {learned['kept']:,} ({percent(learned['share_kept'])} of the "
                f"{made.of}); {learned['otherwise']:,} come out otherwise than in the run."
            )
        print_text("\n".join(path for path in outputs if path is not None))
    return DONE


def _recipe_of(run: Run) -> Recipe:
    from datamask.runs.recipe import recipe_of

    with command_work("and writing nothing") as work:
        return recipe_of(run, work)


def apply(options: argparse.Namespace) -> int:
    """`apply`: a recipe on shards, into a file for each."""
    from datamask.corpus.shards import open_source

    if options.kind not in KINDS:
        raise OptionError(f"--as must be one of {', '.join(KINDS)}, got {options.kind!r}")
    paths = inputs(options)
    recipe = read_recipe(options.recipe)
    output = Path(options.output).absolute()
    check_apart("output", str(output), paths)
    if is_file(options.output, among=KINDS[options.kind].files):
        check_output(options.output, paths)
    ratio = options.select_ratio
    if ratio is not None:
        check_cuttable(recipe, ratio)
    with command_work("and keeping the shards that are done") as work:
        source = open_source("input", paths, work.part(0.0, LOOKED))
        judge = Judge(
            recipe,
            source,
            drop_invalid=bool(options.drop_invalid),
            with_ids=options.kind == "ids",
            id_column=options.id_column,
            feature_column=options.feature_column,
            feature_bits=bool(options.feature_bits),
        )
        ids = "made (file:row)" if judge.made_ids else judge.id_column
        features = f" · features {judge.feature_column}" if recipe.rule.needs_features else ""
        quality = ", ".join(column.name for column in recipe.quality)
        say(f"id {ids} · quality {quality}{features} · {source.rows:,} rows of {len(source.shards):,} files")
        done = LOOKED
        if ratio is not None:
            done = CUT
            # the same on every call with the same shards, so that a call that was killed goes on
            judge = judge.under(cut_at_share(judge, ratio, work.part(LOOKED, done)))
        summary = apply_to_shards(judge, output, options.kind, work.part(done, 1.0))
    summary = {
        "recipe": str(Path(options.recipe).absolute()),
        "output": str(output),
        "as": options.kind,
        "select_ratio": ratio,
        "all_rows": judge.recipe.all_rows or None,
        **summary,
    }
    if options.json:
        print_json(summary)
    else:
        print_text(_applied_text(summary))
    return DONE


LOOKED = 0.1
"""Share of the work that is done when all files have been looked at."""

CUT = 0.5
"""The same after the pass of `--select_ratio`."""


def _applied_text(summary: Mapping[str, Any]) -> str:
    """What applying came to, for people."""
    expected, ratio = summary["share_expected"], summary["select_ratio"]
    beside = "" if expected is None or ratio is not None else f", {percent(expected)} where the recipe was made"
    lines = [
        f"Kept {summary['kept']:,} of {summary['rows']:,} rows ({percent(summary['share_kept'])} of the "
        f"{summary['of']}{beside}).",
        *(f"Left out {count:,} rows with {reason}." for reason, count in summary["dropped"].items()),
    ]
    if ratio is not None:
        off = abs(summary["share_kept"] - ratio)
        why = "" if off <= TOLERANCE else "; rows of one score are selected or left out together"
        lines.append(f"Asked for {100 * ratio:g} %: off by {100 * off:.2g} % of the {summary['of']}{why}.")
    if summary["reused"]:
        lines.append(f"Shards that an earlier call had finished: {summary['reused']:,} of {summary['shards']:,}.")
    return "\n".join([*lines, f"{summary['as'].capitalize()}: {summary['output']}"])
