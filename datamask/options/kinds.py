"""The kinds of values that an option may have: which values are of it, how a sentence says so, how they are written."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from datamask.errors import OptionError
from datamask.options.amounts import parse_tokens, tokens_text
from datamask.options.checks import check, finite, number_text
from datamask.options.components import ALL
from datamask.options.duplicates import GROUPS
from datamask.options.quality_columns import QualityColumn
from datamask.options.quotas import Quota
from datamask.storage.address import is_address, refuse_secrets

NO_FLOAT64 = " (Apple's mps has no float64 numbers, in which values are reported and proved)"


class Kind:
    """What values an option takes; `settings`, where a method has it, are all values of the record, by name."""

    is_text: ClassVar[bool] = False
    """Whether a record on disk holds its values as text."""

    many: ClassVar[bool] = False
    """Whether a value is a tuple, whose parts the command line names one by one."""

    def canonical(self, value: Any, name: str) -> Any:
        """The one spelling of a value, which is what is kept.

        Raises:
            OptionError: it is none of this kind, and what it should have been only this method can say.
        """
        return value

    def fits(self, value: Any, settings: object) -> bool:
        """Whether a value in its one spelling is of this kind."""
        return True

    def expected(self, value: Any, settings: object) -> str:
        """What a value that does not fit should have been, after "must be"."""
        raise NotImplementedError

    def text(self, value: Any) -> str:
        """The value, or a part of one of many, as the command line reads it back."""
        return str(value)

    def restored(self, value: Any) -> Any:
        """The value that a record on disk holds as plain JSON."""
        return value


@dataclass(frozen=True)
class Number(Kind):
    """A finite number between two bounds.

    Attributes:
        words: what is expected, with the bounds; names in braces are other options, whose values are put there.
        low, high: the bounds; the name of another option is its value.
        above, below: whether the bound itself is excluded.
    """

    words: str
    low: float
    high: float | str = math.inf
    above: bool = False
    below: bool = False

    def fits(self, value: Any, settings: object) -> bool:
        if not finite(value):
            return False
        high = getattr(settings, self.high) if isinstance(self.high, str) else self.high
        over, under = (operator.lt if open_end else operator.le for open_end in (self.above, self.below))
        return bool(over(self.low, value) and under(value, high))

    def expected(self, value: Any, settings: object) -> str:
        return self.words.format_map(vars(settings))

    def text(self, value: Any) -> str:
        return number_text(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number of at least `low`, or of what `least` says of the estimator, and at most `high`, if any.

    Attributes:
        most: `high` as people read it.
    """

    low: int
    high: float = math.inf
    most: str = ""
    least: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def fits(self, value: Any, settings: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and self._least(settings) <= value <= self.high

    def expected(self, value: Any, settings: object) -> str:
        least = self._least(settings)
        return f"a whole number from {least} to {self.most}" if self.most else f"a whole number of at least {least}"

    def _least(self, settings: object) -> int:
        return self.least.get(getattr(settings, "estimator", ""), self.low)


@dataclass(frozen=True)
class Choice(Kind):
    """One of some words. `meanings`: each with what a form says in its place."""

    meanings: Mapping[str, str]
    is_text: ClassVar[bool] = True

    def fits(self, value: Any, settings: object) -> bool:
        return isinstance(value, str) and value in self.meanings

    def expected(self, value: Any, settings: object) -> str:
        *others, last = map(repr, self.meanings)
        return f"{', '.join(others)} or {last}" if others else last


@dataclass(frozen=True)
class Flag(Kind):
    """True or false; given alone on the command line."""

    def fits(self, value: Any, settings: object) -> bool:
        return isinstance(value, bool)

    def expected(self, value: Any, settings: object) -> str:
        return "true or false"


@dataclass(frozen=True)
class Text(Kind):
    """Words that are checked where they are used: a name."""

    is_text: ClassVar[bool] = True


@dataclass(frozen=True)
class IdFile(Text):
    """A file of ids; runs keep its absolute path."""


@dataclass(frozen=True)
class Folder(Text):
    """A folder of this machine that is written into; runs keep its absolute path."""

    def fits(self, value: Any, settings: object) -> bool:
        return super().fits(value, settings) and not is_address(value)

    def expected(self, value: Any, settings: object) -> str:
        return (
            "a folder of this machine, which no address is" if is_address(value) else super().expected(value, settings)
        )


@dataclass(frozen=True)
class Device(Kind):
    """Where to compute."""

    is_text: ClassVar[bool] = True
    choices: ClassVar[tuple[str, ...]] = ("auto", "cpu", "cuda")
    """What a form offers; other names are typed."""

    def fits(self, value: Any, settings: object) -> bool:
        device = str(value)
        return device in self.choices or (device.startswith("cuda:") and device[5:].isdigit())

    def expected(self, value: Any, settings: object) -> str:
        return "auto, cpu, cuda or cuda:K" + (NO_FLOAT64 if str(value) == "mps" else "")


@dataclass(frozen=True)
class Copies(Kind):
    """``none``, ``exact``, a cosine or ``column:NAME``, as text."""

    is_text: ClassVar[bool] = True

    def canonical(self, value: Any, name: str) -> str:
        text = str(value).strip()
        if text.startswith(GROUPS) and len(text) > len(GROUPS):
            return text
        if text.lower() in ("none", "exact"):
            return text.lower()
        try:
            cosine = float(text)
        except ValueError:
            cosine = math.nan
        check(
            math.isfinite(cosine) and 0 < cosine <= 1,
            name,
            f"'none', 'exact', a cosine above 0 and at most 1, or '{GROUPS}NAME'",
            value,
        )
        return f"{cosine:g}"


@dataclass(frozen=True)
class Components(Kind):
    """``all``, or a number of principal components, as text."""

    is_text: ClassVar[bool] = True

    def canonical(self, value: Any, name: str) -> str:
        text = str(value).strip().lower()
        check(
            text == ALL or (text.isdecimal() and int(text) >= 2),
            name,
            f"'{ALL}' or a whole number of at least 2",
            value,
        )
        return text if text == ALL else str(int(text))


@dataclass(frozen=True)
class Tokens(Kind):
    """A number of tokens, as people write it."""

    def canonical(self, value: Any, name: str) -> float:
        return parse_tokens(value, name)

    def text(self, value: Any) -> str:
        return tokens_text(value)


@dataclass(frozen=True)
class Quotas(Kind):
    """Quotas on values of one column, each value once; a text is read as on the command line."""

    many: ClassVar[bool] = True

    def restored(self, value: Any) -> tuple[Quota, ...]:
        return tuple(Quota(**quota) for quota in value)

    def canonical(self, value: Any, name: str) -> tuple[Quota, ...]:
        given = (value,) if isinstance(value, (str, Quota)) else value
        quotas = tuple(Quota.parse(quota) if isinstance(quota, str) else quota for quota in given)
        listed = ", ".join(map(str, quotas))
        for condition, expected in (
            (len({quota.column for quota in quotas}) <= 1, "on one column"),
            (len({quota.value for quota in quotas}) == len(quotas), "given once per value"),
        ):
            if not condition:
                raise OptionError(f"--{name} must be {expected}, got {listed!r}")
        return quotas


@dataclass(frozen=True)
class QualityColumns(Kind):
    """Quality columns with weight and transform, which are added up; a text is read as on the command line."""

    many: ClassVar[bool] = True

    def canonical(self, value: Any, name: str) -> tuple[QualityColumn, ...]:
        columns = (value,) if isinstance(value, (str, QualityColumn)) else value
        return tuple(QualityColumn.parse(column) if isinstance(column, str) else column for column in columns)

    def restored(self, value: Any) -> tuple[QualityColumn, ...]:
        return tuple(QualityColumn(**column) for column in value)


@dataclass(frozen=True)
class InputPaths(Kind):
    """Files, folders or globs to read, here or elsewhere; runs keep their absolute paths, and addresses as they are,
    which hold no secrets therefore.

    Attributes:
        least: how many there are at least.
    """

    least: int = 0
    many: ClassVar[bool] = True

    def canonical(self, value: Any, name: str) -> tuple[str, ...]:
        several = isinstance(value, Sequence) and not isinstance(value, str)
        paths = tuple(os.fspath(p) if isinstance(p, os.PathLike) else p for p in (value if several else (value,)))
        for path in paths:
            if isinstance(path, str):
                refuse_secrets(path, name)
        return paths

    def fits(self, value: Any, settings: object) -> bool:
        return len(value) >= self.least and all(isinstance(path, str) for path in value)

    def expected(self, value: Any, settings: object) -> str:
        return "at least one file, folder or glob"
