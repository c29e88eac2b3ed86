"""What a selection can say about where it came from: settings, corpus, versions, the exact command."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd

from datamask.dashboard import words
from datamask.dashboard.views import listing, outcome
from datamask.runs.store import Run

SMALL = 100_000_000
"""Bytes up to which a file travels through the browser; larger ones are written to the run's folder."""


def table(run: Run) -> pd.DataFrame:
    """Columns ``what, value``: provenance as text, in the order people ask."""
    facts, status = run.facts(), run.status()
    corpus, summary = run.config.corpus, status.summary or {}
    n, total = facts.get("n") or summary.get("n"), facts.get("total_rows")
    versions = dict(facts.get("versions") or {})
    platform = versions.pop("platform", "–")
    rows = [
        ("run", f"{listing.name_of(run)} ({run.id})"),
        ("settings", outcome.headline(run)),
        ("seed", str(run.config.selection.seed)),
        ("corpus", ", ".join(corpus.inputs)),
        ("rows", words.of_total(int(n), int(total or n)) if n else "–"),
        ("fingerprint", str(facts.get("fingerprint") or "–")),
        ("ended", f"{status.ending or status.state}, after {words.duration(summary.get('seconds_total'))} on "
                  f"{summary.get('device') or '–'}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("platform", str(platform)),
    ]
    return pd.DataFrame(rows, columns=["what", "value"])


def command(run: Run, output: str | None = None) -> str:
    """The line that repeats the run, for a shell."""
    return "python -m datamask " + shlex.join(run.config.arguments(output or run.facts().get("output")
                                                                   or "selection.parquet"))


def rows_bytes(run: Run) -> int | None:
    """About how large the corpus's own rows are when only the selected ones are kept; None if the shards are gone."""
    facts = run.facts()
    files = facts.get("files") or run.rows()["source_file"].combine_chunks().dictionary_encode().dictionary.to_pylist()
    try:
        on_disk = sum(Path(file).stat().st_size for file in files)
    except OSError:
        return None
    selected, total = facts.get("selected"), facts.get("total_rows")
    return int(on_disk * selected / total) if selected and total else on_disk
