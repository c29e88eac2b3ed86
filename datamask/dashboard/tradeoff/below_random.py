"""Where along lambda quality or diversity is below that of a random selection of the same size. No streamlit."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.tradeoff import kept_points, lambda_points, live, spots
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from datamask.dashboard.tradeoff.lambda_points import Mark
from datamask.dashboard.tradeoff.spots import TOLERANCE, Spot
from datamask.errors import DatamaskError
from datamask.runs.store import Run

BELOW = "below"
"""The kind of a mark where a term is below random."""

TERMS = ("quality", "diversity")


def warning(corpus: Corpus, settings: SelectionConfig, runs: Sequence[Run], cache_dir: Path) -> str:
    """What stands next to *Solve*, from the solved lambdas and the stored runs of the same problem; "" without.

    Args:
        settings: of the next run. runs: earlier ones on the corpus. cache_dir: where solved lambdas are kept.
    """
    problem = lambda_points.settings_of(settings)
    kept = kept_points.of_problem(corpus, problem, cache_dir)
    known: list[LambdaPoint | Spot] = [*(kept or lambda_points.solved_by(live.find(corpus, problem)))]
    for run in runs:
        with contextlib.suppress(DatamaskError):  # a damaged record is listed elsewhere, with its reason
            if run.whole is None and lambda_points.posed_alike(problem, run.config.selection):
                spot = spots.spot_of(run, corpus.fingerprint)
                known += [spot] if spot is not None and spot.priced else []
    return below_at(sorted(known, key=lambda point: point.lamb), settings.lamb)


def marks(points: Sequence[LambdaPoint]) -> list[Mark]:
    """The stretches of solved lambdas whose quality or diversity is below that of a random selection.

    Args:
        points: by rising lambda. A diversity that is only measured on lists counts too, and its words say so.
    """
    found = []
    for term in TERMS:
        stretch: list[LambdaPoint] = []
        for point in (*points, None):
            if point is not None and getattr(point, term) < -TOLERANCE:
                stretch.append(point)
            elif stretch:
                found.append(_below(term, stretch))
                stretch = []
    return found


def _below(term: str, stretch: Sequence[LambdaPoint]) -> Mark:
    low, high = stretch[0].lamb, stretch[-1].lamb
    least = words.percent(min(getattr(point, term) for point in stretch), 1)
    listed = term == "diversity" and not all(point.exact for point in stretch)
    random = "0 %, on listed neighbors" if listed else "0 %"
    if low == high:
        said = f"λ {low:g}: {term} is {least}, below random ({random})"
    else:
        said = f"λ {low:g} to {high:g}: {term} is below random ({random}), at worst {least}"
    return Mark(BELOW, low, high, said)


def below_at(points: Sequence[LambdaPoint | Spot], lamb: float) -> str:
    """The warning beside *Solve* at a lambda: terms that are below random on the solved ones on both sides of it.

    Returns:
        "" where no term is known to be below random there.
    """
    before = [point for point in points if point.lamb <= lamb + 1e-9]
    after = [point for point in points if point.lamb >= lamb - 1e-9]
    if not before or not after:
        return ""
    around = (before[-1], after[0])
    below = [term for term in TERMS if all(getattr(p, term) < -TOLERANCE for p in around)]
    if not below:
        return ""
    verb = "is" if len(below) == 1 else "are"
    return f"At λ {lamb:g}, {' and '.join(below)} {verb} below a random selection of the same size."
