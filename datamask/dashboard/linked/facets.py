"""Distributions to look at and to brush: bins of a number, bars of a class, counted over all rows. Pure numpy.

The bin of each row is found once. Whatever is filtered afterwards is one count over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus.column_kinds import Column
from datamask.corpus.corpus import Corpus
from datamask.corpus.decode import numbers
from datamask.dashboard.map.filters import Among, Between, Condition

BINS = 40
"""Bars of a histogram; finer ones show noise."""

BARS = 10
"""Classes with a bar of their own; the rest share one."""

ENDS = (0.5, 99.5)
"""Percentiles between which the bars lie; what is beyond falls into the first and the last, which say so."""


SKEWED = 6.0
"""From a top end of this many times the median on, bars of equal width would crowd nearly all rows into the first."""


@dataclass(frozen=True)
class Facet:
    """One distribution.

    Attributes:
        name: what it is a distribution of, as in the panels' menus; title: as over a panel.
        bins: int16 ``(N,)``, the bar of each row; -1: none.
        edges: float64 of the bars' ends for a number, one more than bars; None for classes.
        labels: of the bars of classes.
        ranges: of a number, its least and greatest value; the outer bars reach so far.
        rest: how many classes share the last bar; 0: it is a class of its own.
    """

    name: str
    title: str
    bins: np.ndarray
    edges: np.ndarray | None = None
    labels: tuple[str, ...] = ()
    ranges: tuple[float, float] = (0.0, 0.0)
    rest: int = 0

    @property
    def bars(self) -> int:
        """How many bars there are."""
        return len(self.labels) if self.edges is None else len(self.edges) - 1

    def counts(self, mask: np.ndarray | None = None) -> np.ndarray:
        """Rows in each bar, int64; of all rows, or of those of a bool ``(N,)`` mask."""
        return self._totals if mask is None else self._count(self.bins[mask])

    def _count(self, bins: np.ndarray) -> np.ndarray:
        # one bar more, for rows without a bar: cheaper than leaving them out first
        return np.bincount(bins + np.int16(1), minlength=self.bars + 1)[1:]

    @cached_property
    def _totals(self) -> np.ndarray:
        return self._count(self.bins)

    def percentiles(self) -> np.ndarray:
        """At which percentile of all rows each end of a bar lies, one more than bars: 0 to 100."""
        counts = self.counts()
        return 100.0 * np.concatenate([[0], np.cumsum(counts)]) / max(1, counts.sum())

    def condition(self, chosen: Sequence[int]) -> Condition | None:
        """What brushing these bars means; None where it means nothing (no bar, or all of them).

        Args:
            chosen: of a number, the first and the last bar; of classes, every bar that is wanted.
        """
        bars = sorted({k for k in chosen if isinstance(k, int) and 0 <= k < self.bars})
        if not bars:
            return None
        if self.edges is None:
            own = self.bars - bool(self.rest)  # the last bar may stand for many classes, and none of them is meant
            names = [label for k, label in enumerate(self.labels[:own]) if k in bars]
            return Among(self.name, tuple(names)) if names else None
        first, last = bars[0], bars[-1]
        if first == 0 and last == self.bars - 1:
            return None
        # the outer bars hold what lies beyond their ends
        low = self.ranges[0] if first == 0 else float(self.edges[first])
        high = self.ranges[1] if last == self.bars - 1 else float(np.nextafter(self.edges[last + 1], -np.inf))
        return Between(self.name, low, high)

    def brushed(self, condition: Condition | None) -> list[int]:
        """The bars that a condition of this name takes, for drawing it."""
        if isinstance(condition, Between) and self.edges is not None:
            middles = (self.edges[1:] + self.edges[:-1]) / 2
            middles[0], middles[-1] = max(self.ranges[0], self.edges[0]), min(self.ranges[1], self.edges[-1])
            return np.flatnonzero((middles >= condition.low) & (middles <= condition.high)).tolist()
        if isinstance(condition, Among):
            return [k for k, label in enumerate(self.labels) if label in condition.names]
        return []


def number_facet(name: str, title: str, values: np.ndarray) -> Facet | None:
    """Bars of equal width, of equal ratio where numbers are skewed; None where there are not two different values."""
    values = np.asarray(values, float)
    finite = values[np.isfinite(values)]
    if not len(finite) or finite.min() == finite.max():
        return None
    least, most = float(finite.min()), float(finite.max())
    low, high = map(float, np.percentile(finite, ENDS))
    if not low < high:
        low, high = least, most
    if bool((finite == np.round(finite)).all()) and high - low < BINS:  # one bar per whole number
        edges = np.arange(np.floor(low) - 0.5, np.ceil(high) + 1)
    elif low > 0 and high > SKEWED * np.median(finite):
        edges, title = np.geomspace(low, high, BINS + 1), f"{title}, log scale"
    else:
        edges = np.linspace(low, high, BINS + 1)
    with np.errstate(invalid="ignore"):
        bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return Facet(name, title, np.where(np.isfinite(values), bins, -1).astype(np.int16), edges, ranges=(least, most))


def class_facet(name: str, title: str, codes: np.ndarray, names: tuple[str, ...]) -> Facet:
    """A bar for each of the most frequent classes, by falling count, and one for all others."""
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    ranked = sorted((i for i in range(len(names)) if counts[i]), key=lambda i: (-counts[i], names[i]))
    room = BARS if len(ranked) <= BARS else BARS - 1
    shown, rest = ranked[:room], ranked[room:]
    bar = np.full(len(names) + 1, -1, np.int16)
    bar[shown] = np.arange(len(shown))
    bar[rest] = len(shown)
    labels = [names[i] for i in shown] + ([f"{len(rest):,} others"] if rest else [])
    return Facet(name, title, bar[codes], labels=tuple(labels), rest=len(rest))


def columns_of(
    table: pa.Table, columns: Mapping[str, Column]
) -> tuple[dict[str, np.ndarray], dict[str, tuple[np.ndarray, tuple[str, ...]]]]:
    """Numbers and classes among the columns of a table: float32 ``(N,)``, and int32 codes ``(N,)`` with names."""
    scales, classes = {}, {}
    for name, column in columns.items():
        if column.kind == "number":
            scales[name] = numbers(table[name].combine_chunks())[0].astype(np.float32)
        elif column.kind == "class":
            classes[name] = codes_of(table[name])
    return scales, classes


def lengths(corpus: Corpus) -> tuple[np.ndarray | None, str]:
    """How long each sample is, float64 ``(N,)``, and in what: as given, else by its text's characters, else unknown."""
    if corpus.lengths is not None:
        return corpus.lengths, "tokens"
    texts = corpus.texts
    if texts is None:
        return None, ""
    return pc.utf8_length(texts).cast(pa.float64()).to_numpy(), "characters"


def codes_of(column: pa.ChunkedArray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes int32 ``(N,)`` and the names behind them; nulls get a name of their own."""
    # encoded before the chunks are combined: a class may have few names that are very long
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    array = encoded.combine_chunks()
    codes = array.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    names = [str(value) for value in array.dictionary.to_pylist()]
    if (codes < 0).any():
        codes = np.where(codes < 0, len(names), codes)
        names.append("(none)")
    # a dictionary may hold the same name twice
    unique = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.array([unique[name] for name in names], np.int32)[codes], tuple(unique)
