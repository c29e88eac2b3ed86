"""What the command line shows: progress on stderr, summaries and tables on stdout, and where results may go."""

from __future__ import annotations

import fnmatch
import json
import math
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from datamask.cli.streams import print_aside, print_text, write_aside
from datamask.errors import OptionError, StoreError, escaped
from datamask.evaluation.result import RunResult, percent_up
from datamask.files import remove_leftovers
from datamask.runs.formats import to_plain
from datamask.runs.health import learning
from datamask.runs.loose_bound import loose_bound
from datamask.runs.rule_book import rule_words
from datamask.runs.store import Run
from datamask.storage.address import harmless, is_address
from datamask.tables import OF_IDS, format_of
from datamask.work.pace import Eta, PhasePace, RoundPace, RunPace, duration

LINE_SECONDS = 5.0
"""Without a terminal: a line so often, and one whenever the work turns to something else."""

BAR_SECONDS = 0.1


class Progress:
    """A callable ``(share, what)`` that draws a bar on a terminal and prints a line now and then elsewhere.

    A context manager: leaving it clears the bar, so that what is printed next starts on a clean line.
    """

    def __init__(self, stream: TextIO | None = None, pace: RunPace | RoundPace | PhasePace | None = None) -> None:
        """`pace`: what knows the time left, where that does not follow from the shares alone."""
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._pace = pace or Eta()
        self._drawn = -LINE_SECONDS
        self._topic = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._terminal:
            self._write("\r\x1b[K")

    def note(self, sentence: str) -> None:
        """A sentence on a line of its own, which the bar does not run over."""
        self._write(("\r\x1b[K" if self._terminal else "") + f"datamask: {escaped(sentence)}\n")

    def __call__(self, share: float, what: str) -> None:
        left = self._pace.update(share, what=what)
        what = escaped(what)
        now = time.monotonic()
        # "step 12 of 100" and "step 13 of 100" are one topic, and so are 9.5 MB/s and 10 MB/s
        topic = "".join(letter for letter in what if not (letter.isdigit() or letter in ".,"))
        patience = BAR_SECONDS if self._terminal else LINE_SECONDS
        if now - self._drawn < patience and (self._terminal or topic == self._topic):
            return
        self._drawn, self._topic = now, topic
        share = min(max(share, 0.0), 1.0)
        eta = "" if left is None else f", {duration(left)} left"
        if self._terminal:
            width = shutil.get_terminal_size().columns
            bar = "#" * round(24 * share)
            self._write(f"\r\x1b[K{f'[{bar:<24}] {share:4.0%}  {what}{eta}'[: width - 1]}")
        else:
            self._write(f"{share:4.0%}  {what}{eta}\n")

    def _write(self, text: str) -> None:
        write_aside(text, self._stream)


def say(sentence: str) -> None:
    """One sentence on stderr."""
    print_aside(f"datamask: {sentence}")


def print_json(record: Mapping[str, Any]) -> None:
    """One JSON object on one line of stdout; what is not finite becomes null."""
    print_text(json.dumps(to_plain(record), allow_nan=False))


def summary_text(run: Run, result: RunResult, output: str | None) -> str:
    """A finished run for people: calibrated and raw values, and where the files are."""
    effort, size, bound = result.effort, result.size, result.certificate.upper_bound
    seconds = effort.seconds if effort.seconds_total is None else effort.seconds_total
    took = ""
    if seconds is not None:
        took = f" in {seconds:.1f} s" if seconds < 60 else f" in {duration(seconds)}"
    selection, ids = run.config.selection, run.config.ids
    how = f"by {selection.estimator}" if ids is None else f"by importing {Path(ids).name}"
    if result.unknown_ids:
        how += f", leaving out {result.unknown_ids:,} unknown ids"
    beside = f" next to {size.given:,} given rows" if size.given else ""
    tokens = f" with {size.tokens:,.0f} tokens" if size.budget and size.tokens else ""
    facts = run.facts()
    columns = (facts.get("columns") or {}).get("quality") or []
    lines = [
        f"Run {run.id} is {run.status().state}{took}.",
        f"Selected {_count(size.selected)} of {_count(size.n)} rows{tokens}{beside} {how} "
        f"({selection.objective}, lambda {selection.lamb:g}).",
        *([f"Rules: {'; '.join(rules)}."] if (rules := rule_words(selection, facts)) else []),
        *([f"Quality is column {', '.join(columns)}."] if columns else []),
        "",
    ]
    lines.append(f"  {'':<10}{'calibrated':>12}{'raw':>14}")
    for term in ("quality", "diversity", "joint"):
        # raw, the joint value adds numbers of different units
        raw = "" if term == "joint" and selection.scale == "calibrated" else _raw(result.raw.of(term))
        lines.append(f"  {term:<10}{percent(result.calibrated.of(term)):>12}{raw:>14}".rstrip())
    what = "budget" if size.budget else "size"
    lines.append(f"  0 % is a random subset of this {what}, 100 % the best that quality or diversity reaches alone.")
    lines.append("  joint = lambda * quality + (1 - lambda) * diversity.")
    if bound is not None:
        what = "that fills this budget" if size.budget else "of this size"
        under = " under these rules" if rules else ""
        most, near = _raw(bound), ""
        if selection.scale == "calibrated":  # rounded up: a bound rounded down is none
            most = f"{math.ceil(1e5 * bound) / 1e3:.3f} %"
            if (gap := result.certificate.gap) is not None:
                near = f" (gap {percent_up(gap):.2f} %)"
        lines.append(f"  No selection {what}{beside}{under} has a joint value above {most}{near}.")
        if loose := loose_bound(run, result):
            lines.append(f"  {loose}")
    if converged := learning(run):
        lines.append(f"  {converged}")
    classes = result.row_classes
    if classes is not None and classes.settled:
        eligible = classes.settled + classes.open
        lines.append(
            f"  Required or excluded, by proof: {classes.settled:,} of {eligible:,} rows. Every selection as "
            f"good as this one has {classes.inside:,} of them and none of the other {classes.outside:,}."
        )
    graph = result.graph
    if graph is not None and graph.approximate:
        lines.append(
            f"  The neighbor graph is approximate: it lists {100 * graph.recall:.1f} % of the true "
            f"neighbors, measured on {graph.recall_rows:,} random rows."
        )
    if parts := result.components:
        values = ", ".join(f"{name} {_raw(value)}" for name, value in parts.on_all.items())
        lines.append(
            f"  {' and '.join(parts.on_all)} on {parts.kept:,} of {parts.of:,} principal components, "
            f"{100 * parts.share:.1f} % of the trace. On all dimensions, without a bound: {values}."
        )
    if estimate := result.estimate:
        lines.append(
            f"  The raw diversity is a lower bound, of listed neighbors. The exact one is {_raw(estimate.value)} "
            f"({_raw(estimate.low)} to {_raw(estimate.high)}, from {estimate.rows:,} random rows)."
        )
    lines.append("")
    if output is not None:
        lines.append(f"Selection: {output}")
    lines.append(f"Run folder: {run.path}")
    if run.whole is None:
        words = ["open", *run.config.corpus_words()]
        lines.append(f"On the map: {shlex.join(['python', '-m', 'datamask', *words])}")
    return "\n".join(lines)


def score_text(entry: Mapping[str, Any]) -> str:
    """One selection on every measure, for people."""
    unknown = f" ({entry['unknown_ids']:,} more ids are not among the rows opened)" if entry["unknown_ids"] else ""
    lines = [
        f"{entry['selection']}: {entry['selected']:,} of {entry['n']:,} rows{unknown}",
        f"  {'':<12}{'calibrated':>12}{'raw':>14}",
    ]
    for name, value in {"quality": entry["quality"], **entry["objectives"]}.items():
        lines.append(f"  {name:<12}{percent(entry['calibrated'].get(name)):>12}{_raw(value):>14}")
    return "\n".join(lines)


VERDICT_MARKS = {"best": " *", "tied": " =", "hatched": " /", "": "  "}


def board_text(board: Mapping[str, Any]) -> str:
    """A scoreboard for people: one measure a line, one selection a column, values with their 95 % intervals."""
    paths = list(board["selected"])
    stems = [Path(path).stem for path in paths]
    names = {path: stem if stems.count(stem) == 1 else path for path, stem in zip(paths, stems)}
    rows, why = [], {}
    for measure in board["measures"]:
        cells = {}
        for path in paths:
            cell = measure["selections"][path]
            if cell["value"] is None:
                why[measure["label"]] = cell["note"]
            reach = f" ±{(cell['high'] - cell['low']) / 2:.2g}" if cell["low"] is not None else ""
            cells[names[path]] = (
                "-" if cell["value"] is None else (f"{cell['value']:.5g}{reach}{VERDICT_MARKS[cell['verdict']]}")
            )
        rows.append({"measure": measure["label"], "better": measure["better"], **cells})
    notes = [f"{label}: {note}." for label, note in why.items()] + list(board["notes"])
    return "\n".join(
        [
            "",
            table_text(rows),
            "  * best   = cannot be told apart from the best   / made by this measure, so out of competition",
            *(f"  {note}" for note in notes),
        ]
    )


def percent(value: Any) -> str:
    """A share as people read it; a hyphen where there is none."""
    return f"{100 * value:.1f} %" if isinstance(value, (int, float)) else "-"


def table_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of equal keys as aligned columns under their names."""
    names = list(rows[0])
    cells = [[name.upper() for name in names], *([str(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells)


def check_output(output: str, inputs: Sequence[str] = (), option: str = "output", among: Sequence[str] = OF_IDS) -> str:
    """The absolute path of a file to write, after making sure, before hours of work, that it can be written.

    Args:
        option: the one that names it. among: the endings of tables that it may have; none: it is no table.

    Raises:
        OptionError: it is a folder or a device, has another ending, or is, or would become, one of the inputs.
        StoreError: its folder cannot be written.
    """
    path = Path(output).absolute()
    if path.is_dir():
        raise OptionError(f"--{option} must be a file, got the folder {output}")
    if path.exists() and not path.is_file():
        raise OptionError(f"--{option} must be an ordinary file, got {output}")
    if is_address(output):
        raise OptionError(f"--{option} must be a file of this machine, got {harmless(output)}")
    if among:
        format_of(output, option, among)
    for given in inputs:
        if is_address(given):
            continue
        source = Path(given).absolute()
        if path == source or fnmatch.fnmatch(str(path), str(source)):
            raise OptionError(f"--{option} {output} is one of the inputs ({given}); choose another place")
    check_apart(option, output, inputs)
    ancestor = next(parent for parent in path.parents if parent.exists())
    if not ancestor.is_dir():
        raise StoreError(f"--{option} {output} cannot be written: {ancestor} is a file, not a folder")
    try:
        with tempfile.TemporaryFile(dir=ancestor):
            pass
    except OSError as error:
        raise StoreError(f"--{option} {output} cannot be written: {error.strerror}") from error
    remove_leftovers(path)
    return str(path)


def check_apart(option: str, path: str, inputs: Sequence[str]) -> None:
    """Refuse a path in an input folder: the next run on that folder would take our own files for shards.

    Raises:
        OptionError: `path` lies in one of `inputs`.
    """
    place = Path(path).resolve()
    for given in inputs:
        if is_address(given):
            continue
        source = Path(given).resolve()
        if source.is_dir() and (source == place or source in place.parents):
            raise OptionError(
                f"--{option} {path} lies in the input folder {given}, whose files are read as "
                "shards; choose another place"
            )


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "?"


def _raw(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else "-"
