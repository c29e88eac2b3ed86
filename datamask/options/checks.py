"""What the settings check of one value, and how they write a number."""

from __future__ import annotations

import math
from typing import Any

from datamask.errors import OptionError


def check(condition: bool, option: str, expected: str, got: Any) -> None:
    """Refuse an option's value unless `condition` holds.

    Raises:
        OptionError: it does not; the sentence names the option, what was expected and what came.
    """
    if not condition:
        raise OptionError(f"--{option} must be {expected}, got {got!r}")


def finite(value: Any) -> bool:
    """Whether a value is a finite number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def number_text(value: float) -> str:
    """The shortest text that reads back as exactly `value`: 0.3, not 0.300000; 10, not 10.0."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))
