"""What the settings check of one value, and how they write a number."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from datamask.errors import OptionError

T = TypeVar("T")


def check(condition: bool, option: str, expected: str, got: Any) -> None:
    """Refuse an option's value unless `condition` holds.

    Raises:
        OptionError: it does not; the sentence names the option, what was expected and what came.
    """
    if not condition:
        raise OptionError(f"--{option} must be {expected}, got {got!r}")


def check_known(given: Iterable[str], names: Sequence[str], of: str) -> None:
    """Refuse the name of an option that is not there.

    Args:
        of: what has the options, such as "a selection".

    Raises:
        OptionError: there is none; the sentence names the nearest one.
    """
    for name in given:
        if name not in names:
            near = [other for other in names if name in other] or difflib.get_close_matches(name, names, 1, 0.5)
            raise OptionError(f"{name} is not an option of {of}" + (f"; did you mean {near[0]}?" if near else ""))


def required(value: T | None, option: str) -> T:
    """The value of an option that whoever asks cannot do without.

    Raises:
        OptionError: it is None, as in settings that were made for an estimator without this option.
    """
    if value is None:
        raise OptionError(f"--{option} must be set here, got none; make the settings with SelectionConfig.from_options")
    return value


def finite(value: Any) -> bool:
    """Whether a value is a finite number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def number_text(value: float) -> str:
    """The shortest text that reads back as exactly `value`: 0.3, not 0.300000; 10, not 10.0."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))
