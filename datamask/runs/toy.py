"""The planted toy of `datamask.evaluation.toy`, solved once and kept beside the runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from datamask.errors import poll_of
from datamask.evaluation.threads import threads
from datamask.evaluation.toy import solve
from datamask.files import replacing


def write(path: Path, *, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Solve the toy and write it down, whole or not at all: ``points, group, quality`` and one mask per objective.

    Args:
        path: an .npz file; the toy's graph and anchors go to folders beside it.

    Raises:
        Stopped: `should_stop` answered true.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with threads(1):  # a thousand rows: more threads only wait for each other, and for the server
        toy = solve(path.parent, poll_of(should_stop, "solving the toy was stopped"))
    masks = {f"mask_{name}": mask for name, mask in toy.masks.items()}
    with replacing(path) as fresh, fresh.open("wb") as file:
        np.savez(file, points=toy.points, group=toy.group, quality=toy.quality, **masks)
