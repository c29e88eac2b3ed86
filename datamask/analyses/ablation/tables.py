"""Results of ablations as small tables and sentences. Pure: a result in, data frames and sentences out."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from datamask.ablation import wording
from datamask.ablation.comparisons import BETTER, LEVEL, WORSE, Difference
from datamask.ablation.offer import LEAST_AGREEMENT, MODELS, compare_models
from datamask.ablation.question import LABEL_REGIONS, AblationQuestion
from datamask.ablation.result import AblationResult
from datamask.dashboard.drawing import words

VERDICTS = {BETTER: "better", WORSE: "worse", LEVEL: "level"}
MODEL_NAMES = dict(zip(MODELS, ("bigram model", "small transformer"))) | {"features": "distance in the features"}


def order(result: AblationResult) -> list[int]:
    """Places of the methods, that with the smallest largest regret first."""
    return sorted(range(len(result.methods)), key=lambda place: result.summaries[place].regret)


def cells(result: AblationResult) -> pd.DataFrame:
    """One row per method and target, methods in `order`: ``method, target, difference, low, high, verdict, random,
    method_name``.

    The difference is to random, below 0 is better; without a finished result there are no ends and no verdict.
    """
    differences = result.means - result.means[0]
    return pd.DataFrame(
        [
            _cell(result, place, target.label, differences[place, at], result.to_random(place, at))
            for place in order(result)
            for at, target in enumerate(result.targets)
        ]
    )


def overall(result: AblationResult) -> pd.DataFrame:
    """One row per method, as in `cells`: its difference to random in the mean over targets."""
    differences = (result.means - result.means[0]).mean(axis=1)
    over = f"mean over {len(result.targets)} targets" if result.several else result.targets[0].label
    found = None if result.overall is None else result.overall.to_random[0]
    return pd.DataFrame(
        [
            _cell(result, place, over, differences[place], None if found is None else found[place])
            for place in order(result)
        ]
    )


def _cell(
    result: AblationResult, place: int, target: str, difference: float, interval: Difference | None
) -> dict[str, object]:
    method = result.methods[place]
    return {
        "method": method.label,
        "target": target,
        "difference": float(difference),
        "low": float("nan") if interval is None else interval.low,
        "high": float("nan") if interval is None else interval.high,
        "verdict": "" if interval is None else VERDICTS[interval.verdict],
        "random": place == 0,
        "method_name": method.name,
    }


def regrets(result: AblationResult) -> dict[str, float]:
    """The largest regret of each method, by its label."""
    return {summary.method.label: summary.regret for summary in result.summaries}


def methods(result: AblationResult) -> pd.DataFrame:
    """One row per method of a result with several targets, in `order`; counts only where they are known."""
    rows = []
    for place in order(result):
        summary = result.summaries[place]
        counts = {
            "than random": f"{summary.better} better, {summary.worse} worse",
            "than best simple": f"{summary.better_than_simple} better, {summary.worse_than_simple} worse",
        }
        rows.append(
            {
                "method": summary.method.label,
                "largest regret": summary.regret,
                "on": summary.regret_on.label,
                **({} if result.provisional else counts),
                "worst target": f"{summary.worst.label} {wording.signed(summary.worst_difference)}",
            }
        )
    return pd.DataFrame(rows)


def losses(result: AblationResult) -> pd.DataFrame:
    """One row per method of a result with one target, the smallest loss first; verdicts only where they are known."""
    rows = []
    best = None if result.comparisons is None else result.comparisons.best_simple[0]
    for place in map(int, result.means[:, 0].argsort(kind="stable")):
        to_random, to_simple = result.to_random(place, 0), result.to_simple(place, 0)
        row = {"method": result.methods[place].label, "loss": float(result.means[place, 0])}
        if to_random is None or to_simple is None:
            row["to random"] = wording.signed(result.means[place, 0] - result.means[0, 0])
        else:
            row |= {
                "to random": wording.amount(to_random),
                "than random": "" if place == 0 else VERDICTS[to_random.verdict],
                # chosen on other seeds, the best simple baseline can differ from itself
                "to best simple": "" if place == best else wording.amount(to_simple),
                "than best simple": "the best" if place == best else VERDICTS[to_simple.verdict],
            }
        rows.append(row)
    return pd.DataFrame(rows)


def asked(question: AblationQuestion) -> str:
    """A question in a line, such as ``several targets, select ratio 30 %, 10 seeds, bigram model``."""
    if question.target is not None:
        target = question.target.label
    elif question.label == LABEL_REGIONS:
        target = "regions of the features"
    else:
        target = f"values of {question.label}" if question.label else "several targets"
    model = "" if question.judge == MODELS[0] else f", {MODEL_NAMES[question.judge]}"
    return f"{target}, select ratio {words.percent(question.ratio)}, {question.seeds} seeds{model}"


def titles(results: Sequence[AblationResult]) -> dict[str, str]:
    """Menu lines by key, in the order given."""
    lines = {}
    for result in results:
        so_far = f", {result.seeds} done" if result.provisional else ""
        lines[result.question.key] = f"{words.ago(result.created)}: {asked(result.question)}{so_far}"
    return lines


def confirmation(result: AblationResult, results: Sequence[AblationResult]) -> str:
    """What the second proxy model says of a result, "" where it was not asked."""
    agreement = compare_models(result, results)
    if agreement is None:
        return ""
    alike = "alike" if agreement >= LEAST_AGREEMENT else "differently"
    return f"The small transformer ranks the methods {alike}: rank correlation {agreement:.2f}."
