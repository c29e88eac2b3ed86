"""What random rows and the best scores are worth under a problem's rules, kept on disk. No torch."""

from __future__ import annotations

from pathlib import Path

from datamask.dashboard.tradeoff.kept_points import entry_of
from datamask.measured import Baselines
from datamask.work.kept import Kept
from datamask.work.result_file import Content

VERSION = 1
"""Of the values: raise it when the baselines select other rows."""


def stored_baselines(fingerprint: str, problem: str, cache_dir: str | Path | None) -> Kept[Baselines]:
    """Describe the baselines of a problem in the cache.

    Args:
        problem: of `kept_points.key_of`.
    """
    return Kept(
        cache_dir,
        entry_of(fingerprint, "baselines", VERSION, problem),
        read=lambda content: Baselines.from_dict(content.value),
        write=lambda baselines: Content(baselines.to_dict(), {}),
    )


def find(fingerprint: str, problem: str, cache_dir: str | Path) -> Baselines | None:
    """Return the baselines of a problem; None where they are not kept yet."""
    return stored_baselines(fingerprint, problem, cache_dir).find_again()
