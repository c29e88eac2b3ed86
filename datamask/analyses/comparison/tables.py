"""Two to four runs on the same corpus, side by side: values, overlap, settings, and the rows that differ.

Pure: run records in, small tables out. Maps, overlaps and ids compare whenever the rows are the same (equal corpus
fingerprint). Values compare only where the scale is the same too: quality where the quality anchors are equal (equal
number of selected rows), diversity where the objective is equal as well. `caveats` says so in sentences.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.linked.groups import Z
from datamask.dashboard.tradeoff.ends import Ends, ends_of, other_version
from datamask.errors import InputError
from datamask.evaluation.result import NO_RESULT
from datamask.measured import TermValues
from datamask.options import CORPUS_OPTIONS, OPTIONS, Option
from datamask.runs.store import Run

LETTERS = "ABCD"
MOST = 4
NAME = 32
"""Letters of a run's name in a table."""

KINDS = ("both", "added", "left out")
"""Rows that both select, that only the second selects, that only the first selects."""

SETTINGS = {name: option.title for name, option in OPTIONS.items()}
"""Every setting of a selection, with what a list of settings calls it."""


@dataclass(frozen=True)
class Entry:
    """One finished run in a comparison.

    Attributes:
        letter: A to D; label: letter and name, unique within the comparison.
        config: its settings. corpus: the options of its corpus that were given, by name.
        selected: bool ``(N,)``.
        drawn: float64 ``(N,)``, the chance of each row in a random selection of as many: `draw_chances`.
        shares: quality, diversity and joint as share of the attainable gain; None where a term is constant.
        raw: the same as they are.
        ends: of its diversity scale, with what they depend on.
    """

    run_id: str
    letter: str
    label: str
    config: SelectionConfig
    corpus: dict[str, Any]
    selected: np.ndarray
    drawn: np.ndarray
    shares: TermValues
    raw: TermValues
    ends: Ends

    @property
    def ratio(self) -> float:
        """Share of all rows that it selected."""
        return float(self.selected.mean())


def load(runs: Sequence[Run], n: int, beside: int = 0) -> list[Entry]:
    """Read the finished runs of a comparison, on a corpus of n rows.

    Args:
        beside: how many selections that are no runs are compared with them.

    Raises:
        InputError: no selection or more than four, or a table of another length.
    """
    if not 1 <= len(runs) + beside <= MOST:
        raise InputError(f"a comparison takes 1 to {MOST} selections, got {len(runs) + beside}")
    entries = []
    for letter, run in zip(LETTERS, runs):
        names = ("selected", "eligible")
        table = run.rows(names)
        selected, eligible = (table[name].to_numpy(zero_copy_only=False).astype(bool) for name in names)
        if len(selected) != n:
            raise InputError(
                f"run {run.id} has {len(selected):,} rows, the open corpus has {n:,}; open the corpus of the run"
            )
        result = run.status().result or NO_RESULT
        entries.append(
            Entry(
                run.id,
                letter,
                f"{letter} · {run.config.name or run.id}",
                run.config.selection,
                {"inputs": run.config.corpus.inputs, **run.config.corpus_given()},
                selected,
                draw_chances(int(selected.sum()), eligible | selected, _pinned(run, n) & selected),
                result.calibrated,
                result.raw,
                ends_of(run.config.selection, result, run.facts()),
            )
        )
    return entries


# -- overlap ------------------------------------------------------------------------------------------------------


def chance_overlap(first: np.ndarray, second: np.ndarray) -> float:
    """Jaccard overlap of two independent random selections, for many rows.

    The expected intersection ``I = sum p q`` over the expected union ``sum p + sum q - I``, the limit that the overlap
    concentrates on. Where each draws the share r of all rows, that is ``r / (2 - r)``.

    Args:
        first, second: float64 ``(N,)``, the chance of each row in either: p and q of `draw_chances`.
    """
    shared = float(first @ second)
    return shared / (float(first.sum()) + float(second.sum()) - shared)


def draw_chances(size: int, eligible: np.ndarray, pinned: np.ndarray) -> np.ndarray:
    """The chance of each row in a uniform draw of `size` rows that keeps the pinned ones: float64 ``(N,)``.

    Args:
        eligible: bool ``(N,)``, rows that may be drawn. pinned: bool ``(N,)``, rows that are always drawn.
    """
    free = eligible & ~pinned
    chances = pinned.astype(np.float64)
    chances[free] = (size - int(pinned.sum())) / max(1, int(free.sum()))
    return chances


def summary(entries: Sequence[Entry], lengths: np.ndarray | None = None) -> pd.DataFrame:
    """One row per run, in words: ``run, Quality, Diversity, Mean score, Rows, Tokens, Overlap, What differs``.

    ``Overlap`` is Jaccard's, the rows that a run shares with the first divided by the rows of either; behind it stands
    what random selections have that draw as many from the rows that each run could take, and where the sizes differ
    what they allow at most.

    Args:
        lengths: tokens ``(N,)``; NaN counts none. None: no column ``Tokens``.
    """
    differing = settings(entries)
    table = pd.DataFrame(
        {
            "run": [words.middle(entry.label, NAME).replace(" ", words.GAP) for entry in entries],
            "Quality": [words.percent(entry.shares.quality) for entry in entries],
            "Diversity": [words.percent(entry.shares.diversity) for entry in entries],
            "Mean score": [words.value(entry.raw.quality) for entry in entries],
            "Rows": [words.count(entry.selected.sum()) for entry in entries],
            "Overlap": ["–", *(overlap_words(entries[0], entry) for entry in entries[1:])],
            "What differs": [
                " · ".join(_unbroken(f"{name} {used[place]}") for name, used in differing.items()) or "nothing"
                for place in range(len(entries))
            ],
        }
    )
    if lengths is not None:
        table.insert(5, "Tokens", [words.short(float(np.nansum(lengths[entry.selected]))) for entry in entries])
    return table


def overlap_words(first: Entry, second: Entry) -> str:
    """The overlap of two runs as ``75 % (18 %)``, its value by chance in brackets; see `summary`."""
    shared = int((first.selected & second.selected).sum())
    few, many = sorted((int(first.selected.sum()), int(second.selected.sum())))
    overlap, chance = shared / (few + many - shared), chance_overlap(first.drawn, second.drawn)
    most = "" if few == many else f", at most {words.percent(few / many)}"
    return f"{words.percent(overlap)} ({words.percent(chance)}{most})"


# -- settings -------------------------------------------------------------------------------------------------------


def settings(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """What each run has of the settings that differ, by their titles.

    Those of the corpus too: the same rows may have been opened by other options.
    """
    differing = {}
    for name, title in SETTINGS.items():
        used = [getattr(entry.config, name) for entry in entries]
        if not _equal(used):
            differing[title] = [_in_words(value) for value in used]
    for name, option in CORPUS_OPTIONS.items():
        if not _equal([entry.corpus.get(name, option.default) for entry in entries]):
            differing[option.title] = [_opened_by(entry, option) for entry in entries]
    return differing


def other_ends(entries: Sequence[Entry]) -> str | None:
    """A sentence where two versions of datamask found the ends of one diversity scale; None: nowhere."""
    for first, second in combinations(entries, 2):
        if first.ends.clash(second.ends):
            return f"{second.letter} does not compare with {first.letter}: {other_version(first.letter)}."
    return None


def caveats(entries: Sequence[Entry]) -> list[str]:
    """What must not be read out of this comparison, one sentence each."""
    sentences = []
    if not _equal([int(entry.selected.sum()) for entry in entries]):
        sizes = ", ".join(f"{entry.letter} {entry.selected.sum():,}" for entry in entries)
        sentences.append(f"The runs select different numbers of rows ({sizes}). Compare overlap and rows, not values.")
    if not _equal([entry.config.objective for entry in entries]):
        used = ", ".join(f"{entry.letter} {entry.config.objective}" for entry in entries)
        sentences.append(f"The runs have different objectives ({used}). Do not compare their diversity.")
    if (ends := other_ends(entries)) is not None:
        sentences.append(ends)
    if not _equal([entry.config.lamb for entry in entries]):
        sentences.append("The runs have different λ. Compare quality and diversity, not joint values.")
    return sentences


# -- changes --------------------------------------------------------------------------------------------------------


def masks(first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    """Bool ``(N,)`` of each of `KINDS`: in both, only in the second, only in the first."""
    first, second = np.asarray(first, bool), np.asarray(second, bool)
    return dict(zip(KINDS, (first & second, second & ~first, first & ~second), strict=True))


def paired(added: np.ndarray, left_out: np.ndarray, n: np.ndarray, z: float = Z) -> tuple[np.ndarray, np.ndarray]:
    """Interval of the change of a share, ``(added - left_out) / n``, when both shares are of the same n samples.

    The adjusted Wald interval of Bonett and Price (2012), which adds one pair of each kind: samples that both
    selections treat alike say nothing about a change, so the two shares may not be compared as if they were strangers.

    Args:
        z: normal quantile of the confidence.

    Returns:
        Its lower and upper ends, float64.
    """
    added, left_out, n = (np.asarray(part, float) for part in (added, left_out, n))
    more, less = (added + 1) / (n + 2), (left_out + 1) / (n + 2)
    reach = z * np.sqrt((more + less - (more - less) ** 2) / (n + 2))
    change = (added - left_out) / n
    # the adjustment pulls towards 0 and must not leave the change itself outside
    return (
        np.clip(np.minimum(more - less - reach, change), -1, 1),
        np.clip(np.maximum(more - less + reach, change), -1, 1),
    )


def by_group(
    codes: np.ndarray, names: tuple[str, ...], first: np.ndarray, second: np.ndarray, weights: np.ndarray | None = None
) -> pd.DataFrame:
    """One row per group that is not empty, the largest sure change first.

    Columns: ``group, n``, `KINDS`, ``before, after`` (selected shares), ``change, low, high`` (their difference and its
    interval), and with weights ``tokens_`` of each kind. Sure is how far the interval stays away from the change over
    all rows, which is 0 for selections of one size.

    Args:
        codes: ``(N,)`` indices into names; -1: in no group.
        first, second: bool ``(N,)``.
        weights: tokens ``(N,)``.
    """
    inside = codes >= 0
    n = np.bincount(codes[inside], minlength=len(names))
    there = np.flatnonzero(n)
    parts = masks(first, second)
    counts = {kind: np.bincount(codes[inside & mask], minlength=len(names))[there] for kind, mask in parts.items()}
    total = n[there]
    low, high = paired(counts["added"], counts["left out"], total)
    overall = float(np.mean(second)) - float(np.mean(first))
    off = np.where(low > overall, low - overall, np.where(high < overall, high - overall, 0.0))
    change = (counts["added"] - counts["left out"]) / total
    table = pd.DataFrame(
        {
            "group": np.array(names, object)[there],
            "n": total,
            **counts,
            "before": (counts["both"] + counts["left out"]) / total,
            "after": (counts["both"] + counts["added"]) / total,
            "change": change,
            "low": low,
            "high": high,
        }
    )
    if weights is not None:
        for kind, mask in parts.items():
            chosen = inside & mask
            table[f"tokens_{kind}"] = np.bincount(codes[chosen], weights[chosen], minlength=len(names))[there]
    order = np.lexsort((table["group"].astype(str), -np.abs(change - overall), -np.abs(off)))
    return table.iloc[order].reset_index(drop=True)


def _pinned(run: Run, n: int) -> np.ndarray:
    """The rows that the run had to take, bool ``(N,)``; none where the list of them is gone."""
    from datamask.evaluation.id_lists import read_ids

    pinned = np.zeros(n, bool)
    if run.config.selection.pin is not None:
        table = run.rows()
        name = run.id_column(table)
        ids = table[name]
        with contextlib.suppress(InputError, pa.ArrowException):
            listed = read_ids(Path(run.config.selection.pin), name).cast(ids.type)
            pinned = pc.is_in(ids, value_set=listed).to_numpy()
    return pinned


def _unbroken(text: str) -> str:
    """A short text that stays on one line in a narrow column."""
    return text.replace(" ", words.GAP) if len(text) <= NAME else text


def _equal(items: Sequence[object]) -> bool:
    return all(item == items[0] for item in items)


def _opened_by(entry: Entry, option: Option) -> str:
    """A corpus's option in words; what it is found by, or follows, where it was not given."""
    if option.name in entry.corpus:
        return option.shown(entry.corpus[option.name])
    return option.unset or ("–" if option.default in (None, ()) else option.shown(option.default))


def _in_words(value: object) -> str:
    if value is None or value == ():
        return "–"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return words.value(value)
    return str(value)
