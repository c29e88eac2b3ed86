"""The ends of runs' scales: which runs may stand on one calibrated axis.

A share of the attainable gain is a place between two ends. A later version of datamask may find a better best end; then
the same place means another gain, and runs of both versions must not be drawn as if it did not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datamask.config import SelectionConfig
from datamask.evaluation.result import RunResult
from datamask.measured import Anchors

SAME = 1e-6
"""Share of the distance between two ends up to which others are the same ends: no picture shows it."""


@dataclass(frozen=True)
class Ends:
    """Where a run's diversity is 0 and 1.

    Attributes:
        question: names what the ends depend on besides the version of datamask: corpus, objective, size and so on.
        found: random and best end by objective.
    """

    question: str
    found: Mapping[str, tuple[float, float]]

    def clash(self, other: Ends) -> bool:
        """Whether both answer one question, and not with the same ends."""
        if self.question != other.question or set(self.found) != set(other.found):
            return False
        return any(
            abs(mine - theirs) > SAME * abs(other.found[name][1] - other.found[name][0])
            for name, ends in self.found.items()
            for mine, theirs in zip(ends, other.found[name])
        )


def ends_of(settings: SelectionConfig, result: RunResult, facts: Mapping[str, Any]) -> Ends:
    """The ends of a run by its settings, its result and its facts, either of which may lack them."""
    selected = facts.get("selected") if result.size.selected is None else result.size.selected
    size = selected if settings.budget is None else f"{settings.budget} tokens"
    whole = facts.get("fingerprint"), settings.objective, size, settings.center, settings.components, settings.given
    anchors = result.anchors or Anchors.from_dict(facts.get("anchors") or {})
    found = {name: (anchor.random, anchor.best) for name, anchor in anchors.diversity.items()}
    return Ends(json.dumps(whole), found)


def other_version(name: str) -> str:
    """Why a run is not drawn, as the end of a sentence; `name`: the run whose ends are drawn."""
    return (
        f"{name} has other ends of its diversity scale, found by another version of datamask. Run it again to "
        "compare both"
    )
