"""What is measured about finished runs besides themselves, kept on disk: scoreboards of several, agreements of one.

Both take seconds to minutes and depend on finished runs alone, so each is computed once (`datamask.runs.measuring`).
They lie in the corpus's cache folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from datamask.files import DAMAGED
from datamask.runs.store import Run

VERSION = 1
"""Rises when the panel or the meaning of a stored value changes."""


def board_path(runs: Sequence[Run], fingerprint: str, cache_dir: Path) -> Path:
    """Where the scoreboard of these runs lies, whatever their order."""
    key = hashlib.sha256(json.dumps([VERSION, sorted(run.id for run in runs)]).encode()).hexdigest()[:16]
    return Path(cache_dir) / fingerprint / f"board-{key}.json"


def agreement_path(run: Run, fingerprint: str, cache_dir: Path) -> Path:
    """Where the agreement of this run lies."""
    return Path(cache_dir) / fingerprint / f"agreement-{VERSION}-{run.id}.npz"


def read_board(runs: Sequence[Run], fingerprint: str, cache_dir: Path) -> dict | None:
    """The stored scoreboard of these runs, as `datamask.evaluation.scoreboard` gives it, by run id; None: not there.

    While it is being measured, and after a stop, ``left`` names the measures that are not there yet.
    """
    try:
        board = json.loads(board_path(runs, fingerprint, cache_dir).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # those from before measures were kept one by one are whole
    return {"left": [], **board} if isinstance(board, dict) else None


def read_agreement(run: Run, fingerprint: str, cache_dir: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """``appeared, selected``, int32 ``(N,)`` each (`datamask.evaluation.agreement.Agreement`); None: not there."""
    try:
        with np.load(agreement_path(run, fingerprint, cache_dir), allow_pickle=False) as stored:
            return stored["appeared"], stored["selected"]
    except DAMAGED:
        return None
