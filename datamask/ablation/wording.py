"""A result in sentences that say no more than its intervals do.

Every sentence about a method compares it with the best simple baseline, not only with random.
"""

from __future__ import annotations

import math

from datamask.ablation.comparisons import BETTER, WORSE, Difference
from datamask.ablation.result import AblationResult, MethodSummary

CIRCULAR = (
    "This target is circular, because it is made from the quality that methods select by. Nothing is recommended."
)
POOL_NOTE = "Random is hard to beat on held-out text of the corpus, because that text is a random draw of the rows too."


def pool_note(result: AblationResult) -> list[str]:
    """Return the note on held-out text of the corpus where that is a target, in today's words, not the stored ones."""
    return [POOL_NOTE] if any(target.note for target in result.targets) else []


def headline(result: AblationResult) -> str:
    """The answer in one to three sentences.

    Example: ``For an unknown target, Facility location λ 0.35 is the safest method: at most 0.120 nats ...``
    """
    if result.provisional:
        return (
            f"Provisional: {result.seeds} of {result.question.seeds} seeds are done. Methods are compared after "
            "all seeds."
        )
    if any(target.circular for target in result.targets):
        return CIRCULAR
    if result.claims and not result.several:
        return one_target(result)
    return nothing_better(result) if result.recommendation is None else several_targets(result)


def nothing_better(result: AblationResult) -> str:
    """What was too small to be seen, where methods are level or worse."""
    over = f" in the mean over {len(result.targets)} targets" if result.several else ""
    seen = (
        f"differences below {result.visible:.2g} {result.unit}{over} are not visible"
        if math.isfinite(result.visible)
        else "no difference is visible"
    )
    worse, others = sum(summary.worse > 0 for summary in result.summaries), len(result.methods) - 1
    return (
        f"Too small to tell: {seen} with {result.n:,} rows and {result.seeds} seeds. No method is better than random "
        "or than the best simple baseline"
        + (f" on any target; {worse} of {others} are worse than random on at least one." if worse else ".")
    )


def several_targets(result: AblationResult) -> str:
    """The recommendation for an unknown target, and what it is against the other kind of method: simple or joint."""
    recommended = result.recommendation
    assert recommended is not None
    kind = "method with λ" if recommended.method.simple else "simple baseline"
    # there is always a method of either kind: random, and an objective at a lambda
    other = min(
        (each for each in result.summaries if each.method.simple != recommended.method.simple),
        key=lambda each: each.regret,
    )
    compared = other if recommended.method == result.methods[0] else recommended
    return (
        f"For an unknown target, {recommended.method.label} is the safest method: "
        f"{within(recommended.regret, result)}. The safest {kind} is {other.method.label} "
        f"({other.regret:.3f} {result.unit}). {counts(compared, result)}"
    )


def within(regret: float, result: AblationResult) -> str:
    """How far a method is behind the best one where it is furthest: a largest regret, in words.

    Example: ``at most 0.120 nats per word behind the best on each of 12 targets``.
    """
    return f"at most {regret:.3f} {result.unit} behind the best on each of {len(result.targets)} targets"


def counts(summary: MethodSummary, result: AblationResult) -> str:
    """On how many targets a method is better and worse than random and than the best simple baseline."""
    of = f"{len(result.targets)} targets"
    if not (summary.better or summary.worse or summary.better_than_simple or summary.worse_than_simple):
        return f"{summary.method.label} is level with random and with the best simple baseline on all {of}."
    return (
        f"{summary.method.label} is better than random on {summary.better} of {of} and worse on {summary.worse}. "
        f"Against the best simple baseline it is better on {summary.better_than_simple} and worse on "
        f"{summary.worse_than_simple}."
    )


def one_target(result: AblationResult) -> str:
    """What is better than the best simple baseline, and what than random, on the one target."""
    assert result.comparisons is not None
    target, best = result.targets[0].label, result.methods[result.comparisons.best_simple[0]].label
    ahead = [place for place in _places(result) if _verdict(result.to_simple(place, 0)) == BETTER]
    better = [place for place in _places(result) if _verdict(result.to_random(place, 0)) == BETTER]
    if ahead:
        first = min(ahead, key=lambda place: result.means[place, 0])
        answer = (
            f"On {target}, {result.methods[first].label} is better than the best simple baseline, {best} "
            f"({amount(result.to_simple(first, 0), result.unit)})."
        )
        others = [result.methods[place].label for place in ahead if place != first]
        return answer + (f" So {'is' if len(others) == 1 else 'are'} {listed(others)}." if others else "")
    if better:
        first = min(better, key=lambda place: result.means[place, 0])
        others = [result.methods[place].label for place in better if place != first]
        return (
            f"On {target}, {result.methods[first].label} is better than random "
            f"({amount(result.to_random(first, 0), result.unit)})"
            f"{', and so ' + ('is ' if len(others) == 1 else 'are ') + listed(others) if others else ''}. "
            f"No method is better than the best simple baseline, {best}."
        )
    worse = [result.methods[place].label for place in _places(result) if _verdict(result.to_random(place, 0)) == WORSE]
    behind = [result.methods[place].label for place in _places(result) if _verdict(result.to_simple(place, 0)) == WORSE]
    return (
        f"On {target}, no method is better than random, and none is better than the best simple baseline, {best}. "
        + (
            f"Worse than random: {listed(worse)}."
            if worse
            else f"Worse than the best simple baseline: {listed(behind)}."
        )
    )


def method_note(result: AblationResult) -> str:
    """How the result was measured, in two sentences, and its notes."""
    used = "all rows" if not result.training else f"{result.training:,} {result.counts}"
    return " ".join(
        (
            f"Select ratio {result.question.ratio:g}, {result.seeds} of {result.question.seeds} seeds. For each seed, "
            f"every method selects {result.selected:,} of the same {result.rows:,} rows. The proxy model "
            f"({result.judge}) then trains on {used} of each selection.",
            "Confidence intervals use paired differences by seed and are corrected for multiple comparisons.",
            *result.notes,
        )
    )


def _places(result: AblationResult) -> range:
    return range(len(result.methods))


def _verdict(difference: Difference | None) -> str:
    return "" if difference is None else difference.verdict


def amount(difference: Difference | None, unit: str = "") -> str:
    """A difference with its interval: ``−0.027 nats per word, −0.041 to −0.013``."""
    if difference is None:
        return ""
    return (
        f"{signed(difference.mean)}{' ' + unit if unit else ''}, {signed(difference.low)} to {signed(difference.high)}"
    )


def listed(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def signed(number: float) -> str:
    """Three decimals with their sign."""
    return f"{number:+.3f}".replace("-", "−")
