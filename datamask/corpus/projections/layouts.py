"""The layouts of a corpus: one per projection, computed on request and kept (`datamask.work.kept`).

A fit runs in a child process (`datamask.corpus.projections.child`), so that it can be killed; who asks for the layout
waits for the child, outside the lane of the device that it may be in.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.corpus.neighbors import NeighborGraph, neighbors_for, stored_graph
from datamask.corpus.projections import DEFAULT, PROJECTIONS, STAND_IN, fitting
from datamask.corpus.projections.contract import Projection
from datamask.errors import DatamaskError, Stopped, StoreError
from datamask.process import child_environment
from datamask.work import lanes
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry, require

GRAPH_K = 64
"""Lists of the graph that is built where there is none: what the facility objective asks for, so it is found again."""

COMMAND = (sys.executable, "-P", "-m", "datamask.corpus.projections.child")
"""Runs the function named next in the folder named last; see that module for what passes between them.
Without ``-P`` a umap.py in the working directory would be imported in umap's place."""

POLL_SECONDS = 0.2
"""Between two questions whether to stop, while the child computes."""

LEAST = 12
"""Rows without copies that a fit needs for a map; fewer are laid out by the projection that is there at once."""


@dataclass(frozen=True)
class Layout:
    """A map of a corpus.

    Attributes:
        points: float32 ``(N, 2)``.
        kept: the share, 0 to 1, of each row's 15 nearest neighbours that are also its 15 nearest on the map.
        fitted: how many rows without copies the map was fitted on; the others were placed beside their neighbours.
    """

    points: np.ndarray
    kept: float
    fitted: int


def stored_layout(corpus: Corpus, cache_dir: str | os.PathLike[str], projection: str = DEFAULT) -> Kept[Layout]:
    """Describe the layout of a corpus in the cache."""
    kind = PROJECTIONS[projection]
    return Kept(
        cache_dir,
        Entry(corpus.fingerprint, kind.key, kind.version),
        read=lambda content: _checked_layout(content, len(corpus)),
        write=lambda layout: Content(arrays=vars(layout)),
        required=True,
    )


def _checked_layout(content: Content, n: int) -> Layout:
    """The layout that a file holds. Raises Implausible where it is none of n rows."""
    layout = Layout(content.arrays["points"], float(content.arrays["kept"]), int(content.arrays["fitted"]))
    require(layout.points.dtype == np.float32 and layout.points.shape == (n, 2), "the map is of another corpus")
    require(np.isfinite(layout.points).all(), "the map has points at infinity")
    require(0.0 <= layout.kept <= 1.0 and 0 < layout.fitted <= n, "what it says of the map cannot be")
    layout.points.flags.writeable = False
    return layout


def compute_layout(
    corpus: Corpus, cache_dir: str | os.PathLike[str], projection: str = DEFAULT, *, work: Work = UNWATCHED
) -> None:
    """Have the layout of a corpus kept. Of several callers, threads or processes, one computes and the others wait.

    Args:
        work: asked some times a second; the child is killed where it is to end.

    Raises:
        Stopped: from `work.poll`.
        DatamaskError: the layout failed: the cache cannot be written, or the last words of the child.
    """
    stored = stored_layout(corpus, cache_dir, projection)
    computation = _Computation(corpus, Path(cache_dir), PROJECTIONS[projection], work)
    try:
        stored.find_or_compute(lambda: computation.layout(stored.path.parent), work.poll)
    except Stopped:
        raise
    except (DatamaskError, OSError, MemoryError) as error:
        raise DatamaskError(f"The map failed: {error}") from error


@dataclass(frozen=True)
class _Computation:
    """One computation of a layout; see `compute_layout`."""

    _corpus: Corpus
    _cache_dir: Path
    _projection: Projection
    _work: Work

    def layout(self, folder: Path) -> Layout:
        corpus, work, kind = self._corpus, self._work, self._projection
        fitted = fitting.fitted_rows(corpus, kind.fit_all, kind.fit_sample)
        graph = self._graph(fitted)
        work.report(0.3, "Preparing the map")
        inputs = fitting.fit_input(corpus, fitted, graph, work.poll)
        # placing rows beside a fitted sample takes longer than the fit
        fit_ends = 0.99 if fitted.all_fitted else 0.5
        if kind.at_once is not None:
            points = kind.coordinates(corpus.features)
        else:
            few = len(fitted.rows) < LEAST or corpus.dim < 2
            places = STAND_IN.coordinates(corpus.features[fitted.rows]) if few else self._fit(inputs, folder, fit_ends)
            points = fitting.place_all(corpus, fitted, places, work.part(fit_ends, 0.99))
        work.report(0.99, "Counting the neighbors that the map keeps")
        return Layout(points, fitting.neighbors_kept(corpus, fitted, inputs, points, work.poll), len(fitted.rows))

    def _graph(self, fitted: fitting.FittedRows) -> NeighborGraph | None:
        """The graph of all rows, kept or built; for a sample of very many rows None: only its own lists are needed."""
        corpus = self._corpus
        graph = stored_graph(corpus, self._cache_dir).find()
        if graph is not None:
            return graph
        if not fitted.all_fitted:
            return None
        return neighbors_for(corpus, GRAPH_K, self._cache_dir, work=self._work.part(0.0, 0.3))

    def _fit(self, inputs: fitting.FitInput, folder: Path, fit_ends: float) -> np.ndarray:
        """Run the child on the fitted rows: float32 ``(M, 2)``.

        Args:
            fit_ends: the share done, of the whole layout, when it ends.

        Raises:
            Stopped: it was asked to stop.
            StoreError: the folder cannot be written.
            DatamaskError: the child failed; its last line of stderr.
        """
        name, prefix = self._projection.name, f"{self._projection.key}-fit-"
        for left in folder.glob(f"{prefix}*"):  # of a process that was killed; this one holds the lock
            shutil.rmtree(left, ignore_errors=True)
        try:
            place = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
        except OSError as error:
            raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error
        try:
            np.savez(
                place / "input.npz", points=inputs.points, indices=inputs.indices, similarities=inputs.similarities
            )
            with lanes.aside():  # at low priority: whatever needs the processor meanwhile goes on
                code = self._child_process(place, fit_ends)
            if code:
                words = (place / "stderr").read_text(errors="replace").strip().splitlines()
                raise DatamaskError(f"{name} ended with exit code {code}: {words[-1] if words else 'no message'}")
            places: np.ndarray = np.load(place / "output.npy", allow_pickle=False)
            return places
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _child_process(self, place: Path, fit_ends: float) -> int:
        fit = self._projection.fit
        if fit is None:
            raise ValueError(f"{self._projection.name} has nothing to fit")
        fit_work = self._work.part(0.35, fit_ends)
        with (
            (place / "stderr").open("wb") as errors,
            subprocess.Popen(
                [*COMMAND, f"{fit.__module__}:{fit.__qualname__}", str(place)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=child_environment(),
            ) as child,
        ):
            try:
                for line in self._lines(child):
                    news = re.match(r"(\d\.\d+) (.+)", line.decode(errors="replace"))
                    if news:
                        fit_work.report(float(news[1]), news[2])
            except BaseException:
                child.kill()
                raise
        return child.returncode

    def _lines(self, child: subprocess.Popen[bytes]) -> Iterator[bytes]:
        """What the child says, line by line, until it closes its end.

        Raises:
            Stopped: it was asked to stop.
        """
        if child.stdout is None:
            raise ValueError("the child must be started with a pipe for what it says")
        rest, pipe = b"", child.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                self._work.poll()
                if not selector.select(POLL_SECONDS):
                    continue
                piece = os.read(pipe, 1 << 16)
                *lines, rest = (rest + piece).split(b"\n")
                yield from lines
                if not piece:
                    return
