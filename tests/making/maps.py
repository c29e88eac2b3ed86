"""A layout and crowding on disk, so that a map waits for nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datamask.corpus import Corpus
from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.map import map_layout


def lay_out(
    corpus: Corpus, cache_dir: Path, points: np.ndarray | None = None, crowding: np.ndarray | None = None
) -> None:
    """Keep where rows lie and how near their neighbors are; random where nothing is given."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(len(corpus), 2)) if points is None else points
    crowding = rng.random(len(corpus)) if crowding is None else crowding
    stored_layout(corpus, cache_dir).keep(Layout(points.astype(np.float32), 0.5, len(corpus)))
    map_layout.stored_crowding(corpus, cache_dir).keep(crowding.astype(np.float32))
