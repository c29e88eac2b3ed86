"""A selection in the words of the answer bar: how large, how good, how far proved, and what that is in the corpus's own
units next to random rows and the best scores under the same rules. Pure; no streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datamask import catalogue
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.measured import BASELINE_DRAWS, Baselines

PROVED_WITHIN = 1.0
"""Percent of the attainable gain: a larger gap is said as a number, because it proves little."""


@dataclass(frozen=True)
class Units:
    """In what the rows of a problem are measured.

    Attributes:
        by_tokens: whether scores count by tokens, as under a token budget. baselines: None: not computed yet.
    """

    by_tokens: bool = False
    baselines: Baselines | None = None


def answer(
    corpus: Corpus,
    units: Units,
    mask: np.ndarray,
    name: str,
    *,
    quality: float | None,
    diversity: float | None,
    exact: bool = True,
    gap: float | None = None,
    final: bool = True,
    note: str = "",
) -> dict[str, Any]:
    """Return what the bar says of one selection.

    Args:
        mask: bool ``(N,)``, its rows. name: its λ, or its method.
        quality, diversity: shares of the attainable gain; None where they were not measured on that scale.
        exact: whether diversity is the objective's value; else it is measured on lists and at least that.
        gap, final: how far it is proved, and whether the proof is complete.
        note: what else is said next to the name, such as the run.
    """
    proof, gap_text = proof_words(gap, final)
    return {
        "name": name,
        "note": note,
        "size": size_words(corpus, mask),
        "meters": [_meter("Quality", quality, ""), _meter("Diversity", diversity, "" if exact else "≥ ")],
        "proof": proof,
        "gap": gap_text,
        "sentence": sentence(corpus, units, mask, diversity, exact),
    }


def sentence(corpus: Corpus, units: Units, mask: np.ndarray, diversity: float | None, exact: bool) -> str:
    """``Mean score 2.56 (random 1.15, best scores 3.18). Coverage 0.80 (random 0.75, best scores 0.70).``

    Args:
        diversity: a share of the attainable gain; None: not measured. exact: as of `answer`.
    """
    weights = corpus.lengths[mask] if units.by_tokens and corpus.lengths is not None else None
    known = units.baselines
    raw = None if known is None or diversity is None else known.raw(diversity)
    return compared(units, float(np.average(corpus.quality[mask], weights=weights)), raw, exact)


def compared(units: Units, score: float, raw: float | None, exact: bool) -> str:
    """A mean score, and the objective in its unit, each next to the baselines that are known."""
    known = units.baselines
    said = [_held_against("Mean score", [score] + ([] if known is None else [known.random.score, known.best.score]))]
    if known is not None and raw is not None:
        entry = catalogue.objective(known.objective)
        values = [value + entry.offset for value in (raw, known.random.raw, known.best.raw)]
        said.append(_held_against(entry.unit, values, "" if exact and known.exact else "≥ "))
    return " ".join(said)


def baselines(corpus: Corpus, units: Units) -> list[tuple[np.ndarray, dict[str, Any]]]:
    """The rows of each baseline, and what the bar says of them: random ones, then the best scores."""
    if (known := units.baselines) is None:
        return []
    said = []
    for at, name, note in (
        (known.random, "Random rows", f"means of {BASELINE_DRAWS} draws; the map shows one"),
        (known.best, "Best scores", ""),
    ):
        mask = np.unpackbits(np.frombuffer(at.bits, np.uint8), count=len(corpus)).astype(bool)
        worth = answer(
            corpus, units, mask, name, quality=at.quality, diversity=at.diversity, exact=known.exact, note=note
        )
        said.append((mask, {**worth, "sentence": compared(units, at.score, at.raw, known.exact)}))
    return said


def ticks(units: Units) -> list[list[dict[str, Any]]]:
    """Where random rows and the best scores stand on the two meters; empty while that is not known."""
    if (known := units.baselines) is None:
        return []
    named = (("random", known.random), ("best scores", known.best))
    return [
        [{"share": getattr(at, term), "words": f"{name} {words.percent(getattr(at, term), 1)}"} for name, at in named]
        for term in ("quality", "diversity")
    ]


def _held_against(name: str, values: Sequence[float], least: str = "") -> str:
    """A value, and behind it those of random rows and of the best scores, in as many digits as tell them apart."""
    largest = max(max(map(abs, values)), 1e-300)
    digits = max(0, 2 - max(0, int(np.floor(np.log10(largest)))))
    while len({f"{value:.{digits}f}" for value in values}) < len(set(values)) and digits < 6:
        digits += 1
    own, *others = (f"{value:,.{digits}f}".replace("-", "−") for value in values)
    against = f" (random {others[0]}, best scores {others[1]})" if others else ""
    return f"{name} {least}{own}{against}."


def size_words(corpus: Corpus, mask: np.ndarray) -> str:
    """``1,796 of 5,988 rows · 270 k tokens``, without tokens where the corpus has no lengths."""
    tokens = None if corpus.lengths is None else float(corpus.lengths[mask].sum())
    return amount_words(int(mask.sum()), len(corpus), tokens)


def amount_words(selected: int, rows: int, tokens: float | None) -> str:
    """The same of known numbers; tokens are None where there are no lengths."""
    amount = f"{selected:,} of {rows:,} rows"
    return amount if tokens is None else f"{amount} · {words.short(tokens)} tokens"


def proof_words(gap: float | None, final: bool) -> tuple[str, str]:
    """How near the best possible in two words, and the gap; empty where nothing will be proved.

    Args:
        final: whether the proof is complete: until then a gap says how far it is, not how good the selection is.
    """
    if gap is None:
        return "", ""
    if not final:
        return "not proved yet", ""
    percent = words.gap_percent(gap)
    text = f"gap {percent:.2f}{words.GAP}%"
    return "proved near the best for this λ ✓" if percent <= PROVED_WITHIN else text, text


def _meter(term: str, share: float | None, least: str) -> dict[str, Any]:
    return {
        "term": term,
        "share": share,
        "words": least + words.percent(share),
        "finer": least + words.percent(share, 1),
    }
