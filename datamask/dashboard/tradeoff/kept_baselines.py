"""What random rows and the best scores are worth under a problem's rules, kept on disk. No torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datamask.dashboard.tradeoff.kept_points import entry_of
from datamask.measured import Baselines
from datamask.work.kept import Kept
from datamask.work.result_file import Content

VERSION = 2
"""Of the values: raise it when the baselines select other rows."""


def stored_baselines(fingerprint: str, problem: str, cache_dir: str | Path | None) -> Kept[Baselines]:
    """Describe the baselines of a problem in the cache.

    Args:
        problem: of `kept_points.key_of`.
    """
    return Kept(
        cache_dir,
        entry_of(fingerprint, "baselines", VERSION, problem),
        read=_read,
        write=lambda baselines: Content(
            baselines.to_dict(),
            {name: np.frombuffer(getattr(baselines, name).bits, np.uint8) for name in ("random", "best")},
        ),
    )


def _read(content: Content) -> Baselines:
    return Baselines.from_dict(content.value, {name: bits.tobytes() for name, bits in content.arrays.items()})


def find(fingerprint: str, problem: str, cache_dir: str | Path) -> Baselines | None:
    """Return the baselines of a problem; None where they are not kept yet."""
    return stored_baselines(fingerprint, problem, cache_dir).find_again()
