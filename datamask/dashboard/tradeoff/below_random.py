"""Where along lambda quality or diversity is below that of a random selection of the same size. No streamlit."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.tradeoff import kept_points, lambda_points, live, spots
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from datamask.dashboard.tradeoff.spots import TOLERANCE, Spot
from datamask.errors import DatamaskError
from datamask.runs.store import Run

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
