"""What a corpus's map stands on: crowding and layouts, each computed once, in the background, kept on disk.

They follow from the corpus alone; runs only recolour them. A projection that is there at once
(`datamask.corpus.projections.STAND_IN`) is drawn without waiting; its layout is only measured here. Pure: no streamlit;
torch is loaded only inside the background thread.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datamask.corpus import Corpus
from datamask.corpus.projections import DEFAULT, PROJECTIONS
from datamask.corpus.projections.layouts import GRAPH_K, Layout, compute_layout, stored_layout
from datamask.dashboard.map import named_regions
from datamask.dashboard.map.named_regions import regions_of, stored_regions
from datamask.work import lanes
from datamask.work.context import UNWATCHED, Work
from datamask.work.job import Job
from datamask.work.kept import Kept
from datamask.work.lanes import Priority
from datamask.work.result_file import Content, Entry, require
from datamask.work.worker import worker

CROWD = 15
"""Other rows that crowding looks at."""

BY_ITSELF = 100_000
"""Up to this many rows preparing starts without being asked; more take many minutes."""

GRAPH_SHARE = 0.4


COMPILING, ROW_SECONDS = 15.0, 2e-3
"""Of a layout and the neighbors that it needs, about: what UMAP compiles, and each row."""


def expected_seconds(corpus: Corpus) -> float:
    """What crowding and a layout take on an idle core, about."""
    return COMPILING + ROW_SECONDS * len(corpus)


def key_of(corpus: Corpus) -> str:
    """The name under which the worker knows the preparation of this corpus."""
    return f"map-{corpus.fingerprint}"


def crowding(corpus: Corpus, cache_dir: str | Path) -> np.ndarray | None:
    """Mean similarity of each row to its 15 nearest others, float32 ``(N,)``; None where it is not computed yet."""
    return stored_crowding(corpus, cache_dir).find_again()


def layout(corpus: Corpus, cache_dir: str | Path, projection: str = DEFAULT) -> Layout | None:
    """The layout by a projection; None where it is not computed yet."""
    return stored_layout(corpus, cache_dir, projection).find_again()


def reading(projection: str, measured: Layout | None) -> str:
    """What to read off a map, and what not, without its full stop."""
    kind = PROJECTIONS[projection]
    if measured is None:
        return f"{projection}: {kind.reading}"
    sampled = measured.fitted == kind.fit_sample and len(measured.points) > kind.fit_sample
    fitted = (
        f", fitted on {measured.fitted:,} rows, with the others placed by their nearest fitted rows," if sampled else ""
    )
    return f"{projection}{fitted} keeps {15 * measured.kept:.1f} of 15 nearest neighbors; {kind.reading}"


def start(
    corpus: Corpus,
    cache_dir: str | Path,
    projection: str = DEFAULT,
    priority: Priority = Priority.PAGE,
    first: Job | None = None,
) -> Job:
    """Compute in the background what is missing; joins the preparation under way where there is one, whatever its
    projection, which its `about` names.

    Args:
        first: a job that goes before: a layout is computed beside its lane, and would take half of a small machine.
    """

    def work(job: Job) -> None:
        with lanes.aside():
            while first is not None and not first.wait(lanes.ASKED_SECONDS):
                job.poll()
        prepare(corpus, Path(cache_dir), job.work, projection)

    return worker().start(
        key_of(corpus),
        work,
        device="cpu",
        priority=priority,
        about=projection,
    )


def prepare(corpus: Corpus, cache_dir: Path, work: Work = UNWATCHED, projection: str = DEFAULT) -> None:
    """Neighbour graph, crowding, then the layout, which uses the graph, and its regions: each is kept at once.

    Raises:
        Stopped: from `work`.
        DatamaskError: the layout failed; the message is its last word.
    """

    def compute_crowding() -> np.ndarray:
        # torch and numba come with these, so only in the thread that needs them
        from datamask.corpus.density import local_density
        from datamask.corpus.neighbors import neighbors_for, stored_graph

        graph = stored_graph(corpus, cache_dir).find()
        if graph is None or graph.k <= min(CROWD, len(corpus) - 1):
            graph = neighbors_for(corpus, GRAPH_K, cache_dir, work=work.part(0.0, GRAPH_SHARE))
        return local_density(graph, CROWD)

    stored_crowding(corpus, cache_dir).find_or_compute(compute_crowding, work.poll)
    compute_layout(corpus, cache_dir, projection, work=work.part(GRAPH_SHARE, 1.0))
    found, regions = layout(corpus, cache_dir, projection), stored_regions(corpus, cache_dir, projection)
    if found is not None:
        regions.find_or_compute(lambda: regions_of(found.points, corpus.texts), work.poll)


def prepared(corpus: Corpus, cache_dir: Path, projection: str) -> bool:
    """Whether all that `prepare` computes is there."""
    there = layout(corpus, cache_dir, projection), named_regions.load(corpus, cache_dir, projection)
    return crowding(corpus, cache_dir) is not None and None not in there


def stored_crowding(corpus: Corpus, cache_dir: str | Path) -> Kept[np.ndarray]:
    """Describe the crowding of a corpus in the cache."""
    return Kept(
        cache_dir,
        Entry(corpus.fingerprint, "crowding", 1),
        read=lambda content: _kept_crowding(content, corpus),
        write=lambda values: Content(arrays={"values": values}),
        required=True,
    )


def _kept_crowding(content: Content, corpus: Corpus) -> np.ndarray:
    """The crowding that a file holds. Raises Implausible where it is none of the corpus."""
    values = content.arrays["values"]
    require(values.dtype == np.float32 and values.shape == (len(corpus),), "the crowding is of another corpus")
    require((np.abs(values) <= 1.0 + 1e-4).all(), "the crowding is no mean of cosines")
    values.flags.writeable = False
    return values
