"""The selection where the λ slider is let go, as the map draws it before the page has followed. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from datamask.dashboard.map.marks import Seen
from datamask.dashboard.map.places import Places
from datamask.dashboard.tradeoff import lambda_point, lambda_points, live
from datamask.dashboard.tradeoff.answers import Units

LAMBDAS = {f"{hundredth / 100:g}": hundredth / 100 for hundredth in range(101)}
"""Where the slider stops, as the browser writes it."""

SECONDS = 10.0
"""That a browser waits for an answer; the page says what is under way after."""


@dataclass(frozen=True)
class Released:
    """What answers are made of. It holds no corpus.

    Attributes:
        problem: of `kept_points.key_of`. units: what is known of the baselines.
        places, dark, seen: how the map draws it.
    """

    problem: str
    units: Units
    places: Places
    dark: bool
    seen: Seen

    def parcel(self, lamb: str) -> bytes | None:
        """The selection at a lambda, as `lambda_points.points_parcel` packs it; None: it cannot be made now."""
        behind = live.of_key(self.problem)
        if lamb not in LAMBDAS or behind is None:
            return None
        answer = lambda_points.selected_at(behind, LAMBDAS[lamb], SECONDS)
        if answer is None:
            return None
        return lambda_points.points_parcel(
            behind.corpus,
            self.units,
            [lambda_point.of_answer(answer)],
            self.places,
            dark=self.dark,
            seen=self.seen,
            final=behind.ready,
        )
