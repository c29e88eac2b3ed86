"""Counting copies in an open corpus, in the background, for the Data page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from datamask.corpus import Corpus
from datamask.corpus.copies import NEIGHBORS, find_duplicates, near_copy_rate
from datamask.corpus.neighbors import neighbors_for
from datamask.work.context import Work

NEAR = 0.95
"""Cosine from which two rows count as near-copies."""


@dataclass(frozen=True)
class Copies:
    """How many rows repeat others.

    Attributes:
        exact: exact duplicates of a row that is kept; None before they are counted.
        near: share of rows with another row at cosine `NEAR` or above; None before it is known.
        removed: share of rows that removing these drops.
        recall: share of each row's nearest rows that the search behind `near` finds; 1 where it is exact.
    """

    exact: int | None = None
    near: float | None = None
    removed: float = 0.0
    recall: float = 1.0


def count_exact(corpus: Corpus, work: Work) -> int:
    """Count the exact duplicates of another row, which is kept. Raises Stopped: from `work`."""
    return int((~find_duplicates(corpus, "exact", None, work=work).kept).sum())


def count_near(corpus: Corpus, cache_dir: Path, work: Work) -> tuple[float, float, float]:
    """Return the share of near-copies, that of the rows removed with them, and the recall of the search behind it.

    Finds the neighbour graph where it is not kept.

    Raises:
        Stopped: from `work`.
    """
    graph = neighbors_for(corpus, min(NEIGHBORS, len(corpus)), cache_dir, work=work)
    removed = find_duplicates(corpus, f"{NEAR:g}", graph, work=work).removed
    return near_copy_rate(graph, NEAR), removed, graph.recall
