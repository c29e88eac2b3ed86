"""The scoreboard: several selections side by side on every measure, with what can and what cannot be told apart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.corpus.neighbors import stored_graph
from datamask.errors import InputError
from datamask.evaluation.measures import PANEL, MeasureEntry
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.measures.reading import Measured, Reading, difference
from datamask.evaluation.pool import Pool
from datamask.evaluation.references import RANDOM, TOP_QUALITY, comparable, reference_rows
from datamask.evaluation.verdicts import BEST, TIED, optimised_sets, verdicts
from datamask.learning.device import resolve
from datamask.polling import Poll, no_poll
from datamask.work.context import UNWATCHED, Report, Work, no_report

GRAPH_EFFORT = 1.7
"""Of finding the neighbour graph, in the units of `MeasureEntry.effort`; it grows with the square of the rows, ..."""

GRAPH_ROWS, GRAPH_MOST = 18_000, 200_000
"""... so over that of the measures with the rows themselves, up to where graphs are approximate."""


def scoreboard(
    corpus: Corpus,
    selections: Mapping[str, np.ndarray],
    cache_dir: str | Path,
    *,
    optimised: Mapping[str, Collection[str]] | None = None,
    references: bool = True,
    cut: bool = False,
    targets: Mapping[str, np.ndarray] | None = None,
    calibrate: bool = True,
    device: str = "auto",
    progress: Report | None = None,
    poll: Poll = no_poll,
    before: Mapping[str, Any] | None = None,
    kept: Callable[[dict[str, Any]], object] | None = None,
) -> dict[str, Any]:
    """Compare selections of one size on every measure of the panel, next to random and top-quality ones.

    Its public name is `datamask.evaluate`.

    Args:
        corpus: N rows.
        selections: name -> int64 ``(S,)``, distinct rows of the corpus.
        cache_dir: folder for the neighbor graph, anchors and clusters.
        optimised: name -> the measures that selection was made by (`optimised_by` reads them off its settings); on
            those it is hatched, never best.
        references: add ``random`` and ``top-quality`` of the same size, unless selections of these names are given.
        cut: cut selections of unequal size at random to equal tokens (rows where the corpus has no lengths).
        targets: name -> bool ``(N,)``: more kinds of held-out text to predict.
        calibrate: also give values from 0 (random) to 1 (best found). The ends take most of the time if no run has
            found them yet.
        device: auto, cpu, cuda or cuda:K.
        progress: called with a share from 0 to 1 and a few words.
        poll: called at least every 0.3 s; what it raises ends the work.
        before: an unfinished scoreboard of the same selections, to continue.
        kept: called with the scoreboard so far after each measure, fast ones first.

    Returns:
        Plain values: ``n``; ``selected``, ``tokens`` and ``optimised`` by name; ``notes``; ``left``, the measures that
        are not there yet; and ``measures``, one item for each measure. An item has ``measure``, ``label``, ``says``,
        ``better``, ``optimisable``, ``interval``, ``best`` (a name or None), ``tied`` (names) and ``selections``. That
        has, by name, ``value``, ``low``, ``high``, ``verdict``, ``note``, ``against_random`` (None, or a dict of
        ``difference``, ``low`` and ``high``), and for some measures ``calibrated`` and ``levels``.

    Raises:
        InputError: rows that are no selection, or selections of unequal size without `cut`.
        OptionError: `optimised` names a selection or measure that is not there.
        Stopped: `poll` raised it.

    Examples:
        >>> from tempfile import mkdtemp
        >>> import datamask
        >>> corpus = datamask.open_corpus(datamask.CorpusConfig(["sample_data/tiny"]))
        >>> best, first = corpus.quality.argsort()[-100:], corpus.quality.argsort()[:100]
        >>> board = datamask.evaluate(corpus, {"best": best, "worst": first}, mkdtemp(), calibrate=False)
        >>> next(row["best"] for row in board["measures"] if row["measure"] == "quality")
        'best'
    """
    work = Work(poll, progress or no_report)
    pool = Pool(corpus, resolve(device), Path(cache_dir), work=work)
    return compare(
        Ground(pool, poll, targets=targets),
        selections,
        optimised=optimised,
        references=references,
        cut=cut,
        calibrate=calibrate,
        work=work,
        before=before,
        kept=kept,
    )


def compare(
    ground: Ground,
    selections: Mapping[str, np.ndarray],
    *,
    optimised: Mapping[str, Collection[str]] | None = None,
    references: bool = True,
    cut: bool = False,
    calibrate: bool = True,
    work: Work = UNWATCHED,
    before: Mapping[str, Any] | None = None,
    kept: Callable[[dict[str, Any]], object] | None = None,
) -> dict[str, Any]:
    """`scoreboard` on a ground that is there already."""
    corpus = ground.corpus
    if not selections:
        raise InputError("there are no selections to compare; give at least one")
    checked = {name: checked_rows(corpus, rows, name) for name, rows in selections.items()}
    members, tokens, notes = comparable(corpus, checked, cut)
    if references:
        size = min(map(len, members.values()))
        members = {
            **members,
            **{name: rows for name, rows in reference_rows(corpus, size, tokens).items() if name not in members},
        }
    made_by = optimised_sets(optimised, tuple(members))
    ground.calibrating = calibrate and tokens is None
    head = {
        "n": len(corpus),
        "selected": {name: len(rows) for name, rows in members.items()},
        "tokens": None
        if corpus.lengths is None
        else {name: float(corpus.lengths[rows].sum()) for name, rows in members.items()},
        "optimised": {name: sorted(names) for name, names in made_by.items()},
        "notes": notes,
    }
    rows = _rows_of(before)
    for entry, measurements in _measured(ground, members, [entry for entry in PANEL if entry.name not in rows], work):
        rows[entry.name] = [_row(measured, entry.interval, verdicts(measured, made_by)) for measured in measurements]
        if kept is not None:
            kept(_board(head, rows))
    return _board(head, rows)


def measure_all(
    ground: Ground,
    selections: Mapping[str, np.ndarray],
    entries: Sequence[MeasureEntry],
    work: Work = UNWATCHED,
) -> list[Measured]:
    """Every measure of `entries` on every selection, in order."""
    return [
        measured for _, measurements in measure_each(ground, selections, entries, work) for measured in measurements
    ]


def measure_each(
    ground: Ground, selections: Mapping[str, np.ndarray], entries: Sequence[MeasureEntry], work: Work
) -> Iterator[tuple[MeasureEntry, list[Measured]]]:
    """As `measure_all`, each measure as soon as it is there."""
    total, done = sum(entry.effort for entry in entries), 0.0
    for entry in entries:
        ground.poll()
        part = _named(work.part(done / total, (done + entry.effort) / total), f"measuring {entry.label}")
        part(0.0, "")
        with ground.pool.reporting(part):
            measurements = entry.measure(ground, selections, entry)
        yield entry, measurements
        done += entry.effort


def _measured(
    ground: Ground, selections: Mapping[str, np.ndarray], entries: Sequence[MeasureEntry], work: Work
) -> Iterator[tuple[MeasureEntry, list[Measured]]]:
    """The graph, if it has to be found, then the measures that are left of the panel, the quick ones first."""
    graph_kept = stored_graph(ground.corpus, ground.pool.cache_dir).exists
    graph = 0.0 if graph_kept or not entries else GRAPH_EFFORT * min(len(ground), GRAPH_MOST) / GRAPH_ROWS
    left, whole = sum(entry.effort for entry in entries), graph + sum(entry.effort for entry in PANEL)
    begin = sum(entry.effort for entry in PANEL if entry not in entries) / whole
    if graph:
        with ground.pool.reporting(work.part(begin, begin + graph / whole).report):
            ground.graph()
    yield from measure_each(
        ground,
        selections,
        sorted(entries, key=lambda entry: entry.effort),
        work.part(begin + graph / whole, begin + (graph + left) / whole),
    )


def _named(work: Work, what: str) -> Report:
    """Reports of a part of the work under a name of its own."""
    return lambda share, _: work.report(share, what)


def _rows_of(before: Mapping[str, Any] | None) -> dict[str, list[dict[str, Any]]]:
    """What an unfinished scoreboard has, by the panel's entry; a measure of several columns has several rows."""
    if before is None:
        return {}
    left = {entry_left["measure"] for entry_left in before["left"]}
    rows: dict[str, list[dict[str, Any]]] = {entry.name: [] for entry in PANEL if entry.name not in left}
    for row in before["measures"]:
        rows[row["measure"].split(":")[0]].append(row)
    return rows


def _board(head: Mapping[str, Any], rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    left = [{"measure": entry.name, "label": entry.label} for entry in PANEL if entry.name not in rows]
    return {**head, "left": left, "measures": [row for entry in PANEL for row in rows.get(entry.name, ())]}


def panel_rows(board: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """One selection's rows of a scoreboard, with the references' values beside them."""
    rows = []
    for measure in board["measures"]:
        about = {key: measure[key] for key in ("measure", "label", "says", "better", "optimisable", "interval")}
        beside = {
            key: measure["selections"][reference]["value"]
            for key, reference in (("random", RANDOM), ("top_quality", TOP_QUALITY))
            if reference in measure["selections"]
        }
        rows.append({**about, **measure["selections"][name], **beside})
    return rows


def checked_rows(corpus: Corpus, rows: np.ndarray, name: str = "") -> np.ndarray:
    """The rows as int64.

    Raises:
        InputError: no rows, all rows, repeated rows or rows outside the corpus.
    """
    rows = np.asarray(rows, dtype=np.int64)
    n, size = len(corpus), len(rows)
    if not 0 < size < n or len(np.unique(rows)) != size or rows.min() < 0 or rows.max() >= n:
        raise InputError(
            f"a selection to score must hold 1 to {n - 1:,} distinct rows of the corpus, got {size:,}"
            + (f" in {name}" if name else "")
        )
    return rows


def _row(measured: Measured, interval: str, verdict: Mapping[str, str]) -> dict[str, Any]:
    beside = measured.readings.get(RANDOM)
    return {
        "measure": measured.name,
        "label": measured.label,
        "says": measured.says,
        "better": measured.better,
        "optimisable": measured.optimisable or bool(measured.circular),
        "interval": interval,
        "best": next((name for name, word in verdict.items() if word == BEST), None),
        "tied": [name for name, word in verdict.items() if word == TIED],
        "selections": {
            name: _cell(reading, verdict[name], None if name == RANDOM else beside)
            for name, reading in measured.readings.items()
        },
    }


def _cell(reading: Reading, verdict: str, beside: Reading | None) -> dict[str, Any]:
    low, high = reading.interval or (None, None)
    paired = None if beside is None else difference(reading, beside)
    against = None if paired is None else dict(zip(("difference", "low", "high"), paired))
    return {
        "value": reading.value,
        "low": low,
        "high": high,
        "verdict": verdict,
        "against_random": against,
        "note": reading.note,
        **reading.extra,
    }
