"""Results from before files had digests: which of them are still read, and how.

A file is read only if computing it again takes long or a person asked for it; its owner checks it like any other.
Everything else was a cache: it is computed again, and `Cache.free` removes the old file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from datamask.files import open_regular
from datamask.work.result_file import Content, Entry, require

READ = {
    "neighbors-v1": "neighbors.npz",
    "umap-v1": "umap.npz",
    "board-v1": "board-{key}.json",
    "agreement-v1": "agreement-1-{key}.npz",
    "lambda-answer-v1": "which-lambda/{key}.json",
}
"""Name and version of a result -> its old file in the folder of its subject."""

UNREAD = (
    "neighbors-unfinished.npz",
    "crowding.npy",
    "clusters-v1.npz",
    "topics-v1.npz",
    "anchor-v[123]-*.json",
    "anchor-v[123]-*.npy",
    "which-lambda/*.unfinished/*.npz",
)
"""Patterns of the other old files."""


def old_file(folder: Path, entry: Entry) -> Path | None:
    """Give the place of a result's old file in the folder of its subject; None where its kind had none."""
    name = READ.get(f"{entry.name}-v{entry.version}")
    return None if name is None else folder / name.format(key=entry.key)


def old_files(folder: Path) -> Iterator[Path]:
    """Give all old files in the folder of a subject."""
    for pattern in (*(name.format(key="*") for name in READ.values()), *UNREAD):
        yield from folder.glob(pattern)


def load_old(path: Path) -> Content:
    """Give what an old file holds, by its ending. Raises anything where it cannot be read."""
    with open_regular(path) as file:
        if path.suffix == ".json":
            value = json.loads(file.read())
            require(isinstance(value, dict), "it holds no JSON object")
            return Content(value)
        stored = np.load(file, allow_pickle=False)
        return Content({}, {name: stored[name] for name in stored})
