"""What a selection can say about where it came from: settings, corpus, versions, the exact command."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from datamask.config import CorpusConfig
from datamask.corpus.shared_corpora import shared_corpora
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing, outcome
from datamask.errors import InputError
from datamask.evaluation.result import NO_RESULT
from datamask.memo import FileMemo
from datamask.options import CORPUS_OPTIONS
from datamask.runs.store import Run
from datamask.storage.address import is_address

_SOURCES: FileMemo[tuple[tuple[str, ...], bool]] = FileMemo(64)
"""Asked for at every draw of a page, and the table they stand in has a line for every row of the corpus."""

SMALL = 100_000_000
"""Bytes up to which a file travels through the browser; larger ones are written to the run's folder."""


def table(run: Run) -> pd.DataFrame:
    """Columns ``what, value``: provenance as text, in the order people ask."""
    facts, status = run.facts(), run.status()
    corpus, result = run.config.corpus, status.result or NO_RESULT
    n, total = facts.get("n") or result.size.n, facts.get("total_rows")
    versions = dict(facts.get("versions") or {})
    platform = versions.pop("platform", "–")
    rows = [
        ("run", f"{listing.name_of(run)} (run id {run.id})"),
        ("settings", outcome.headline(run)),
        *([("rules", "; ".join(rules))] if (rules := outcome.rules(run)) else []),
        ("seed", str(run.config.selection.seed)),
        ("corpus", ", ".join(corpus.inputs)),
        *(
            (CORPUS_OPTIONS[name].title.lower(), CORPUS_OPTIONS[name].shown(value))
            for name, value in run.config.corpus_given().items()
        ),
        ("rows", _rows_words(run, n, total)),
        ("fingerprint", str(facts.get("fingerprint") or "–")),
        *(
            [("start", f"continues from run {warm} under the rules of this run")]
            if (warm := facts.get("warm_from"))
            else []
        ),
        *([("neighbor graph", graph)] if (graph := outcome.neighbors(run)) else []),
        (
            "ended",
            f"{status.ending or status.state}, after {words.duration(result.effort.seconds_total)} on "
            f"{result.effort.device or '–'}",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("platform", str(platform)),
    ]
    return pd.DataFrame([(what, words.printable(value)) for what, value in rows], columns=["what", "value"])


def _rows_words(run: Run, n: int | None, total: int | None) -> str:
    """How many rows the run selected from, of how many."""
    whole = run.whole or {}
    if "rows" in whole and total:
        return f"{words.of_total(int(whole['rows']), int(total))}, in mapped files{outcome.sample_words(run)}"
    return words.of_total(int(n), int(total or n)) if n else "–"


def command(run: Run, output: str | None = None) -> str:
    """The line that repeats the run, for a shell."""
    return "python -m datamask " + shlex.join(
        run.config.arguments(output or run.facts().get("output") or "selection.parquet")
    )


@dataclass(frozen=True)
class Shards:
    """The corpus's files as they lie there now.

    Attributes:
        present: whether all of them are there; of files elsewhere it is taken for granted, and that they are large.
        bytes: the selected share of the shards' bytes. What is written may be half as large again, or less: it tells
            a small file from a large one, and is not shown.
        newer: how many were written after the run was made, and were not read since by the open corpus of the run;
            their rows may no longer be those it selected from.
        outside: why they may not be read, where that is so.
        large: whether the file may be too large to travel through the browser.
    """

    present: bool
    bytes: int
    newer: int
    outside: str = ""

    @property
    def large(self) -> bool:
        return self.bytes > SMALL


def shards(
    run: Run, check: Callable[[CorpusConfig], None] = lambda config: None, opened: OpenCorpus | None = None
) -> Shards:
    """Look at the files a run's rows came from; no row is read.

    Args:
        check: raises where a corpus may not be read by whoever asks: then nothing is looked at.
        opened: the open corpus, where one is.
    """
    facts = run.facts()
    try:
        files = source_files(run)
        check(run.config.corpus)
        if files:
            check(CorpusConfig(tuple(files)))
        if any(map(is_address, files)):
            # a page waits for no store; whatever is written looks at them
            return Shards(True, SMALL + 1, 0)
        seen = [Path(file).stat() for file in files]
    except InputError as error:
        return Shards(False, 0, 0, str(error))
    except (OSError, ValueError):
        return Shards(False, 0, 0)
    on_disk = sum(stat.st_size for stat in seen)
    selected, total = facts.get("selected"), facts.get("total_rows")
    share = selected / total if selected and total else 1.0
    newer = sum(stat.st_mtime > run.created for stat in seen)
    return Shards(True, int(on_disk * share), 0 if newer and _read_since(run, opened) else newer)


def _read_since(run: Run, opened: OpenCorpus | None) -> bool:
    """Whether the open corpus was read from the run's files as they are now, and is the one that it was made on.

    Files that were copied or installed are newer than a run on them, and hold the same.
    """
    return (
        opened is not None
        and opened.config == run.config.corpus
        and opened.corpus.fingerprint == run.facts().get("fingerprint")
        and shared_corpora().holds(opened.config)
    )


def source_files(run: Run) -> list[str]:
    """The files that hold rows of a finished run, in reading order."""
    return list(_sources(run)[0])


def has_made_ids(run: Run) -> bool:
    """Whether the ids of a finished run are made of file and row, so that no column of the files has them."""
    return _sources(run)[1]


def _sources(run: Run) -> tuple[tuple[str, ...], bool]:
    def read() -> tuple[tuple[str, ...], bool]:
        column = id_column(run)
        table = run.rows([*dict.fromkeys(("source_file", "source_row", column))])
        names = table["source_file"].combine_chunks()
        encoded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
        made = bool(len(table)) and str(table[column][0]).endswith(f":{table['source_row'][0]}")
        return tuple(encoded.dictionary.to_pylist()), made

    return _SOURCES.get(run.path / "rows.parquet", read)


def id_column(run: Run) -> str:
    """What the id column of a run's corpus is called."""
    return str((run.facts().get("columns") or {}).get("id", "id"))
