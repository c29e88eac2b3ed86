"""The phases of a run, and about how long each takes: what the bar and the time left go by.

Measured on one core at 100,000 x 64, S a tenth, and carried to other sizes by what each phase does: comparing rows with
their lists goes with rows times list length, everything else with rows times dimensions. `datamask.work.pace.PhasePace`
puts the pace of the phases that are over, and of the one under way, in their place as soon as there is one.
"""

from __future__ import annotations

import enum
import re

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.options.components import asked_components


class Phase(enum.StrEnum):
    """The phases of a run, in their order. Killed in any, it goes on and ends in the ids of an unbroken one."""

    OPENING = "opening"
    GRAPH = "graph"
    ENDS = "ends"
    REFERENCES = "references"
    LEARNING = "learning"
    ENDING = "ending"
    WRITING = "writing"


PLANNED = (Phase.GRAPH, Phase.ENDS, Phase.REFERENCES, Phase.LEARNING, Phase.ENDING)
"""Building the neighbour graph; solving for the ends of the scales; what the ends are compared with; the steps; and
after them swaps, the bound, the values, and what is written."""

_WORDS = {re.compile("Neighbor graph"): Phase.GRAPH, re.compile("finding what .* alone would select"): Phase.ENDS}

_APPROXIMATE, _COMPARED, _OFFERED = 3.5e-7, 3.5e-11, 6e-10
"""Seconds of a graph: by cells, per row and dimension; of all pairs, per pair and dimension, and per pair."""

LOADING_SECONDS = 5.0
"""To load torch."""

_THREADED = 0.7
"""Power of the number of threads by which steps get quicker."""


def phase_of(what: str) -> Phase | None:
    """The phase that words of progress on a pool are about; None: of no phase of its own."""
    return next((phase for words, phase in _WORDS.items() if words.match(what)), None)


def expected_seconds(
    config: SelectionConfig, n: int, dim: int, *, listed: int, approximate: bool, graph: bool, cores: int
) -> dict[str, float]:
    """What each phase of a run takes, about, in seconds; in their order.

    Args:
        n, dim: of the corpus.
        listed: K, neighbours per row, where an objective looks at lists.
        approximate: whether the graph is found by cells. graph: whether it is still to be built.
        cores: that work on it.
    """
    steps = config.planned_steps(n)
    seconds: dict[str, float] = dict.fromkeys(PLANNED, 0.05)
    if graph:
        pairs = float(n) * n
        seconds[Phase.GRAPH] += (
            _APPROXIMATE * n * dim * (max(n, 1) / 1e5) ** 0.3 if approximate else pairs * (_COMPARED * dim + _OFFERED)
        ) / cores
    by_masks = config.n_rollout is not None and steps is not None
    masks = float(steps or 0) * (config.n_rollout or 0) * (config.partial or 1.0) / cores**_THREADED
    for name, _ in config.terms:
        entry = catalogue.objective(name)
        own = asked_components(config.components, dim, entry.leading) if entry.components else dim
        unit = float(n) * (listed if entry.needs_neighbors else own)
        ends, references, mask, solution, after_steps, after_solution = (unit * cost for cost in entry.run_seconds)
        seconds[Phase.ENDS] += ends
        seconds[Phase.REFERENCES] += references
        if by_masks:
            seconds[Phase.LEARNING] += masks * mask
        elif catalogue.estimator(config.estimator).guided:
            seconds[Phase.LEARNING] += solution
        seconds[Phase.ENDING] += after_steps if by_masks else after_solution
    return seconds
