"""What is measured about finished runs besides themselves, kept on disk: scoreboards of several, agreements of one.

Both take seconds to minutes and depend on finished runs alone, so each is computed once, by `compute` of
`datamask.analyses.scoreboard`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datamask.runs.formats import to_plain
from datamask.runs.store import Run
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry, require

VERSION = 1
"""Rises when the panel or the meaning of a stored value changes."""

BESIDE = ("random", "top-quality")
"""Selections of a scoreboard that are no runs."""


def stored_board(runs: Sequence[Run], fingerprint: str, cache_dir: str | Path | None) -> Kept[dict[str, Any]]:
    """Describe the stored scoreboard of these runs, whatever their order, by run id (`datamask.evaluate`).

    While it is being measured, and after a stop, ``left`` names the measures that are not there yet.
    """
    key = hashlib.sha256(json.dumps([VERSION, sorted(run.id for run in runs)]).encode()).hexdigest()[:16]
    return _stored_board(key, {run.id for run in runs}, fingerprint, cache_dir)


def _stored_board(
    key: str, names: Collection[str] | None, fingerprint: str, cache_dir: str | Path | None
) -> Kept[dict[str, Any]]:
    return Kept(
        cache_dir,
        Entry(fingerprint, "board", VERSION, key),
        read=lambda content: _checked_board(content, names),
        write=lambda board: Content(to_plain(board)),
        sync=False,  # lost in a power cut, it is measured once more
        required=True,
    )


def read_boards(fingerprint: str, cache_dir: str | Path) -> list[dict[str, Any]]:
    """Every scoreboard of a corpus's runs, the newest first."""
    keys = _stored_board("*", None, fingerprint, cache_dir).keys()
    boards = (_stored_board(key, None, fingerprint, cache_dir).find() for key in keys)
    return [board for board in boards if board is not None]


def stored_agreement(run: Run, fingerprint: str, cache_dir: str | Path | None) -> Kept[tuple[np.ndarray, np.ndarray]]:
    """Describe a stored agreement: ``appeared, selected``, int32 ``(N,)``
    (`datamask.analyses.scoreboard.compute.agreement`)."""
    return Kept(
        cache_dir,
        Entry(fingerprint, "agreement", VERSION, run.id),
        read=_checked_agreement,
        write=lambda counts: Content(arrays=dict(zip(("appeared", "selected"), counts))),
        required=True,
    )


def _checked_board(content: Content, names: Collection[str] | None = None) -> dict[str, Any]:
    """The scoreboard that a file holds. Raises Implausible where it is none, or of other runs than these."""
    board = content.value
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
