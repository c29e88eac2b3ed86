"""Counting copies in an open corpus, in the background, for the home page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from datamask.corpus import Corpus
from datamask.corpus.copies import families, near_copy_rate
from datamask.corpus.neighbors import neighbors_for
from datamask.errors import DatamaskError, Stopped

NEAR = 0.95
"""Cosine from which two rows count as near-copies."""

NEIGHBORS = 32
"""Neighbours per row looked at; a graph this wide also serves facility location at ratio 0.3."""


@dataclass
class Copies:
    """How many rows repeat others.

    Attributes:
        state: ``waiting`` (not asked for), ``counting``, ``ready``, ``failed`` or ``stopped``.
        exact: rows whose features equal, byte for byte, those of a row that is kept; None before they are counted.
        near: share of rows with another row at cosine `NEAR` or above; None before it is known.
        recall: share of each row's nearest rows that the search behind `near` finds; 1 where it is exact.
        share, message: progress of the neighbour search, 0..1. error: the sentence when it failed.
    """

    state: str = "waiting"
    exact: int | None = None
    near: float | None = None
    recall: float = 1.0
    share: float = 0.0
    message: str = ""
    error: str = ""


def count(copies: Copies, corpus: Corpus, cache_dir: Path, *, near: bool, should_stop: Callable[[], bool]) -> None:
    """Fill in `copies`: exact ones always, near ones (which need the neighbour graph) if asked. Raises nothing."""
    def report(share: float, what: str) -> None:
        copies.share, copies.message = share, what

    try:
        copies.exact = int(len(corpus) - families(corpus, "exact", None).sum())
        if near:
            graph = neighbors_for(corpus, min(NEIGHBORS, len(corpus)), cache_dir, progress=report,
                                  should_stop=should_stop)
            copies.near, copies.recall = near_copy_rate(graph, NEAR), graph.recall
    except Stopped:
        copies.state = "stopped"
    except DatamaskError as error:
        copies.error, copies.state = str(error), "failed"
    # the thread's last door: what went wrong must reach the page, not vanish with the thread
    except Exception as error:
        copies.error = f"Counting stopped on an unexpected error: {type(error).__name__}: {error}"
        copies.state = "failed"
    else:
        copies.state = "ready" if near else copies.state
