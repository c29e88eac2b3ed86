"""The command `open`: the dashboard on a corpus, from the shell to the page in one line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from datamask.cli.output import check_apart
from datamask.cli.parser import corpus_config


def open_dashboard(options: argparse.Namespace) -> int:
    """`open`: serve the dashboard until Ctrl-C; whatever is named is opened, and its folders may be read."""
    config = None
    if options.inputs or options.input:
        config = corpus_config(options)
        check_apart("runs", options.runs_dir, config.inputs)
    os.environ["DATAMASK_RUNS_DIR"] = str(Path(options.runs_dir).absolute())
    from datamask.dashboard.server.server import serve

    return serve(config, options.port)
