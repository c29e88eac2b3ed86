"""What a panel of the map shows: one value per sample, ready to be coloured. Pure numpy and pyarrow.

Five kinds: `Number` (cividis, clipped), `Category` (the seven most frequent and "other"), `Selection` (in or out),
`Change` (in both of two runs, added, left out) and `Classes` (a few named sets with a shape each). Each knows its title
and the sentence that has to stand under it. A sixth, `Blank`, keeps a panel's place while its values are still being
computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus.column_kinds import Column
from datamask.corpus.decode import numbers

CLIP = (2.0, 98.0)
"""Percentiles at which the colours of a `Number` end, so that one outlier does not bleach everything else."""

TOP = 7
"""Categories with a colour of their own; more cannot be told apart."""

NEITHER, BOTH, LEFT_OUT, ADDED = range(4)
"""Codes of `Change`: in no run, in both, only in the first, only in the second."""

CHANGE_NAMES = ("in neither", "in both", "left out", "added")


@dataclass(frozen=True)
class Number:
    """A scale.

    Attributes:
        title: what the values are.
        values: float32 ``(N,)``; NaN where a row has none.
        low, high: ends of the colour scale; low < high.
        clipped: whether values lie beyond the ends.
    """

    title: str
    values: np.ndarray
    low: float
    high: float
    clipped: bool

    @classmethod
    def of(cls, title: str, values: np.ndarray) -> Number:
        """Clip at 2-98 %; a (nearly) constant column gets a scale around its one value.

        Raises:
            ValueError: no value is finite.
        """
        values = np.asarray(values, np.float32)
        finite = values[np.isfinite(values)]
        if not len(finite):
            raise ValueError(f"{title!r} must hold at least one finite value to be drawn, got {len(values):,} without")
        low, high = map(float, np.percentile(finite, CLIP))
        least, most = float(finite.min()), float(finite.max())
        if not low < high:
            low, high = (least, most) if least < most else (least - 0.5, most + 0.5)
        return cls(title, values, low, high, least < low or most > high)

    @property
    def note(self) -> str:
        """The sentence under the panel, or an empty string."""
        return "colors end at the 2nd and 98th percentile" if self.clipped else ""


@dataclass(frozen=True)
class Category:
    """Classes by name.

    Attributes:
        title: what the classes are.
        codes: uint8 ``(N,)``, indices into `names`.
        names: at most eight, by falling count; "other" and "(none)" last.
        counts: rows of each name.
        note: how many classes stand behind "other", or an empty string.
    """

    title: str
    codes: np.ndarray
    names: tuple[str, ...]
    counts: tuple[int, ...]
    note: str = ""

    @classmethod
    def of(cls, title: str, column: pa.Array | pa.ChunkedArray) -> Category:
        """The seven most frequent values of any column, the rest as "other", nulls as "(none)" with them."""
        # encoded before the chunks are combined: a class may have few names that are very long
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        array = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        indices = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        names = [str(value) for value in array.dictionary.to_pylist()]
        counts = np.bincount(indices[indices >= 0], minlength=len(names))
        # by count, then by name: the same corpus always gets the same colours
        ranked = [i for i in sorted(range(len(names)), key=lambda i: (-counts[i], names[i])) if counts[i]]
        missing = int((indices < 0).sum())
        room = TOP + 1 if len(ranked) <= TOP + 1 and not missing else TOP
        shown, rest = ranked[:room], ranked[room:]
        codes = np.full(len(names) + 1, len(shown), np.uint8)
        codes[shown] = np.arange(len(shown), dtype=np.uint8)
        labels, sizes = [names[i] for i in shown], [int(counts[i]) for i in shown]
        if rest or missing:
            labels.append("other" if rest else "(none)")
            sizes.append(int(counts[rest].sum()) + missing)
        note = f"“other” has {len(rest):,} more values" if rest else ""
        if missing and rest:
            note += f" and {missing:,} rows without a value"
        return cls(title, codes[indices], tuple(labels), tuple(sizes), note)


@dataclass(frozen=True)
class Selection:
    """Which samples a run selected.

    Attributes:
        title: the run's name.
        selected: bool ``(N,)``.
    """

    title: str
    selected: np.ndarray
    note: str = ""

    @property
    def ratio(self) -> float:
        """Share of all rows that are selected."""
        return float(self.selected.mean())


@dataclass(frozen=True)
class Change:
    """What differs between two runs.

    Attributes:
        title: such as ``"B against A"``.
        codes: uint8 ``(N,)`` of `NEITHER`, `BOTH`, `LEFT_OUT`, `ADDED`.
    """

    title: str
    codes: np.ndarray
    note: str = ""

    @classmethod
    def between(cls, title: str, first: np.ndarray, second: np.ndarray) -> Change:
        """From two bool ``(N,)`` masks; left out is only in the first, added only in the second."""
        first, second = np.asarray(first, bool), np.asarray(second, bool)
        codes = np.where(first, np.where(second, BOTH, LEFT_OUT), np.where(second, ADDED, NEITHER))
        return cls(title, codes.astype(np.uint8))


@dataclass(frozen=True)
class Blank:
    """An empty panel.

    Attributes:
        title: what will be shown.
        text: why it is not there yet, or what to do.
    """

    title: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Classes:
    """A few named sets of samples, told apart by colour and by shape.

    Attributes:
        title: what the sets are.
        codes: uint8 ``(N,)``; 0: in none of them, k: in the k-th.
        names: of the sets, at most six.
        roles: of each set, a role in `palette.Shades`.
        shapes: of each set: circle, triangle, diamond, square or cross.
        rest: what those in none of them are called in the key; empty: the key leaves them out.
    """

    title: str
    codes: np.ndarray
    names: tuple[str, ...]
    roles: tuple[str, ...]
    shapes: tuple[str, ...]
    rest: str = ""
    note: str = ""


Layer = Number | Category | Selection | Change | Classes | Blank


def number(title: str, values: np.ndarray) -> Number | Blank:
    """A scale, or an empty panel where no row has a value."""
    if np.isfinite(np.asarray(values, float)).any():
        return Number.of(title, values)
    return Blank(title, "no row has a value")


def constant(layer: object) -> str:
    """Return the sentence about a column that has one value, or an empty string."""
    if isinstance(layer, Number):
        finite = layer.values[np.isfinite(layer.values)]
        one = len(finite) > 0 and bool(finite.min() == finite.max())
    else:
        one = isinstance(layer, Category) and len(layer.names) == 1
    return one_value(layer.title) if one and isinstance(layer, (Number, Category)) else ""


def one_value(title: str) -> str:
    """Return the sentence about a column of this title that has one value."""
    return f"{title} is the same in all rows, so it cannot color, filter or group them."


def layer_of_column(column: Column, values: pa.ChunkedArray) -> Layer:
    """What a metadata column looks like on the map: a scale where it is a number, else classes."""
    if column.kind == "number":
        return number(column.name, numbers(values.combine_chunks())[0])
    return Category.of(column.name, values)
