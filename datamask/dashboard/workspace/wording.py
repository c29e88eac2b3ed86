"""The current selection in words: the parts of the strip. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.tradeoff.lambda_points import proof_words
from datamask.dashboard.workspace.selection import Selection


def parts(corpus: Corpus, selection: Selection, more: Sequence[str] = (), *, proving: bool = False) -> list[str]:
    """What the strip says of a selection, part by part.

    Args:
        proving: whether its gap may still become smaller.
        more: further parts, as the number of targets for which it is better than random.
    """
    settings = selection.settings
    said = [balance(selection), problem(settings), f"{selection.count:,} of {len(corpus):,} rows"]
    tokens = selection.tokens(corpus)
    if settings.budget is not None and tokens is not None:
        said.append(f"{words.short(tokens)} tokens")
    if selection.quality is not None:
        said.append(f"Quality {words.percent(selection.quality)}")
    if selection.diversity is not None:
        said.append(f"Diversity {'' if selection.exact else '≥ '}{words.percent(selection.diversity)}")
    said += [proof_words(selection.gap, final=not proving), "preview" if selection.preview else ""]
    return [*filter(None, said), *more]


def balance(selection: Selection) -> str:
    """``λ 0.35``; of a baseline, which has no λ, the method."""
    entry = catalogue.estimator(selection.settings.estimator)
    return f"λ {selection.lamb:g}" if entry.learns else entry.label


def problem(settings: SelectionConfig) -> str:
    """``facility, ratio 0.3``."""
    size = (
        f"{words.short(settings.budget)} tokens" if settings.budget is not None else f"ratio {settings.select_ratio:g}"
    )
    return f"{settings.objective}, {size}{', with rules' if settings.ruled else ''}"


def download(selection: Selection) -> str:
    """The label of the download button."""
    about = [f"λ {selection.lamb:g}"] if catalogue.estimator(selection.settings.estimator).learns else []
    about += ["preview"] if selection.preview else []
    return f"Download {selection.stored:,} ids" + (f" ({', '.join(about)})" if about else "")
