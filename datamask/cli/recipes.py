"""The commands `recipe` and `apply`: the rule behind a run's selection, and rows of any number of shards kept by it."""

from __future__ import annotations

import argparse

from datamask.cli.common import DONE, stop_on_signals
from datamask.cli.output import Progress, check_output, percent, print_json, say
from datamask.recipes import write_recipe
from datamask.runs.store import RunStore


def recipe(options: argparse.Namespace) -> int:
    """`recipe`: a finished run's rule, as JSON."""
    from datamask.runs.recipe import recipe_of

    run = RunStore(options.runs_dir).get(options.run)
    output = check_output(options.output, run.config.corpus.inputs)
    with stop_on_signals() as stop, Progress() as progress:
        made = recipe_of(run, progress=progress, should_stop=stop.is_set)
    write_recipe(made, output)
    learned = made.learned
    for note in made.notes:
        say(f"note: {note}")
    if options.json:
        print_json(
            {
                "run_id": run.id,
                "output": output,
                **{
                    name: learned[name]
                    for name in ("rows", "selected", "kept", "share_kept", "otherwise", "beyond_the_run")
                },
                "notes": list(made.notes),
            }
        )
    else:
        print(
            f"Of {learned['rows']:,} rows it keeps {learned['kept']:,} ({percent(learned['share_kept'])} of the "
            f"{made.of}); {learned['otherwise']:,} come out otherwise than in the run.\nRecipe: {output}"
        )
    return DONE
