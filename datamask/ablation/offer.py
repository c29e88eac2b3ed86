"""What the stored results of a corpus say of the current selection: the tried lambdas, and what leaves doubt.

A result is of the current selection where it is finished, for its objective, select ratio and rules, not circular, and
no second proxy model ranks the methods in another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datamask import catalogue
from datamask.ablation import wording
from datamask.ablation.comparisons import BETTER, LEVEL, WORSE, rank_agreement
from datamask.ablation.methods import method_of
from datamask.ablation.result import AblationResult
from datamask.config import SelectionConfig

MODELS = ("bigram", "transformer")

LEAST_AGREEMENT = 0.7
"""Rank correlation over methods from which two proxy models rank them alike."""

TRIED = 5e-3
"""Half a step of the slider: a lambda within it of a tried one is that one. Nothing is said between tried ones."""


@dataclass(frozen=True)
class TriedLambda:
    """A lambda that was tried with the current objective, compared with random selection.

    Attributes:
        lamb: lambda. better, worse: targets on which it is better and worse than random. targets: their labels.
    """

    lamb: float
    better: int
    worse: int
    targets: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """``better`` on some target and worse on none, ``worse`` the other way round, else ``level``."""
        if self.better and not self.worse:
            return BETTER
        return WORSE if self.worse and not self.better else LEVEL

    @property
    def words(self) -> str:
        """``better than random for 2 of 6 targets``, ``level with random for all 6 targets``; a single one by name."""
        of = len(self.targets)
        if of == 1:
            than = "level with" if self.verdict == LEVEL else f"{self.verdict} than"
            return f"{than} random for {self.targets[0]}"
        if not self.better and not self.worse:
            return f"level with random for all {of} targets"
        if not self.better:
            return f"worse than random for {self.worse} of {of} targets"
        worse = f", worse for {self.worse}" if self.worse else ""
        return f"better than random for {self.better} of {of} targets{worse}"


@dataclass(frozen=True)
class Offer:
    """What the stored results say of a selection.

    Attributes:
        result: the finished result that is nearest to it; None: there is none.
        reason: why the result says nothing of the selection, a sentence; "": it does.
        doubt: what the proxy models leave open, a sentence; "": two of them rank alike.
        tried: the lambdas of the current objective, rising; empty where the result says nothing of the selection.
    """

    result: AblationResult | None
    reason: str = ""
    doubt: str = ""
    tried: tuple[TriedLambda, ...] = ()

    @property
    def apart(self) -> tuple[TriedLambda, ...]:
        """The tried lambdas that are better or worse than random."""
        return tuple(point for point in self.tried if point.verdict != LEVEL)

    @property
    def sentence(self) -> str:
        """What was found, in a line: ``Evidence: no difference from random could be shown at this size.``"""
        if self.reason or not self.tried:
            reason = self.reason or self.doubt
            return f"Evidence: {reason[:1].lower()}{reason[1:]}"
        better = [f"{point.lamb:g}" for point in self.tried if point.verdict == BETTER]
        if better:
            return f"Evidence: better than random at λ {wording.listed(better)}."
        if any(point.worse for point in self.tried):
            return "Evidence: small models learn no better from any λ than from random rows (▼ worse)."
        return "Evidence: no difference from random could be shown at this size."

    def at(self, lamb: float) -> TriedLambda | None:
        """The tried lambda; None: it was not tried."""
        return next((point for point in self.tried if abs(point.lamb - lamb) < TRIED), None)


def offer(results: Sequence[AblationResult], settings: SelectionConfig) -> Offer:
    """What the stored results of a corpus say of a selection.

    Args:
        results: of one corpus, newest first, provisional ones too. settings: of the selection.

    Example:
        >>> offer([], SelectionConfig.from_options(objective="facility")).sentence
        'Evidence: no ablation of this corpus yet.'
    """
    usable = [result for result in results if usable_for_quality(result)]
    finished = [result for result in usable if not result.provisional]
    if not usable:
        return Offer(None, "No ablation of this corpus yet.")
    if not finished:
        return Offer(None, f"{usable[0].seeds} of {usable[0].question.seeds} seeds of the ablation are done.")
    objective = settings.objective
    same = [result for result in finished if not _differs(result, settings)]
    tried = [result for result in finished if objective in result.question.objectives]
    result = (same or tried or finished)[0]
    if any(each.circular for each in result.targets):
        return Offer(result, "The target of the ablation is circular: it is made from the quality.")
    if not same:
        return Offer(result, _differs(result, settings))
    said, agreement = doubt(result, results), compare_models(result, results)
    contradicted = agreement is not None and not agreement >= LEAST_AGREEMENT
    return Offer(result, "", said, () if contradicted else _tried(result, objective))


def usable_for_quality(result: AblationResult) -> bool:
    """Whether it is of the first proxy model and of methods that selected by the corpus's own quality."""
    target = result.question.target
    return result.judge != MODELS[1] and not (target is not None and target.steers)


def _tried(result: AblationResult, objective: str) -> tuple[TriedLambda, ...]:
    found = []
    for summary in result.summaries:
        method = summary.method
        if method.along_lambda and method.objective == objective and method.lamb is not None:
            labels = tuple(target.label for target in result.targets)
            found.append(TriedLambda(method.lamb, summary.better, summary.worse, labels))
    return tuple(sorted(found, key=lambda point: point.lamb))


def _differs(result: AblationResult, settings: SelectionConfig) -> str:
    """How a result differs from a selection; "": it does not."""
    asked = result.question
    if settings.objective not in asked.objectives:
        return f"The ablation did not try the current objective, {settings.objective}."
    if settings.budget is not None:
        return f"The ablation is for select ratio {asked.ratio:g}, and the current selection fills tokens."
    if abs(asked.ratio - settings.select_ratio) > 1e-9:
        return f"The ablation is for select ratio {asked.ratio:g}, and the current one is {settings.select_ratio:g}."
    if settings.ruled or settings.ban is not None or settings.prune > 0 or settings.collapse != "none":
        return "The ablation was computed without rules, and the current selection has rules."
    return ""


def doubt(result: AblationResult, results: Sequence[AblationResult]) -> str:
    """What the proxy models leave open of a finished result, a sentence; "": two of them rank the methods alike."""
    if result.judge == "features":
        return "The corpus has no texts, so no proxy model was trained on them."
    agreement = compare_models(result, results)
    if agreement is None:
        return "Only one proxy model has run. Confirm it on the page Evidence."
    if not agreement >= LEAST_AGREEMENT:
        return (
            f"The two proxy models rank the methods differently (rank correlation {agreement:.2f}, at least "
            f"{LEAST_AGREEMENT:g} is needed)."
        )
    return ""


def compare_models(result: AblationResult, results: Sequence[AblationResult]) -> float | None:
    """The rank correlation with the second proxy model's result for the same question, which may be of its first seeds;
    None: there is none."""
    wanted = result.question.by(MODELS[1]).key
    second = next((each for each in results if each.question.key == wanted), None)
    if second is None or second.methods != result.methods or len(second.targets) != len(result.targets):
        return None
    return rank_agreement(result.means, second.means)


def instead_of(settings: SelectionConfig, offered: Offer, rows: int) -> list[str]:
    """What was measured in the place of a selection by another method, in sentences: solved selections.

    Args:
        settings: of the selection. offered: for it. rows: of the corpus.

    Returns:
        Nothing where its own method was measured or uses no lambda, or the result says nothing of it.
    """
    entry = catalogue.estimator(settings.estimator)
    # a baseline is compared with solved selections, not replaced by them
    by_itself = not entry.guided or entry.name == catalogue.auto(settings.objective)
    if by_itself or offered.result is None or not offered.tried:
        return []
    if method_of(offered.result, settings, rows) is not None:
        return []
    said = f"The ablation did not test this run's method, {'learned masks' if entry.draws_masks else entry.label}."
    point = offered.at(settings.lamb)
    return [said] if point is None else [said, f"At λ {point.lamb:g}, a selection by Solve is {point.words}."]
