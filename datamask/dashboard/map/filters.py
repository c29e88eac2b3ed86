"""Which samples the linked views show: conditions that all must hold, tested against every row. Pure.

A view owns at most one condition, under its own name: a new one replaces the old. Each view is drawn from what all the
*other* views let through, so that a histogram shows what its own brush could still take in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.dashboard.map.regions import Region, rows_inside

SPOKEN = {"quality": "quality score", "score": "score in this run"}
"""What the screen calls a number whose name in addresses is older. Quality alone is the share of a selection."""


@dataclass(frozen=True)
class Rows:
    """What conditions look at.

    Attributes:
        n: how many rows there are.
        numbers: float ``(N,)`` by name; NaN where a row has none.
        classes: codes ``(N,)`` and their names, by name; a code of -1 has no name.
        texts: strings, or None.
        points: float ``(N, 2)``, places on the map that regions were drawn on; None before there is a map.
    """

    n: int
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)
    classes: Mapping[str, tuple[np.ndarray, tuple[str, ...]]] = field(default_factory=dict)
    texts: pa.ChunkedArray | None = None
    points: np.ndarray | None = None


@dataclass(frozen=True)
class Between:
    """A number from `low` to `high`, both included; a row without a number is out."""

    name: str
    low: float
    high: float

    def mask(self, rows: Rows) -> np.ndarray:
        """Bool ``(N,)``."""
        # float64, or the ends would be rounded to the values' kind and rows at an end change sides
        values = np.asarray(rows.numbers[self.name], np.float64)
        return (values >= self.low) & (values <= self.high)

    @property
    def description(self) -> str:
        """The condition in words."""
        return f"{SPOKEN.get(self.name, self.name)} {self.low:.4g} to {self.high:.4g}"


@dataclass(frozen=True)
class Among:
    """A class with one of these names."""

    name: str
    names: tuple[str, ...]

    def mask(self, rows: Rows) -> np.ndarray:
        """Bool ``(N,)``."""
        codes, known = rows.classes[self.name]
        wanted = np.isin(np.array([*known, ""], object), list(self.names))
        wanted[-1] = False  # the code -1 reads this one
        return wanted[codes]

    @property
    def description(self) -> str:
        """The condition in words."""
        more = len(self.names) - 2
        return f"{self.name}: {', '.join(self.names[:2])}" + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Holding:
    """A text that holds all of these words, in any order, whatever their case; words in quotes are one phrase."""

    text: str
    name: str = "search"

    @property
    def phrases(self) -> list[str]:
        """Words and phrases that a text must hold, each with single spaces."""
        found = re.findall(r'["“]\s*([^"”\s][^"”]*)["”](?!\S)|(\S+)', self.text)
        return [" ".join((quoted or word).split()) for quoted, word in found]

    def mask(self, rows: Rows) -> np.ndarray:
        """Bool ``(N,)``."""
        holding = np.ones(rows.n, bool)
        for phrase in self.phrases:
            if rows.texts is None:
                return np.zeros(rows.n, bool)
            pattern = r"\s+".join(map(re.escape, phrase.split()))  # a phrase may run over a line's end
            hits = pc.match_substring_regex(rows.texts, pattern, ignore_case=True).fill_null(False)
            holding &= hits.to_numpy() if isinstance(hits, pa.ChunkedArray) else hits.to_numpy(zero_copy_only=False)
        return holding

    @property
    def description(self) -> str:
        """The condition in words."""
        return "text contains " + " and ".join(f"“{phrase}”" if " " in phrase else phrase for phrase in self.phrases)


@dataclass(frozen=True)
class Inside:
    """A place in one of the regions drawn on the map."""

    regions: tuple[Region, ...]
    name: str = "region"

    def mask(self, rows: Rows) -> np.ndarray:
        """Bool ``(N,)``."""
        inside = np.zeros(rows.n, bool)
        if rows.points is not None:
            inside[rows_inside(rows.points, self.regions)] = True
        return inside

    @property
    def description(self) -> str:
        """The condition in words."""
        return "region on the map" if len(self.regions) == 1 else f"{len(self.regions)} regions on the map"


@dataclass(frozen=True)
class Alike:
    """A cosine of at least `least` to the mean of some rows.

    Attributes:
        source: names these rows; said: the same in words. cosines: float32 ``(N,)``, to their mean.
    """

    least: float
    source: str
    said: str
    cosines: np.ndarray = field(repr=False, compare=False)
    name: str = "like"

    def mask(self, rows: Rows) -> np.ndarray:
        """Bool ``(N,)``."""
        alike: np.ndarray = self.cosines >= np.float32(self.least)
        return alike

    @property
    def description(self) -> str:
        """The condition in words."""
        return f"cosine {self.least:.2f} or more to {self.said}"


Condition = Between | Among | Holding | Inside | Alike


def _knows(rows: Rows, condition: Condition) -> bool:
    """Whether these rows have what a condition is on."""
    if isinstance(condition, Between):
        return condition.name in rows.numbers
    return not isinstance(condition, Among) or condition.name in rows.classes


@dataclass(frozen=True)
class Filters:
    """Conditions by name, all of which must hold. Without any, everything is shown."""

    conditions: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def of(self, name: str) -> Condition | None:
        """The condition of that name."""
        return next((condition for condition in self.conditions if condition.name == name), None)

    def taking(self, condition: Condition) -> Filters:
        """With one more condition, in the place of the one of the same name."""
        kept = tuple(condition if held.name == condition.name else held for held in self.conditions)
        return Filters(kept if self.of(condition.name) is not None else (*kept, condition))

    def without(self, name: str) -> Filters:
        """Without the condition of that name."""
        return Filters(tuple(condition for condition in self.conditions if condition.name != name))

    def known(self, rows: Rows) -> Filters:
        """Without conditions on what these rows do not have."""
        return Filters(tuple(condition for condition in self.conditions if _knows(rows, condition)))

    def mask(
        self,
        rows: Rows,
        skip: Iterable[str] = (),
        mask_of: Callable[[Condition, Rows], np.ndarray] = lambda condition, rows: condition.mask(rows),
    ) -> np.ndarray:
        """The rows that are shown, bool ``(N,)``.

        Args:
            skip: names of conditions to leave out.
            mask_of: answers for one condition; the place for a cache.
        """
        shown = np.ones(rows.n, bool)
        for condition in self.conditions:
            if condition.name not in skip:
                shown &= mask_of(condition, rows)
        return shown
