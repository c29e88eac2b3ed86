"""What a data lead needs to know of a selection, in sentences: what is kept, is it better than what, where are the ids.

Every sentence comes from what is stored. Where nothing was measured, the summary says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from datamask.ablation.comparisons import BETTER, LEVEL, WORSE
from datamask.ablation.methods import method_of
from datamask.ablation.offer import doubt, instead_of, offer, usable_for_quality
from datamask.ablation.result import AblationResult
from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.evaluation.result import NO_RESULT
from datamask.options.duplicates import duplicates_named
from datamask.runs.rule_book import duplicates_left_out
from datamask.runs.store import Run

NOT_MEASURED = "Not measured yet: whether this selection is better than a baseline."

VERDICTS = {BETTER: "better", LEVEL: "level", WORSE: "worse"}


@dataclass(frozen=True)
class Kept:
    """What the summary is about.

    Attributes:
        settings: of the selection. selected: rows that it keeps, of `n`; tokens: of these, None: not known.
        eligible: rows that could be selected; None: not counted. run_id: of the run that it is; "": it is in no run.
        columns: of the corpus, role -> name.
        file: where the ids lie for whoever reads the summary; "": in the run's folder.
    """

    settings: SelectionConfig
    selected: int
    n: int
    tokens: float | None = None
    eligible: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    run_id: str = ""
    file: str = ""


def kept_by(run: Run, file: str = "") -> Kept:
    """What a done run keeps, by its record; `file` as in `Kept`."""
    size, facts = (run.status().result or NO_RESULT).size, run.facts()
    return Kept(
        run.config.selection,
        size.selected or 0,
        size.n or 0,
        size.tokens,
        facts.get("eligible"),
        facts.get("columns") or {},
        run.id,
        file,
    )


def summary(kept: Kept, results: Sequence[AblationResult]) -> list[str]:
    """The sentences, in order.

    Args:
        results: the stored ablations of its corpus, newest first.
    """
    return [_rows(kept), *_compared(kept, results), _duplicates(kept), _ids(kept)]


def _rows(kept: Kept) -> str:
    if not kept.selected or not kept.n:
        return "The record does not say how many rows it selects."
    told = f", {words.count(kept.tokens)} tokens" if kept.tokens else ""
    share = words.percent(kept.selected / kept.n, 1)
    what, verb = ("run", "selects") if kept.run_id else ("selection", "has")
    return f"The {what} {verb} {words.count(kept.selected)} of {words.count(kept.n)} rows ({share}{told})."


def _compared(kept: Kept, results: Sequence[AblationResult]) -> list[str]:
    """How its method did in the newest finished ablation that fits, target by target."""
    finished = [result for result in results if not result.provisional and usable_for_quality(result)]
    if not finished:
        return [NOT_MEASURED]
    rows = kept.n or finished[0].n
    found = ((result, place) for result in finished if (place := method_of(result, kept.settings, rows)) is not None)
    result, place = next(found, (finished[0], None))
    offered = offer(results, kept.settings)
    if place is None and (instead := instead_of(kept.settings, offered, rows)):
        return [*instead, *([offered.doubt] if offered.doubt else [])]
    if place is None:
        return [
            f"Not measured for this selection: the ablation compared {len(result.methods)} other methods at "
            f"select ratio {result.question.ratio:g}, without pins, bans or quotas."
        ]
    if any(target.circular for target in result.targets):
        return [
            (
                "Not measured for this selection: the target of the ablation is circular, because it is made "
                "from the quality."
            )
        ]
    return [*_verdicts(result, place), *_doubt(result, results)]


def _verdicts(result: AblationResult, place: int) -> list[str]:
    """Against random in one sentence, against the best simple baseline of each target in one for each verdict."""
    assert result.comparisons is not None
    method, of = result.methods[place], len(result.targets)
    said = []
    if place != 0:
        targets = range(of)
        counts = [difference.verdict for at in targets if (difference := result.to_random(place, at)) is not None]
        said.append(
            f"By an ablation over {result.seeds} seeds, {method.label} is better than random on "
            f"{counts.count(BETTER)} of {of} {'target' if of == 1 else 'targets'} and worse on {counts.count(WORSE)}."
        )
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    own = []
    for at, target in enumerate(result.targets):
        best, difference = result.comparisons.best_simple[at], result.to_simple(place, at)
        if best == place:
            own.append(target.label)
        elif difference is not None:
            by_verdict[difference.verdict].append(f"{target.label} ({result.methods[best].label})")
    for verdict, word in VERDICTS.items():
        if by_verdict[verdict]:
            than = "with" if verdict == LEVEL else "than"
            said.append(f"It is {word} {than} the best simple baseline for {'; '.join(by_verdict[verdict])}.")
    if own:
        said.append(f"It is itself the best simple baseline for {'; '.join(own)}.")
    return said


def _doubt(result: AblationResult, results: Sequence[AblationResult]) -> list[str]:
    """What the proxy models leave open; and that the result is about the method."""
    about = (
        f"The ablation compares methods on parts of the corpus of {result.rows:,} rows. It measures the method, "
        "not this selection."
    )
    return [*filter(None, [doubt(result, results)]), about]


def _duplicates(kept: Kept) -> str:
    """How many duplicates were left out before the selection."""
    settings = kept.settings
    if settings.collapse == "none":
        return "No duplicates were removed before the selection."
    kind = duplicates_named(settings.collapse, kept.columns)
    left = duplicates_left_out(settings, kept.n, kept.eligible)
    if left is None:
        counted = "The number of removed rows was not counted" if kept.run_id else "A run counts the removed rows"
        return f"Only the best row of {kind} could be selected. {counted}."
    return f"Before the selection, {words.count(left)} {kind} were removed."


def _ids(kept: Kept) -> str:
    if kept.file:
        return f"The selection is in {kept.file}."
    if not kept.run_id:
        return "The ids are in no run folder yet. Download them, or press Keep as run."
    return (
        "The run's folder holds the ids (selection.parquet). Rows: "
        f"`datamask runs export {kept.run_id} --rows OUT.parquet`."
    )
