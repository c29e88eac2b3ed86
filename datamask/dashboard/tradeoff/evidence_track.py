"""What the slider's track shows of the stored ablations. Pure; no streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datamask import catalogue
from datamask.ablation.comparisons import BETTER, LEVEL, WORSE
from datamask.ablation.offers import Offer, measured, solved_at
from datamask.ablation.result import AblationResult
from datamask.ablation.steering import Track, track
from datamask.config import SelectionConfig
from datamask.dashboard.map.places import cut

TARGET = "evidence_target"
"""Of the session: the name of the target that the track is about; "": all of them."""

NAMES = {BETTER: "better than random", LEVEL: "level with random", WORSE: "worse than random"}
"""The verdicts as the track's key has them."""


def ratio_of(settings: SelectionConfig) -> float | None:
    """The select ratio of a selection; None: it fills a token budget."""
    return None if settings.budget is not None else settings.select_ratio


def has_rules(settings: SelectionConfig) -> bool:
    """Whether anything but objective, ratio and lambda decides what a selection keeps: then no ablation is of it."""
    return settings.ruled or settings.ban is not None or settings.prune > 0 or settings.collapse != "none"


def track_of(results: Sequence[AblationResult], settings: SelectionConfig, target: str = "") -> Track:
    """What the track shows for a selection.

    Args:
        results: of its corpus, newest first. target: the name of the chosen one; "": all of them.
    """
    return track(results, settings.objective, ratio_of(settings), has_rules(settings), target)


def strip_part(results: Sequence[AblationResult], settings: SelectionConfig, target: str = "") -> str:
    """What the strip says of the current selection: ``better than random for 2 of 6 targets``.

    Args:
        results, target: as `track_of`. settings: of the selection, at its lambda.

    Returns:
        "" where that was not measured, as of a selection by a baseline or by learned masks.
    """
    if settings.estimator != catalogue.auto(settings.objective):
        return ""
    return measured(track_of(results, settings, target), settings.lamb)


def header(shown: Track, offers: Sequence[Offer], instead: Sequence[str] = ()) -> dict[str, Any]:
    """What travels to the slider: a mark for each tried lambda and nothing between them, the reason, and one offer.

    Args:
        offers: of the track; their sentences are said, and the one that moves the slider gets the button.
        instead: what was measured in the place of the current selection, sentences in front of the reason.
    """
    moving = next((offer for offer in offers if offer.moves), None)
    return {
        # without a finished result there is nothing to explain: a button finds out
        "silent": shown.result is None,
        "state": shown.state,
        "reason": " ".join([*instead, shown.reason]),
        "key": [[verdict, NAMES[verdict]] for verdict in NAMES if any(p.verdict == verdict for p in shown.points)],
        "points": [
            {"lamb": point.lamb, "verdict": point.verdict, "words": cut(solved_at(point, shown), 200)}
            for point in shown.points
        ],
        "sentences": [cut(offer.sentence, 200) for offer in offers],
        "offer": None if moving is None or moving.method is None else moving.method.lamb,
    }
