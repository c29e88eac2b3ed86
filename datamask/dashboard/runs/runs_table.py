"""The table of runs: one row per run, one entry of `COLUMNS` per column. Data first; what draws it is `runs_panel`.

What is not known of a run is empty, never 0. What was read of a run that has ended is remembered for as long as its
three small files stay as they are, so that hundreds of runs are listed as quickly as a few.

To add a column: one `Column` in `COLUMNS`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from datamask import catalogue
from datamask.dashboard.data.openings import title_of
from datamask.dashboard.runs import outcome
from datamask.errors import DatamaskError
from datamask.evaluation.result import NO_RESULT, RunResult
from datamask.memo import FileMemo

if TYPE_CHECKING:
    from datamask.config import RunConfig, SelectionConfig
    from datamask.runs.labels import Label
    from datamask.runs.status import RunStatus
    from datamask.runs.store import Run

TEXT, TAGS, SHARE, NUMBER, COUNT, SECONDS, MOMENT = "text", "tags", "share", "number", "count", "seconds", "moment"
"""What a column holds. A share is 0 at a random subset and 1 at the best known; a moment is seconds since 1970."""

NUMERIC = (SHARE, NUMBER, COUNT, SECONDS)

REMEMBERED = 4000
"""Runs of which a row is remembered: more than anybody lists."""

BELOW = "below"
"""The column that is only drawn where a listed run is below random."""

TOLERANCE = 1e-5
"""A share so little below 0 is rounding."""

CORPUS = "corpus"
"""The column that is only there where runs of several corpora are listed."""


@dataclass(frozen=True)
class Record:
    """What the small files of one run say.

    Attributes:
        run_id: of the run. status, label: of it.
        config: its settings; None: the record is damaged.
        facts: what was found out about it. result: the numbers of its end, all None before.
    """

    run_id: str
    status: RunStatus
    label: Label
    config: RunConfig | None
    facts: Mapping[str, Any]
    result: RunResult

    @property
    def selection(self) -> SelectionConfig | None:
        """The settings of the selection."""
        return None if self.config is None else self.config.selection

    @property
    def guided(self) -> bool:
        """Whether lambda had a say in what was selected."""
        return self.selection is not None and catalogue.estimator(self.selection.estimator).guided


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: in the table; title: over it; help: what people read about it.
        kind: what it holds: `TEXT`, `TAGS`, `SHARE`, `NUMBER`, `COUNT`, `SECONDS` or `MOMENT`.
        read: its cell; None: not known.
    """

    name: str
    title: str
    kind: str
    help: str
    read: Callable[[Record], Any]


def _name(record: Record) -> str:
    return (record.config.name if record.config is not None else "") or record.run_id


def _share(term: str) -> Callable[[Record], float | None]:
    return lambda record: record.result.calibrated.of(term)


def _ratio(record: Record) -> float | None:
    selected, n = record.result.size.selected, record.result.size.n
    if record.selection is None or record.selection.budget is None:
        return None if record.selection is None else record.selection.select_ratio
    return selected / n if selected is not None and n else None


def _estimator(record: Record) -> str | None:
    if record.selection is None:
        return None
    if record.selection.preset == "paper":
        return "Paper preset"
    column = catalogue.quality_column(record.selection.estimator)
    return catalogue.estimator(record.selection.estimator).label + (f" by {column}" if column else "")


def _below(record: Record) -> str | None:
    shares = record.result.calibrated
    below = [term for term in ("quality", "diversity") if (shares.of(term) or 0.0) < -TOLERANCE]
    return " and ".join(below) or None


def _gap(record: Record) -> float | None:
    # on the raw scale a gap is in the objective's own units, which no column of several runs can hold
    if record.selection is None or record.selection.scale == "raw":
        return None
    return record.result.certificate.gap


def _tokens(record: Record) -> float | None:
    return record.result.size.tokens


def _seconds(record: Record) -> float | None:
    effort = record.result.effort
    return effort.seconds if effort.seconds_total is None else effort.seconds_total


COLUMNS: tuple[Column, ...] = (
    Column("name", "Run", TEXT, "", _name),
    Column(
        "state",
        "State",
        TEXT,
        "Done, running, queued, stopped, failed, or interrupted (its process ended early).",
        lambda record: (record.config is None and record.status.message) or record.status.state,
    ),
    Column(
        "quality",
        "Quality",
        SHARE,
        "0 % random, 100 % best found.",
        _share("quality"),
    ),
    Column(
        "diversity",
        "Diversity",
        SHARE,
        "0 % random, 100 % best found. Compare runs of one objective and size only.",
        _share("diversity"),
    ),
    Column(
        BELOW,
        "Below random",
        TEXT,
        "Terms in which the run is worse than random.",
        _below,
    ),
    Column(
        "lamb",
        "λ",
        NUMBER,
        "Empty if the method has no λ.",
        lambda record: record.selection.lamb if record.selection is not None and record.guided else None,
    ),
    Column("ratio", "Ratio", NUMBER, "", _ratio),
    Column(
        "objective",
        "Objective",
        TEXT,
        "",
        lambda record: None if record.selection is None else outcome.objective_label(record.selection.objective),
    ),
    Column("estimator", "Method", TEXT, "", _estimator),
    Column(
        "gap",
        "Gap",
        NUMBER,
        "In percent. Empty if the method proves none.",
        _gap,
    ),
    Column("tokens", "Tokens", COUNT, "", _tokens),
    Column("seconds", "Seconds", SECONDS, "Of the whole run.", _seconds),
    Column("tags", "Tags", TAGS, "", lambda record: list(record.label.tags) or None),
    Column("age", "Created", MOMENT, "", lambda record: record.status.created),
    Column(
        "note",
        "Note",
        TEXT,
        "",
        lambda record: (record.config.notes if record.config is not None else "") or None,
    ),
    Column(
        CORPUS,
        "Corpus",
        TEXT,
        "",
        lambda record: None if record.config is None else title_of(record.config.corpus),
    ),
)
"""Every column, in order."""

_ROWS: FileMemo[dict[str, Any]] = FileMemo(REMEMBERED)


def table(runs: Sequence[Run], several: bool = False) -> pd.DataFrame:
    """One row per run in the order given, the run's id as index, and a column per entry of `COLUMNS`.

    Numbers are float64, NaN where they are not known; moments are UTC; texts and tags are None where there is none.

    Args:
        several: whether the runs are of several corpora: only then there is a column that names it.
    """
    rows = [row_of(run) for run in runs]
    columns = [column for column in COLUMNS if several or column.name != CORPUS]
    index = pd.Index([run.id for run in runs], dtype=object, name="id")
    cells = {column.name: _typed([row[column.name] for row in rows], column.kind) for column in columns}
    return pd.DataFrame({name: values.set_axis(index) for name, values in cells.items()}, index=index)


def row_of(run: Run) -> dict[str, Any]:
    """The cells of one run by column, remembered of a run that nobody is working on."""
    row = _ROWS.get(run.path / "status.json", lambda: _read(run), aspect=(_stamp(run, "config"), _stamp(run, "label")))
    # how a run stands that is under way depends on who holds its locks, too
    return _read(run) if row["state"] in ("queued", "running") else row


def matching(frame: pd.DataFrame, search: str) -> pd.DataFrame:
    """The rows in whose texts, tags or id every word of the search stands, whatever its case."""
    wanted = search.casefold().split()
    if not wanted or frame.empty:
        return frame
    texts = [column.name for column in COLUMNS if column.kind in (TEXT, TAGS) and column.name in frame]
    searched = [
        " ".join([str(run_id), *(_words(cell) for cell in cells)]).casefold()
        for run_id, *cells in frame[texts].itertuples()
    ]
    return frame[[all(word in text for word in wanted) for text in searched]]


def _words(cell: Any) -> str:
    if isinstance(cell, list):
        return " ".join(cell)
    return cell if isinstance(cell, str) else ""


def _read(run: Run) -> dict[str, Any]:
    status = run.status()
    try:
        record = Record(run.id, status, run.label(), run.config, run.facts(), status.result or NO_RESULT)
    except DatamaskError:
        # its state is failed by then, and the page of the run says why
        record = Record(run.id, status, run.label(), None, {}, NO_RESULT)
    return {column.name: _known(column.read(record)) for column in COLUMNS}


def _known(cell: Any) -> Any:
    """The cell; a number that float64 cannot hold is not known."""
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return cell
    try:
        return cell if math.isfinite(cell) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def _stamp(run: Run, name: str) -> tuple[int, ...] | None:
    """What changes whenever a file of the run does; None: it has none."""
    try:
        stat = os.stat(run.path / f"{name}.json")  # noqa: PTH116
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _typed(cells: list[Any], kind: str) -> pd.Series:
    if kind in NUMERIC:
        return pd.Series([math.nan if cell is None else float(cell) for cell in cells], dtype="float64")
    if kind == MOMENT:
        # in milliseconds, of which there are enough for any year that a record may name
        moments = np.array(["NaT" if cell is None else round(1000 * cell) for cell in cells], dtype="datetime64[ms]")
        return pd.Series(pd.DatetimeIndex(moments).tz_localize("UTC"))
    return pd.Series(cells, dtype=object)
