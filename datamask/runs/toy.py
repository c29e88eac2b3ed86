"""The planted toy of `datamask.evaluation.toy`, solved once and kept beside the runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from datamask.errors import poll_of
from datamask.evaluation.threads import threads
from datamask.evaluation.toy import solve
from datamask.work.cache import Cache
from datamask.work.result_file import Entry


def write(cache_dir: str | Path, entry: Entry, *, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Solve the toy and keep it: ``points, group, quality`` and one mask per objective.

    Args:
        cache_dir: the toy's graph and anchors go there too.
        entry: its name.

    Raises:
        StoreError: it cannot be written. Stopped: `should_stop` answered true.
    """
    with threads(1):  # a thousand rows: more threads only wait for each other, and for the server
        toy = solve(Path(cache_dir), poll_of(should_stop, "solving the toy was stopped"))
    masks = {f"mask_{name}": mask for name, mask in toy.masks.items()}
    Cache(cache_dir).keep(
        entry, arrays={"points": toy.points, "group": toy.group, "quality": toy.quality, **masks}, required=True
    )
