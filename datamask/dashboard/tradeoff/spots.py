"""A stored run as a point of the plane of quality and diversity. Pure: run records in, small records out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from datamask import catalogue
from datamask.config import LEARNER_OPTIONS, SelectionConfig
from datamask.dashboard.runs import outcome
from datamask.dashboard.tradeoff.ends import Ends, ends_of
from datamask.dashboard.tradeoff.geometry import HalfPlane
from datamask.errors import DatamaskError
from datamask.evaluation.result import NO_RESULT
from datamask.measured import Anchors
from datamask.runs.store import Run

FREE = ("lamb", "seed", "device")
"""Settings in which the runs of one curve may differ."""

SEARCH = (*FREE, "estimator", "preset", *LEARNER_OPTIONS)
"""Settings that say how a selection is searched for, not which ones there are: no bound depends on them."""

TOLERANCE = 1e-5
"""Of a share: two ways of solving one problem may end so far from each other."""


@dataclass(frozen=True)
class Spot:
    """A finished run in the plane.

    Attributes:
        run, name: which run; label: what stands beside a named point.
        settings: how it was selected.
        quality, diversity: shares of the attainable gain. raw_quality, raw_diversity: the same, raw.
        scale: names objective, size and ends of the scales: only equal ones may be in one picture of an objective.
        ends: of the diversity scale.
        plane: what its certificate proves, None where nothing is proved of the exact objective on calibrated scales.
        gap: between the run and its certificate, in shares.
        seconds: of learning.
    """

    run: Run
    name: str
    label: str
    settings: SelectionConfig
    quality: float
    diversity: float
    raw_quality: float | None
    raw_diversity: float | None
    scale: str
    ends: Ends
    plane: HalfPlane | None
    gap: float | None
    seconds: float | None

    @property
    def run_id(self) -> str:
        """Id of the run."""
        return self.run.id

    @property
    def lamb(self) -> float:
        """Lambda of the run."""
        return self.settings.lamb

    @property
    def problem(self) -> str:
        """Names objective, size, rules and ends of the scales: what is proved for one holds for all that share it."""
        # pruning breaks ties of quality by the seed
        free = SEARCH if self.settings.prune == 0 else [name for name in SEARCH if name != "seed"]
        return shared(self.settings, free) + self.scale

    @property
    def priced(self) -> bool:
        """Whether its lambda is a price: something was maximised under it, on calibrated scales."""
        return catalogue.estimator(self.settings.estimator).learns and self.settings.scale == "calibrated"


def shared(settings: SelectionConfig, free: Sequence[str]) -> str:
    """Names all settings but some."""
    rest = {name: value for name, value in settings.to_dict().items() if name not in free}
    return json.dumps(rest, sort_keys=True, default=str)


def spot_of(run: Run, fingerprint: str | None = None) -> Spot | None:
    """A run as a point; None where it is not finished, not on that corpus, or has no calibrated values."""
    try:
        status, facts, config = run.status(), run.facts(), run.config
    except DatamaskError:  # a damaged record is listed elsewhere, with its reason
        return None
    result = status.result or NO_RESULT
    quality, diversity = result.calibrated.quality, result.calibrated.diversity
    if status.state != "done" or quality is None or diversity is None:
        return None
    if fingerprint is not None and facts.get("fingerprint") != fingerprint:
        return None
    settings, bound = config.selection, result.certificate.upper_bound
    proved = settings.scale == "calibrated" and result.certificate.exact
    anchors = result.anchors or Anchors.from_dict(facts.get("anchors") or {})
    # under a budget of tokens lambda decides how many rows are selected too: the budget is what such runs share
    size = result.size.selected if settings.budget is None else {"budget": settings.budget}
    scale = json.dumps([settings.objective, size, anchors.to_dict()], sort_keys=True)
    return Spot(
        run,
        config.name or run.id,
        label_of(run),
        settings,
        float(quality),
        float(diversity),
        result.raw.quality,
        result.raw.diversity,
        scale,
        ends_of(settings, result, facts),
        HalfPlane(settings.lamb, float(bound)) if bound is not None and proved else None,
        result.certificate.gap if proved else None,
        result.effort.seconds,
    )


def label_of(run: Run) -> str:
    """What stands beside a point that is on no curve: the baseline's name, or the imported list's."""
    settings = run.config.selection
    entry = catalogue.estimator(settings.estimator)
    if entry is catalogue.IMPORTED:
        return run.config.name or run.id
    name = entry.label.removesuffix(" (baseline)")
    if ":" in settings.estimator:
        name += f" ({settings.estimator.partition(':')[2]})"
    if not entry.learns:
        name = ", ".join([name, *outcome.special_options(settings)])
    return f"{name}, λ {settings.lamb:g}" if entry.guided else name
