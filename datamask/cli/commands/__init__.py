"""Every command: the function that adds its options, and one sentence about it.

To add a command, write the function in the file of its topic, and its line here and in `datamask.cli.HANDLERS`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from datamask.cli.commands import corpora, measurements, selections, shards, stored_runs

COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], str]] = {
    "open": (corpora.add_open, "Serve the dashboard on this machine and open a corpus on the map."),
    "prepare": (
        corpora.add_prepare,
        "Create scores and embeddings from texts: quality by rules, features by TF-IDF, a static model or your own.",
    ),
    "copies": (corpora.add_copies, "Count or remove duplicates, in the corpus and in parts of it."),
    "select": (selections.add_select, "Select rows of a corpus and write their ids, ranks and scores."),
    "resume": (selections.add_resume, "Continue a run that was stopped, killed or failed, from its last checkpoint."),
    "sweep": (selections.add_sweep, "Run every combination of the options that you vary."),
    "ablate": (measurements.add_ablate, "Find out which methods help, by held-out text of one or more targets."),
    "score": (measurements.add_score, "Measure a list of ids on all objectives, and the overlap of several lists."),
    "explain": (measurements.add_explain, "Explain why rows are in or out of a run's selection."),
    "check-objective": (measurements.add_check_objective, "Check an objective of your own on small random problems."),
    "recipe": (shards.add_recipe, "Write the rule of a run's selection (pairwise, disf_fixed) as JSON or SQL."),
    "apply": (shards.add_apply, "Apply a recipe to any number of shards: write ids, masks or the selected rows."),
    "runs list": (stored_runs.add_list, "List all runs, newest first."),
    "runs show": (stored_runs.add_show, "Show the settings, the status and the result of a run."),
    "runs stop": (stored_runs.add_stop, "Stop a run in any process; it keeps a checkpoint."),
    "runs export": (stored_runs.add_export, "Write ids, rows, masks or a dataset card of a finished run."),
    "runs import": (stored_runs.add_import, "Import a list of ids as a finished run, with all measures."),
}
"""Command -> the function that adds its options, and what it does."""
