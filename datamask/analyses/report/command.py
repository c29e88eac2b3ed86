"""The command `runs export`: files and a dataset card from a finished run."""

from __future__ import annotations

import argparse
from pathlib import Path

from datamask.cli.common import DONE, command_work, repeat_amount
from datamask.cli.output import print_json, say
from datamask.cli.streams import print_text
from datamask.errors import OptionError
from datamask.repeat_counts import AS_SELECTED
from datamask.runs.export_table import EXPORTS, flags
from datamask.runs.store import RunStore
from datamask.storage.address import harmless, is_address


def runs_export(options: argparse.Namespace) -> int:
    """Write what a finished run has for `runs export`."""
    run = RunStore(options.runs_dir).get(options.run)
    paths = {export.name: getattr(options, export.name) for export in EXPORTS}
    asked = [export for export in EXPORTS if paths[export.name]]
    if not asked and not options.card:
        raise OptionError(f"runs export needs at least one of --card FOLDER, {flags()}")
    if options.card_rows and not options.card:
        raise OptionError("--card_rows belongs to --card FOLDER")
    amount = repeat_amount(options)
    if amount != AS_SELECTED and not options.weights:
        raise OptionError(
            "--repeats and --repeat_tokens say how much --weights comes to; give --weights OUT.parquet too"
        )
    for export in asked:
        if is_address(paths[export.name]):
            raise OptionError(f"--{export.name} must be on this machine, got {harmless(paths[export.name])}")
        export.check(paths[export.name])
    written: dict[str, str | list[str]] = {}
    with command_work() as work:
        for export in asked:
            wanted = {"amount": amount, "report": say} if export.amounts else {}
            written[export.name] = export.write(run, paths[export.name], work, **wanted)
        if options.card:
            from datamask.analyses.report.dataset_card import write_dataset

            cache_dir, rows = RunStore(options.runs_dir).cache_dir, options.card_rows
            files = write_dataset(run, options.card, cache_dir, work, rows=rows)
            written["card"] = [str(Path(options.card) / file) for file in files]
    if options.json:
        print_json({"run_id": run.id, **written})
    else:
        for outcome in written.values():
            print_text("\n".join(outcome) if isinstance(outcome, list) else outcome)
    return DONE
