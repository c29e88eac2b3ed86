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
from datamask.ablation.result import AblationResult, TargetFacts

COLORED, GRAY, DASHED = "colored", "gray", "dashed"

LEAST_AGREEMENT = 0.7
"""Rank correlation over methods from which two proxy models rank them alike."""

MODELS = ("bigram", "transformer")


@dataclass(frozen=True)
class TrackPoint:
    """A lambda that was tried with the current objective, compared with random selection.

    Attributes:
        lamb: lambda. better, worse: targets on which it is better and worse than random. targets: how many there are.
    """

    lamb: float
    better: int
    worse: int
    targets: int

    @property
    def verdict(self) -> str:
        """``better`` on some target and worse on none, ``worse`` the other way round, else ``level``."""
        if self.better and not self.worse:
            return BETTER
        return WORSE if self.worse and not self.better else LEVEL


@dataclass(frozen=True)
class Track:
    """What the lambda track may show.

    Attributes:
        state: ``colored``, ``gray`` or ``dashed``. reason: a sentence.
        points: the tried lambdas of the current objective, rising; empty where a result is missing, provisional,
            circular or of other objectives.
        result: the result that they are of; None: no finished one. It may be of another objective, ratio or rules.
        objective: the current one. target: the place of the one target that `points` are about; None: all of them.
        agreement: rank correlation of the two proxy models; None: only one was run.
    """

    state: str
    reason: str
    points: tuple[TrackPoint, ...] = ()
    result: AblationResult | None = None
    objective: str = ""
    target: int | None = None
    agreement: float | None = None

    @property
    def fits(self) -> bool:
        """Whether the result says something of the current selection: it is for the current objective, ratio and
        rules, its targets are not circular, and no second proxy model contradicts it."""
        contradicted = self.agreement is not None and not self.agreement >= LEAST_AGREEMENT
        return self.state != DASHED and bool(self.points) and not contradicted

    @property
    def targets(self) -> tuple[TargetFacts, ...]:
        """The targets that `points` are about."""
        if self.result is None:
            return ()
        return self.result.targets if self.target is None else (self.result.targets[self.target],)


def track(
    results: Sequence[AblationResult], objective: str, ratio: float | None, rules: bool = False, target: str = ""
) -> Track:
    """What the stored results of a corpus allow the track of the current selection to show.

    Args:
        results: of one corpus, newest first, provisional ones too.
        objective, ratio: of the current selection; a ratio of None: it has a token budget.
        rules: whether it has any: pins, bans, given rows, quotas, pruning or collapsed copies. Ablations are computed
            without rules.
        target: the name of one target; "", or a name that the result does not have: all of them.

    Example:
        >>> track([], "facility", 0.3).reason
        'No ablation has been computed for this corpus.'
    """
    usable = [result for result in results if _usable(result)]
    finished = [result for result in usable if not result.provisional]
    if not finished:
        return Track(GRAY, _unfinished(usable))
    same = [result for result in finished if _differs(result, objective, ratio, rules) is None]
    tried = [result for result in finished if objective in result.question.objectives]
    result = (same or tried or finished)[0]
    names = [each.name for each in result.targets]
    place = names.index(target) if target in names and result.several else None
    if any(each.circular for each in result.targets):
        said = "The target of the ablation is circular: it is made from the quality that methods select by."
        return Track(GRAY, said, (), result, objective, place)
    points = _points(result, objective, place)
    if not same:
        return Track(DASHED, f"{_differs(result, objective, ratio, rules)}", points, result, objective, place)
    agreement = compare_models(result, results)
    return Track(*_colored(result, agreement), points, result, objective, place, agreement)


def _usable(result: AblationResult) -> bool:
    """Whether it is of the first proxy model and of methods that selected by the corpus's own quality."""
    target = result.question.target
    return result.judge != MODELS[1] and not (target is not None and target.steers)


def _points(result: AblationResult, objective: str, target: int | None) -> tuple[TrackPoint, ...]:
    """The tried lambdas of an objective, rising."""
    asked = range(len(result.targets)) if target is None else (target,)
    found = []
    for place, method in enumerate(result.methods):
        if not method.along_lambda or method.objective != objective or method.lamb is None:
            continue
        verdicts = [each.verdict for at in asked if (each := result.to_random(place, at)) is not None]
        found.append(TrackPoint(method.lamb, verdicts.count(BETTER), verdicts.count(WORSE), len(verdicts)))
    return tuple(sorted(found, key=lambda point: point.lamb))


def _unfinished(results: Sequence[AblationResult]) -> str:
    if not results:
        return "No ablation has been computed for this corpus."
    return f"The ablation is provisional: {results[0].seeds} of {results[0].question.seeds} seeds are done."


def _differs(result: AblationResult, objective: str, ratio: float | None, rules: bool) -> str | None:
    """How a result differs from the current selection; None: it does not."""
    if objective not in result.question.objectives:
        return f"The ablation did not try the current objective, {objective}."
    if ratio is None:
        return f"The ablation is for select ratio {result.question.ratio:g}, and the current selection fills tokens."
    if abs(result.question.ratio - ratio) > 1e-9:
        return f"The ablation is for select ratio {result.question.ratio:g}, and the current one is {ratio:g}."
    if rules:
        return "The ablation was computed without rules, and the current selection has rules."
    return None


def _colored(result: AblationResult, agreement: float | None) -> tuple[str, str]:
    """State and reason of a finished result that fits the current selection."""
    if result.judge == "features":
        return GRAY, "The corpus has no texts, so no proxy model was trained on them."
    if agreement is None:
        return GRAY, "Only one proxy model has run. Confirm it on the page Evidence."
    if not agreement >= LEAST_AGREEMENT:
        return GRAY, (
            f"The two proxy models rank the methods differently (rank correlation {agreement:.2f}, at least "
            f"{LEAST_AGREEMENT:g} is needed)."
        )
    return COLORED, f"Two proxy models rank the methods alike (rank correlation {agreement:.2f})."


def compare_models(result: AblationResult, results: Sequence[AblationResult]) -> float | None:
    """The rank correlation with the second proxy model's result for the same question, which may be of its first seeds;
    None: there is none."""
    wanted = result.question.by(MODELS[1]).key
    second = next((each for each in results if each.question.key == wanted), None)
    if second is None or second.methods != result.methods or len(second.targets) != len(result.targets):
        return None
    return rank_agreement(result.means, second.means)
