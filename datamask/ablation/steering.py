"""Whether a result may color the lambda track, and if not, why not: a pure function of what is stored and current.

| state | when |
|---|---|
| ``colored`` | a finished result for this objective, select ratio and rules, and two proxy models that rank alike |
| ``gray`` | no finished result; one proxy model alone; models that disagree; no texts; a circular target |
| ``dashed`` | gray, because the objective, the ratio or the rules differ from the result's |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datamask.ablation.comparisons import BETTER, LEVEL, WORSE, rank_agreement
from datamask.ablation.result import AblationResult

COLORED, GRAY, DASHED = "colored", "gray", "dashed"

LEAST_AGREEMENT = 0.7
"""Rank correlation over methods from which two proxy models rank them alike."""

MODELS = ("bigram", "transformer")


@dataclass(frozen=True)
class Track:
    """What the lambda track may show.

    Attributes:
        state: ``colored``, ``gray`` or ``dashed``. reason: a sentence.
        points: lambda and verdict against random (``better``, ``level``, ``worse``), rising; empty unless colored.
    """

    state: str
    reason: str
    points: tuple[tuple[float, str], ...] = ()


def track(results: Sequence[AblationResult], objective: str, ratio: float, rules: bool = False) -> Track:
    """What the stored results of a corpus allow the track of the current selection to show.

    Args:
        results: of one corpus, newest first, provisional ones too.
        objective, ratio: of the current selection. rules: whether it has any: pins, bans, given rows, quotas, pruning
            or collapsed copies. Ablations are computed without rules.

    Example:
        >>> track([], "facility", 0.3).reason
        'No ablation has been computed for this corpus.'
    """
    finished = [result for result in results if not result.provisional and result.judge != MODELS[1]]
    if not finished:
        return Track(GRAY, _unfinished(results))
    same = [result for result in finished if _differs(result, objective, ratio) is None]
    if not same:
        return Track(DASHED, f"{_differs(finished[0], objective, ratio)}")
    if rules:
        return Track(DASHED, "The ablation was computed without rules, and the current selection has rules.")
    return _colored(same[0], results, objective)


def _unfinished(results: Sequence[AblationResult]) -> str:
    own = next((result for result in results if result.judge != MODELS[1]), None)
    if own is None:
        return "No ablation has been computed for this corpus."
    return f"The ablation is provisional: {own.seeds} of {own.question.seeds} seeds are done."


def _differs(result: AblationResult, objective: str, ratio: float) -> str | None:
    """How a result differs from the current selection; None: it does not."""
    if abs(result.question.ratio - ratio) > 1e-9:
        return f"The ablation is for select ratio {result.question.ratio:g}, and the current one is {ratio:g}."
    if objective not in result.question.objectives:
        return f"The ablation did not try the current objective, {objective}."
    return None


def _colored(result: AblationResult, results: Sequence[AblationResult], objective: str) -> Track:
    """The track of a finished result that fits the current selection."""
    if result.judge == "features":
        return Track(GRAY, "The corpus has no texts, so no proxy model was trained on them.")
    if any(target.circular for target in result.targets):
        return Track(
            GRAY, "The target of the ablation is circular: it is made from the quality that methods select by."
        )
    agreement = compare_models(result, results)
    if agreement is None:
        return Track(GRAY, "Only one proxy model was run. Confirm the ablation with the second one.")
    if not agreement >= LEAST_AGREEMENT:
        return Track(
            GRAY,
            f"The two proxy models rank the methods differently (rank correlation {agreement:.2f}, at least "
            f"{LEAST_AGREEMENT:g} is needed).",
        )
    points = tuple(
        (method.lamb, verdict_over_targets(result, place))
        for place, method in enumerate(result.methods)
        if method.along_lambda and method.objective == objective and method.lamb is not None
    )
    return Track(COLORED, f"Two proxy models rank the methods alike (rank correlation {agreement:.2f}).", points)


def compare_models(result: AblationResult, results: Sequence[AblationResult]) -> float | None:
    """The rank correlation with the second proxy model's result for the same question, which may be of its first seeds;
    None: there is none."""
    wanted = result.question.by(MODELS[1]).key
    second = next((each for each in results if each.question.key == wanted), None)
    if second is None or second.methods != result.methods or len(second.targets) != len(result.targets):
        return None
    return rank_agreement(result.means, second.means)


def verdict_over_targets(result: AblationResult, method: int) -> str:
    """``better`` than random on some target and worse on none, ``worse`` the other way round, else ``level``."""
    summary = result.summaries[method]
    if summary.better and not summary.worse:
        return BETTER
    return WORSE if summary.worse and not summary.better else LEVEL
