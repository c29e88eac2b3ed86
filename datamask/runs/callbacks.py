"""What the caller of a run hears of it besides its progress. Loads no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datamask.work import lanes
from datamask.work.pace import PhasePace

if TYPE_CHECKING:
    from datamask.evaluation.selection import Selection


def ignore(_: Any) -> None:
    """Do nothing with it."""


@dataclass(frozen=True)
class Callbacks:
    """What an attempt at a run calls as it goes on.

    Attributes:
        note: called with sentences that people should read before long work begins: what it takes.
        take: called with the selection once everything of it is written.
        pace: told of the run's phases, so that it knows the time left.
    """

    note: Callable[[str], None] = ignore
    take: Callable[[Selection], None] = ignore
    pace: PhasePace = field(default_factory=lambda: PhasePace(lanes.clock))
