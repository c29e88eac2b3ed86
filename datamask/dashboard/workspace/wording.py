"""The current selection in words: what the answer bar and the report say of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.runs import listing, outcome
from datamask.dashboard.tradeoff import amounts, answers
from datamask.dashboard.tradeoff.answers import Units
from datamask.dashboard.workspace.selection import Selection
from datamask.evaluation.result import NO_RESULT
from datamask.runs.store import Run


def answer_of(corpus: Corpus, units: Units, selection: Selection, *, final: bool = True) -> dict[str, Any]:
    """What the answer bar says of a selection, as `answers.answer`; of a run on mapped arrays, of all rows.

    Args:
        final: whether its gap becomes no smaller.
    """
    said = answers.answer(
        corpus,
        units,
        selection.mask,
        balance(selection),
        quality=selection.quality,
        diversity=selection.diversity,
        exact=selection.exact,
        gap=selection.gap,
        final=final,
        note=f"run {listing.name_of(selection.run)}" if selection.run is not None else selection.preview * "preview",
    )
    return said if selection.run is None or selection.run.whole is None else said | _of_all_rows(selection.run, said)


def _of_all_rows(run: Run, said: Mapping[str, Any]) -> dict[str, Any]:
    """What a run on mapped arrays says otherwise than the rows that are open: these are a sample."""
    result = run.status().result or NO_RESULT
    size, score = result.size, result.raw.quality
    if size.selected is None or size.n is None or score is None:  # it has not ended
        return {}
    return {
        "note": f"{said['note']}{outcome.sample_words(run)}",
        "size": answers.amount_words(size.selected, size.n, size.tokens),
        "sentence": answers.compared(Units(), score, None, exact=True),
    }


def parts(corpus: Corpus, selection: Selection) -> list[str]:
    """A selection in one line, part by part."""
    said = answer_of(corpus, Units(), selection)
    meters = [f"{meter['term']} {meter['words']}" for meter in said["meters"] if meter["share"] is not None]
    named = [said["name"], problem(selection.settings), said["size"], *meters, said["gap"]]
    return [*filter(None, named), *(["preview"] if selection.preview else [])]


def balance(selection: Selection) -> str:
    """``λ 0.35``; of a baseline, which has no λ, the method."""
    entry = catalogue.estimator(selection.settings.estimator)
    return f"λ {selection.lamb:g}" if entry.learns else entry.label


def problem(settings: SelectionConfig) -> str:
    """``facility, keep 30 %``."""
    return f"{settings.objective}, keep {amounts.words_of(settings)}{', with rules' if settings.ruled else ''}"
