"""The pool: a corpus on a device, with every objective bound to it at most once."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from datamask import catalogue, objectives
from datamask.config import SelectionConfig
from datamask.corpus.centered import centered
from datamask.corpus.components import Components
from datamask.corpus.copies import NEIGHBORS, Duplicates, find_duplicates
from datamask.corpus.corpus import Corpus
from datamask.corpus.list_length import list_length
from datamask.corpus.neighbors import NeighborGraph, neighbors_for, stored_graph
from datamask.errors import InputError
from datamask.evaluation.token_lengths import token_lengths
from datamask.learning.masks import tie_order
from datamask.measured import Anchor, ComponentFacts, GraphFacts
from datamask.objectives.budgeted import BudgetedQuality
from datamask.objectives.contract import SetFunction
from datamask.objectives.quality import Quality
from datamask.options.components import COMPONENTS, asked_components
from datamask.options.duplicates import is_cosine
from datamask.polling import Poll, no_poll
from datamask.work import lanes
from datamask.work.context import UNWATCHED, Report, Work
from datamask.work.ledger import Reservation, in_words, ledger


class Pool:
    """A corpus on a device.

    Attributes:
        corpus: the corpus. device: where the tensors are.
        space: the corpus as the objectives see it: itself, or its centered twin (`datamask.corpus.centered`).
        features: float32 ``(n, d)``, of the space; on the CPU its own memory.
        quality: the bound quality term.
        seconds_graph: time spent building or loading neighbour graphs.
        ends: ends of scales that are known already, of `datamask.evaluation.anchors`.
        stamps: by what the contents of the corpus's files were known before they were opened, by path; empty
            where they were not noted.
    """

    def __init__(
        self,
        corpus: Corpus,
        device: torch.device,
        cache_dir: Path,
        *,
        work: Work = UNWATCHED,
        center: bool = False,
        components: str | None = None,
        neighbors: str = "auto",
    ) -> None:
        """Args:
            work: whether to go on, and who hears how far long work on the pool is.
            center: subtract the corpus's mean from the features, which then take the memory of a second copy.
            components: as the option ``--components``.
            neighbors: ``auto``, ``exact`` or ``approximate``, how the neighbour graph is found.

        Raises:
            InputError: rows that equal the mean. NoRoomError: others hold the memory of the copy.
            Stopped: from `work`.
        """
        self.corpus, self.device, self.cache_dir = corpus, device, Path(cache_dir)
        self._work, self.center, self.components, self.neighbors = work, center, components, neighbors
        self.space = self._centered() if center else corpus
        self.features = tensor(self.space.features).to(device)
        self.quality = Quality(tensor(corpus.quality).to(device))
        self.seconds_graph = 0.0
        self.stamps: dict[str, str] = {}
        self._graph: NeighborGraph | None = None
        self._functions: dict[tuple[str, int, float | None], SetFunction] = {}
        self._spent: dict[float, Quality] = {}
        self._duplicates: dict[str, Duplicates] = {}
        self.ends: dict[tuple[str, int, float | None], tuple[Anchor, Tensor]] = {}

    @classmethod
    def under(
        cls, config: SelectionConfig, corpus: Corpus, device: torch.device, cache_dir: Path, work: Work = UNWATCHED
    ) -> Pool:
        """Bind a corpus as the settings of a selection say."""
        center, components, neighbors = config.center, config.components, config.neighbors
        return cls(corpus, device, cache_dir, work=work, center=center, components=components, neighbors=neighbors)

    def suits(self, config: SelectionConfig) -> bool:
        """Whether `under` would bind the corpus so too."""
        asked = config.center, config.components, config.neighbors
        return (self.center, self.components, self.neighbors) == asked

    def __len__(self) -> int:
        return len(self.corpus)

    def _centered(self) -> Corpus:
        what = f"A centered copy of {len(self.corpus):,} rows"
        needed = self.corpus.place.memory(self.corpus.features.nbytes)
        with ledger().reserve(needed, what, poll=self._work.poll) as room:
            space = centered(self.corpus, self._work.poll)
            room.pass_to(space)
            return space

    def on_components(self, name: str) -> bool:
        """Whether the objective is defined on fewer dimensions than the features have (`Components`)."""
        dim, entry = self.corpus.dim, catalogue.objective(name)
        return entry.components and asked_components(self.components, dim, entry.leading) < dim

    @cached_property
    def leading(self) -> Components:
        """The components on which `on_components` objectives are defined."""
        kept = asked_components(self.components, self.corpus.dim, COMPONENTS)
        self.tell(0.0, f"finding the {kept:,} leading components of {self.corpus.dim:,} dimensions")
        return Components.of(self.space, kept, self._work.poll)

    @cached_property
    def _reduced(self) -> Tensor:
        """The rows on these components, float32 ``(n, k)``."""
        kept, place = self.leading.axes.shape[1], self.corpus.place
        what = f"{len(self):,} rows on {kept:,} components"
        with ledger().reserve(place.memory(4 * len(self) * kept), what, poll=self._work.poll) as room:
            rows = tensor(self.leading.rows(self.space.features, self._work.poll, place)).to(self.device)
            room.pass_to(rows)
            return rows

    def component_facts(
        self, names: Iterable[str], budget: float | None, mask: Tensor, poll: Poll = no_poll
    ) -> ComponentFacts | None:
        """Return what a record should say about the components, and the values of a mask on all dimensions.

        Args:
            names: of the objectives. budget: as in `function`. mask: bool ``(n,)``.
        """
        reduced = [name for name in names if self.on_components(name)]
        if not reduced:
            return None
        values: dict[str, float | None] = {}
        for name in reduced:
            objective = objectives.load(name)
            try:
                with self._room(name, objective, self.features):
                    function = objective.bind_polled(self.features, None, True, poll)
                    function = function if budget is None else function.budgeted(self.lengths, budget)
                    if function.ordered:
                        function.order_by(self._order)
                    values[name] = function.value(mask, poll)
            except InputError:  # on all dimensions it takes more memory than there is
                values[name] = None
        return ComponentFacts(self.leading.axes.shape[1], self.corpus.dim, self.leading.share, values)

    def graph(self, k: int) -> NeighborGraph:
        """The neighbour graph with at least k neighbours per row (itself included), cached on disk."""
        k = min(k, len(self))
        if self._graph is None or self._graph.indices.shape[1] < k:
            start = lanes.clock()
            self._graph = neighbors_for(
                self.space,
                k,
                self.cache_dir,
                search=self.neighbors,
                device=str(self.device),
                work=self._work,
            )
            self.seconds_graph += lanes.clock() - start
        return self._graph

    def duplicates(self, collapse: str) -> Duplicates:
        """The duplicates that ``--collapse`` names, found once.

        Raises:
            InputError, OptionError, Stopped: as `find_duplicates`.
        """
        if collapse not in self._duplicates:
            graph = self.graph(NEIGHBORS) if is_cosine(collapse) else None
            found = find_duplicates(self.space, collapse, graph, device=str(self.device), work=self._work)
            self._duplicates[collapse] = found
        return self._duplicates[collapse]

    @property
    def has_graph(self) -> bool:
        """Whether the neighbour graph is at hand, or there is a file of it."""
        return self._graph is not None or stored_graph(self.space, self.cache_dir).exists

    def graph_facts(self) -> GraphFacts | None:
        """What a record should say about the neighbour graph (`NeighborGraph.facts`); None where none was needed."""
        return None if self._graph is None else self._graph.facts()

    @contextlib.contextmanager
    def reporting(self, report: Report) -> Iterator[None]:
        """Inside, long work on the pool reports to this; afterwards to whoever it reported to before."""
        before, self._work = self._work, replace(self._work, report=report)
        try:
            yield
        finally:
            self._work = before

    def tell(self, share: float, what: str) -> None:
        """Pass on how far the work at hand is, from 0 to 1, to whoever asked for progress."""
        self._work.report(share, what)

    @property
    def tokens(self) -> float | None:
        """Tokens of all rows together, None where they have no lengths."""
        return None if self.corpus.lengths is None else float(self.corpus.lengths.sum())

    @property
    def token_lengths(self) -> np.ndarray:
        """Tokens per row, float64 ``(n,)``.

        Raises:
            InputError: the corpus has no lengths.
        """
        return token_lengths(self.corpus)

    @property
    def lengths(self) -> Tensor:
        """`token_lengths`, in the type and on the device of the quality scores."""
        return tensor(self.token_lengths).to(self.quality.scores)

    def quality_under(self, budget: float | None) -> Quality:
        """The quality term; under a token budget, of the tokens."""
        if budget is None:
            return self.quality
        if budget not in self._spent:
            self._spent[budget] = BudgetedQuality(self.quality.scores, self.lengths, budget)
        return self._spent[budget]

    def function(self, name: str, size: int, budget: float | None = None) -> SetFunction:
        """The objective `name` bound to the pool, with lists long enough for subsets of `size`.

        Args:
            budget: tokens that the subsets fill; None: they have `size` rows.

        Raises:
            InputError: it takes more memory than there is. NoRoomError: it takes more than others leave free.
        """
        entry = catalogue.objective(name)
        objective = objectives.load(name)
        k = list_length(size / len(self), len(self)) if objective.needs_neighbors else 0
        key = (entry.name, k, budget)
        if key not in self._functions and budget is not None:
            self._functions[key] = self.function(name, size).budgeted(self.lengths, budget)
        elif key not in self._functions:
            features = self._reduced if self.on_components(name) else self.features
            with self._room(entry.name, objective, features) as room:
                lists, exact = None, True
                if k:
                    graph = self.graph(k).first(k)
                    indices, similarities = graph.by_cosine(self.corpus.place)
                    lists = tensor(indices).to(self.device), tensor(similarities).to(self.device)
                    exact = graph.exact
                function = objective.bind_polled(features, lists, exact, self._work.poll)
                if function.ordered:
                    function.order_by(self._order)
                if k and graph.listed is not None:
                    of_lists = graph.indices, graph.listed, 2 * graph.move, graph.highest_unlisted()
                    function.list_by(*of_lists, self.corpus.place, graph.order)
                self._functions[key] = function
                room.pass_to(self._functions[key])
        return self._functions[key]

    def _room(self, name: str, objective: type[SetFunction], features: Tensor) -> Reservation:
        """The memory of an objective; on a GPU that there is so much is checked, and nothing reserved.

        Raises:
            InputError: it takes more than there is; torch's own message names no way out. NoRoomError: it is not
                free.
        """
        n, d = features.shape
        needed, on_gpu = objective.working_bytes(n, d), self.device.type == "cuda"
        memory = torch.cuda.get_device_properties(self.device).total_memory if on_gpu else ledger().total()
        if needed > memory:
            raise InputError(
                f"objective {name!r} takes {in_words(needed)} on features of {d:,} dimensions, more than the "
                f"{in_words(memory)} that there are; choose another --objective, such as facility or pairwise, "
                "or features of fewer dimensions"
            )
        what = f"Objective {name!r} on {n:,} rows"
        return ledger().reserve(0 if on_gpu else needed, what, poll=self._work.poll)

    def rows(self, keep: np.ndarray, ordered: bool) -> Tensor:
        """The rows of a mask ``(n,)``, int64.

        Args:
            ordered: whether an objective is `SetFunction.ordered`: then by the hashes of their ids, else rising.
        """
        kept = torch.from_numpy(keep).to(self.device)
        return self._order[kept[self._order]] if ordered else kept.nonzero().squeeze(1)

    @cached_property
    def _order(self) -> Tensor:
        """The rows by the hashes of their ids, int64 ``(n,)``."""
        return self.ties(0).argsort(stable=True)

    def ties(self, seed: int) -> Tensor:
        """int64 ``(n,)``: cuts equal scores by a hash of (seed, id), whatever the order of the rows."""
        return tie_order(self.corpus.hashes(seed), self.device)


def tensor(array: np.ndarray) -> Tensor:
    """A tensor on the array's own memory. The corpus is read-only, and so must be whoever uses this."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.ascontiguousarray(array))
