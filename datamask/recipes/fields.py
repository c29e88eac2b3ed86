"""Reading a record from outside: every field has its type, shape and range, or there is a sentence about it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datamask.errors import InputError

Id = str | int
"""What an id column holds."""

LONGEST_TEXT = 1 << 16
"""Characters of a text that stands in shards: the name of a column, a value, an id. It may hold any character."""

LONGEST_LINE = 4096
"""Characters of a text that people read, all of them printable."""


def parse_strict(text: str | bytes) -> Any:
    """What JSON says, NaN and infinities refused, of whatever depth Python reads.

    Raises:
        ValueError: it is no JSON, or no strict one.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(name: str) -> None:
    raise ValueError(f"it holds {name}, which is no number")


class Fields:
    """The fields of one object of a record.

    Args:
        record: the object. source: where it comes from, for sentences. path: of the object in the record, ending in a
            dot, or nothing.
    """

    def __init__(self, record: Any, source: str, path: str = "") -> None:
        self._source, self._path = source, path
        if not isinstance(record, Mapping):
            raise self.error(path.rstrip(".") or "it", "a JSON object", record, whole_name=True)
        self._record = record

    def error(self, name: str, expected: str, value: object, whole_name: bool = False) -> InputError:
        """What is wrong with a field, as a sentence."""
        named = name if whole_name else f"{self._path}{name}"
        named = (named if named.isprintable() else ascii(named)[1:-1])[:200]
        shown = "nothing" if value is None else f"{type(value).__name__} {json.dumps(value, default=str)[:60]}"
        return InputError(
            f"{self._source} is no recipe that can be applied: {named} must be {expected}, got {shown}; make it again "
            "with `datamask recipe`"
        )

    def has(self, name: str) -> bool:
        """Whether there is such a field, and not null."""
        return self._record.get(name) is not None

    def within(self, name: str) -> Fields:
        """The fields of the object in that field."""
        return Fields(self._record.get(name), self._source, f"{self._path}{name}.")

    def each(self, name: str) -> list[Fields]:
        """Those of every object in a list."""
        value: Any = self._record.get(name)
        if not isinstance(value, list) or not value:
            raise self.error(name, "a list of one object at least", value)
        return [Fields(part, self._source, f"{self._path}{name}[{place}].") for place, part in enumerate(value)]

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number between two bounds, which are allowed."""
        value: Any = self._record.get(name)
        if not _finite(value) or not low <= value <= high:
            raise self.error(name, f"a finite number{_between(low, high)}", value)
        return float(value)

    def number_or_null(self, name: str) -> float | None:
        """A finite number, or null where that is said."""
        return None if name in self._record and self._record[name] is None else self.number(name)

    def whole(self, name: str, low: int = 0, high: int = 2**62) -> int:
        """A whole number between two bounds."""
        value: Any = self._record.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.error(name, f"a whole number{_between(low, high if high < 2**62 else math.inf)}", value)
        return value

    def text(self, name: str, among: Sequence[str] = ()) -> str:
        """A text, one of `among` where that names some; never empty."""
        value: Any = self._record.get(name)
        if not _is_text(value) or not value or (among and value not in among):
            raise self.error(name, f"one of {', '.join(map(repr, among))}" if among else _TEXT, value)
        return str(value)

    def line(self, name: str, shape: str = ".*") -> str:
        """A text that people read: printable characters, in full of the regular expression `shape`; never empty."""
        value: Any = self._record.get(name)
        if not _is_line(value) or not value or re.fullmatch(shape, value) is None:
            raise self.error(name, _LINE if shape == ".*" else f"a text of the form {shape}", value)
        return str(value)

    def lines(self, name: str) -> tuple[str, ...]:
        """A list of texts that people read, which may be empty or missing."""
        value = self._record.get(name, [])
        if not isinstance(value, list) or not all(map(_is_line, value)):
            raise self.error(name, f"a list of texts, each {_LINE}", value)
        return tuple(value)

    def ids(self, name: str) -> tuple[Id, ...]:
        """A list of ids, all texts or all whole numbers, which may be empty or missing."""
        value = self._record.get(name, [])
        kinds = {type(part) for part in value} if isinstance(value, list) else {type(None)}
        if len(kinds) > 1 or not kinds <= {str, int}:
            raise self.error(name, "a list of ids, all texts or all whole numbers", value)
        if kinds == {int} and not all(-(2**63) <= part < 2**64 for part in value):
            raise self.error(name, "a list of whole numbers of 64 bits", value)
        if kinds == {str} and not all(map(_is_text, value)):
            raise self.error(name, f"a list of ids, each {_TEXT}", value)
        return tuple(value)

    def object(self, name: str) -> dict[str, Any]:
        """An object that is kept as it is, every text in it checked; empty where there is none."""
        value: Any = self._record.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise self.error(name, "a JSON object", value)
        waiting: list[Any] = [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Mapping):
                waiting += [*part, *part.values()]
            elif isinstance(part, list):
                waiting += part
            elif isinstance(part, str) and not _is_text(part):
                raise self.error(name, f"a JSON object in which every text is {_TEXT}", part)
        return dict(value or {})

    def vector(self, name: str, length: int | None = None) -> np.ndarray:
        """A list of finite numbers, float64 ``(length,)``; None: of any length from 1."""
        value: Any = self._record.get(name)
        right = isinstance(value, list) and (len(value) == length if length is not None else len(value) > 0)
        if not right or not all(map(_finite, value)):
            count = "at least one" if length is None else f"{length:,}"
            raise self.error(name, f"a list of {count} finite numbers", _outline(value))
        return np.array(value, np.float64)

    def matrix(self, name: str, length: int, narrow: bool = False) -> np.ndarray:
        """A list of rows of finite numbers, float64 ``(length, length)``; where `narrow`, of fewer columns."""
        value: Any = self._record.get(name)
        rows = isinstance(value, list) and len(value) == length and length > 0
        width = len(value[0]) if rows and narrow and isinstance(value[0], list) else length
        if not (rows and 0 < width <= length) or not all(
            isinstance(row, list) and len(row) == width and all(map(_finite, row)) for row in value
        ):
            fewer = " or fewer" if narrow else ""
            raise self.error(name, f"{length:,} lists of {length:,}{fewer} finite numbers", _outline(value))
        return np.array(value, np.float64)


_TEXT = f"a Unicode text of at most {LONGEST_TEXT:,} characters"

_LINE = f"a text of at most {LONGEST_LINE:,} printable characters, without line breaks"


def _is_text(value: Any) -> bool:
    """Whether it is a text that can be written: JSON can spell halves of characters, which no encoding has."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_LINE and value.isprintable()


def _finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def _between(low: float, high: float) -> str:
    if math.isfinite(low) and math.isfinite(high):
        return f" from {low:g} to {high:g}"
    return f" of at least {low:g}" if math.isfinite(low) else f" of at most {high:g}" if math.isfinite(high) else ""


def _outline(value: Any) -> Any:
    """What came, without its thousands of numbers."""
    return f"a list of {len(value):,}" if isinstance(value, list) else value
