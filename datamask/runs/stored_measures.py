"""What is measured about finished runs besides themselves, kept on disk: scoreboards of several, agreements of one.

Both take seconds to minutes and depend on finished runs alone, so each is computed once (`datamask.runs.measuring`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datamask.runs.store import Run
from datamask.work.cache import Cache
from datamask.work.result_file import Content, Entry, require

VERSION = 1
"""Rises when the panel or the meaning of a stored value changes."""

BESIDE = ("random", "top-quality")
"""Selections of a scoreboard that are no runs."""


def board_entry(runs: Sequence[Run], fingerprint: str) -> Entry:
    """The name of the scoreboard of these runs, whatever their order, in the cache."""
    key = hashlib.sha256(json.dumps([VERSION, sorted(run.id for run in runs)]).encode()).hexdigest()[:16]
    return _board_entry(fingerprint, key)


def _board_entry(fingerprint: str, key: str) -> Entry:
    return Entry(fingerprint, "board", VERSION, key)


def agreement_entry(run: Run, fingerprint: str) -> Entry:
    """The name of the agreement of this run in the cache."""
    return Entry(fingerprint, "agreement", VERSION, run.id)


def read_board(runs: Sequence[Run], fingerprint: str, cache_dir: str | Path) -> dict[str, Any] | None:
    """The stored scoreboard of these runs, as `datamask.evaluation.scoreboard` gives it, by run id; None: not there.

    While it is being measured, and after a stop, ``left`` names the measures that are not there yet.
    """
    names = {run.id for run in runs}
    return Cache(cache_dir).find(board_entry(runs, fingerprint), lambda content: _checked_board(content, names))


def keep_board(board: Mapping[str, Any], runs: Sequence[Run], fingerprint: str, cache_dir: str | Path) -> None:
    """Keep a scoreboard of plain values, whole or half measured.

    Raises:
        StoreError: it cannot be written.
    """
    # lost in a power cut, it is measured once more
    Cache(cache_dir).keep(board_entry(runs, fingerprint), board, sync=False, required=True)


def read_boards(fingerprint: str, cache_dir: str | Path) -> list[dict[str, Any]]:
    """Every scoreboard of a corpus's runs, the newest first."""
    cache = Cache(cache_dir)
    boards = (
        cache.find(_board_entry(fingerprint, key), _checked_board) for key in cache.keys(_board_entry(fingerprint, "*"))
    )
    return [board for board in boards if board is not None]


def read_agreement(run: Run, fingerprint: str, cache_dir: str | Path) -> tuple[np.ndarray, np.ndarray] | None:
    """``appeared, selected``, int32 ``(N,)`` each (`datamask.evaluation.agreement.Agreement`); None: not there."""
    return Cache(cache_dir).find(agreement_entry(run, fingerprint), _checked_agreement)


def keep_agreement(
    appeared: np.ndarray, selected: np.ndarray, run: Run, fingerprint: str, cache_dir: str | Path
) -> None:
    """Keep an agreement.

    Raises:
        StoreError: it cannot be written.
    """
    arrays = {"appeared": appeared, "selected": selected}
    Cache(cache_dir).keep(agreement_entry(run, fingerprint), arrays=arrays, required=True)


def _checked_board(content: Content, names: Collection[str] | None = None) -> dict[str, Any]:
    """The scoreboard that a file holds. Raises Implausible where it is none, or of other runs than these."""
    # those from before measures were kept one by one are whole
    board = {"left": [], **content.value}
    selected = board["selected"]
    require(names is None or set(names) <= set(selected) <= {*names, *BESIDE}, "the scoreboard is of other runs")
    require(all(0 < size <= board["n"] for size in selected.values()), "a selection has more rows than there are")
    require(all(isinstance(note, str) for note in board["notes"]), "the notes are no sentences")
    require(
        all(isinstance(measure["measure"], str) and isinstance(measure["label"], str) for measure in board["left"]),
        "what is left is no measure",
    )
    for measure in board["measures"]:
        require(
            all(isinstance(measure[name], str) for name in ("measure", "label", "says", "better")),
            "a measure without its words",
        )
        require(set(measure["selections"]) <= set(selected), "a measure of other selections")
        for cell in measure["selections"].values():
            _check_cell(cell)
    return board


def _check_cell(cell: Mapping[str, Any]) -> None:
    numbers = [cell[name] for name in ("value", "low", "high")]
    require(all(number is None or math.isfinite(number) for number in numbers), "a value is no number")
    _, low, high = numbers
    require(low is None or high is None or low <= high, "an interval ends before it begins")


def _checked_agreement(content: Content) -> tuple[np.ndarray, np.ndarray]:
    """The counts that a file holds. Raises Implausible where they are none."""
    appeared, selected = content.arrays["appeared"], content.arrays["selected"]
    require(
        appeared.dtype == selected.dtype == np.int32 and appeared.ndim == 1 and appeared.shape == selected.shape,
        "the counts are of another kind",
    )
    require((selected >= 0).all() and (selected <= appeared).all(), "a row was selected more often than it appeared")
    return appeared, selected
