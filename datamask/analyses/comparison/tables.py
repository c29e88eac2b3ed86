"""Two to four runs on the same corpus, side by side: what they share, what only one kept, which settings differ.

Pure: run records in, small tables out. Maps, overlaps and ids compare whenever the rows are the same (equal corpus
fingerprint). Values compare only where the scale is the same too: quality where the quality anchors are equal (equal
number of selected rows), diversity where the objective is equal as well. `caveats` says so in sentences.
"""

from __future__ import annotations

import contextlib
import math
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
from datamask.dashboard.map.layers import Category
from datamask.dashboard.tradeoff.ends import Ends, ends_of, other_version
from datamask.errors import InputError
from datamask.evaluation.result import NO_RESULT
from datamask.measured import TermValues
from datamask.options import CORPUS_OPTIONS, OPTIONS, Option
from datamask.runs.store import Run

LETTERS = "ABCD"
MOST = 4

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


def overlaps(entries: Sequence[Entry]) -> pd.DataFrame:
    """One row per pair: ``pair, shared, only_first, only_second, overlap, chance, most``.

    ``overlap`` is Jaccard's shared / either; ``chance`` what random selections have that draw as many from the rows
    that each run could take; ``most`` what sizes as different as these allow.
    """
    rows = []
    for a, b in combinations(entries, 2):
        shared = int((a.selected & b.selected).sum())
        sizes = sorted((int(a.selected.sum()), int(b.selected.sum())))
        rows.append(
            {
                "pair": f"{a.letter} and {b.letter}",
                "shared": shared,
                "only_first": int(a.selected.sum()) - shared,
                "only_second": int(b.selected.sum()) - shared,
                "overlap": shared / (sum(sizes) - shared),
                "chance": chance_overlap(a.drawn, b.drawn),
                "most": sizes[0] / sizes[1],
            }
        )
    return pd.DataFrame(rows)


def by_category(entries: Sequence[Entry], category: Category) -> pd.DataFrame:
    """Where each run takes more or less: one row per class and run, ``category, n, run, selected, share``.

    ``n`` is the number of all rows of the class, ``share`` the part of them that the run selected. Largest class first.
    """
    total = np.bincount(category.codes, minlength=len(category.names))
    rows = []
    for code, name in enumerate(category.names):
        for entry in entries:
            taken = int(entry.selected[category.codes == code].sum())
            rows.append(
                {
                    "category": name,
                    "n": int(total[code]),
                    "run": entry.label,
                    "selected": taken,
                    "share": taken / total[code] if total[code] else math.nan,
                }
            )
    return pd.DataFrame(rows)


# -- values and settings --------------------------------------------------------------------------------------------


def values(entries: Sequence[Entry]) -> pd.DataFrame:
    """One row per run: ``run, selected, quality, diversity`` (shares of the attainable gain) and ``raw_...``."""
    return pd.DataFrame(
        [
            {
                "run": entry.label,
                "selected": int(entry.selected.sum()),
                "quality": _number(entry.shares.quality),
                "diversity": _number(entry.shares.diversity),
                "raw_quality": _number(entry.raw.quality),
                "raw_diversity": _number(entry.raw.diversity),
                "objective": entry.config.objective,
            }
            for entry in entries
        ]
    )


def tokens(entries: Sequence[Entry], lengths: np.ndarray) -> list[float]:
    """Tokens of the rows that each run selected; rows without a length count none."""
    return [float(np.nansum(lengths[entry.selected])) for entry in entries]


def settings(entries: Sequence[Entry]) -> pd.DataFrame:
    """Only the settings that differ: first column ``Setting``, then one text column per run; may be empty.

    Those of the corpus too: the same rows may have been opened by other options.
    """
    rows = []
    for name, label in SETTINGS.items():
        used = [getattr(entry.config, name) for entry in entries]
        if any(value != used[0] for value in used):
            rows.append({"Setting": label, **{entry.label: _in_words(value) for entry, value in zip(entries, used)}})
    for name, option in CORPUS_OPTIONS.items():
        given = [entry.corpus.get(name, option.default) for entry in entries]
        if not _equal(given):
            rows.append({"Setting": option.title, **{entry.label: _opened_by(entry, option) for entry in entries}})
    return pd.DataFrame(rows, columns=["Setting", *(entry.label for entry in entries)])


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


def _equal(items: Sequence[object]) -> bool:
    return all(item == items[0] for item in items)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


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
